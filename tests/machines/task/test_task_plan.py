"""A draft becomes a plan; a plan has a scope, open questions and flaws."""

from itertools import pairwise

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.cases import for_each_case
from tests.support.task_replies import (
    sample_comment,
    sample_draft,
    sample_file,
    sample_plan,
    sample_question,
    sample_scope,
)

from steersman.machines.task.documents import schemas as d
from steersman.machines.task.documents.plan import (
    build_task_plan,
    find_open_plan_questions,
    find_plan_flaws,
    infer_plan_files,
    plan_question_id,
)
from steersman.machines.task.replies import PlanCommentReply, TaskPlannerReply

TASK = "261116-abc123"


def made(reply, comments=None, answers=None, **more):
    """The plan, as it is read back from its file."""
    document = build_task_plan(TASK, 2, reply, comments or {}, answers or {}, **more)
    again = msgspec.json.decode(msgspec.json.encode(document), type=d.TaskPlan)
    assert again == document
    return document


def found(document, files=None, outside=()):
    return [
        (f.id, f.severity) for f in find_plan_flaws(document, files or infer_plan_files(document), outside)
    ]


@pytest.mark.parametrize("other", ["which  currency?", " Which currency? ", "WHICH\ncurrency?"])
def test_the_same_question_has_the_same_id(other):
    """Spacing and case do not make a new question; other words do."""
    assert plan_question_id(other) == plan_question_id("Which currency?")
    assert plan_question_id("Which country?") != plan_question_id("Which currency?")


@given(st.text(st.characters()))
def test_any_question_has_an_id(text):
    """q- and ten hex digits, whatever is asked."""
    key = plan_question_id(text)
    assert key.startswith("q-")
    assert len(bytes.fromhex(key[2:])) == 5


def test_a_draft_is_the_plan():
    """Everything that the planner said is in the plan, with ids for steps and criteria."""
    document = made(sample_draft())
    assert (document.task_id, document.round, document.title) == (TASK, 2, "Add a total")
    assert [(s.id, s.title) for s in document.work] == [("s1", "write it"), ("s2", "test it")]
    assert [(c.id, c.description) for c in document.acceptance_criteria] == [("AC1", "the total is the sum")]
    assert (document.scope.in_scope, document.scope.out_of_scope) == (("receipts",), ("taxes",))
    assert [r.description for r in document.risks] == ["rounding"]
    assert (document.test_plan.strategy, document.test_plan.cases) == ("by example", ("an empty receipt",))
    assert document.questions == document.notes == ()


def test_questions_of_everybody():
    """Each question once, by whoever asked first; it blocks when one of them says so; those that block come first."""
    reply = sample_draft(
        questions=(
            sample_question("a nice name?", blocking=False),
            sample_question("which currency?", blocking=False),
        )
    )
    comments = {
        "security": sample_comment(sample_question("Which  currency?")),
        "tests": sample_comment(sample_question("which runner?")),
    }
    document = made(reply, comments, {plan_question_id("which runner?"): "pytest"})
    assert [(q.text, q.blocking, q.asked_by, q.answer) for q in document.questions] == [
        ("which currency?", True, "planner", ""),
        ("which runner?", True, "tests", "pytest"),
        ("a nice name?", False, "planner", ""),
    ]
    assert [q.text for q in find_open_plan_questions(document)] == ["which currency?"]


def test_no_blocking_question_is_lost():
    """More questions than a plan holds: what is left out does not block."""
    many = {
        f"r{n}": sample_comment(*(sample_question(f"{n}.{i}?", blocking=n == 9) for i in range(20)))
        for n in range(10)
    }
    document = made(sample_draft(), many)
    assert len(document.questions) == 100
    assert len(find_open_plan_questions(document)) == 20


@pytest.mark.parametrize("answer", ["", "  \n", "\u200b"])
def test_an_answer_that_says_nothing(answer):
    """A question whose answer cannot be seen is open."""
    document = made(
        sample_draft(questions=(sample_question("who?"),)), answers={plan_question_id("who?"): answer}
    )
    assert len(find_open_plan_questions(document)) == 1


