"""A person's answer to a pause."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from durable_nb.model.entries import Outcome
from durable_nb.model.errors import InvalidInput


@dataclass(frozen=True, slots=True)
class Resume:
    """The decision that `interrupt()` returns (DESIGN R8). Only `Resume(approved=True)` approves.

    `by` names who decided: else `metadata["approver"]`, else the user of this computer. `reason`
    reaches the model word for word. `edited` replaces arguments of the tool by name. A call in
    doubt is answered with `Resume.happened(result)`, `Resume.run_again()` or `Resume.stop()`.

    Raises `TypeError` for an `approved` that is not a boolean, and whenever a `Resume` itself is
    used as a condition: `if interrupt(...)` would take every rejection for a yes.
    """

    approved: bool
    metadata: Mapping[str, object] = field(default_factory=dict)
    reason: str | None = None
    edited: Mapping[str, object] | None = None
    by: str | None = None
    outcome: Outcome | None = field(default=None, kw_only=True)
    result: object = field(default=None, kw_only=True)

    @classmethod
    def happened(cls, result: object = None, *, by: str | None = None) -> Resume:
        """The call in doubt took effect, and this is what it returned: do not run it again."""
        return cls(False, by=by, outcome="happened", result=result)

    @classmethod
    def run_again(cls, *, by: str | None = None) -> Resume:
        """The call in doubt did not take effect: run it, this once."""
        return cls(False, by=by, outcome="run_again")

    @classmethod
    def stop(cls, *, by: str | None = None) -> Resume:
        """Nobody knows about the call in doubt: cancel the run."""
        return cls(False, by=by, outcome="stop")

    def __post_init__(self) -> None:
        if not isinstance(self.approved, bool):
            raise TypeError(
                f"Resume(approved=...) takes True or False, not {self.approved!r}: "
                "nothing approves by accident"
            )
        for name, kind in (
            ("metadata", Mapping),
            ("edited", Mapping),
            ("reason", str),
            ("by", str),
        ):
            value = getattr(self, name)
            if not (isinstance(value, kind) or (value is None and name != "metadata")):
                raise TypeError(f"Resume({name}=...) takes a {kind.__name__}, not {value!r}")
        if self.edited is not None and not self.approved:
            raise InvalidInput(
                "a rejection runs nothing, so it cannot edit arguments: drop `edited`"
            )

    def __bool__(self) -> bool:
        raise TypeError("a Resume is not a condition: ask decision.approved")
