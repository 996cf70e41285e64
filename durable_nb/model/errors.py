"""Every error durable_nb raises on purpose, in one tree. Each message says what, which, and what next.

DurableError
├── InvalidInput (ValueError)   an argument that cannot be used
├── InvalidTool                 a function that cannot be a tool
├── OutsideTool                 interrupt() or current() where no tool of a run executes
├── UnknownAgent                no agent of that name here
├── UnknownExecution            no run has that id
├── ExecutionExists             `run` with an id that has rows
├── AgentMismatch               another agent's run
├── MissingTool                 the run needs a tool that the agent lacks
├── AlreadyResumed              what a resume asked for has been decided or is over
├── RunPaused                   a decision is needed first
├── RunIsLive                   another process or thread drives the run
├── PauseSwallowed              a tool caught the pause and went on
├── ForkRefused                 that entry is not a step
├── TurnLimit                   the run used up its turns
├── BudgetExceeded              the run used up its budget
├── ModelFailed                 the model's provider did not answer, or refused
├── PlaneFailed                 a plane did not answer, or refused
├── NotStorable                 a value has no exact JSON form
│   └── IdempotencyError        the same, in @idempotent
└── StoreError                  the store said no: nothing more can be written
    ├── StaleLog                another writer's entry is newer
    ├── StoreBusy               another process held the store for too long
    ├── StoreCorrupt            a row is not what was written, or the file is damaged
    └── StoreUnusable           not a store, read-only, deleted, closed, newer
"""


class DurableError(Exception):
    """The root of the tree. In a notebook it shows as one line, not as a traceback."""

    def _render_traceback_(self) -> list[str]:
        said = "; ".join((str(self), *getattr(self, "__notes__", ())))
        return [f"\x1b[31m{type(self).__name__}\x1b[0m: {said}"]


class InvalidInput(DurableError, ValueError):
    """An argument cannot be used; nothing was done with it."""


class InvalidTool(DurableError):
    """A function cannot be a tool: its name, or a parameter without a JSON schema."""


class OutsideTool(DurableError, RuntimeError):
    """`interrupt()` or `current()` was called where no tool of a run is executing."""


class UnknownAgent(DurableError):
    """No agent of that name is defined here."""


class UnknownExecution(DurableError):
    """No run has that `execution_id`."""


class ExecutionExists(DurableError):
    """`run` was given an id that has rows. A run is never repeated."""


class AgentMismatch(DurableError):
    """The run was started by an agent of another name."""


class MissingTool(DurableError):
    """The run needs a tool that the agent does not have. Nothing was claimed."""


class AlreadyResumed(DurableError):
    """The pause is answered or the run is over. The message says by whom and when."""


class RunPaused(DurableError):
    """The run waits for a decision; pass one as `resume_value=Resume(...)`."""


class RunIsLive(DurableError):
    """Another process or thread drives the run. Nothing was done."""


class PauseSwallowed(DurableError):
    """A tool caught the pause signal and went on. The run fails; it is never taken as approved."""


class ForkRefused(DurableError):
    """A fork was asked for at an entry that is not a step."""


class TurnLimit(DurableError):
    """The run asked the model `max_turns` times and has not ended."""


class BudgetExceeded(DurableError):
    """The run used up its tokens or its money."""


class ModelFailed(DurableError):
    """The model's provider refused, or gave no whole answer after every retry. The run is
    resumable. `status` is that of the HTTP answer, if there was one."""

    def __init__(self, message: str, *, status: int | None = None) -> None:
        super().__init__(message)
        self.status = status


class PlaneFailed(DurableError):
    """A plane did not answer, refused, or holds too little of a run. Nothing was changed here."""


class NotStorable(DurableError, TypeError):
    """A value cannot be written so that another process reads the same value back."""


class IdempotencyError(NotStorable):
    """An argument or a result of an `@idempotent` function cannot be stored."""


class StoreError(DurableError):
    """The store refused. The run is left as a crash would leave it."""


class StaleLog(StoreError):
    """Another writer's entry is newer: this process no longer drives the run."""


class StoreBusy(StoreError):
    """Another process held the store's write lock for too long."""


class StoreCorrupt(StoreError):
    """A row is not what was written: the message names run and entry. Or a whole file is damaged."""


class StoreUnusable(StoreError):
    """The store cannot be opened or used: the message says why."""
