"""Who drives, and where: threads, event loops, interrupts; a run is driven by one at a time."""

from __future__ import annotations

import asyncio
import contextvars
import os
import signal
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from durable_nb import (
    Agent,
    AlreadyResumed,
    Checkpointer,
    DurableError,
    Message,
    Reply,
    Resume,
    RunIsLive,
    StaleLog,
    call,
    current,
    interrupt,
    tool,
)
from durable_nb.runtime.ports import Ports
from tests.support.agents import bot, nodes, told
from tests.support.providers import StrictModel

WORK = [call("work"), "done"]
HASTY = Ports(monotonic=iter(range(0, 10**9, 10)).__next__, sleep=lambda seconds: None)


class Held:
    """A tool that stays inside until it is let go."""

    def __init__(self, effects) -> None:
        self.inside, self.go = threading.Event(), threading.Event()
        self._effects = effects

    def work(self) -> str:
        self._effects.add("work")
        self.inside.set()
        assert self.go.wait(30)
        return "ok"


@pytest.fixture
def held(effects):
    """Let go at the end in any case."""
    tool_ = Held(effects)
    yield tool_
    tool_.go.set()


def test_a_run_whose_owner_is_inside_of_a_tool_is_live(store, elsewhere, effects, held) -> None:
    with ThreadPoolExecutor(1) as pool:
        owner = pool.submit(bot(store, WORK, held.work).run, "go", execution_id="r1")
        assert held.inside.wait(30)
        for decision in (None, Resume(True)):
            other = bot(elsewhere, WORK, held.work, ports=HASTY)
            expected = RunIsLive if decision is None else AlreadyResumed
            with pytest.raises(expected, match="'r1'"):
                other.resume("r1", resume_value=decision)
            assert other.llm.asked == 0
        assert [run.status for run in elsewhere.runs()] == ["running"]
        assert effects.lines == ["work"]
        held.go.set()
        assert owner.result().status == "completed"
    with pytest.raises(AlreadyResumed):
        bot(elsewhere, WORK, held.work).resume("r1")


def test_a_resume_waits_a_moment_for_who_is_about_to_finish(store, elsewhere, held) -> None:
    waits: list[float] = []

    def sleep(seconds: float) -> None:
        waits.append(seconds)
        held.go.set()
        owner.result()

    patient = Ports(monotonic=lambda: 0.0, sleep=sleep)
    with ThreadPoolExecutor(1) as pool:
        owner = pool.submit(bot(store, WORK, held.work).run, "go", execution_id="r1")
        assert held.inside.wait(30)
        with pytest.raises(AlreadyResumed, match="completed"):
            bot(elsewhere, WORK, held.work, ports=patient).resume("r1")
    assert len(waits) == 1


def crash(store, body, execution_id: str = "r1") -> None:
    """A run of the tool `work` whose process was interrupted inside of it."""

    def dies() -> str:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        bot(store, WORK, tool(name="work")(dies)).run("go", execution_id=execution_id)


def test_of_two_threads_that_resume_one_crashed_run_one_drives(store, opened, effects) -> None:
    def work() -> str:
        effects.add("work")
        inside.wait()
        return "ok"

    crash(store, work)
    for _ in range(3):
        inside = threading.Barrier(1)
        ready = threading.Barrier(2)
        stores = [store, opened()]

        def resume(index: int, ready=ready, stores=stores) -> str:
            ready.wait()
            try:
                return bot(stores[index], WORK, work).resume("r1").status
            except DurableError as error:
                return type(error).__name__

        with ThreadPoolExecutor(2) as pool:
            outcomes = sorted(pool.map(resume, range(2)))
        assert outcomes[0] in ("AlreadyResumed", "RunIsLive")
    assert effects.lines == ["work"]


def test_of_two_resumers_the_second_is_refused_before_it_acts(
    store, elsewhere, effects, held
) -> None:
    crash(store, held.work)
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(bot(store, WORK, held.work).resume, "r1")
        assert held.inside.wait(30)
        second = bot(elsewhere, WORK, held.work, ports=HASTY)
        with pytest.raises(RunIsLive, match="take_over"):
            second.resume("r1")
        assert second.llm.asked == 0
        held.go.set()
        assert first.result().status == "completed"
    assert effects.lines == ["work"]


