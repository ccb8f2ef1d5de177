"""Plans: orders one, reads and answers what it asks, reads what came of it, verifies and compares frozen ones.

**Invariant:** nothing of a plan is executed here.
"""

import json
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from steersman.app.gates import AnswerRequest, check_answer, find_open_gate, post_answer
from steersman.app.principal import PostedMessage, Principal
from steersman.app.runs import RunService
from steersman.app.start import plan_start, require_package
from steersman.contracts.config import Config
from steersman.contracts.machine_names import PLANNING_MACHINE
from steersman.contracts.planning.decisions import DocumentProblem
from steersman.contracts.planning.graph import ExecutionGraph
from steersman.contracts.planning.questions import AskedQuestion, QuestionPack, SettledQuestions
from steersman.contracts.planning.review import ReviewPack
from steersman.engine.machine_package import RunResult, find_package
from steersman.engine.ports import Ports, require_planning
from steersman.engine.projections import payload_reader, read_run_view
from steersman.engine.start import StartRequest
from steersman.errors import UserError
from steersman.judges.planning.answers import find_answer_pack_problems
from steersman.judges.planning.attest import ENVELOPE_FILE, TrustedKey, check_plan_trust
from steersman.judges.planning.choices import ANSWER_STOP, default_answer_word
from steersman.judges.planning.places import NO_FIELD_LINES, FieldLines
from steersman.judges.planning.verify import find_differing_inputs
from steersman.judges.text import clip_text, printable_line
from steersman.ports.journal import Gate
from steersman.views.planning.differences import ComparedPlan, compare_plans

__all__ = [
    "AnswersRefusedError",
    "FrozenPlanVerdict",
    "PlanComparison",
    "PlanQuestions",
    "RunResult",
    "answer_plan",
    "build_answer_template",
    "check_frozen_plan",
    "compare_frozen_plans",
    "default_plan_answer",
    "find_plan_questions",
    "order_plan",
    "read_frozen_plan",
    "read_plan_result",
]

ANSWERS_GATE = "answers"
ANSWER_PACK_VERSION = "0.9.2"
MAX_QUESTION_SUMMARY = 4000  # characters of a question in a template


class PlanQuestions(msgspec.Struct, frozen=True):
    """What a planning run asks, and the gate that takes the answers."""

    gate: Gate
    pack: QuestionPack


class FrozenPlanVerdict(msgspec.Struct, frozen=True):
    """Everything by which a folder is not the plan that was frozen, and what its signature says."""

    problems: tuple[DocumentProblem, ...]
    signature: str


class PlanComparison(msgspec.Struct, frozen=True):
    """How two frozen plans differ, each in words; a difference of the plan comes from one of the inputs."""

    inputs: tuple[str, ...]
    files: tuple[str, ...]
    plan: tuple[str, ...]

    @property
    def is_same(self) -> bool:
        """Whether they are the same plan, byte for byte."""
        return not (self.inputs or self.files or self.plan)


class AnswersRefusedError(UserError):
    """The answers do not fit the questions; nothing was answered."""

    exit_code = 4

    def __init__(self, problems: tuple[DocumentProblem, ...], source: str = "the answer pack") -> None:
        super().__init__(f"{source} was not taken, the questions stay open: correct its problems")
        self.problems = problems


# ── a run that plans ────────────────────────────────────────────────────────────────────────────────────────────────


def order_plan(
    ports: Ports, principal: Principal, config: Config, intent: Any, policy: Any, out: str = ""
) -> StartRequest:
    """What begins a planning run for an intent under a policy; `out` is the whole path of the plan's folder, or empty."""
    package = require_package(ports.packages, PLANNING_MACHINE, principal.command_prefix)
    start = plan_start(ports, package, config, {"intent": intent, "policy": policy, "out": out})
    return StartRequest(
        machine=PLANNING_MACHINE,
        task=_read_intent_title(intent),
        person=principal.person,
        config=config,
        options=start.options,
        texts=start.texts,
    )


def _read_intent_title(intent: Any) -> str:
    title = intent.get("title") if isinstance(intent, Mapping) else None
    return title if isinstance(title, str) and title.strip() else "an intent without a title"


def find_plan_questions(runs: RunService, principal: Principal, name: str) -> PlanQuestions:
    """What a planning run waits for an answer to; UserError where it asks no questions."""
    gate = find_open_gate(runs, principal, name)
    if gate.job != ANSWERS_GATE:
        raise UserError(f"run {gate.run} asks no questions: see `{principal.command_prefix} why {gate.run}`")
    text = payload_reader(runs.live(gate.run))(gate.shown["questions"])
    return PlanQuestions(gate, msgspec.json.decode(text, type=QuestionPack))


def answer_plan(
    runs: RunService,
    principal: Principal,
    questions: PlanQuestions,
    answers: Any = None,
    lines: FieldLines = NO_FIELD_LINES,
) -> PostedMessage:
    """Answers every question from an answer pack, or each with its default; refuses a pack that does not fit."""
    problems = find_answer_pack_problems(questions.pack, answers, lines) if answers is not None else ()
    if problems:
        raise AnswersRefusedError(problems)
    request = (
        AnswerRequest(choice="answer", text=json.dumps(answers, ensure_ascii=False))
        if answers is not None
        else AnswerRequest(choice="defaults")
    )
    return post_answer(runs, principal, check_answer(runs, principal, questions.gate.id, request))


