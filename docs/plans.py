"""The page on frozen plans: their files, the causes of questions, and every way to fail; from the planner's own tables."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, get_args

from steersman.contracts.planning.documents import PLANNING_DOCUMENTS
from steersman.contracts.planning.questions import QuestionCause
from steersman.judges.planning import choices
from steersman.judges.planning.attest import ENVELOPE_FILE, PAYLOAD_TYPE, PREDICATE_TYPE
from steersman.judges.planning.freeze import FROZEN_DOCUMENT_TYPES, MANIFEST_FILE, RENDERED_PLAN_FILES
from steersman.machines.coordinator.failure import FAILURE_CAUSES
from steersman.views.markdown import escape_markdown_cell

MEANT: dict[QuestionCause, str] = {
    "unmet_evidence": "a planned command cites what neither facts nor memory nor the registry has",
    "requires_review": "rules want a planned command reviewed",
    "ambiguous_scope": "the intent names no file, module or area, or the whole project",
    "missing_command": "a phase has to show or change something, and no planned command does it, or rules deny those that would",
    "excluded_command": "rules deny a planned command, or no selected phase has a place for it",
    "risk_above_profile": "a planned command is graver than the policy's risk profile",
}
SAID = {
    choices.ANSWER_LEAVE_OUT: "what was asked about is not in the plan",
    choices.ANSWER_STOP: "there will be no plan",
    choices.ANSWER_TEXT: "the files and directories in `text`, one a line, are the scope",
    choices.ANSWER_KEEP_WITH_REVIEW: "it stays, behind its review",
    choices.ANSWER_APPROVE: "it stays, and the answer takes the place of its review",
    choices.ANSWER_ACCEPT_RISK: "it stays, with its risk",
    choices.ANSWER_ACCEPT_WITHOUT: "it stays, and the answer is its evidence",
    choices.ANSWER_WHOLE_PROJECT: "anything in the project is in scope",
    choices.ANSWER_BY_HAND: "a person does it and shows what was done",
}


def plans_page(notice: str) -> str:
    """Files, questions, answers and failures."""
    parts = [
        f"{notice}\n\n# Frozen plans, questions and failures",
        "## Files of a frozen plan",
        (
            f"Each JSON file is exactly the canonical bytes (RFC 8785) of its document. `{MANIFEST_FILE}` has the SHA-256 of every "
            f"other file. `{ENVELOPE_FILE}` beside them is a DSSE envelope (`{PAYLOAD_TYPE}`) around an in-toto Statement about all "
            f"of them, whose predicate (`{PREDICATE_TYPE}`) is the plan's lineage; it is not among the compared files."
        ),
        _table(("file", "what it is"), _files()),
        "## What is asked",
        _table(("cause", "when"), ((f"`{cause}`", MEANT[cause]) for cause in get_args(QuestionCause))),
        "## What can be answered",
        "A question lists the words that it takes.",
        _table(("word", "what follows"), ((f"`{word}`", meaning) for word, meaning in SAID.items())),
        "## Why there may be no plan",
        "The first cause that applies names the failure; its pack has the problems of all that do.",
        _table(
            ("cause", "type", "what is said", "what to change", "how"),
            (
                (f"`{name}`", f"`{row.type}`", row.message, f"`{row.change}`", row.how)
                for name, row in FAILURE_CAUSES.items()
            ),
        ),
    ]
    return "\n\n".join(parts) + "\n"


def _files() -> Iterator[Sequence[str]]:
    names = {shape: name.replace("_", "-") for name, shape in PLANNING_DOCUMENTS.items()}
    for file, shape in FROZEN_DOCUMENT_TYPES.items():
        each = get_args(shape)
        yield f"`{file}`", f"{'a list of ' if each else ''}{_schema(names, each[0] if each else shape)}"
    yield f"`{MANIFEST_FILE}`", _schema(names, PLANNING_DOCUMENTS["manifest"])
    for file in RENDERED_PLAN_FILES:
        yield f"`{file}`", "for people, drawn from the documents"


def _schema(names: dict[Any, str], shape: Any) -> str:
    return f"`schemas/{names[shape]}.json`"


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(escape_markdown_cell(text) for text in line) + " |" for line in lines)
