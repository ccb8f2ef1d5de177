"""A machine as an immutable value: states, events, guards, caps, jobs, rows, namings and laws.

A machine is data. Its rows are read from top to bottom, and the first one whose event, cap and guard fit is taken.
Nothing here runs anything: `build.py` puts the parts together and refuses contradictions, and `step.py` reads them.
**Invariant:** no metaclass, no operator overloading, no strings that name code.
"""

from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from typing import Any, ClassVar, Literal

import msgspec

GuardTest = Callable[[Any, Any], bool]


class Origin(Enum):
    """The only source that may cause an event."""

    PERSON = "person"
    GATE = "gate"  # a person, but only by answering the gate that asks
    EFFECT = "effect"
    TIMER = "timer"
    CHILD = "child"
    MACHINE = "machine"


class Guard(msgspec.Struct, frozen=True, eq=False):
    """A sentence with a yes or a no.

    `reads` names constants and memory fields of the context; a guard that reads only those is followed exactly by
    the model check. Without `reads` it looks at facts and the check tries both answers.
    """

    name: str
    sentence: str
    test: GuardTest
    version: int = 1
    reads: tuple[str, ...] = ()
    cap: "Cap | None" = None


def _always(_context: Any, _data: Any) -> bool:
    return True


otherwise = Guard("otherwise", "otherwise", _always)


class Cap(msgspec.Struct, frozen=True, eq=False):
    """How often a row may be taken. A full cap makes its row invisible, so the next row says what happens then."""

    name: str
    limit: int | str  # a number, or the name of a constant of the context that holds it
    per: Callable[[Any, Any], str] | None = None  # (context, data) -> key: counted apart for each key
    resets: "tuple[EventDef, ...]" = ()
    trial: int = 2  # the limit the model check uses where the real one is a setting
    version: int = 1


def room(name: str, sentence: str, cap: Cap) -> Guard:
    """The guard that says a cap is not full yet."""
    return Guard(name, sentence, _always, cap=cap, version=cap.version)


class Choice(msgspec.Struct, frozen=True):
    """One answer that a gate offers, in words; which answers it offers now is in the gate's input.

    `word` is what a person types for it, where that is not the choice's own name, and `help` says what it does. Words
    decide nothing, so they are no part of the definition's digest.
    """

    word: str
    help: str
    command: str = ""  # of the command line, with {run} and {digest}; empty: the general command
    takes: Literal["reason", "text"] = "reason"  # what the person may write with it
    required: str = ""  # the message when that is missing; empty: it may be missing
    shows_change: bool = False  # the gate's preview is shown before this answer counts
    ends: bool = False  # the person wants the run to end by it


class Action(msgspec.Struct, frozen=True):
    """What a person types to cause an event, and what it takes."""

    word: str
    help: str = ""  # empty: the meaning of the event
    command: str = ""  # of the command line, with {run}; empty: `send`
    required: str = ""  # the message when its words or its reason are missing; empty: they may be missing


class EventDef(msgspec.Struct, eq=False):
    """An event: its wire name (the specification's own word), who may cause it, what it carries."""

    meaning: str
    origin: Origin
    carries: type[msgspec.Struct]
    version: int = 1
    upcasts: Mapping[int, Callable[[dict[str, Any]], dict[str, Any]]] = msgspec.field(default_factory=dict)
    action: Action | None = None
    waives: str = ""  # what a person waives by it, in words; it is shown among overrides ever after
    # By it a person accepts the results of one tree, and is named for that ever after.
    accepts_evidence: bool = False
    name: str = ""

    def __set_name__(self, _owner: type, name: str) -> None:
        self.name = name


class EmptyEventData(msgspec.Struct, frozen=True):
    """The payload of an event that says it all by its name."""


def event(
    meaning: str,
    origin: Origin,
    carries: type[msgspec.Struct] = EmptyEventData,
    *,
    version: int = 1,
    **more: Any,
) -> Any:
    """Declares an event; its wire name is the attribute's name."""
    return EventDef(meaning, origin, carries, version, **more)


JobKind = Literal["effect", "gate", "timer", "child"]


class Job(msgspec.Struct, frozen=True, eq=False):
    """Something a state has done for it: an effect, a question to a person, a timer, a child run."""

    name: str
    kind: JobKind
    returns: type[msgspec.Struct]
    does: str = ""  # for an effect: the runtime's performer
    outlives: bool = False  # goes on when its state is left
    edits: bool = False  # works on the tree: one at a time, each attempt from the recorded tree
    version: int = 1
    yields: bool = False  # for a gate: a guard may be waived while it is open
    asks: str = ""  # for a gate: its question, in one sentence
    choices: Mapping[str, Choice] = {}  # for a gate: its answers, in words


