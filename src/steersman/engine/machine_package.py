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
from steersman.engine.person_words import PersonMove, PersonWord, RunView, WordCall
from steersman.engine.ports import Ports
from steersman.kernel.machine import Machine
from steersman.kernel.snapshot import Snapshot
from steersman.ports.artifacts import Artifacts
from steersman.views.gates import GateTextSplitter, GateView, no_gate_items
from steersman.views.legal_actions import LegalAction, find_legal_actions
from steersman.views.report import ReportSections, default_report_sections
from steersman.views.run_summary import RunFacts, SummaryFields, default_summary_fields

if TYPE_CHECKING:
    from steersman.contracts.artifacts import DamagedFile


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