def test_settled_questions_are_noted():
    """An answer to what is not asked any more stays in the plan; the words of the question where they are known."""
    answers = {"q-1": "yes", "q-2": "x" * 5000, "q-3": " ", plan_question_id("who?"): "me"}
    document = made(
        sample_draft(questions=(sample_question("who?"),)),
        answers=answers,
        earlier_questions={"q-1": "Shall it?"},
    )
    assert document.notes[0] == "asked: Shall it? answered: yes"
    assert document.notes[1].startswith("asked: q-2 answered: xxx")
    assert len(document.notes) == 2
    assert len(made(sample_draft(), answers={f"q-{n}": "yes" for n in range(300)}).notes) == 200


@pytest.mark.parametrize(
    "reply", [sample_draft(steps=("x" * 400,) * 100, risks=("r",) * 100, acceptance_criteria=("c",) * 100)]
)
def test_the_longest_reply_fits(reply):
    """What a reply may hold at most fits the document."""
    reply = msgspec.json.decode(msgspec.json.encode(reply), type=TaskPlannerReply)
    longest = msgspec.structs.replace(
        reply,
        files=tuple(sample_file(f"{n:04}" + "/x" * 510, summary="s" * 400) for n in range(500)),
        questions=tuple(sample_question("q" * 3990 + str(n)) for n in range(20)),
    )
    document = made(longest, answers={plan_question_id("q" * 3990 + "1"): "a" * 9000})
    assert len(document.questions[1].answer) == 4000
    assert len(infer_plan_files(document).files) == 500


def test_the_scope_of_a_plan():
    """Names in one spelling, each once; what is not fit is not in the scope."""
    document = sample_plan(
        ("./src//a.py", "create", "new"), ("src/a.py", "update"), ("src/b.py", "delete"),
        ("src/b.py", "update"), ("docs/./", "update"), ("lib/**", "create"), ("lib/", "create"),
        ("../x", "update"),
    )  # fmt: skip
    files = infer_plan_files(document)
    assert files.inferred
    assert files.task_id == TASK
    assert [(f.path, f.intent, f.summary) for f in files.files] == [
        ("src/a.py", "create_or_update", "new"),
        ("src/b.py", "delete", ""),
        ("docs/", "update", ""),
        ("lib/", "create", ""),
    ]


UNFIT = {
    "/etc/passwd": "leads out", "../a": "leads out", "a/../../b": "leads out", "~/a": "leads out",
    "C:\\a": "leads out", "a\0b": "leads out", "./": "whole repository", ".": "whole repository",
    "**": "whole repository", "a\x1b[2J": "invisible", "a\u202eb": "invisible", "a\nb": "invisible",
    "a\tb": "invisible", "src/*.py": "pattern", "src/a?.py": "pattern", ".git/config": "not the repository's",
    "sub/.GIT/hooks/": "not the repository's", ".steersman/runs/x": "not the repository's",
    "./.Steersman/": "not the repository's", "steersman.toml": "own", "./Steersman.TOML": "own",
}  # fmt: skip


@for_each_case(("path", "why"), UNFIT.items())
def test_unfit_names(path, why):
    """A name that leaves the repository, cannot be read, is a pattern or is ours is an error, wherever it stands."""
    document = sample_plan((path,))
    assert infer_plan_files(document) is None
    told = find_plan_flaws(document, None)
    assert [(f.id, f.severity) for f in told] == [("FILES_EMPTY", "error"), ("FILES_UNFIT", "error")]
    assert why in told[1].message
    assert told[1].message.isprintable()
    by_hand = find_plan_flaws(sample_plan(), sample_scope((path,)))
    assert [f.id for f in by_hand] == ["FILES_UNFIT"]


@for_each_case("path", ["a", ".gitignore", "src/[id]/page.tsx", "x/steersman.toml", "my file.txt", "é/ü"])
def test_fit_names(path):
    """Other names are what repositories have."""
    assert found(sample_plan((path,))) == []


@for_each_case(
    ("changed", "flaw"),
    [
        ({"requirements": ()}, ("REQ_EMPTY", "warning")),
        ({"requirements": ("\u200b",)}, ("REQ_EMPTY", "warning")),
        ({"acceptance_criteria": ()}, ("ACCEPTANCE_EMPTY", "error")),
        ({"test_plan": d.TestPlan()}, ("TEST_PLAN_EMPTY", "warning")),
        ({"file_plan": ()}, ("FILES_EMPTY", "error")),
    ],
)
def test_empty_parts(changed, flaw):
    """What a plan lacks is told; without a criterion or a scope it cannot go on."""
    assert found(sample_plan(**changed)) == [flaw]


