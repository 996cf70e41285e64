"""A person's answer to a pause."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from durable_nb.model.errors import InvalidInput


@dataclass(frozen=True, slots=True)
class Resume:
    """The decision that `interrupt()` returns (DESIGN R8). Only `Resume(approved=True)` approves.

    `by` names who decided: else `metadata["approver"]`, else the user of this computer. `reason`
    reaches the model word for word. `edited` replaces arguments of the tool by name.

    Raises `TypeError` for an `approved` that is not a boolean, and whenever a `Resume` itself is
    used as a condition: `if interrupt(...)` would take every rejection for a yes.
    """

    approved: bool
    metadata: Mapping[str, object] = field(default_factory=dict)
    reason: str | None = None
    edited: Mapping[str, object] | None = None
    by: str | None = None

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