class GateAnswer(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a person said, about exactly which thing; `text` is the payload of a longer message."""

    choice: str
    person: str = ""
    digest: str = ""
    reason: str = ""
    text: str = ""
    timed_out: bool = False


class ChildEnded(msgspec.Struct, frozen=True, omit_defaults=True):
    """A child run has its outcome."""

    run: str
    outcome: str
    success: bool = False
    tree: str = ""
    commit: str = ""


class TimerDue(msgspec.Struct, frozen=True):
    """A timer's time has come."""

    due: int


def effect(name: str, returns: type[msgspec.Struct], does: str, **more: Any) -> Job:
    """Declares work done by one of the runtime's performers."""
    return Job(name, "effect", returns, does, **more)


def gate(
    name: str,
    version: int = 1,
    *,
    yields: bool = False,
    asks: str = "",
    choices: Mapping[str, Choice] | None = None,
) -> Job:
    """Declares a question to a person; where it yields, an override may stand in place of its answer."""
    return Job(name, "gate", GateAnswer, version=version, yields=yields, asks=asks, choices=choices or {})


def timer(name: str, version: int = 1) -> Job:
    """Declares a moment that the run waits for."""
    return Job(name, "timer", TimerDue, version=version)


def child(name: str, version: int = 1) -> Job:
    """Declares a run of another machine started by this one."""
    return Job(name, "child", ChildEnded, version=version)


KeyedInputs = Callable[[Any], Sequence[tuple[str, dict[str, Any]]]]


class StateWork(msgspec.Struct, frozen=True, eq=False):
    """One line of a state's work: this job, when this holds, with these inputs, once per key and visit."""

    job: Job
    when: Guard
    give: Callable[[Any], dict[str, Any]]  # the input of the one job …
    each: KeyedInputs | None  # … or one job per key
    version: int

    @property
    def many(self) -> bool:
        return self.each is not None


def do(
    job: Job,
    give: Callable[[Any], dict[str, Any]] | None = None,
    *,
    each: KeyedInputs | None = None,
    when: Guard = otherwise,
    version: int = 1,
) -> StateWork:
    """The work of a state: `give(context)` is the input of one job, `each(context)` of one job per key."""
    return StateWork(job, when, give if give is not None else _no_input, each, version)


def _no_input(_context: Any) -> dict[str, Any]:
    return {}


class StateDef(msgspec.Struct, eq=False):
    """What is true now, and the work that starts however the state was entered."""

    meaning: str
    flags: frozenset[str]
    work: tuple[StateWork, ...] = ()
    name: str = ""

    def __set_name__(self, _owner: type, name: str) -> None:
        self.name = name

    @property
    def final(self) -> bool:
        return "final" in self.flags

    @property
    def resting(self) -> bool:
        return "resting" in self.flags


def state(meaning: str, *work: StateWork, initial: bool = False) -> Any:
    """A state in which the run goes on."""
    return StateDef(meaning, frozenset({"initial"} if initial else ()), work)


def resting(meaning: str, *work: StateWork, initial: bool = False) -> Any:
    """A state in which the run has its outcome; only an explicit reopening leaves it."""
    return StateDef(meaning, frozenset({"resting", "initial"} if initial else {"resting"}), work)


def final(meaning: str, *work: StateWork) -> Any:
    """A state that nothing leaves."""
    return StateDef(meaning, frozenset({"final"}), work)


class State:
    """A machine's states, one attribute each."""

    all: ClassVar[tuple[StateDef, ...]] = ()

    def __init_subclass__(cls) -> None:
        cls.all = tuple(v for v in vars(cls).values() if isinstance(v, StateDef))


class Events:
    """A machine's events, one attribute each."""

    all: ClassVar[tuple[EventDef, ...]] = ()

    def __init_subclass__(cls) -> None:
        cls.all = tuple(v for v in vars(cls).values() if isinstance(v, EventDef))


class _StayTarget(msgspec.Struct, frozen=True, eq=False):
    name: str = "stay"


STAY = _StayTarget()


class _AnyState(msgspec.Struct, frozen=True, eq=False):
    """Every state neither final nor resting."""


ANY = _AnyState()

RowSource = StateDef | tuple[StateDef, ...] | _AnyState | None


class Row(msgspec.Struct, frozen=True, eq=False):
    """One line of the table."""

    source: RowSource
    on: EventDef
    when: Guard
    to: StateDef | _StayTarget
    cap: Cap | None
    label: str
    origin: str  # the specification's section, or `extension: why`
    sets: Mapping[str, Any]
    waivable: Guard | None = None  # what has to be there for a person to waive `when`
    setting: tuple[tuple[Any, ...], ...] = ()  # `sets` as ops


def row(
    source: RowSource,
    on: EventDef,
    when: Guard,
    to: StateDef | _StayTarget,
    cap: Cap | None,
    label: str,
    origin: str,
    *,
    sets: Mapping[str, Any] | None = None,
    waivable: Guard | None = None,
) -> Row:
    """from · on · when · to · cap · label · source; `sets` gives memory fields their new values."""
    setting = tuple(("set", name, value) for name, value in (sets or {}).items())
    return Row(source, on, when, to, cap, label, origin, dict(sets or {}), waivable, setting)


def table(*rows: Row) -> tuple[Row, ...]:
    """The rows, in the order in which they are read."""
    return rows


NamingPairs = tuple[tuple[Guard, EventDef], ...]


class Naming(msgspec.Struct, frozen=True, eq=False):
    """How facts become events: the first guard that fits names the event, and every guard is evaluated and recorded."""

    subject: Job
    pairs: NamingPairs
    version: int


class ComputedNaming(msgspec.Struct, frozen=True, eq=False):
    """Which event the machine itself makes happen in a state, over context and caps; no fit, no event."""

    state: StateDef
    pairs: NamingPairs
    version: int


def naming(subject: Job, *pairs: tuple[Guard, EventDef], version: int = 1) -> Naming:
    """Names the events that a job's facts can become; the last pair is `otherwise`, which never names success."""
    return Naming(subject, pairs, version)


def computed(where: StateDef, *pairs: tuple[Guard, EventDef], version: int = 1) -> ComputedNaming:
    """Names the events that a state brings about by itself."""
    return ComputedNaming(where, pairs, version)


class Fold(msgspec.Struct, frozen=True, eq=False):
    """What an event changes in the context, as ops."""

    on: EventDef
    do: Callable[[Any, Any], Sequence[Sequence[Any]]]
    version: int


def fold(on: EventDef, do: Callable[[Any, Any], Sequence[Sequence[Any]]], *, version: int = 1) -> Fold:
    """`do(context, data) -> ops`, pure."""
    return Fold(on, do, version)
