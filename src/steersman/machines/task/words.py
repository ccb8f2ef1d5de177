"""The words of a task. Each is read as an answer, an event or an override, by where the task is.

**Invariant:** a word answers a gate that is open or causes an event that is legal; no word skips a phase.
"""

import shlex
from collections.abc import Callable

import msgspec

from steersman.contracts.machine_names import TASK_PHASES
from steersman.engine.machine_package import (
    AnswerGate,
    PersonMove,
    PersonWord,
    PrintNote,
    RefuseWord,
    RestoreFiles,
    ResumeRun,
    SendEvent,
    WaiveGuard,
    WordCall,
)
from steersman.errors import UserError
from steersman.judges.text import has_visible_text, printable_line
from steersman.machines.task.context import TaskContext
from steersman.machines.task.documents.plan import find_open_plan_questions
from steersman.machines.task.documents.schemas import TaskPlan
from steersman.machines.task.documents.words import PLAN_FILE
from steersman.machines.task.views.actions import (
    DECISION_BY_PHASE,
    DOCUMENTS_BY_PHASE,
    NEXT_PHASE,
    PHASE_BY_WORD,
    WORD_BY_PHASE,
    kept_document_lines,
)
from steersman.views.legal_actions import LegalAction

REOPEN_EVENT = "redo_accept"
_DECIDED_PHASES = ("planning", "codegen", "review")  # that the open decision can have done again


# ── going on ────────────────────────────────────────────────────────────────────────────────────────────────────────


def read_next(call: WordCall) -> PersonMove:
    """The yes of the gate after a phase; a task without a driver is driven on."""
    if call.text:
        reason, target = parse_override_words(call.text)
        return _waive_guard(call, reason, target)
    gate = call.find_open_gate("next", "others")
    if gate is not None:
        return AnswerGate(gate=gate, choice="approve" if gate.job == "next" else "retry")
    if call.find_open_gate() is None and call.can_move:
        return ResumeRun()
    return RefuseWord("there is no next")


def read_override(call: WordCall) -> PersonMove:
    """A guard waived with a reason, as the command line gives it."""
    return _waive_guard(call, call.text, call.options.get("to") or "")


def _waive_guard(call: WordCall, reason: str, target: str) -> PersonMove:
    if not has_visible_text(reason):
        problem = 'an override needs a reason: --override "why it may go on all the same"'
        return RefuseWord(problem, explain=False)
    return WaiveGuard(target or NEXT_PHASE[call.snapshot.state], reason)


def parse_override_words(words: str) -> tuple[str, str]:
    """The reason and the phase of `/next --override "reason" --to phase`; anything else is refused."""
    try:
        arguments = shlex.split(words)
    except ValueError:  # a quotation mark without its other half, as in "it's fine"
        arguments = [word.strip("\"'") for word in words.split()]
    usage = UserError('/next takes nothing, or --override "reason", and with that --to phase')
    target_phase = ""
    if "--to" in arguments:
        index = arguments.index("--to")
        target_phase = " ".join(arguments[index + 1 : index + 2])
        arguments = [*arguments[:index], *arguments[index + 2 :]]
        if target_phase not in TASK_PHASES:
            raise UserError(f"--to which phase? One of {', '.join(TASK_PHASES)}")
    if arguments[:1] != ["--override"] or any(word.startswith("--") for word in arguments[1:]):
        raise usage
    return " ".join(arguments[1:]).strip(), target_phase


def read_begin(call: WordCall) -> PersonMove:
    """The task begins although a task that comes first is missing, with a reason."""
    gate = call.find_open_gate("others")
    if gate is None:
        return RefuseWord("it waits for no other task")
    return AnswerGate(gate=gate, choice="begin", reason=call.text)


def read_say(call: WordCall) -> PersonMove:
    """Words for the agent that works next."""
    if not has_visible_text(call.text):
        raise UserError("say what? give words")
    if not call.is_legal("say"):
        return RefuseWord("no agent of this task takes words now")
    return SendEvent("words_given", call.text)


def read_free_text(call: WordCall) -> PersonMove:
    """Text without a word: an answer where the plan asks, else words for the agent that works next."""
    return read_answer(call) if call.find_open_gate("questions") is not None else read_say(call)


# ── phases ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def _read_phase_word(phase: str) -> Callable[[WordCall], PersonMove]:
    return lambda call: _trigger_phase(call, phase, call.text)


