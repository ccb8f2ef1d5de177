"""What a person's words to a run come to: where the run is, what can be typed, and the move that a word makes.

**Invariant:** reading a word changes nothing; what cannot be done now is refused with what can.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from steersman.app.actions import ActionNotLegalNowError, post_event
from steersman.app.documents import describe_touched_files
from steersman.app.gates import APPROVE_CHOICE, AnswerRequest, CheckedAnswer, check_answer
from steersman.app.principal import PostedMessage, Principal
from steersman.app.runs import RunService
from steersman.engine.machine_package import (
    AnswerGate,
    AnswerPlanQuestions,
    MachinePackage,
    PersonMove,
    PrintNote,
    RefuseWord,
    RestoreFiles,
    ResumeRun,
    RunView,
    SendEvent,
    WaiveGuard,
    WordCall,
    find_package,
)
from steersman.engine.ports import Ports
from steersman.engine.projections import read_overrides, read_run_view
from steersman.errors import SteersmanError, UserError
from steersman.judges.text import clip_text, has_visible_text, printable_line
from steersman.kernel.definition import EventDef
from steersman.ports.journal import Head
from steersman.views.gates import GENERAL_CHOICES, choice_word, find_choice
from steersman.views.legal_actions import (
    ACCEPT_EVIDENCE,
    LegalAction,
    RunStatus,
    describe_run_wait,
    find_event_by_word,
)

__all__ = [
    "ActionNotLegalNowError",
    "ActionWording",
    "AnswerGate",
    "AnswerPlanQuestions",
    "MachinePackage",
    "PersonMove",
    "PrintNote",
    "RefuseWord",
    "RestoreFiles",
    "ResumeRun",
    "RunWords",
    "SendEvent",
    "WaiveGuard",
    "WordCall",
    "find_run_package",
    "list_run_status",
    "read_run_status",
    "require_complete_answers",
]

NOTHING_LEGAL_TEXT = "nothing: it has ended for good"
MAX_LISTED_RUNS = 100_000
ActionWording = Callable[[LegalAction], str]  # what is typed for an action here


def find_run_package(runs: RunService, run: str) -> MachinePackage:
    """The package of the machine that a run belongs to."""
    return runs.ports.packages[runs.head(run).machine]


# ── where a run is ──────────────────────────────────────────────────────────────────────────────────────────────────


def read_run_status(ports: Ports, run: str) -> RunStatus:
    """Where a run is now, what it waits for, and what a person can do."""
    return _build_run_status(ports, read_run_view(ports, run))


def _build_run_status(ports: Ports, run_view: RunView) -> RunStatus:
    definition, snapshot, summary = run_view.machine, run_view.snapshot, run_view.status
    package, owner = find_package(ports.packages, definition), ports.locks.owner(snapshot.run)
    resume_actions = (
        (LegalAction("resume", "drive it on", f"resume {snapshot.run}"),)
        if _can_move(ports, run_view) and owner is None
        else ()
    )
    wait = describe_run_wait(snapshot, summary.gates, owner, ports.clock.now())
    is_over = snapshot.state in definition.settled or bool(snapshot.ended)
    return RunStatus(
        run=snapshot.run,
        machine=snapshot.machine,
        title=summary.title,
        phase=snapshot.state,
        step="" if is_over or package.read_step is None else package.read_step(snapshot.context),
        status=summary.status,
        outcome=summary.outcome,
        waits=" ".join(filter(None, (wait, summary.cause))),
        next=(*resume_actions, *package.legal_actions(definition, snapshot, summary.gates)),
        after=package.read_earlier_runs(snapshot.context) if package.read_earlier_runs is not None else (),
    )


def _can_move(ports: Ports, run_view: RunView) -> bool:
    return run_view.status.status == "working" or bool(ports.journal.pending(run_view.status.run))


def list_run_status(
    ports: Ports, machine: str, command_prefix: str, most: int | None = None
) -> list[RunStatus]:
    """The runs of a machine, the last one that moved first; one that cannot be read has the status broken."""
    heads = [head for head in ports.journal.heads(limit=MAX_LISTED_RUNS) if head.machine == machine]
    return [_read_listed_status(ports, head, command_prefix) for head in heads[:most]]


def _read_listed_status(ports: Ports, head: Head, command_prefix: str) -> RunStatus:
    try:
        status = read_run_status(ports, head.run)
        files = tuple(describe_touched_files(ports, head.run, command_prefix))
        return replace(status, overrides=len(read_overrides(ports, head.run)), files=files)
    except SteersmanError as error:
        return RunStatus(
            run=head.run,
            machine=head.machine,
            title=head.title,
            phase=head.state,
            step="",
            status="broken",
            outcome="",
            waits=printable_line(str(error)),
            next=(),
        )


# ── what a word comes to ────────────────────────────────────────────────────────────────────────────────────────────


class RunWords:
    """The words of one run's machine. A face carries their moves out, and waits in between where one follows another."""

    def __init__(
        self, runs: RunService, principal: Principal, run: str, name_action: ActionWording | None = None
    ) -> None:
        self.runs, self.principal, self.run = runs, principal, run
        self.package = find_run_package(runs, run)
        self._name_action = name_action or (lambda action: f"{principal.command_prefix} {action.command}")

    def read(self, word: str, text: str, options: Mapping[str, str | None]) -> PersonMove | None:
        """The move of a word that the machine reads itself; None for one of its gates and events."""
        own_word = self.package.words.get(word)
        return own_word.read(self.read_call(text, options)) if own_word is not None else None

    def read_offered(self, word: str, text: str) -> AnswerRequest | SendEvent:
        """What a word comes to that a gate or an event gives: the answer to the open gate, or the event."""
        if word == ACCEPT_EVIDENCE:
            digest, _, reason = text.partition(" ")
            return AnswerRequest(choice=APPROVE_CHOICE, reason=reason.strip(), digest_prefix=digest)
        gate = self.read_call().find_open_gate()
        choices = {name: choice_word(gate, name) for name in gate.choices} if gate is not None else {}
        choice = next((name for name, typed in choices.items() if word in (name, typed)), "")
        event = find_event_by_word(self.package.machine, word)
        if not choice and event is not None:
            return _read_event(event, text)
        words = find_choice(gate, choice) if gate is not None and choice else GENERAL_CHOICES.get(word)
        if words is None or words.takes != "text":
            return AnswerRequest(choice=choice or word, reason=text)
        if words.required and not has_visible_text(text):
            raise UserError(words.required)
        return AnswerRequest(choice=choice or word, text=text.strip())

    def read_free_text(self, text: str) -> PersonMove:
        """The move of text that a person typed without a word."""
        if self.package.read_free_text is None:
            raise UserError(f"a {self.package.machine.name} takes no free text: type /help")
        return self.package.read_free_text(self.read_call(text))

    def read_call(self, text: str = "", options: Mapping[str, str | None] | None = None) -> WordCall:
        """Where the run is now, for a machine that reads a word."""
        ports = self.runs.ports
        run_view = read_run_view(ports, self.run)
        return WordCall(
            run_view=run_view,
            legal=_build_run_status(ports, run_view).next,
            can_move=_can_move(ports, run_view),
            name_action=self._name_action,
            prompting=self.principal.face == "repl",
            text=text,
            options=options or {},
        )

    def list_typed_actions(self) -> list[str]:
        """What can be typed now."""
        return [self._name_action(action) for action in read_run_status(self.runs.ports, self.run).next]

    def explain_refusal(self, problem: str) -> ActionNotLegalNowError:
        """Why it cannot be done now, and what can."""
        status = read_run_status(self.runs.ports, self.run)
        waits_text = f" and waits: {status.waits}" if status.waits else ""
        legal_text = "; ".join(self.list_typed_actions()) or NOTHING_LEGAL_TEXT
        place = ", ".join(filter(None, (status.step, status.status)))
        return ActionNotLegalNowError(
            f"{problem}: the {status.machine} is in {status.phase} ({place}){waits_text}\nlegal now: {legal_text}"
        )

    def post_event(self, event: EventDef, text: str, reason: str) -> PostedMessage:
        """Sends an event of the person with what it carries."""
        word = event.action.word if event.action is not None else event.name
        ref = self.runs.text(self.run, text.strip()) if has_visible_text(text) else ""
        known = {"choice": word, "person": self.principal.person, "text": ref}
        data = {name: value for name, value in known.items() if name in event.carries.__struct_fields__}
        return post_event(self.runs, self.principal, self.run, event.name, data, reason)

    def check_answer(self, move: AnswerGate, text: str) -> CheckedAnswer:
        """The answer that a move gives to its gate, with these words; refuses one that leaves a question open."""
        if move.questions:
            require_complete_answers(text, move.questions)
        request = AnswerRequest(choice=move.choice, reason=move.reason, text=text, digest=move.digest)
        return check_answer(self.runs, self.principal, move.gate.id, request)


