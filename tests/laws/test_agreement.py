"""Stores agree: whatever they are asked, in any order, memory and SQLite say the same."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from durable_nb import Checkpointer, DurableError, Message
from durable_nb.model.entries import Answer, End, Entry, Pause, Reentry, Run, ToolCall, Turn
from durable_nb.stores.protocol import Lease
from tests.support.stores import STORES

AGREEING = ("memory", "sqlite-normal")  # the model first
IDS = st.sampled_from(["a", "b", "it's", "nobody"])
KEYS = st.sampled_from(["k1", "k2"])
NUMBERS = st.integers(0, 12)
ENTRIES: st.SearchStrategy[Entry] = st.sampled_from(
    [
        Turn(1, (Message("user", "hello"),)),
        ToolCall(1, "refund", "c1", {"amount": 1}),
        Pause(1, "refund", "why", {"a": (1, {2})}, "d"),
        End(2, "completed", "done"),
        End(2, "failed", error="no"),
        End(2, "cancelled"),
    ]
)
CLAIMS = st.builds(
    Answer, st.just(1), st.just("refund"), NUMBERS, st.booleans(), st.just("ann")
) | st.builds(Reentry, st.just(1), st.none() | st.just("refund"), NUMBERS, st.just("ann"))


def comparable(said: Any) -> Any:
    """What a store said, without what is its own: the key of a row, the text about its path."""
    if isinstance(said, Lease):
        return said.execution_id, said.writer, said.number, said.frame
    if isinstance(said, tuple):
        return tuple(comparable(each) for each in said)
    return said


class Agreement(RuleBasedStateMachine):
    """The same questions to each store; a lease is the list of what each store gave."""

    def __init__(self) -> None:
        super().__init__()
        self._folder = tempfile.TemporaryDirectory()
        path = Path(self._folder.name)
        self._stores = [STORES[name](path) for name in AGREEING]
        self._leases: list[list[Lease]] = []
        self._clock = self._writer = 0

    def teardown(self) -> None:
        for store in self._stores:
            store.close()
        self._folder.cleanup()

    def _ask(self, question: Callable[[Checkpointer, int], Any]) -> list[Any] | None:
        """What all of them answer, or None where all of them refuse with the same error."""
        answers, refusals = [], []
        for index, store in enumerate(self._stores):
            try:
                answers.append(question(store, index))
            except DurableError as error:
                refusals.append((type(error), str(error)))
        assert not (answers and refusals), (answers, refusals)
        said = refusals or [comparable(answer) for answer in answers]
        assert all(each == said[0] for each in said), said
        return answers or None

    def _tick(self) -> int:
        self._clock += 7
        return self._clock

    def _new_writer(self) -> int:
        self._writer += 1
        return self._writer

    def _lease(self, data: st.DataObject) -> list[Lease] | None:
        return data.draw(st.sampled_from(self._leases)) if self._leases else None

    @rule(execution_id=IDS.filter(lambda id_: id_ != "nobody"), base=st.sampled_from([0, 5]))
    def create(self, execution_id: str, base: int) -> None:
        at, writer = self._tick(), self._new_writer()
        run = Run(execution_id, "bot", "p", at, execution_id, tags=("t",), base=base)
        leases = self._ask(
            lambda store, _: store.create(
                run, Turn(0, (Message("user", "p"),)), at=at, writer=writer
            )
        )
        if leases:
            self._leases.append(leases)

    @rule(execution_id=IDS, entry=CLAIMS, after=st.none() | NUMBERS, take_over=st.booleans())
    def claim(self, execution_id: str, entry: Any, after: int | None, take_over: bool) -> None:
        at, writer = self._tick(), self._new_writer()
        newest = self._ask(lambda store, _: store.load(execution_id).rows[-1].number)
        after = newest[0] if after is None and newest else after or 0
        options = {"after": after, "at": at, "writer": writer, "take_over": take_over}
        won = self._ask(lambda store, _: store.claim(execution_id, entry, **options))
        if won:
            self._leases.append([lease for lease, _ in won])

    @rule(data=st.data(), entry=ENTRIES)
    def append(self, data: st.DataObject, entry: Entry) -> None:
        if lease := self._lease(data):
            at = self._tick()
            self._ask(lambda store, index: store.append(lease[index], entry, at=at))

    @rule(data=st.data())
    def release(self, data: st.DataObject) -> None:
        if lease := self._lease(data):
            self._ask(lambda store, index: store.release(lease[index]))

    @rule(data=st.data(), key=KEYS)
    def begin(self, data: st.DataObject, key: str) -> None:
        if lease := self._lease(data):
            at = self._tick()
            self._ask(lambda store, index: store.begin(lease[index], key, "f", at=at))

    @rule(data=st.data(), key=KEYS, value=st.sampled_from([None, 1, {"a": [1.5]}]))
    def keep(self, data: st.DataObject, key: str, value: Any) -> None:
        if lease := self._lease(data):
            at = self._tick()
            begun = self._ask(lambda store, index: type(store.effect(lease[index], key)).__name__)
            if begun and begun[0] == "Begun":
                self._ask(lambda store, index: store.keep(lease[index], key, value, at=at))

    @rule(data=st.data(), key=KEYS)
    def effect(self, data: st.DataObject, key: str) -> None:
        if lease := self._lease(data):
            self._ask(lambda store, index: store.effect(lease[index], key))

    @rule(execution_id=IDS)
    def read_one(self, execution_id: str) -> None:
        self._ask(lambda store, _: store.load(execution_id))
        self._ask(lambda store, _: [str(row) for row in store.list(execution_id)])
        self._ask(lambda store, _: store.get_last(execution_id).number)

    @invariant()
    def lists_agree(self) -> None:
        self._ask(lambda store, _: store.runs())


TestAgreement = Agreement.TestCase
TestAgreement.settings = settings(max_examples=30, stateful_step_count=20, deadline=None)