def build_answer_template(pack: QuestionPack) -> dict[str, Any]:
    """An answer pack to fill in: every question has its default, but one whose default ends the run has no answer yet."""
    answers = [
        {
            "question_id": question.question_id,
            "answer": default_plan_answer(question),
            "text": "",
            "rationale": "",
        }
        for question in pack.questions
    ]
    return {
        "schema_version": ANSWER_PACK_VERSION,
        "question_pack_id": pack.pack_id,
        "questions": {
            question.question_id: _summarize_plan_question(question) for question in pack.questions
        },
        "answers": answers,
    }


def _summarize_plan_question(question: AskedQuestion) -> str:
    choices = " | ".join(
        f"{suggestion.answer}: {printable_line(suggestion.meaning)}"
        for suggestion in question.suggested_answers
    )
    return clip_text(f"{printable_line(question.question_text)} {choices}", MAX_QUESTION_SUMMARY)


def default_plan_answer(question: AskedQuestion) -> str:
    """The answer that a question's default stands for; nothing where that ends the run: a slip must not."""
    word = default_answer_word(question)
    offered = [suggestion.answer for suggestion in question.suggested_answers]
    return word if word != ANSWER_STOP and word in offered else ""


def read_plan_result(runs: RunService, principal: Principal, name: str) -> RunResult:
    """What a planning run has planned, or why there is no plan; UserError where the run is none that plans."""
    view = read_run_view(runs.ports, runs.find(name))
    run, package = view.snapshot.run, find_package(runs.ports.packages, view.machine)
    if package.read_result is None:
        raise UserError(f"run {run} is no plan: see `{principal.command_prefix} show {run}`")
    result = package.read_result(view)
    if result.lines:
        return result
    waits = f"run {run} is in {view.snapshot.state}: see `{principal.command_prefix} why {run}`"
    return msgspec.structs.replace(result, lines=(waits,))


# ── frozen plans ────────────────────────────────────────────────────────────────────────────────────────────────────


def read_frozen_plan(ports: Ports, directory: str) -> RunResult:
    """The plan that was frozen into a folder; UserError where there is none."""
    files = _read_plan_files(ports, directory, "plan.md")
    return RunResult(
        tuple(files["plan.md"].decode("utf-8", "replace").splitlines()), _decode_plan_review(files)
    )


def _read_plan_files(ports: Ports, directory: str, needed: str) -> dict[str, bytes]:
    files = require_planning(ports).plans.read(directory)
    if needed not in files:
        raise UserError(f"{directory} holds no frozen plan: there is no {needed}")
    return files


def _decode_plan_review(files: Mapping[str, bytes]) -> Any:
    try:
        return msgspec.json.decode(files["review_pack.json"])
    except (KeyError, msgspec.MsgspecError):
        return None


def check_frozen_plan(ports: Ports, directory: str, key: str = "") -> FrozenPlanVerdict:
    """Holds a folder against its manifest, its lineage and the key in a file, else this project's own key."""
    planning = require_planning(ports)
    trusted_key = TrustedKey(planning.maker_key(key), planning.is_signed)
    problems, signature = check_plan_trust(planning.plans.read(directory), trusted_key)
    key_text = "" if problems else ", by the given key" if key else ", by this project's key"
    return FrozenPlanVerdict(problems, f"{signature}{key_text}")


def compare_frozen_plans(ports: Ports, first_directory: str, second_directory: str) -> PlanComparison:
    """How two frozen plans differ: their inputs, their files, and what they plan."""
    first, second = (
        {name: data for name, data in files.items() if name != ENVELOPE_FILE}
        for directory in (first_directory, second_directory)
        for files in (_read_plan_files(ports, directory, "manifest.json"),)
    )
    return PlanComparison(
        find_differing_inputs(first, second),
        tuple(_describe_file_changes(first, second)),
        tuple(_describe_content_changes(first, second)),
    )


def _describe_file_changes(first: Mapping[str, bytes], second: Mapping[str, bytes]) -> Iterator[str]:
    for name in sorted({*first, *second}):
        if name not in second:
            yield f"{name}: only in the first"
        elif name not in first:
            yield f"{name}: only in the second"
        elif first[name] != second[name]:
            yield f"{name}: differs"


def _describe_content_changes(first: Mapping[str, bytes], second: Mapping[str, bytes]) -> tuple[str, ...]:
    try:
        return compare_plans(_decode_compared_plan(first), _decode_compared_plan(second))
    except (KeyError, msgspec.MsgspecError):
        return ("the plans cannot be compared: see `plan verify`",)


def _decode_compared_plan(files: Mapping[str, bytes]) -> ComparedPlan:
    return ComparedPlan(
        msgspec.json.decode(files["review_pack.json"], type=ReviewPack),
        msgspec.json.decode(files["question_pack.json"], type=tuple[QuestionPack, ...]),
        msgspec.json.decode(files["settled_questions.json"], type=SettledQuestions),
        msgspec.json.decode(files["execution_graph.json"], type=ExecutionGraph),
    )
