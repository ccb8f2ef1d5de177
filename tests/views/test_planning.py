"""Plans as people read them: the same bytes for the same graph, and no text of an intent or registry that acts."""

import pytest
from msgspec.structs import replace
from tests.support.cases import for_each_case
from tests.support.planning_documents import (
    default_answers,
    make_command,
    make_decision,
    make_intent,
    make_phase,
    make_plan_inputs,
    make_plan_outputs,
    make_registry,
    make_workflow,
    planned_command,
)

from steersman.contracts.planning.intent import LockScope
from steersman.contracts.planning.questions import QuestionConstraints, QuestionPack
from steersman.machines.coordinator.graph import draft_plan_graph, questions_for_inputs
from steersman.views.planning.differences import ComparedPlan, compare_plans
from steersman.views.planning.markdown import compute_node_ranks, render_plan_markdown, render_review_markdown
from steersman.views.planning.mermaid import render_graph_mermaid

EVIL = 'x"] --> y\n# head\n|a|b| <script>alert(1)</script> [l](http://e) end\u202e\x1b[2J %%{init: {}}%% &amp; ]]>'
TAME = make_plan_inputs(ruled=(make_decision("edit_files", "require_review", "error", review=("security",)),))
HOSTILE = make_plan_inputs(
    make_intent(
        objective=replace(make_intent().objective, goal=EVIL, non_goals=(EVIL,)),
        planned_commands=(planned_command("read_code", intent=EVIL), *make_intent().planned_commands[1:]),
        constraints=replace(make_intent().constraints, lock_scope=LockScope(mode="files", paths=(EVIL,))),
    ),
    known=make_registry(
        make_workflow(
            "bug_fix", make_phase("analysis", condition=EVIL), make_phase("implementation", condition=EVIL),
            make_phase("validation", "tester"), make_phase("review", "reviewer"), title=EVIL,
        ),
    ),
    ruled=(make_decision("edit_files", "deny", "warn", reason=EVIL),),
)  # fmt: skip


def drawn(i):
    """Everything that is drawn of a plan."""
    settled = default_answers(i, excluded_command="leave_out")
    done = make_plan_outputs(i, settled)
    return {
        "draft.mmd": render_graph_mermaid(draft_plan_graph(i)),
        "final.mmd": render_graph_mermaid(done.graph),
        "review.md": render_review_markdown(done.review),
        "plan.md": render_plan_markdown(done.graph, done.review, questions_for_inputs(i), settled),
    }


@pytest.mark.parametrize(
    ("lock", "told"),
    [
        (LockScope(mode="none"), "others may change the same files"),
        (LockScope(mode="task"), "no other work changes meanwhile what it names"),
        (LockScope(mode="files", paths=("src/", "docs/")), "the plan changes no others: src/, docs/"),
    ],
)
def test_plan_and_review_show_the_lock(lock, told):
    """What no other work should touch meanwhile, and how far the plan itself may go."""
    made = drawn(
        make_plan_inputs(make_intent(constraints=replace(make_intent().constraints, lock_scope=lock)))
    )
    assert told in made["plan.md"]
    assert told in made["review.md"]


@for_each_case(
    ("targets", "root", "told"),
    [
        ({"files": ("src/pump.py", "docs/")}, ".", ["everything below docs/", "file src/pump.py"]),
        ({"files": (".",)}, ".", ["the whole project"]),
        ({"files": ("src/**",)}, ".", ["everything below src/"]),
        ({"files": ("src",)}, ".", ["src, or everything below src/ if it is a folder"]),
        ({"files": (".env",)}, ".", [".env, or everything below .env/ if it is a folder"]),
        ({"files": (), "modules": ("pump",)}, "src", ["module pump", "nothing outside of src"]),
        ({"files": (), "areas": ("docs",)}, "src", ["anything in src"]),
        ({"files": (), "areas": ("docs",)}, ".", ["anything in the project"]),
    ],
)
def test_a_plan_names_what_it_may_touch(targets, root, told):
    """The files and modules of a plan stand at its top, and where it lies; never the project where something is named."""
    scope = replace(
        make_intent().scope, repo_root=root, targets=replace(make_intent().scope.targets, **targets)
    )
    page = drawn(make_plan_inputs(make_intent(scope=scope)))["plan.md"].replace("\\", "")
    bounds = page.partition("## Bounds")[2].partition("##")[0].strip().splitlines()
    assert bounds[:-2] == [f"- {line}" for line in told]
    assert bounds[-2].startswith("- at most 10 files")


def test_a_draft_in_mermaid():
    """Lanes are subgraphs, kinds have their shapes, edges their arrows."""
    text = render_graph_mermaid(draft_plan_graph(TAME))
    assert text.startswith(
        'flowchart TD\n    subgraph lane0["agent_coder (coder)"]\n        n0(["bug fix  analysis"])\n'
    )
    assert '{"Rules on edit_files  require_review"}' in text
    assert '[/"Review  security"/]' in text
    assert '-.->|"require_review  because of a test"|' in text
    assert "{{" in text


