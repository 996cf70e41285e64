"""Nothing approves by accident: what a `Resume` takes, and what it refuses to be."""

from __future__ import annotations

from types import MappingProxyType

import pytest

from durable_nb import InvalidInput, Resume


@pytest.mark.parametrize("approved", [None, "", 0, 1, {}, [], "no", "false", "yes", 1.0])
def test_only_a_boolean_decides(approved: object) -> None:
    with pytest.raises(TypeError, match="True or False"):
        Resume(approved=approved)  # type: ignore[arg-type]


def test_an_unknown_keyword_is_named() -> None:
    with pytest.raises(TypeError, match="data"):
        Resume(approved=True, data={"a": 1})  # type: ignore[call-arg]


@pytest.mark.parametrize("decision", [Resume(True), Resume(False)])
def test_a_decision_is_not_a_condition(decision: Resume) -> None:
    for use in (bool, lambda it: not it, lambda it: it and 1, lambda it: 1 if it else 2):
        with pytest.raises(TypeError, match=r"decision\.approved"):
            use(decision)


@pytest.mark.parametrize(
    "fields", [{"metadata": None}, {"metadata": [1]}, {"edited": "x"}, {"reason": 1}, {"by": 5}]
)
def test_a_field_of_another_type_is_named(fields: dict[str, object]) -> None:
    (name,) = fields
    with pytest.raises(TypeError, match=name):
        Resume(True, **fields)  # type: ignore[arg-type]


def test_a_rejection_edits_nothing() -> None:
    with pytest.raises(InvalidInput, match="edit"):
        Resume(False, edited={"amount": 1})
    assert Resume(True, edited={"amount": 1}).edited == {"amount": 1}


def test_a_decision_never_changes() -> None:
    decision = Resume(True, metadata=MappingProxyType({"approver": "ann"}))
    with pytest.raises(AttributeError):
        decision.approved = False  # type: ignore[misc]
    assert decision.metadata["approver"] == "ann"
