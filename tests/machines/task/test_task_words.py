"""The words of a task: what each comes to, by where the task is and which gate is open."""

from typing import Any, cast

import msgspec
import pytest
from tests.support.cases import for_each_case
from tests.support.simulated_task import SIMULATED_RUN, task_at
from tests.support.summaries import facts_of, summary_of

from steersman.engine.active_run import ActiveRun
from steersman.engine.machine_package import (
    AnswerGate,
    PersonMove,
    PrintNote,
    RefuseWord,
    ResumeRun,
    RunView,
    SendEvent,
    WaiveGuard,
    WordCall,
)
from steersman.errors import UserError
from steersman.kernel.snapshot import JobItem
from steersman.machines.task.documents.schemas import TaskPlan, TaskQuestion
from steersman.machines.task.package import PACKAGE
from steersman.machines.task.table import MACHINE
from steersman.machines.task.views.actions import find_task_actions
from steersman.machines.task.words import parse_override_words, read_free_text
from steersman.ports.journal import Gate
from steersman.views.gates import describe_gate

CHOICES = {
    "next": ("approve", "rework"), "others": ("retry", "begin"), "questions": ("answer",),
    "again": ("retry",), "decide": ("approve", "rework", "review", "replan", "revert"),
    "evidence": ("approve", "rework"), "damaged_plan": ("restore", "adopt"),
}  # fmt: skip
PLAN = TaskPlan(
    task_id=SIMULATED_RUN, round=1, title="t", brief="b", requirements=("r",), acceptance_criteria=(),
    file_plan=(), questions=(TaskQuestion(id="q-1", text="Which?", blocking=True),),
)  # fmt: skip
QUESTIONS = msgspec.json.encode(PLAN)


def word_call(
    state: str,
    gate: str = "",
    text: str = "",
    *,
    working: bool = False,
    prompting: bool = False,
    ended: str = "",
    **known: Any,
) -> WordCall:
    """A word typed to a task in this state, with this gate open."""
    snapshot = task_at(state, **{"step": "ready", **known})
    snapshot = msgspec.structs.replace(snapshot, ended=ended)
    if working:
        item = JobItem(f"{SIMULATED_RUN}:7:1", "code", "effect", "agent", {}, 0)
        snapshot = msgspec.structs.replace(snapshot, items={item.id: item})
    record = Gate(
        id=f"{SIMULATED_RUN}:7:0", run=SIMULATED_RUN, job=gate, digest="d", choices=CHOICES.get(gate, ())
    )
    gates = [record] if gate else []
    facts = facts_of(PACKAGE, snapshot, gates=gates, text=lambda _: QUESTIONS.decode())
    summary = summary_of(PACKAGE, snapshot, gates=gates)
    shown = [describe_gate(MACHINE, record)] if gate else []
    return WordCall(
        run_view=RunView(cast("ActiveRun", None), facts, summary),
        legal=find_task_actions(MACHINE, snapshot, shown),
        can_move=working,
        name_action=lambda action: f"/{action.word}",
        prompting=prompting,
        text=text,
    )


def read_word(word: str, call: WordCall) -> PersonMove:
    return PACKAGE.words[word].read(call)


def describe_move(move: PersonMove) -> str:
    """A move in a few words."""
    match move:
        case AnswerGate():
            return " ".join(filter(None, (move.gate.job, move.choice, move.reason or move.text)))
        case SendEvent():
            return " ".join(filter(None, ("send", move.event, move.text or move.reason)))
        case WaiveGuard(to, reason):
            return f"waive {to} {reason}"
        case RefuseWord(problem, _):
            return f"no: {problem}"
        case _:
            return type(move).__name__