def test_what_is_left_out_is_drawn_faintly():
    """Excluded nodes have a class of their own."""
    found = drawn(HOSTILE)
    assert "classDef excluded" in found["final.mmd"]
    assert "classDef" not in drawn(make_plan_inputs())["final.mmd"]


def test_every_kind_of_edge_can_be_drawn():
    """Sequential, parallel, conditional and fallback edges have their own lines."""
    graph = draft_plan_graph(TAME)
    kinds = ("sequential", "parallel", "conditional", "fallback")
    edges = tuple(replace(graph.edges[0], edge_type=kind, condition="c") for kind in kinds)
    text = render_graph_mermaid(replace(graph, edges=edges))
    assert [text.count(arrow) for arrow in (" --> ", " ==> ", ' -.->|"c"| ', " -. fallback .-> ")] == [
        1, 1, 1, 1,
    ]  # fmt: skip


@pytest.mark.parametrize("name", ["draft.mmd", "final.mmd"])
def test_no_text_adds_a_node_or_a_directive_to_a_diagram(name):
    """A hostile label stays one label: as many lines as the graph has parts."""
    text = drawn(HOSTILE)[name]
    graph = draft_plan_graph(HOSTILE) if name.startswith("draft") else make_plan_outputs(HOSTILE).graph
    styles = 2
    assert (
        len(text.splitlines()) == 1 + 2 * len(graph.swimlanes) + len(graph.nodes) + len(graph.edges) + styles
    )
    assert "%%{" not in text
    assert "<" not in text.replace("<br", "<")


@pytest.mark.parametrize("name", ["review.md", "plan.md"])
def test_no_text_adds_a_heading_a_link_or_a_tag_to_a_page(name):
    """The headings of a hostile plan are those of a tame one; nothing is a tag, nothing moves a cursor."""

    def headings(text):
        return {line for line in text.splitlines() if line.startswith("#")}

    hostile, tame = drawn(HOSTILE)[name], drawn(TAME)[name]
    plans = (HOSTILE.plan_id, TAME.plan_id)
    ours = {"## Left out", "## Out of scope"}
    known = {h.replace(plans[1].replace("_", "\\_"), plans[0].replace("_", "\\_")) for h in headings(tame)}
    assert headings(hostile) <= known | ours
    body = "\n".join(line for line in hostile.splitlines() if not line.startswith("    "))
    assert "<script" not in body
    assert "](http" not in body
    assert "\x1b" not in hostile
    assert "\u202e" not in hostile


def test_a_node_without_a_lane_is_drawn_beside_the_lanes():
    """A broken graph can be looked at too: without lanes, and with a circle."""
    graph = replace(draft_plan_graph(TAME), swimlanes=())
    assert render_graph_mermaid(graph).count("subgraph") == 0
    first = graph.edges[0]
    circle = replace(first, edge_id="e_0000000000000000", from_node=first.to_node, to_node=first.from_node)
    ranks = compute_node_ranks(replace(graph, edges=(*graph.edges, circle)))
    assert set(ranks) == {node.node_id for node in graph.nodes}


def test_a_plan_says_what_was_asked_and_what_holds():
    """Questions and answers are in the plan; without any it says so; an unknown one by its id."""
    found = drawn(TAME)["plan.md"]
    assert "| Rules want edit\\_files reviewed" in found
    assert "Nothing was uncertain." in drawn(make_plan_inputs())["plan.md"]
    done = make_plan_outputs(TAME)
    assert done.settled.answers[0].question_id.replace("_", "\\_") in render_plan_markdown(
        done.graph, done.review, (), done.settled
    )
    assert "None." in render_review_markdown(replace(done.review, actions=()))


def side(i, **words):
    """One plan, as `plan diff` looks at it."""
    made = make_plan_outputs(i, default_answers(i, **words))
    return ComparedPlan(made.review, (), made.settled, made.graph)


def test_plans_that_may_be_carried_out_alike_have_no_differences():
    """Of the same plan nothing is told."""
    assert compare_plans(side(make_plan_inputs()), side(make_plan_inputs())) == ()


def test_differences_of_two_plans_are_told_one_by_one():
    """Commands, their order and argv, what is left out, scope, lock, reviews, mode, risk, budgets and answers."""
    open_ = replace(
        make_intent().scope, targets=replace(make_intent().scope.targets, files=(), modules=("pump",))
    )
    one = make_plan_inputs(ruled=(make_decision("edit_files", "require_review", "warn"),))
    other = make_plan_inputs(make_intent(
        budgets=replace(make_intent().budgets, max_files=99),
        constraints=replace(make_intent().constraints, lock_scope=LockScope(mode="task")),
        scope=open_,
    ), ruled=(make_decision("edit_files", "require_review", "warn"),), known=make_registry(
        make_command("read_code", "analysis", argv=("cat", "FILE")),
    ))  # fmt: skip
    told = compare_plans(side(one), side(other, requires_review="leave_out"))
    assert {line.partition(":")[0] for line in told} == {
        "edit_files", "read_code, as it is typed", "left out, newly", "files, no longer", "modules, newly", "lock",
        "reviews, no longer", "budget max_files", "expected of max_files", "expected of max_commits",
        "expected of max_files_per_commit", "estimated minutes",
        *(line.partition(":")[0] for line in told if line.startswith("answer to q_")),
    }  # fmt: skip
    (answer,) = [line for line in told if line.startswith("answer to")]
    assert answer.endswith("keep_with_review, by policy_default → leave_out, by policy_default")


