"""What a word that a person types to a run comes to.

A machine declares its words and reads each one as a move. A face carries the move out, the same way for every machine.
**Invariant:** reading a word changes nothing.
"""

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from steersman.engine.active_run import ActiveRun
from steersman.kernel.machine import Machine
from steersman.kernel.snapshot import Snapshot
from steersman.kernel.tape import Entry
from steersman.views.gates import GateView
from steersman.views.legal_actions import LegalAction
from steersman.views.report import ReportFacts
from steersman.views.run_summary import PayloadReader, RunFacts, RunSummary

# ── run view ────────────────────────────────────────────────────────────────────────────────────────────────────────────

# A run read whole, with its summary: the value that every view is rendered from.


class RunView(msgspec.Struct, frozen=True, eq=False):
    """One run: the facts of its tape, and its summary."""

    live: ActiveRun
    facts: RunFacts
    status: RunSummary

    @property
    def machine(self) -> Machine:
        return self.facts.machine

    @property
    def snapshot(self) -> Snapshot:
        return self.facts.snapshot

    @property
    def entries(self) -> tuple[Entry, ...]:
        return self.facts.entries

    @property
    def text(self) -> PayloadReader:
        return self.facts.text

    @property
    def report(self) -> ReportFacts:
        """What the report is rendered from."""
        return ReportFacts(self.facts, self.status)


# ── person words ────────────────────────────────────────────────────────────────────────────────


class WordCall(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """A word that a person gave, and where the run is."""

    run_view: RunView
    legal: tuple[LegalAction, ...]
    can_move: bool  # the run works, or a message waits for its driver
    name_action: Callable[[LegalAction], str]  # what the person types for an action here
    prompting: bool = False  # the word was typed at the prompt, not on the command line
    text: str = ""
    options: Mapping[str, str | None] = {}

    @property
    def snapshot(self) -> Snapshot:
        return self.run_view.snapshot

    def is_legal(self, word: str) -> bool:
        """Whether this is one of the legal actions."""
        return any(action.word == word for action in self.legal)

    def find_open_gate(self, *jobs: str) -> GateView | None:
        """The open gate, where it is one of these; without names, any."""
        gates = self.run_view.status.gates
        return next((gate for gate in gates if not gate.answer and (not jobs or gate.job in jobs)), None)


class RefuseWord(msgspec.Struct, frozen=True):
    """The word cannot be carried out now."""

    problem: str
    explain: bool = True  # with where the run is and what is legal


class PrintNote(msgspec.Struct, frozen=True):
    """Nothing more happens; these lines are shown."""

    lines: tuple[str, ...]


class ResumeRun(msgspec.Struct, frozen=True):
    """The run is driven on."""


class RestoreFiles(msgspec.Struct, frozen=True):
    """The run's files are written again as the tape has them."""


class AnswerPlanQuestions(msgspec.Struct, frozen=True):
    """The questions of a planning run are answered one by one, or each with its default."""

    defaults: bool = False


class WaiveGuard(msgspec.Struct, frozen=True):
    """The guard of an edge to this state is waived, with a reason."""

    to: str
    reason: str


class SendEvent(msgspec.Struct, frozen=True, eq=False):
    """The person causes an event that carries words."""

    event: str
    text: str = ""
    reason: str = ""
    lines: tuple[str, ...] = ()  # shown before
    announce: bool = False  # the event is named beside the person
    # What follows once the run waits; nothing is shown between.
    then: "Callable[[WordCall], PersonMove] | None" = None


class AnswerGate(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """The person answers an open gate."""

    gate: GateView
    choice: str
    reason: str = ""
    text: str = ""
    digest: str | None = None
    lines: tuple[str, ...] = ()  # shown before
    confirm: str = ""  # asked before, at a prompt
    questions: tuple[Any, ...] = ()  # with `id` and `text`; `text` above has to answer them, or each is asked
    then: "Callable[[WordCall], PersonMove] | None" = None  # what follows once the run waits


PersonMove = (
    RefuseWord
    | PrintNote
    | ResumeRun
    | RestoreFiles
    | AnswerPlanQuestions
    | WaiveGuard
    | SendEvent
    | AnswerGate
)


class PersonWord(msgspec.Struct, frozen=True, eq=False):
    """One word of a machine: its help, and how it is read."""

    help: str  # what goes with it, and what it does; empty: it is not typed at the prompt
    read: Callable[[WordCall], PersonMove]
    complete: Callable[[WordCall], tuple[str, ...]] | None = None  # what may follow it
