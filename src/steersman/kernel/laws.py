"""What must hold on every path of a machine, written beside its table and proved by `check`."""

import msgspec

from steersman.kernel.definition import EventDef, Guard, StateDef


class Never(msgspec.Struct, frozen=True, eq=False):
    """This state is never entered while this holds."""

    state: StateDef
    when: Guard

    def __str__(self) -> str:
        return f"never {self.state.name} while {self.when.sentence}"


class Before(msgspec.Struct, frozen=True, eq=False):
    """No path reaches `then` (while `when` holds) without having been in `first`."""

    first: StateDef
    then: StateDef
    when: Guard | None = None

    def __str__(self) -> str:
        while_ = f" while {self.when.sentence}" if self.when else ""
        return f"{self.first.name} before {self.then.name}{while_}"


class Only(msgspec.Struct, frozen=True, eq=False):
    """This memory value is set by these events alone."""

    field: str
    value: str
    by: tuple[EventDef, ...]

    def __str__(self) -> str:
        return f"{self.field} becomes {self.value} only by {', '.join(e.name for e in self.by)}"


class Possible(msgspec.Struct, frozen=True, eq=False):
    """Some path enters this state while this holds: a machine that never succeeds is broken too."""

    state: StateDef
    when: Guard

    def __str__(self) -> str:
        return f"{self.state.name} can be entered while {self.when.sentence}"


Law = Never | Before | Only | Possible
