"""What a machine tells the rest of the product: the one value by which code outside its folder knows it.

A machine that declares only its table gets the command line, the prompt, gates, `why`, `show` and a report in general
words. The other fields add to that. Nothing in a package decides a transition.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from steersman.contracts.artifacts import DamagedFile
from steersman.contracts.config import Config
from steersman.contracts.replies import ReplyContract
from steersman.engine.active_run import ActiveRun
from steersman.engine.ports import Ports
from steersman.kernel.machine import Machine
from steersman.kernel.snapshot import Snapshot
from steersman.kernel.tape import Entry
from steersman.ports.artifacts import Artifacts
from steersman.views.gates import GateTextSplitter, GateView, no_gate_items
from steersman.views.legal_actions import LegalAction, find_legal_actions
from steersman.views.report import ReportFacts, ReportSections, default_report_sections
from steersman.views.run_summary import (
    PayloadReader,
    RunFacts,
    RunSummary,
    SummaryFields,
    default_summary_fields,
)

if TYPE_CHECKING:
    from steersman.contracts.artifacts import DamagedFile


# ── person words ────────────────────────────────────────────────────────────────────────────────────────────────────────

# What a word that a person types to a run comes to.
#
# A machine declares its words and reads each one as a move. A face carries the move out, the same way for every machine.
# **Invariant:** reading a word changes nothing.


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


# ── machine package ────────────────────────────────────────────────────────────────────────────────


class StartPlan(msgspec.Struct, frozen=True):
    """What the options of a person come to: what is fixed when the run begins."""

    options: dict[str, Any] = {}
    texts: dict[str, str] = {}  # documents that the run goes by, by name
    roles: tuple[str, ...] = ()  # beside those that the machine always has


class StartOptions(msgspec.Struct, frozen=True, eq=False):
    """The options that a person gave with the task, and what they are checked with."""

    given: Mapping[str, Any]
    config: Config
    ports: Ports


class GatePreview(msgspec.Struct, frozen=True):
    """What is shown above a gate's question instead of some of its texts."""

    lines: tuple[str, ...] = ()
    # The texts that are still shown with the question; None: all of them.
    shown: tuple[str, ...] | None = None


class RunEnding(msgspec.Struct, frozen=True):
    """What is shown at the end of a run, in place of the general words or beside them."""

    lines: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()  # behind the name of the program
    more_lines: tuple[str, ...] = ()
    more_commands: tuple[str, ...] = ()
    fields: dict[str, Any] = {}  # for programs, whether the run is over or not


class RunResult(msgspec.Struct, frozen=True):
    """What a run has made, or why it made nothing: in lines for people, and as a document for programs."""

    lines: tuple[str, ...] = ()
    document: Any = None


class DocumentOnDisk(msgspec.Struct, frozen=True):
    """One recorded document, and how the file on disk compares with it."""

    name: str
    digest: str  # empty: it is on disk and not on record
    disk: str


class RunDocuments(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """The documents of a machine's runs: files that are recorded, and compared with what is on disk."""

    compare: Callable[[Ports, ActiveRun], list[DocumentOnDisk]]
    find_damage: "Callable[[Ports, ActiveRun], list[DamagedFile]]"
    # What was moved aside, what is left and why.
    restore: Callable[[Ports, ActiveRun], tuple[list[str], list[str]]]
    read_texts: Callable[[Any], Mapping[str, str]]  # of a context: the recorded documents' payload names
    is_copy: Callable[[str], bool]  # a file that lies beside the documents and is compared as part of one


Artifact = tuple[str, Callable[[], bytes]]  # a file's name, and how its bytes are made


class MachinePackage(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """Everything the rest of the product needs to know about one machine."""

    machine: Machine
    folder: str = ""  # the import path of the machine's package: its prompts are in `prompts/`
    replies: Mapping[
        str, ReplyContract
    ] = {}  # what its agents answer with, beside the contracts that machines share
    effects: Mapping[str, str] = {}  # what only this machine's jobs do -> "module:function"
    takes: frozenset[str] = frozenset()  # what its runs begin with, beside the general options
    plan_start: Callable[[StartOptions], StartPlan] | None = None
    summary_fields: Callable[[RunFacts], SummaryFields] = default_summary_fields
    report_sections: ReportSections = default_report_sections
    legal_actions: Callable[[Machine, Snapshot, Iterable[GateView]], tuple[LegalAction, ...]] = (
        find_legal_actions
    )
    split_gate_text: GateTextSplitter = no_gate_items
    preview_gate: Callable[[RunView, GateView, int | None], GatePreview | None] | None = None
    ending: Callable[[RunView], RunEnding | None] | None = None
    read_result: Callable[[RunView], RunResult] | None = None  # what a run has made, where that is no change
    artifacts: Callable[[RunView], Iterable[Artifact]] | None = None  # in place of those of the same name
    find_file_problems: Callable[[Ports, ActiveRun], dict[str, str]] | None = None
    # Whether files that an effect has looked at (`seen` of its facts) are as they were: (artifacts, run, seen) -> bool.
    has_unchanged_files: Callable[[Artifacts, str, Mapping[str, str]], bool] | None = None
    words: Mapping[str, PersonWord] = {}  # beside those of its gates and events
    read_free_text: Callable[[WordCall], PersonMove] | None = None  # what a person types without a word
    started_by: str = ""  # the command that starts its runs, where `run` does not
    read_step: Callable[[Any], str] | None = None  # of a context: how far the run is inside its state
    read_earlier_runs: Callable[[Any], tuple[str, ...]] | None = None  # of a context: runs that come first
    read_patch: Callable[[RunView], str] | None = None  # the change as text
    round_field: str = ""  # the context field that counts rounds
    documents: RunDocuments | None = None
    tape_forms: Mapping[str, Callable[[RunView], msgspec.Struct]] = {}  # for `audit tape --as`


def find_package(packages: Mapping[str, MachinePackage], machine: Machine) -> MachinePackage:
    """The package of a machine; one that was given without a package has only its table."""
    return packages.get(machine.name) or MachinePackage(machine=machine)