PURPOSE, BACK = "To get review done.", "If it does not succeed: back to analysis."
LAST = {"after": ("validation",), "condition": "the tests fail"}
MENDED = (
    make_phase("analysis"),
    make_phase("implementation", after=("analysis",)),
    make_phase("validation", "tester", after=("implementation",)),
)


def flow(*more):
    return make_plan_inputs(known=make_registry(make_workflow("bug_fix", *more)))


@for_each_case(
    ("now", "told"),
    [
        ({**LAST, "condition": ""}, "phase bug_fix/review, only if: the tests fail → nothing"),
        ({**LAST, "condition": "they pass"}, "phase bug_fix/review, only if: the tests fail → they pass"),
        ({**LAST, "after": ("analysis",)}, "phase bug_fix/review, comes after: validation → analysis"),
        ({**LAST, "fallback": "analysis"}, f"phase bug_fix/review, in words: {PURPOSE} → {PURPOSE} {BACK}"),
    ],
)
def test_when_a_phase_comes_is_a_difference(now, told):
    """Its condition, what comes before it, and where it leads when it does not succeed."""
    one, other = (side(flow(*MENDED, make_phase("review", "reviewer", **more))) for more in (LAST, now))
    assert told in compare_plans(one, other)


def test_phases_and_ways_on_are_a_difference():
    """A phase that is there in one plan only, and a way on for one that does not succeed, are told."""
    short, first = flow(*MENDED), make_phase("analysis", fallback="validation", condition="it is late")
    other = flow(first, *MENDED[1:], make_phase("review", "reviewer", **LAST))
    assert {
        "phases, newly: bug_fix/review",
        "phase bug_fix/analysis, if it does not succeed: nothing → validation",
        "phase bug_fix/analysis, only if: nothing → it is late",
    } <= set(compare_plans(side(short), side(other)))


def test_a_plan_says_on_what_a_phase_hangs():
    """`plan.md` has the condition beside its phase, also of a first one, and the numbers of all of it in brackets."""
    first = replace(MENDED[0], condition="it is late")
    page = drawn(flow(first, *MENDED[1:], make_phase("review", "reviewer", **LAST)))["plan.md"].replace(
        "\\", ""
    )
    rows = [
        line.split(" | ")
        for line in page.partition("## Steps")[2].partition("##")[0].splitlines()
        if line.startswith("| ")
    ]
    numbers = {row[0].removeprefix("| ").startswith("(") for row in rows if row[3] in ("analysis", "review")}
    assert numbers == {True}
    assert not [row for row in rows[1:] if row[3] not in ("analysis", "review") and "(" in row[0]]
    assert "bug fix: analysis, only if: it is late |" in page
    assert "bug fix: review, only if: the tests fail |" in page


def test_the_order_of_commands_is_a_difference():
    """The same commands in another phase or order are not the same plan."""
    moved = make_registry(
        make_command("run_tests", "validation", "implementation", fact="test_command", minutes=10)
    )
    assert "the order or the phases of the commands" in compare_plans(
        side(make_plan_inputs()), side(make_plan_inputs(known=moved))
    )


def test_an_answer_is_named_by_its_question():
    """Cause and what it is about, where the plan has the question; and nothing where only one plan had it."""
    i = make_plan_inputs(ruled=(make_decision("edit_files", "require_review", "warn"),))
    (question,) = questions_for_inputs(i)
    pack = QuestionPack(
        pack_id="questions_0123456789abcdef", plan_id=i.plan_id, intent_id=i.intent.id, round=1,
        questions=(question,), defaulted=(), created_at=i.intent.created_at,
        policy_constraints=QuestionConstraints(
            execution_mode="interactive", question_budget=1, question_policy="conceptual_only",
            budget_consumed=1, budget_remaining=0),
    )  # fmt: skip
    one = side(i)._replace(packs=(pack,))
    said = replace(one.settled.answers[0], provided_by="human", text="so be it")
    other = one._replace(settled=replace(one.settled, answers=(said,)))
    none = one._replace(settled=replace(one.settled, answers=()))
    (told,) = compare_plans(one, other)
    assert told.startswith(f"answer to requires_review (edit_files, {question.question_id}): ")
    assert told.endswith("→ keep_with_review: so be it")
    assert compare_plans(none, other)[0].endswith("nothing → keep_with_review: so be it")
