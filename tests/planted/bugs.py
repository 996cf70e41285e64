"""One-line mutations of the package, each with the tests that have to notice it.

A bug that was fixed adds itself here: put its line back, and say what it does to a run.
"""

from __future__ import annotations

from typing import NamedTuple


class Bug(NamedTuple):
    """In `file` of the package, `good` (which is there once) becomes `bad`."""

    what: str
    file: str
    good: str
    bad: str
    tests: str


CORE = "tests/unit/test_core.py"
MEMORY = "-k memory"

BUGS = [
    Bug(
        "a tool whose process died is not in doubt",
        "core/decide.py",
        "return RunTool(_step(state), arguments_of(state), in_doubt=state.died)",
        "return RunTool(_step(state), arguments_of(state), in_doubt=False)",
        f"tests/contract/test_doubt.py {MEMORY}",
    ),
    Bug(
        "a rejection enters the tool that asked not to be entered",
        "core/decide.py",
        'pause.on_reject == "skip" and',
        'pause.on_reject == "" and',
        f"tests/contract/test_pauses.py {MEMORY}",
    ),
    Bug(
        "what an approver edited is not what runs",
        "core/decide.py",
        "arguments.update(answered.answer.edited or {})",
        "arguments.update({})",
        f"tests/contract/test_pauses.py {MEMORY}",
    ),
    Bug(
        "the siblings of a call that paused run after all",
        "core/advance.py",
        'answered.pause.asks == "approval" for answered in state.answers',
        'answered.pause.asks == "" for answered in state.answers',
        f"tests/contract/test_pauses.py {MEMORY}",
    ),
    Bug(
        "an id of an earlier turn is taken for a call's own",
        "core/advance.py",
        "call.id in seen or state.transcript.has_asked(call.id)",
        "call.id in seen",
        f"{CORE} tests/contract/test_tools.py -k 'test_core or memory'",
    ),
    Bug(
        "turns are not counted",
        "core/advance.py",
        "return Turn(state.turn + 1, said, usage)",
        "return Turn(state.turn, said, usage)",
        CORE,
    ),
    Bug(
        "a rejection's reason does not reach the model",
        "core/advance.py",
        'lines.append(f"[rejected by {answer.by}{why}]")',
        'lines.append(f"[rejected by {answer.by}]")',
        f"tests/contract/test_pauses.py {MEMORY}",
    ),
    Bug(
        "a failed end hides the step before it",
        "core/state.py",
        'case End(status="failed"):\n                return replace(self, newest=row)',
        'case End(status="failed"):\n                return replace(self, newest=row, at=row)',
        CORE,
    ),
    Bug(
        "a fork inherits an approval",
        "core/state.py",
        "state = replace(state, answers=(), step=",
        "state = replace(state, step=",
        f"tests/contract/test_branches.py {MEMORY}",
    ),
    Bug(
        "a fork looks like a crash",
        "core/state.py",
        'isinstance(newest, Reentry) and newest.why == "crash"',
        "isinstance(newest, Reentry)",
        f"tests/contract/test_doubt.py {MEMORY}",
    ),
    Bug(
        "a child's tokens count its parent's, too",
        "core/state.py",
        "state = replace(state, usage=Usage(), claim=own[0])",
        "state = replace(state, claim=own[0])",
        f"tests/contract/test_conversations.py tests/contract/test_branches.py {MEMORY}",
    ),
    Bug(
        "an answer to one pause passes another",
        "core/reopen.py",
        "case Wait(open_pause) if pause in (None, state.number):",
        "case Wait(open_pause) if True:",
        f"{CORE} tests/contract/test_pauses.py -k 'test_core or memory'",
    ),
    Bug(
        "a pause that expired can still be approved",
        "core/reopen.py",
        "return pause.expires_at is not None and pause.expires_at <= who.at",
        "return False",
        f"tests/contract/test_upkeep.py {MEMORY}",
    ),
    Bug(
        "a run that is over is claimed again",
        "core/decide.py",
        "return Stop(entry)",
        "return AskModel(entry.turn, state.transcript)",
        f"{CORE} tests/contract/test_runs.py -k 'test_core or memory'",
    ),
    Bug(
        "a fork at an answer is a fork of its approval",
        "core/branch.py",
        "case Answer(pause=number) | Reentry(of=number):",
        "case Reentry(of=number):",
        f"tests/contract/test_branches.py {MEMORY}",
    ),
    Bug(
        "pruning takes what a fork still needs",
        "core/retain.py",
        " and run.execution_id not in needed:",
        ":",
        f"tests/contract/test_upkeep.py {MEMORY}",
    ),
    Bug(
        "pruning takes a paused run",
        "core/retain.py",
        "wanted = run.status in ENDED and",
        "wanted =",
        f"tests/contract/test_upkeep.py {MEMORY}",
    ),
    Bug(
        "infinity is not told from text",
        "model/values.py",
        "finite = value - value == 0",
        "finite = True",
        "tests/unit/test_values.py",
    ),
    Bug(
        "a truthy value approves",
        "model/decisions.py",
        "if not isinstance(self.approved, bool):",
        "if self.approved is None:",
        "tests/unit/test_decisions.py",
    ),
    Bug(
        "a run that ended is still driven",
        "runtime/loop.py",
        "run.store.release(run.lease)",
        "run.store.effect(run.lease, '')",
        f"tests/contract/test_driving.py {MEMORY}",
    ),
    Bug(
        "a tool that swallowed its pause goes on unapproved",
        "runtime/loop.py",
        "        raise _swallowed(tool.name)\n",
        "        return _returned(value)\n",
        f"tests/contract/test_pauses.py {MEMORY}",
    ),
    Bug(
        "a call in doubt runs although it should ask",
        "runtime/loop.py",
        "return _doubted(run, command) or _run_tool(run, command, stop)",
        "return _run_tool(run, command, stop)",
        f"tests/contract/test_doubt.py {MEMORY}",
    ),
    Bug(
        "a run has one turn more than it may",
        "runtime/loop.py",
        "if command.turn >= run.max_turns:",
        "if command.turn > run.max_turns:",
        f"tests/contract/test_runs.py {MEMORY}",
    ),
    Bug(
        "a resume takes over whoever drives",
        "runtime/claim.py",
        "take_over=wish.take_over,",
        "take_over=True,",
        "tests/contract/test_driving.py -k 'memory and is_live'",
    ),
    Bug(
        "a missing tool is found out after the claim",
        "runtime/claim.py",
        "    check_tools(agent, execution_id, state)\n",
        "",
        f"tests/contract/test_pauses.py tests/contract/test_runs.py {MEMORY}",
    ),
    Bug(
        "a kept None runs again",
        "runtime/idempotent.py",
        "if isinstance(known, Kept):",
        "if isinstance(known, Kept) and known.value is not None:",
        f"tests/contract/test_effects.py {MEMORY}",
    ),
    Bug(
        "a default left out is another key",
        "runtime/idempotent.py",
        "bound.apply_defaults()",
        "str(bound)",
        f"tests/contract/test_effects.py {MEMORY}",
    ),
    Bug(
        "functions of the same name share a key",
        "runtime/idempotent.py",
        'name = f"{function.__module__}.{function.__qualname__}"',
        "name = function.__qualname__",
        f"tests/contract/test_effects.py {MEMORY}",
    ),
    Bug(
        "a person's word is good for every later attempt",
        "runtime/idempotent.py",
        " and answered.number > begun.number:",
        ":",
        f"tests/contract/test_doubt.py {MEMORY}",
    ),
    Bug(
        "except Exception swallows a pause",
        "runtime/scope.py",
        "class PauseSignal(BaseException):",
        "class PauseSignal(Exception):",
        f"tests/contract/test_pauses.py {MEMORY}",
    ),
    Bug(
        "an approval answers a question with another reason",
        "runtime/scope.py",
        '(pause.asks, pause.position, pause.reason) == ("approval", position, reason)',
        '(pause.asks, pause.position) == ("approval", position)',
        f"tests/contract/test_pauses.py {MEMORY}",
    ),
    Bug(
        "what a person is shown changes after the pause",
        "runtime/scope.py",
        'frozen = thaw(freeze(context, "context"))',
        'frozen = context if freeze(context, "context") else context',
        f"tests/contract/test_pauses.py {MEMORY}",
    ),
    Bug(
        "a thread of a tool can pause, and nobody hears it",
        "runtime/scope.py",
        " and self.task is _task()",
        " or True",
        f"tests/contract/test_pauses.py {MEMORY}",
    ),
    Bug(
        "memory takes what a driver writes that was taken over",
        "stores/memory.py",
        "if (newest.number, newest.writer) != (lease.number, lease.writer):",
        "if newest.number < lease.number:",
        f"tests/contract/test_stores.py {MEMORY}",
    ),
    Bug(
        "a claim on SQLite does not ask who drives",
        "stores/sqlite.py",
        "if not take_over and owner in self._locks.held():",
        "if False:",
        "tests/crash/test_owners.py -k 'sqlite and inside_of_a_living'",
    ),
    Bug(
        "a claim on PostgreSQL does not ask who drives",
        "stores/postgres.py",
        "if not (take_over or at_rest) and owner in self._session.driven(db):",
        "if False:",
        "tests/crash/test_owners.py -k 'postgres and inside_of_a_living'",
    ),
    Bug(
        "an owner without its session is taken for dead",
        "stores/pg_session.py",
        "if locked or (recent and not Process(host, boot, namespace, pid, started).is_gone())",
        "if locked",
        "tests/crash/test_sessions.py -k ended_in_its_tool",
    ),
    Bug(
        "nobody is dead before 15 seconds are over",
        "stores/pg_session.py",
        "if locked or (recent and not Process(host, boot, namespace, pid, started).is_gone())",
        "if locked or recent",
        "tests/crash/test_sessions.py -k new_process_with_the_number",
    ),
    Bug(
        "an entry whose commit was not heard of is refused",
        "stores/postgres.py",
        "if db.execute(_MINE, [run, row.number, row.writer]).fetchone() is None:",
        "if True:",
        "tests/crash/test_sessions.py -k 'heard and writes'",
    ),
    Bug(
        "an attempt that was marked twice counts as two",
        "stores/postgres.py",
        "<> (excluded.number, excluded.begun))::int",
        "is not null)::int",
        "tests/crash/test_sessions.py -k 'heard and writes'",
    ),
    Bug(
        "a read whose connection breaks is an error",
        "stores/pg_reader.py",
        "            except _Lost:\n                return self._once(action)\n",
        "            except _Lost:\n                raise\n",
        "tests/crash/test_sessions.py -k 'heard and reads'",
    ),
    Bug(
        "a forked child keeps its parent's locks",
        "stores/locks.py",
        "        self._guard = threading.Lock()\n        self.close()\n",
        "        self._guard = threading.Lock()\n",
        "tests/crash/test_owners.py -k 'sqlite and outlive'",
    ),
    Bug(
        "the owner of a deleted run writes into the run that has its key now",
        "stores/sqlite.py",
        "where (?3 - 1, ?8) = (",
        "where (?3 - 1, writer) = (",
        "tests/contract/test_upkeep.py -k sqlite",
    ),
    Bug(
        "a link to a store's file has locks of its own",
        "stores/locks.py",
        'os.path.realpath(path) + "-locks"',
        'str(path) + "-locks"',
        "tests/contract/test_sqlite.py",
    ),
    Bug(
        "a cancelled async tool is let go of before it has left",
        "runtime/engine.py",
        "if self._lingers is None or self._lingers.done():",
        "if True:",
        f"tests/contract/test_driving.py {MEMORY}",
    ),
    Bug(
        "an interrupt whose arguments make no sense can be caught",
        "runtime/scope.py",
        "    except Exception as error:  # noqa: BLE001  # raised",
        "    except NotStorable as error:  # raised",
        f"tests/contract/test_pauses.py {MEMORY}",
    ),
    Bug(
        "a model that a budget kept from being asked was asked",
        "core/calls.py",
        'return isinstance(end, End) and (end.error or "").startswith(_NOT_ASKED)',
        "return False",
        f"tests/views/test_usage.py {MEMORY}",
    ),
    Bug(
        "what was said in one step stands under the next",
        "notebook/pulse.py",
        'text = text if number == state.number else ""',
        "del number",
        "tests/notebook/test_spoken.py -k step_before",
    ),
]