@for_each_case(
    ("word", "state", "gate", "text", "comes_to"),
    [
        ("next", "planning", "next", "", "next approve"),
        ("next", "planning", "others", "", "others retry"),
        ("next", "planning", "questions", "", "no: there is no next"),
        ("next", "planning", "next", '--override "in a hurry"', "waive plan_review in a hurry"),
        ("next", "planning", "next", '--override "x" --to codegen', "waive codegen x"),
        ("override", "review", "", "I know", "waive test I know"),
        ("override", "review", "", " ", 'no: an override needs a reason: --override "why it may go on all the same"'),
        ("begin", "planning", "others", "why not", "others begin why not"),
        ("begin", "planning", "next", "", "no: it waits for no other task"),
        ("say", "codegen", "next", "use decimal", "send words_given use decimal"),
        ("say", "done", "", "hello", "no: no agent of this task takes words now"),
        ("plan", "planning", "next", "again", "send redo_planning again"),
        ("plan", "accept", "decide", "", "decide replan"),
        ("review", "planning", "next", "plan", "next approve"),
        ("review", "plan_review", "next", "plan slowly", "send redo_plan_review slowly"),
        ("review", "plan_review", "again", "plan", "again retry"),
        ("codegen", "plan_review", "next", "with care", "send words_given with care"),
        ("codegen", "planning", "next", "", "no: /codegen is not next"),
        ("codegen", "done", "", "", "no: /codegen is not next, and another task is begun by /new"),
        ("codegen", "accept", "decide", "shorter", "decide rework shorter"),
        ("redo", "test", "evidence", "codegen shorter", "evidence rework shorter"),
        ("redo", "codegen", "next", "", "send redo_codegen"),
        ("redo", "codegen", "next", "nonsense", "no: there is no phase 'nonsense' to do again"),
        ("redo", "codegen", "next", "review", "no: review cannot be done again now"),
        ("redo", "done", "", "", "no: name the phase that is to be done again"),
        ("retry", "codegen", "again", "", "again retry"),
        ("retry", "codegen", "next", "", "no: retry is no choice"),
        ("restore", "planning", "damaged_plan", "", "damaged_plan restore"),
        ("restore", "codegen", "next", "", "RestoreFiles"),
        ("adopt", "planning", "damaged_plan", "mine", "damaged_plan adopt mine"),
        ("adopt", "planning", "", "", "no: adopt is no choice"),
        ("answer", "planning", "questions", "yes", "questions answer yes"),
        ("answer", "planning", "next", "yes", "no: nothing is asked"),
        ("accept", "accept", "decide", "good", "decide approve good"),
        ("accept", "test", "next", "", "no: there is nothing to accept"),
        ("approve", "accept", "decide", "", "decide approve"),
        ("approve", "test", "next", "", "next approve"),
        ("revert", "accept", "decide", "broken", "decide revert broken"),
        ("revert", "done", "", "", "no: there is nothing to revert"),
        ("revert", "codegen", "next", "", "no: there is nothing to revert"),
    ],
)  # fmt: skip
def test_what_a_word_comes_to(word, state, gate, text, comes_to):
    """The answer to the open gate where that is what the word says, else the machine's event, else a refusal."""
    assert describe_move(read_word(word, word_call(state, gate, text))) == comes_to


def test_a_task_that_no_driver_works_on_is_driven_on():
    """`next` and the word of the phase at hand resume a task that works; with words the phase is done again."""
    assert isinstance(read_word("next", word_call("codegen", working=True)), ResumeRun)
    assert isinstance(read_word("codegen", word_call("codegen", working=True)), ResumeRun)
    assert (
        describe_move(read_word("codegen", word_call("codegen", text="x", working=True)))
        == "send redo_codegen x"
    )


def test_words_for_a_phase_that_is_about_to_begin():
    """They go to its agent first, then the phase begins; in planning they would plan again, and are refused."""
    said = read_word("review", word_call("codegen", "next", "code look twice"))
    assert isinstance(said, SendEvent)
    assert said.then is not None
    assert describe_move(said.then(word_call("codegen", "next", "code look twice"))) == "next approve"
    with pytest.raises(UserError, match="plan again"):
        read_word("review", word_call("planning", "next", "plan look twice"))
    refused = read_word("review", word_call("codegen", "next", "code look twice", ended="canceled"))
    assert describe_move(refused) == "no: no agent of this task takes words now"