def test_a_plan_without_a_flaw():
    """Test cases alone are a test plan, and a plan that has everything has no flaw."""
    assert found(sample_plan(test_plan=d.TestPlan(cases=("an empty receipt",)))) == []


def test_open_questions_are_flaws():
    """One for each question that blocks and has no answer."""
    questions = (
        d.TaskQuestion(id="q-1", text="who\nelse?", blocking=True),
        d.TaskQuestion(id="q-2", text="why?", blocking=True, answer="so"),
        d.TaskQuestion(id="q-3", text="nice?", blocking=False),
    )
    (flaw,) = find_plan_flaws(sample_plan(questions=questions), sample_scope(("a",)))
    assert (flaw.id, flaw.severity) == ("QUESTION_OPEN", "error")
    assert flaw.message == "q-1 has no answer: who\\nelse?"


def steps(**depends):
    return tuple(d.WorkStep(id=name, title=name, depends=tuple(on)) for name, on in depends.items())


def test_dependencies():
    """A step that depends on none is told once; so is a cycle, in the order of its arrows."""
    unknown = find_plan_flaws(sample_plan(work=steps(s1=(), s2=("s1", "s9", "s9"))), sample_scope(("a",)))
    assert [(f.id, f.message) for f in unknown] == [
        ("DEPENDS_UNKNOWN", "step s2 depends on s9, and there is no such step")
    ]
    (cycle,) = find_plan_flaws(
        sample_plan(work=steps(s1=("s2",), s2=("s3",), s3=("s1",))), sample_scope(("a",))
    )
    assert (cycle.id, cycle.severity) == ("DEPENDS_CYCLE", "error")
    way = cycle.message.removeprefix("steps depend on each other: ").split(" → ")
    assert len(way) == 4
    assert all((one, other) in [("s1", "s2"), ("s2", "s3"), ("s3", "s1")] for one, other in pairwise(way))
    assert found(sample_plan(work=steps(s1=("s1",)))) == [("DEPENDS_CYCLE", "error")]
    assert found(sample_plan(work=steps(s1=(), s2=("s1",), s3=("s1", "s2")))) == []


def test_outside_a_frozen_plan():
    """What the handed plan does not allow is an error, once, and can be printed."""
    told = find_plan_flaws(
        sample_plan(), sample_scope(("a",)), ("b is outside", "b is outside", "c\x1b[2J is outside")
    )
    assert [(f.id, f.severity) for f in told] == [("OUTSIDE_PLAN", "error")] * 2
    assert told[1].message == "c\\x1b[2J is outside"


LINES = st.lists(st.text(min_size=1, max_size=5).filter(lambda t: t.strip()), max_size=3).map(tuple)
ASKED = st.lists(
    st.builds(sample_question, st.sampled_from(["a?", "B?", "b?"]), blocking=st.booleans()), max_size=3
)


@given(
    st.builds(sample_draft, requirements=LINES, steps=LINES, files=st.lists(st.builds(sample_file, st.text(min_size=1).filter(lambda t: t.strip()))).map(tuple), questions=ASKED.map(tuple)),
    st.dictionaries(st.sampled_from(["a", "b"]), st.builds(lambda qs: sample_comment(*qs), ASKED)),
    st.dictionaries(st.sampled_from([plan_question_id("a?"), "q-1"]), st.text(max_size=9)),
)  # fmt: skip
def test_total(reply, comments, answers):
    """Whatever parsed gives a plan that reads back, and its flaws fit their contract."""
    reply = msgspec.json.decode(msgspec.json.encode(reply), type=TaskPlannerReply)
    comments = msgspec.json.decode(msgspec.json.encode(comments), type=dict[str, PlanCommentReply])
    document = made(reply, comments, answers)
    files = infer_plan_files(document)
    assert files is None or msgspec.json.decode(msgspec.json.encode(files), type=d.PlanFiles) == files
    told = find_plan_flaws(document, files)
    assert msgspec.json.decode(msgspec.json.encode(told), type=tuple[d.PlanFlaw, ...]) == told
    assert files is None or not any(f.id == "FILES_UNFIT" for f in find_plan_flaws(sample_plan(), files))