def read_review(call: WordCall) -> PersonMove:
    """`review plan` and `review code`."""
    name, _, rest = call.text.partition(" ")
    phase = PHASE_BY_WORD.get(f"review {name}")
    if phase is None:
        raise UserError("review what? /review plan or /review code")
    return _trigger_phase(call, phase, rest)


def _trigger_phase(call: WordCall, phase: str, words: str) -> PersonMove:
    """Goes on to a phase from the one before, or has it done again where the task is in it; never skips one."""
    current, gate = call.snapshot.state, call.find_open_gate()
    job = gate.job if gate is not None else ""
    is_working = gate is None and call.run_view.status.status == "working"
    if is_working and current == phase and not words:
        return ResumeRun()
    if job == "decide" and phase in _DECIDED_PHASES:
        return _redo_phase(call, phase, words)
    if job == "next" and NEXT_PHASE[current] == phase:
        return _say_then(call, words, read_next)
    if job == "again" and current == phase:
        return _say_then(call, words, read_retry)
    if current == phase and job in ("", "next", "questions", "evidence"):
        return _redo_phase(call, phase, words)
    new_task_hint = ", and another task is begun by /new" if current == "done" else ""
    return RefuseWord(f"/{WORD_BY_PHASE[phase]} is not next{new_task_hint}")


def _say_then(call: WordCall, words: str, read: Callable[[WordCall], PersonMove]) -> PersonMove:
    """Words for a phase that is about to begin are kept for its agent; in planning they would plan again."""
    if not words:
        return read(call_without_text(call))
    if call.snapshot.state == "planning":
        raise UserError("words to the planner plan again: say them first, then go on")
    said = read_say(msgspec.structs.replace(call, text=words))
    if not isinstance(said, SendEvent):
        return said
    return SendEvent(said.event, said.text, then=lambda later: read(call_without_text(later)))


def call_without_text(call: WordCall) -> WordCall:
    """The same call without what was typed after the word."""
    return msgspec.structs.replace(call, text="")


def read_redo(call: WordCall) -> PersonMove:
    """A phase done again: the one that is named, else the one at hand."""
    phase, _, rest = call.text.partition(" ")
    if phase in DOCUMENTS_BY_PHASE:
        return _redo_phase(call, phase, rest)
    if call.text:
        return RefuseWord(f"there is no phase {phase!r} to do again")
    if call.snapshot.state == "done":
        return RefuseWord("name the phase that is to be done again")
    return _redo_phase(call, call.snapshot.state, "")


def _redo_phase(call: WordCall, phase: str, words: str) -> PersonMove:
    """A phase again: an answer to the open decision where it asks that, else the machine's own event."""
    if phase == "revert":
        command = call.name_action(LegalAction("revert", "", f"tasks revert {call.snapshot.run}"))
        raise UserError(f"a revert is not done again: {command} takes the change back, with a reason")
    if not (call.is_legal(f"redo {phase}") or call.is_legal(WORD_BY_PHASE[phase])):
        return RefuseWord(f"{phase} cannot be done again now")
    kept = kept_document_lines(call.snapshot, phase)
    lines = (f"{phase} again; reused: {', '.join(kept)}",) if kept else ()
    gate = call.find_open_gate("decide")
    if gate is not None and phase in _DECIDED_PHASES:
        return AnswerGate(gate=gate, choice=DECISION_BY_PHASE[phase], text=words, lines=lines)
    gate = call.find_open_gate("evidence")
    if gate is not None and phase == "codegen":
        return AnswerGate(gate=gate, choice="rework", text=words, lines=lines)
    return SendEvent(f"redo_{phase}", words, lines=lines)


# ── gates ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def _read_choice(choice: str) -> Callable[[WordCall], PersonMove]:
    def read(call: WordCall) -> PersonMove:
        gate = call.find_open_gate()
        if gate is None or choice not in gate.choices:
            return RefuseWord(f"{choice} is no choice")
        return AnswerGate(gate=gate, choice=choice, reason=call.text)

    return read


read_retry = _read_choice("retry")


def read_restore(call: WordCall) -> PersonMove:
    """Restores recorded documents: as the answer where a gate asks that, else at once."""
    gate = call.find_open_gate()
    if gate is not None and "restore" in gate.choices:
        return AnswerGate(gate=gate, choice="restore", reason=call.text)
    return RestoreFiles()