def _read_event(event: EventDef, text: str) -> SendEvent:
    """An event of the person, whose words are its text where it carries one, else the reason."""
    if event.action is not None and event.action.required and not has_visible_text(text):
        raise UserError(event.action.required)
    takes_text = "text" in event.carries.__struct_fields__
    return SendEvent(event.name, text=text if takes_text else "", reason="" if takes_text else text)


def require_complete_answers(text: str, questions: Sequence[Any]) -> None:
    """Refuses answers by question that leave one open or answer an unknown one; any other text answers all."""
    if _is_json_list(text):
        raise UserError(
            "nothing was answered: a JSON list answers no question; give a JSON object by question id, or plain words"
        )
    if not text.lstrip().startswith("{"):
        return
    answers = _parse_answers_by_question(text)
    names = {question.id for question in questions} | {question.text for question in questions}
    unknown_ids = sorted(set(answers) - names)
    if unknown_ids or not all(
        isinstance(answer_value, str) and has_visible_text(answer_value) for answer_value in answers.values()
    ):
        question_list = ", ".join(question.id for question in questions)
        raise UserError(f"answers are texts by question id, one of {question_list}" + (f"; not {', '.join(unknown_ids)}" if unknown_ids else ""))  # fmt: skip
    unanswered = [
        question for question in questions if question.id not in answers and question.text not in answers
    ]
    if unanswered:
        question_list = "; ".join(
            f"{question.id}: {clip_text(printable_line(question.text), 200)}" for question in unanswered
        )
        raise UserError(
            f"nothing was answered: every question needs an answer, and these have none: {question_list}"
        )


def _is_json_list(text: str) -> bool:
    """Whether it is JSON that is neither words nor answers by question; a number or `true` may be the word for one."""
    try:
        return isinstance(json.loads(text), list)
    except ValueError:
        return False


def _parse_answers_by_question(text: str) -> dict[str, Any]:
    try:
        value: dict[str, Any] = json.loads(text)
    except ValueError as error:
        raise UserError(
            f"the text begins like answers by question, but is no JSON ({error}). Correct it, or answer in plain words"
        ) from None
    return value