def test_a_run_that_is_taken_over_goes_on_with_the_taker_alone(
    store, elsewhere, effects, held
) -> None:
    def work() -> str:
        effects.add("work by the taker")
        return "ok"

    with ThreadPoolExecutor(1) as pool:
        owner = pool.submit(bot(store, WORK, held.work).run, "go", execution_id="r1")
        assert held.inside.wait(30)
        result = bot(elsewhere, WORK, tool(name="work")(work)).resume("r1", take_over=True)
        assert result.status == "completed"
        rows = elsewhere.load("r1").rows
        held.go.set()
        with pytest.raises(StaleLog, match="'r1'"):
            owner.result()
    assert elsewhere.load("r1").rows == rows
    assert effects.lines == ["work", "work by the taker"]
    assert [run.status for run in elsewhere.runs()] == ["completed"]


def test_the_lock_is_released_before_run_returns_paused(store, elsewhere) -> None:
    def work() -> str:
        interrupt("why")
        return "ok"

    bot(store, WORK, work).run("go", execution_id="r1")
    nobody_waits = Ports(monotonic=lambda: 0.0, sleep=lambda _: pytest.fail("it had to wait"))
    result = bot(elsewhere, WORK, work, ports=nobody_waits).resume("r1", resume_value=Resume(True))
    assert result.status == "completed"


# --- threads --------------------------------------------------------------------------------------


def test_sync_tools_of_run_execute_on_the_callers_thread(store) -> None:
    def where() -> str:
        return threading.current_thread().name

    result = bot(store, [call("where"), "done"], where).run("go")
    assert told(result) == [threading.current_thread().name]
    assert told(asyncio.run(bot(store, [call("where"), "done"], where).arun("go"))) != told(result)


def test_the_callers_context_is_seen_by_tools_and_models(store) -> None:
    user = contextvars.ContextVar("user", default="nobody")
    seen = []

    def script(messages):
        seen.append(user.get())
        return call("look") if len(messages) == 1 else call("alook") if len(messages) == 3 else "x"

    def look() -> str:
        return user.get()

    async def alook() -> str:
        return user.get()

    user.set("ann")
    for result in (
        bot(store, script, look, alook).run("go"),
        asyncio.run(bot(store, script, look, alook).arun("go")),
    ):
        assert told(result) == ["ann", "ann"]
    assert set(seen) == {"ann"}


# --- event loops ----------------------------------------------------------------------------------


def test_run_works_where_a_loop_already_runs(store) -> None:
    async def work() -> str:
        await asyncio.sleep(0)
        interrupt("why")
        return "ok"

    async def notebook() -> list[str]:
        agent = bot(store, WORK, work)
        agent.run("go", execution_id="r1")
        return told(agent.resume("r1", resume_value=Resume(True)))

    assert asyncio.run(notebook()) == ["ok"]


def test_arun_does_not_block_the_loop(store) -> None:
    """The tool and the model only go on once the loop has had its turn."""
    turns = threading.Semaphore(0)

    def script(messages):
        assert turns.acquire(timeout=30)
        return call("work") if len(messages) == 1 else "done"

    def work() -> str:
        assert turns.acquire(timeout=30)
        return "ok"

    async def notebook() -> str:
        task = asyncio.create_task(bot(store, script, work).arun("go"))
        while not task.done():
            turns.release()
            await asyncio.sleep(0.001)
        return (await task).status

    assert asyncio.run(notebook()) == "completed"


class Slow:
    """A store of which each of a resume's calls waits until it is its turn."""

    def __init__(self, store: Checkpointer, turns: threading.Semaphore) -> None:
        self._store, self._turns = store, turns

    def __getattr__(self, name: str) -> object:
        asked = getattr(self._store, name)
        if name not in ("load", "claim", "append", "release"):
            return asked

        def in_turn(*args: object, **kwargs: object) -> object:
            assert self._turns.acquire(timeout=30), "the loop is blocked"
            return asked(*args, **kwargs)

        return in_turn


def test_aresume_does_not_block_the_loop_while_the_store_does(store, elsewhere) -> None:
    def work() -> str:
        return interrupt("why").by

    turns = threading.Semaphore(0)

    async def notebook() -> list[str]:
        agent = bot(Slow(elsewhere, turns), WORK, work)
        task = asyncio.create_task(agent.aresume("r1", resume_value=Resume(True, by="ann")))
        while not task.done():
            turns.release()
            await asyncio.sleep(0.001)
        return told(await task)

    bot(store, WORK, work).run("go", execution_id="r1")
    assert asyncio.run(notebook()) == ["ann"]


