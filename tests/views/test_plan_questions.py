"""Questions as whoever answers them sees them: all of them, each with all its choices, however many there are."""

from msgspec.structs import replace
from tests.support.cases import for_each_case
from tests.support.planning_documents import make_decision, make_plan_inputs, questions_for_inputs

from steersman.contracts.planning.questions import QuestionPack
from steersman.kernel.canonical import canonical_bytes
from steersman.machines.coordinator import MACHINE
from steersman.machines.coordinator.uncertainties import choose_round_questions
from steersman.ports.journal import Gate
from steersman.views.gates import MAX_GATE_EXCERPT, MAX_GATE_TEXT, describe_gate, render_gate_lines
from steersman.views.planning.questions import render_answer_gate_items

RUN = "261116-abcdef"
ASKED = Gate(id=f"{RUN}:9:1", run=RUN, job="answers", digest="d", choices=("answer", "defaults", "stop"),
             shown={"questions": "p-1"})  # fmt: skip


def render_lines(gate, text, prefix, **more):
    return render_gate_lines(
        describe_gate(MACHINE, gate), text, prefix, split_text=render_answer_gate_items, **more
    )


def pack(many: int) -> QuestionPack:
    """A pack with one question of ours, many times over."""
    i = make_plan_inputs(ruled=(make_decision("edit_files", "require_review", "warn"),))
    chosen = choose_round_questions(
        questions_for_inputs(i), i.effective, i.bundle.policy, consumed=0, round_=1, plan_id=i.plan_id,
        intent=i.intent,
    )  # fmt: skip
    (first, *_) = chosen.pack.questions
    made = tuple(
        replace(first, question_id=f"q_{n:016x}", question_text=f"Question {n}: {'what about it? ' * 30}")
        for n in range(many)
    )
    return replace(chosen.pack, questions=made)


@for_each_case("many", [1, 5, 10, 50])
@for_each_case("most", [MAX_GATE_TEXT, None])
def test_nobody_has_to_answer_what_is_not_shown(many, most):
    """§6: every question of a run that waits is shown to its end, with every choice and what holds without an answer."""
    asking = pack(many)
    text = "\n".join(render_lines(ASKED, lambda _: canonical_bytes(asking).decode(), "steersman", most=most))
    for q in asking.questions:
        assert q.question_id in text
        assert f"{q.question_text.strip()}\n" in text
    assert text.count("without an answer: ") == many
    for choice in asking.questions[0].suggested_answers:
        assert text.count(f"│   {choice.answer}: ") == many
    assert "…" not in text


def test_a_list_of_all_runs_says_how_many_more_there_are():
    """§6: beside other runs there is room for the first questions, none by halves; the rest is counted, with the command
    that shows it."""
    asking = pack(10)
    lines = render_lines(
        ASKED, lambda _: canonical_bytes(asking).decode(), "steersman", most=MAX_GATE_EXCERPT
    )
    assert f"│ … 9 more: steersman gates {RUN}" in lines
    assert sum("without an answer: " in line for line in lines) == 1
    alone = render_lines(
        ASKED, lambda _: canonical_bytes(pack(1)).decode(), "steersman", most=MAX_GATE_EXCERPT
    )
    assert not [line for line in alone if "…" in line]


def test_what_cannot_be_read_as_questions_is_shown_as_it_is():
    """A text that was pruned says so."""
    assert "│ (this text was pruned)" in render_lines(ASKED, lambda _: "(this text was pruned)", "steersman")
