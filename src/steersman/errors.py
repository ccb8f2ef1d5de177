"""Every exception steersman raises, named by whose fault it is.

    SteersmanError
    ├── DefinitionError      a machine's table is wrong
    ├── ContractError        an agent or a file broke its contract
    ├── JournalError         the store could not do what was asked
    │   ├── StaleError       another driver owns the run now: this write is void
    │   ├── StoreBroken      the store cannot be read: corrupt, of a newer version, of another program
    │   ├── OverBudget       a reservation does not fit: nothing was written
    │   └── StoreFull        the disk is full, read-only or failing: nothing was written
    ├── MemoryUnavailable    the memories cannot be read or written
    │   └── NoMemory         this project has no memories yet
    ├── WorkspaceError       git or the working tree refused
    │   ├── UnrecordableTreeError  a tree holds something that no commit can; its author can fix it
    │   ├── ChangeConflictError    two changes touch the same lines; a person has to resolve it
    │   ├── BranchMovedError       the branch is not where the change was checked
    │   ├── ChangeNotOnBranchError  a branch does not have the change
    │   └── AlreadyRevertedError   the change is reverted already
    └── UserError            the person can fix it: a wrong name, a broken configuration
        ├── UnknownRunError    no run here has this name
        └── BeyondLimitsError  a run asks for more than today's limits allow; it waits

A refusal is not an error: `take_step` returns it and it is journaled.
**Invariant:** every message says what to do next.
"""


class SteersmanError(Exception):
    """The base of all errors; `exit_code` is the exit code of a command that ends with it."""

    exit_code = 1


class DefinitionError(SteersmanError):
    """A machine's table contradicts itself; raised when it is built, never when it runs."""


class ContractError(SteersmanError):
    """A value does not fit its contract; `problems` lists all of them."""

    exit_code = 4

    def __init__(self, message: str, problems: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.problems = problems


class JournalError(SteersmanError):
    """The store could not do what was asked."""

    exit_code = 5


class StaleError(JournalError):
    """The run has moved on or belongs to another driver; nothing of this write was stored."""

    exit_code = 4


class OverBudget(JournalError):  # noqa: N818  a state of the budget, not an action that failed
    """A reservation does not fit a limit; `run` and `name` say which."""

    def __init__(self, run: str, name: str) -> None:
        super().__init__(f"the budget of run {run} has not enough {name} left")
        self.run = run
        self.name = name


class StoreBroken(JournalError):  # noqa: N818  a state of the store, not an action that failed
    """The store cannot be read."""


class StoreFull(JournalError):  # noqa: N818  the same
    """The store cannot be written."""


class MemoryUnavailable(SteersmanError):  # noqa: N818  a state of the memories, not an action that failed
    """The memories cannot be read or written; `fix` is the next step, and part of the message."""

    exit_code = 5

    def __init__(self, message: str, fix: str = "") -> None:
        super().__init__(f"{message}: {fix}" if fix else message)
        self.fix = fix


class NoMemory(MemoryUnavailable):
    """This project has no memories yet."""

    exit_code = 2


class WorkspaceError(SteersmanError):
    """git or the working tree refused."""

    exit_code = 2


class UnrecordableTreeError(WorkspaceError):
    """A working tree holds what cannot be recorded exactly; the message names it and the fix."""


class ChangeConflictError(WorkspaceError):
    """Two changes touch the same lines; the message names the files."""


class BranchMovedError(WorkspaceError):
    """A branch is not where the change was checked; the change has to be checked on the branch as it is now."""


class ChangeNotOnBranchError(WorkspaceError):
    """A branch does not have the change; the message names one that has."""


class AlreadyRevertedError(WorkspaceError):
    """The change is reverted already, by `commit`."""

    def __init__(self, message: str, commit: str = "") -> None:
        super().__init__(message)
        self.commit = commit


class UserError(SteersmanError):
    """The request cannot be done as asked; the message names the fix."""

    exit_code = 2


class UnknownRunError(UserError):
    """No run here has this name."""

    def __init__(self, name: str) -> None:
        super().__init__(f"there is no run {name!r}: see `steersman runs --all`")


class BeyondLimitsError(UserError):
    """The settings of a run go beyond a limit of today; nothing was done, and the run waits."""

    exit_code = 4