def test_free_text():
    """It answers where the plan asks; elsewhere it is for the agent that works next."""
    answer = read_free_text(word_call("planning", "questions", "yes"))
    assert isinstance(answer, AnswerGate)
    assert [question.id for question in answer.questions] == ["q-1"]
    assert (
        describe_move(read_free_text(word_call("codegen", "next", "use decimal")))
        == "send words_given use decimal"
    )


def test_the_way_to_the_decision():
    """At the prompt `accept` after the tests goes on to the decision, and says that nothing is accepted yet."""
    on = read_word("accept", word_call("test", "next", prompting=True))
    assert isinstance(on, AnswerGate)
    assert on.then is not None
    assert on.then(word_call("accept", "decide")) == PrintNote(("nothing is accepted yet: /accept [reason] accepts exactly this",))  # fmt: skip
    assert on.then(word_call("accept", "decide", "fine")) == PrintNote(("nothing is accepted yet: /accept fine accepts exactly this",))  # fmt: skip
    assert on.then(word_call("test", "evidence")) == PrintNote(())


def test_a_late_revert():
    """A delivered change is taken back from `done` by reopening its decision; what stands against it is said."""
    late = read_word("revert", word_call("done", text="why", step="", delivered="yes", outcome="accepted"))
    assert isinstance(late, SendEvent)
    assert late.then is not None
    assert (late.event, late.announce) == ("redo_accept", True)
    assert describe_move(late.then(word_call("accept", "decide", "why"))) == "decide revert why"
    assert describe_move(late.then(word_call("accept", "again"))) == "no: the decision is not open"
    again = word_call("done", delivered="yes", outcome="reverted", reverted_commit="c9")
    assert describe_move(read_word("revert", again)) == "no: it is reverted already, by commit c9"
    reopened = word_call("codegen", "next", delivered="yes", deliveries=["c1", "c2"])
    assert "`git revert c2 c1` reverts it by hand" in describe_move(read_word("revert", reopened))


@for_each_case(
    ("word", "text", "error"),
    [
        ("say", "\u200b", "say what"),
        ("review", "all", "review what"),
        ("redo", "revert", "/revert takes the change back"),
    ],
)
def test_a_word_that_says_too_little(word, text, error):
    """It is refused with what to type."""
    with pytest.raises(UserError, match=error):
        read_word(word, word_call("codegen", "next", text))


def test_what_may_follow_a_word():
    """The prompt completes the phases that can be done again, the two reviews and the one option."""
    call = word_call("codegen", "next")
    completions = {
        name: word.complete(call) for name, word in PACKAGE.words.items() if word.complete is not None
    }
    assert completions["review"] == ("plan", "code")
    assert completions["next"] == ("--override",)
    assert "codegen" in completions["redo"]


@for_each_case(
    ("words", "read"),
    [
        ('--override "I accept the risk"', ("I accept the risk", "")),
        ("--override in a hurry", ("in a hurry", "")),
        ('--override "x" --to test', ("x", "test")),
        ('--to test --override "x"', ("x", "test")),
        ("--override it's fine", ("it's fine", "")),
        ('--override "it is fine', ("it is fine", "")),
        ('--override "', ("", "")),
        ('--override "use --to test"', ("use --to test", "")),
    ],
)
def test_an_override_has_a_reason_and_perhaps_a_phase(words, read):
    """Quoted or not; half a quotation is plain words; what is quoted is no option."""
    assert parse_override_words(words) == read


@for_each_case("words", ["now", "--to test", '--override "x" --force', "--override x --to", "--override x --to y"])  # fmt: skip
def test_nothing_else_goes_with_next(words):
    """An option that there is not is no part of a reason."""
    with pytest.raises(UserError):
        parse_override_words(words)