def read_answer(call: WordCall) -> PersonMove:
    """Answers to what the plan asks: one text for all of it, a JSON object by question, or one by one."""
    gate = call.find_open_gate("questions")
    if gate is None:
        return RefuseWord("nothing is asked")
    context: TaskContext = call.snapshot.context
    plan_text = call.run_view.text(context.documents.get(PLAN_FILE, ""))
    questions = find_open_plan_questions(msgspec.json.decode(plan_text, type=TaskPlan)) if plan_text else ()
    return AnswerGate(gate=gate, choice="answer", text=call.text, questions=tuple(questions))


def read_accept(call: WordCall) -> PersonMove:
    """Exactly what is accepted, then the yes; after the tests, at the prompt, first the way to the decision."""
    gate = call.find_open_gate("decide")
    if gate is not None:
        return AnswerGate(
            gate=gate,
            choice="approve",
            reason=call.text,
            digest=call.options.get("digest"),
            confirm="accept exactly this?",
        )
    gate = call.find_open_gate("next")
    if call.prompting and gate is not None and call.snapshot.state == "test":
        return AnswerGate(gate=gate, choice="approve", then=_note_not_accepted)
    return RefuseWord("there is nothing to accept")


def _note_not_accepted(call: WordCall) -> PersonMove:
    if call.find_open_gate("decide") is None:
        return PrintNote(())
    reason_text = f" {printable_line(call.text)}" if call.text else " [reason]"
    return PrintNote((f"nothing is accepted yet: /accept{reason_text} accepts exactly this",))


def read_approve(call: WordCall) -> PersonMove:
    """A yes to the open gate."""
    return read_accept(call) if call.find_open_gate("decide") is not None else _read_choice("approve")(call)


def read_revert(call: WordCall) -> PersonMove:
    """Reverts a delivered change; a decision that was made is reopened first."""
    gate = call.find_open_gate("decide")
    if gate is not None:
        return AnswerGate(gate=gate, choice="revert", reason=call.text)
    context: TaskContext = call.snapshot.context
    is_done = call.snapshot.state == "done"
    if is_done and context.reverted_commit:
        return RefuseWord(f"it is reverted already, by commit {context.reverted_commit[:12]}")
    if context.delivered == "yes" and not is_done:
        commits = " ".join(commit[:12] for commit in reversed(context.deliveries))
        problem = (
            "what it delivered is still there, but the task was reopened and can be reverted only from "
            f"accept or done; `git revert {commits}` reverts it by hand"
        )
        return RefuseWord(problem)
    if not is_done or context.delivered != "yes":
        return RefuseWord("there is nothing to revert")
    return SendEvent(REOPEN_EVENT, reason=call.text, announce=True, then=_revert_reopened)


def _revert_reopened(call: WordCall) -> PersonMove:
    gate = call.find_open_gate("decide")
    if gate is None:
        return RefuseWord("the decision is not open")
    return AnswerGate(gate=gate, choice="revert", reason=call.text)


def _complete_redo(call: WordCall) -> tuple[str, ...]:
    words = (action.word for action in call.legal)
    return tuple(word.removeprefix("redo ") for word in words if word.startswith("redo "))


TASK_WORDS = {
    "plan": PersonWord("[words]: begin a task; in planning, plan again with these words", _read_phase_word("planning")),
    "review": PersonWord("plan | code: go on to that review, or have it done again", read_review, lambda _: ("plan", "code")),
    "codegen": PersonWord("[words]: go on to codegen, or have it done again", _read_phase_word("codegen")),
    "test": PersonWord("[words]: go on to the tests, or have them run again", _read_phase_word("test")),
    "accept": PersonWord("[reason]: after the tests, see what would be accepted; then accept exactly that, and have it delivered", read_accept),
    "revert": PersonWord("[reason]: take the change back", read_revert),
    "next": PersonWord('[--override "reason" [--to phase]]: go on to the next phase, or past its guard', read_next, lambda _: ("--override",)),
    "redo": PersonWord("[phase [words]]: do a phase again, without a name the one at hand; reopens a task that is done", read_redo, _complete_redo),
    "begin": PersonWord("reason: begin without the tasks that come first", read_begin),
    "restore": PersonWord("put the recorded documents back", read_restore),
    "adopt": PersonWord("take over a plan that was changed by hand", _read_choice("adopt")),
    "retry": PersonWord("try again what could not be done", read_retry),
    "answer": PersonWord("[text]: answer what the plan asks, one by one or all at once", read_answer),
    "approve": PersonWord("[reason]: answer the open gate: yes", read_approve),
    "override": PersonWord("", read_override),
    "say": PersonWord("", read_say),
}  # fmt: skip
