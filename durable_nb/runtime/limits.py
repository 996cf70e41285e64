"""What a run may use up before its model is asked again. All of it counts over the whole run,
whoever drove it before."""

from __future__ import annotations

from dataclasses import dataclass

from durable_nb.core.state import State
from durable_nb.model.errors import BudgetExceeded, InvalidInput, TurnLimit

_ROUNDING = 1 - 1e-9  # ten times $0.1 is less than $1, as floats add up


@dataclass(frozen=True, slots=True)
class Limits:
    """Turns, tokens of input and output, and US dollars; `context` is the tokens that one request
    may have. None: as many as it takes. Raises `InvalidInput`."""

    turns: int
    tokens: int | None = None
    cost: float | None = None
    context: int | None = None

    def __post_init__(self) -> None:
        _check_count("max_turns", self.turns)
        if self.tokens is not None:
            _check_count("max_tokens", self.tokens)
        if self.context is not None:
            _check_count("max_context_tokens", self.context)
        cost = self.cost
        if cost is not None and (isinstance(cost, bool) or not isinstance(cost, int | float)):
            raise InvalidInput(f"max_cost is a number of US dollars, not {cost!r}")
        if cost is not None and not cost > 0:
            raise InvalidInput(f"max_cost is more than 0 US dollars, not {cost!r}")

    def check(self, execution_id: str, state: State) -> None:
        """Raise `TurnLimit` or `BudgetExceeded` where the model must not be asked again."""
        usage, which = state.usage, f"run {execution_id!r}"
        if state.turn >= self.turns:
            raise TurnLimit(
                f"{which} used its {self.turns} turns without an answer; raise max_turns on the "
                "agent and resume it"
            )
        if self.tokens is not None and usage.total_tokens >= self.tokens:
            raise BudgetExceeded(
                f"{which} used {usage.total_tokens:,} tokens of the {self.tokens:,} that it may; "
                "raise max_tokens on the agent and resume it"
            )
        if self.cost is None:
            return
        if usage.cost is None and usage.total_tokens:
            raise BudgetExceeded(
                f"{which} has a max_cost of ${self.cost:g}, and the price of its model is not "
                "known; limit max_tokens instead and resume it"
            )
        if usage.cost is not None and usage.cost >= self.cost * _ROUNDING:
            raise BudgetExceeded(
                f"{which} has cost ${usage.cost:.4f} of the ${self.cost:g} that it may; raise "
                "max_cost on the agent and resume it"
            )


def _check_count(name: str, value: object) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise InvalidInput(f"{name} is a whole number from 1 on, not {value!r}")