def test_many_aruns_share_a_loop(store) -> None:
    async def work() -> str:
        await asyncio.sleep(0.001)
        return current().execution_id

    async def notebook() -> list[list[str]]:
        runs = (bot(store, WORK, work).arun("go", execution_id=f"r{n}") for n in range(4))
        return [told(result) for result in await asyncio.gather(*runs)]

    assert asyncio.run(notebook()) == [[f"r{n}"] for n in range(4)]


def test_a_model_may_be_async(store) -> None:
    class Slow:
        async def complete(self, messages, tools) -> Reply:
            await asyncio.sleep(0)
            return Reply(Message("assistant", f"read {len(messages)}"))

    agent = Agent("bot", Slow(), checkpointer=store)
    assert agent.run("go").output == "read 1"
    assert asyncio.run(agent.arun("go")).output == "read 1"


@pytest.mark.parametrize("leaves", [StopIteration("dry"), ConnectionError("503")])
def test_what_a_model_raises_reaches_who_awaits_the_run(store, leaves: Exception) -> None:
    def script(messages):
        raise leaves

    agent = bot(store, script)
    with pytest.raises((RuntimeError, ConnectionError), match=r"dry|503"):
        asyncio.run(asyncio.wait_for(agent.arun("go", execution_id="r1"), 30))
    assert [run.status for run in store.runs()] == ["failed"]


# --- interrupts and cancellation ------------------------------------------------------------------


async def cancelled(awaitable, inside: threading.Event) -> None:
    """Cancel a run while it is inside of its step."""
    task = asyncio.create_task(awaitable)
    while not inside.is_set():
        await asyncio.sleep(0.001)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


def test_a_cancelled_arun_stops_its_async_tool_and_is_left_as_by_a_crash(
    store, elsewhere, effects
) -> None:
    inside, left = threading.Event(), threading.Event()

    async def work() -> str:
        effects.add("work")
        inside.set()
        try:
            await asyncio.sleep(3600 if len(effects.lines) == 1 else 0)
        except asyncio.CancelledError:
            left.set()
            raise
        return "ok"

    async def notebook() -> None:
        await cancelled(bot(store, WORK, work).arun("go", execution_id="r1"), inside)

    asyncio.run(notebook())
    assert left.wait(30)
    assert bot(elsewhere, WORK, work).resume("r1").status == "completed"
    assert effects.lines == ["work"] * 2
    assert [status for node, status in nodes(store, "r1")] == ["completed"] * 5


def test_a_cancelled_arun_stays_live_while_its_sync_tool_executes(
    store, elsewhere, effects, held
) -> None:
    async def notebook() -> None:
        await cancelled(bot(store, WORK, held.work).arun("go", execution_id="r1"), held.inside)
        with pytest.raises(RunIsLive):
            bot(elsewhere, WORK, held.work, ports=HASTY).resume("r1")

    asyncio.run(notebook())
    assert len(elsewhere.load("r1").rows) == 2
    held.go.set()
    assert bot(elsewhere, WORK, held.work).resume("r1").status == "completed"
    assert effects.lines == ["work"] * 2


@pytest.fixture
def stubborn(effects):
    """An async tool that does not leave as soon as it is told to."""
    inside, go = threading.Event(), threading.Event()

    async def work() -> str:
        effects.add("begins")
        inside.set()
        try:
            await asyncio.sleep(3600 if len(effects.lines) == 1 else 0)
        finally:
            while not go.is_set():
                await asyncio.sleep(0.001)
            effects.add("leaves")
        return "ok"

    yield work, inside, go
    go.set()


def test_a_cancelled_arun_stays_live_until_its_async_tool_has_left(
    store, elsewhere, effects, stubborn
) -> None:
    work, inside, go = stubborn

    async def notebook() -> None:
        await cancelled(bot(store, WORK, work).arun("go", execution_id="r1"), inside)
        with pytest.raises(RunIsLive):
            bot(elsewhere, WORK, work, ports=HASTY).resume("r1")

    asyncio.run(notebook())
    go.set()
    assert bot(elsewhere, WORK, work).resume("r1").status == "completed"
    assert effects.lines == ["begins", "leaves"] * 2


def test_an_interrupted_run_stays_live_until_its_async_tool_has_left(
    store, elsewhere, effects, stubborn
) -> None:
    work, inside, go = stubborn

    def interrupt_kernel() -> None:
        assert inside.wait(30)
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=interrupt_kernel).start()
    with pytest.raises(KeyboardInterrupt):
        bot(store, WORK, work).run("go", execution_id="r1")
    with pytest.raises(RunIsLive):
        bot(elsewhere, WORK, work, ports=HASTY).resume("r1")
    go.set()
    assert bot(elsewhere, WORK, work).resume("r1").status == "completed"
    assert effects.lines == ["begins", "leaves"] * 2


def test_async_tools_may_drive_other_runs_and_wait_for_them_in_any_way(store) -> None:
    async def leaf() -> str:
        await asyncio.sleep(0)
        return "leaf"

    async def awaits() -> str:
        return (await bot(store, [call("leaf"), "inner"], leaf).arun("go")).output

    async def work() -> str:
        return bot(store, [call("awaits"), "middle"], awaits).run("go").output

    assert told(bot(store, WORK, work).run("go")) == ["middle"]
    assert len(store.runs()) == 3
    assert {run.status for run in store.runs()} == {"completed"}


def test_a_cancelled_arun_drops_the_reply_it_was_waiting_for(store, elsewhere) -> None:
    inside, go = threading.Event(), threading.Event()

    def script(messages):
        inside.set()
        assert go.wait(30)
        return "too late"

    async def notebook() -> None:
        await cancelled(bot(store, script).arun("go", execution_id="r1"), inside)
        go.set()

    asyncio.run(notebook())
    result = bot(elsewhere, ["in time"]).resume("r1")
    assert result.output == "in time"


def test_a_run_cancelled_before_it_began_is_no_run(store) -> None:
    async def notebook() -> None:
        task = asyncio.create_task(bot(store, ["hi"]).arun("go", execution_id="r1"))
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(notebook())
    assert list(store.runs()) == []


class Strike:
    """*Interrupt kernel*, as Jupyter sends it, the first time that a step is reached."""

    def __init__(self, effects) -> None:
        self._effects = effects

    def sync(self) -> None:
        if self._first():
            threading.Event().wait(30)  # a main thread is interrupted here

    async def in_a_loop(self) -> None:
        if self._first():
            await asyncio.sleep(30)

    def _first(self) -> bool:
        self._effects.add("step")
        if first := len(self._effects.lines) == 1:
            os.kill(os.getpid(), signal.SIGINT)
        return first


def in_a_sync_tool(strike: Strike):
    def work() -> str:
        strike.sync()
        return "ok"

    return StrictModel(WORK), work


def in_an_async_tool(strike: Strike):
    async def work() -> str:
        await strike.in_a_loop()
        return "ok"

    return StrictModel(WORK), work


def in_a_sync_model(strike: Strike):
    def script(messages):
        strike.sync()
        return WORK[len(messages) > 1]

    return StrictModel(script), tool(name="work")(lambda: "ok")


def in_an_async_model(strike: Strike):
    class Slow(StrictModel):
        async def complete(self, messages, tools):
            await strike.in_a_loop()
            return super().complete(messages, tools)

    return Slow(WORK), tool(name="work")(lambda: "ok")


@pytest.mark.parametrize(
    ("place", "steps"),
    [(in_a_sync_tool, 2), (in_an_async_tool, 2), (in_a_sync_model, 3), (in_an_async_model, 3)],
)
def test_interrupt_kernel_stops_the_step_and_leaves_the_run_resumable(
    store, elsewhere, effects, place, steps: int
) -> None:
    model, body = place(Strike(effects))
    with pytest.raises(KeyboardInterrupt):
        Agent("bot", model, [body], checkpointer=store).run("go", execution_id="r1")
    assert [run.status for run in elsewhere.runs()] == ["crashed"]
    result = Agent("bot", model, [body], checkpointer=elsewhere).resume("r1")
    assert result.status == "completed"
    assert len(effects.lines) == steps


def test_a_tool_that_exits_inside_of_a_task_group_does_not_take_the_engine_with_it(store) -> None:
    async def leaves() -> None:
        raise SystemExit(3)

    async def work() -> str:
        async with asyncio.TaskGroup() as group:
            group.create_task(leaves())
        return "ok"

    async def fine() -> str:
        await asyncio.sleep(0)
        return "fine"

    with pytest.raises(SystemExit):
        bot(store, WORK, work).run("go", execution_id="r1")
    assert told(bot(store, [call("fine"), "done"], fine).run("go")) == ["fine"]


def test_a_tool_cancelled_from_within_is_a_result_the_model_reads(store) -> None:
    async def work() -> str:
        asyncio.current_task().cancel()
        await asyncio.sleep(0)
        return "ok"

    (text,) = told(bot(store, WORK, work).run("go"))
    assert text.startswith("Error: CancelledError")
