"""The graph of a plan (001 §5 and §8): what is in it, in which order, in whose lane, and what is wrong with a bad one."""

import random
from itertools import pairwise

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.support.cases import for_each_case
from tests.support.planning_documents import (
    REGISTRY_CONTENT,
    default_answers,
    make_agent,
    make_command,
    make_context_bundle,
    make_decision,
    make_intent,
    make_phase,
    make_plan_inputs,
    make_registry,
    make_workflow,
    planned_command,
    selected_agent,
    selected_workflow,
)

from steersman.contracts.planning.graph import MAX_GRAPH_NODES, ExecutionGraph, GraphEdge
from steersman.contracts.planning.questions import SettledQuestions
from steersman.judges.planning.registry import Registry, RegistryItem
from steersman.kernel.canonical import canonical_bytes
from steersman.machines.coordinator.estimates import find_heaviest_chain
from steersman.machines.coordinator.faults import find_graph_cycles, find_graph_faults
from steersman.machines.coordinator.graph import draft_plan_graph, finalize_plan_graph

ALL = ("analysis", "implementation", "validation", "review")


def by_type(graph, kind):
    return [node for node in graph.nodes if node.node_type == kind]


def edges(graph):
    """Edges as (from, to, type), each node by phase and command."""
    names = {
        n.node_id: "/".join(filter(None, (n.node_type, n.phase_ref, n.command_ref))) for n in graph.nodes
    }
    return {(names[e.from_node], names[e.to_node], e.edge_type) for e in graph.edges}


def edge(start, end):
    return GraphEdge(edge_id="e_0000000000000000", from_node=start, to_node=end, edge_type="sequential")


def test_every_selected_phase_has_a_node_and_every_command_one_in_each_of_its_phases():
    """001 §5: phases become nodes, planned commands action proposals, in every selected phase they belong to."""
    graph = draft_plan_graph(make_plan_inputs())
    assert [node.phase_ref for node in by_type(graph, "phase")] == list(ALL)
    assert [(n.phase_ref, n.command_ref) for n in by_type(graph, "action_proposal")] == [
        ("analysis", "read_code"),
        ("implementation", "read_code"),
        ("implementation", "edit_files"),
        ("validation", "run_tests"),
    ]
    assert find_graph_faults(graph, make_plan_inputs()).all() == ()
    assert msgspec.json.decode(canonical_bytes(graph), type=ExecutionGraph) == graph


def test_phases_follow_each_other_and_so_do_the_actions_of_one_phase():
    """001 §5: sequential edges along `after`, and from each command of a phase to the next."""
    assert edges(draft_plan_graph(make_plan_inputs())) >= {
        ("phase/analysis", "action_proposal/analysis/read_code", "sequential"),
        ("action_proposal/analysis/read_code", "phase/implementation", "sequential"),
        ("phase/implementation", "action_proposal/implementation/read_code", "sequential"),
        ("action_proposal/implementation/read_code", "action_proposal/implementation/edit_files", "sequential"),
        ("action_proposal/implementation/edit_files", "phase/validation", "sequential"),
    }  # fmt: skip


WAREHOUSE = (
    make_command("look", "implementation"),
    make_command("count", "implementation"),
    make_command("mend", "implementation", effects=("write",)),
    make_command("save", "implementation", effects=("read", "write")),
    make_command("stray", "implementation", effects=("write",)),
)


def steps_of(*listed, order, ruled=()):
    """The edges of one phase that lists some commands, of an intent that plans them in an order."""
    flow = make_workflow("bug_fix", make_phase("implementation", commands=listed))
    of = make_intent(
        selected_workflows=(selected_workflow("bug_fix", "implementation"),),
        planned_commands=tuple(planned_command(id_) for id_ in order),
        risk=replace(make_intent().risk, requires_review=()),
    )
    graph = draft_plan_graph(make_plan_inputs(of, known=make_registry(flow, *WAREHOUSE), ruled=ruled))
    short = {
        n.node_id: n.command_ref or n.node_type for n in graph.nodes if n.node_type in ("phase", "action_proposal")
    }  # fmt: skip
    return {
        (short[e.from_node], short[e.to_node], e.edge_type)
        for e in graph.edges
        if e.from_node in short and e.to_node in short
    }


def test_in_a_phase_the_order_of_the_workflow_holds_and_what_it_does_not_list_comes_after():
    """Neighbours that only read stand beside each other; all else follows, and what nobody lists is last, as planned."""
    order = ("stray", "save", "count", "mend", "look")
    assert steps_of("look", "count", "mend", "save", order=order) == {
        ("phase", "look", "parallel"),
        ("phase", "count", "parallel"),
        ("look", "mend", "sequential"),
        ("count", "mend", "sequential"),
        ("mend", "save", "sequential"),
        ("save", "stray", "sequential"),
    }
    assert steps_of("look", "mend", "count", order=order) == {
        ("phase", "look", "sequential"),
        ("look", "mend", "sequential"),
        ("mend", "count", "sequential"),
        ("count", "stray", "sequential"),
        ("stray", "save", "sequential"),
    }


def test_what_is_left_out_holds_nobody_up():
    """A denied command is beside the steps: what came before it leads to what came after."""
    assert steps_of("mend", "save", "stray", order=("mend", "save", "stray"), ruled=(make_decision("save", "deny", "warn"),)) == {
        ("phase", "mend", "sequential"),
        ("mend", "stray", "sequential"),
    }  # fmt: skip


YARD = (
    make_command("rehearse", "validation"),
    make_command("back_up", "release", effects=("read", "data")),
    make_command("migrate", "release", "operations", effects=("write", "data")),
    make_command("ship", "validation", "release", effects=("deploy",)),
    make_command("tag", "release", effects=("write",)),
    make_command("rotate", "operations", effects=("write", "security")),
)


def ways_to(graph, command_, phase_):
    """The kinds of node, each with its command or review, that come before a command of a phase; gates by review."""
    names = {n.node_id: n for n in graph.nodes}
    before = {}
    for e in graph.edges:
        before.setdefault(e.to_node, []).append(e.from_node)
    (start,) = [
        n.node_id for n in graph.nodes
        if (n.node_type, n.command_ref, n.phase_ref) == ("action_proposal", command_, phase_)
    ]  # fmt: skip
    seen, waiting = set(), [start]
    while waiting:
        for name in before.get(waiting.pop(), ()):
            if name not in seen:
                seen.add(name)
                waiting.append(name)
    return {n.review_criteria[0] if n.review_criteria else n.command_ref for n in map(names.get, seen)} - {""}


def gates_of(graph):
    return [(n.phase_ref, n.review_criteria[0]) for n in by_type(graph, "review_gate")]


def yard(*phases, reviews=(), plans=("back_up", "migrate")):
    """A plan of what cannot be taken back, through some phases."""
    flow = make_workflow("bug_fix", *phases)
    return draft_plan_graph(make_plan_inputs(
        make_intent(
            selected_workflows=(selected_workflow("bug_fix", *(p.phase for p in phases)),),
            planned_commands=tuple(planned_command(id_) for id_ in plans),
            risk=replace(make_intent().risk, requires_review=reviews),
        ),
        known=make_registry(flow, *YARD),
    ))  # fmt: skip


def test_a_review_of_what_cannot_be_taken_back_stands_before_it():
    """The reviews of a release are over before the first command that changes anything; a backup may come before them."""
    graph = yard(make_phase("release", commands=("back_up", "migrate"), review=("data", "release")))
    assert gates_of(graph) == [("release", "data"), ("release", "release")]
    assert ways_to(graph, "migrate", "release") == {"back_up", "data", "release"}
    assert ways_to(graph, "back_up", "release") == set()
    told = [n.description for n in by_type(graph, "review_gate")]
    assert all("before migrate is carried out" in words for words in told)


def test_a_review_of_what_was_made_stands_behind_it():
    """A phase that makes something in the repository is looked at when it is made."""
    graph = yard(
        make_phase("implementation", commands=("edit_files",), review=("data",)), plans=("edit_files",),
        reviews=("architecture",),
    )  # fmt: skip
    assert ways_to(graph, "edit_files", "implementation") == set()
    assert gates_of(graph) == [("implementation", "architecture"), ("implementation", "data")]


def test_the_reviews_of_an_intent_stand_before_what_they_are_about():
    """Release, data and security before the first command of theirs that lasts; architecture where reviews take place."""
    flow = (
        make_phase("validation", commands=("rehearse", "ship")),
        make_phase("release", commands=("tag", "migrate"), after=("validation",)),
        make_phase("operations", commands=("rotate", "migrate"), after=("validation",), condition="it went wrong"),
    )  # fmt: skip
    graph = yard(
        *flow, reviews=("release", "data", "security", "architecture"),
        plans=("rehearse", "ship", "tag", "migrate", "rotate"),
    )  # fmt: skip
    assert gates_of(graph) == [
        ("validation", "release"),
        ("release", "architecture"),
        ("release", "data"),
        ("operations", "data"),
        ("operations", "security"),
    ]
    assert ways_to(graph, "ship", "validation") == {"rehearse", "release"}
    assert "architecture" in ways_to(graph, "tag", "release")
    assert "security" in ways_to(graph, "rotate", "operations")


def test_a_review_phase_before_it_is_enough():
    """Where the workflow reviews before anything lasts, the intent's reviews stand there; where it does so later, not."""
    before = (
        make_phase("review", "reviewer"),
        make_phase("release", commands=("migrate",), after=("review",)),
    )
    assert gates_of(yard(*before, reviews=("data", "cost"), plans=("migrate",))) == [
        ("review", "cost"),
        ("review", "data"),
    ]
    late = (
        make_phase("release", commands=("migrate",)),
        make_phase("review", "reviewer", after=("release",)),
    )
    assert gates_of(yard(*late, reviews=("data", "architecture"), plans=("migrate",))) == [
        ("release", "data"),
        ("review", "architecture"),
    ]


def test_where_everything_hangs_on_a_condition_the_last_phase_has_the_reviews():
    """No phase that is always come to and none for reviews: the reviews stand in the last all the same."""
    only = make_phase("operations", condition="it went wrong")
    assert gates_of(yard(only, reviews=("architecture",), plans=())) == [("operations", "architecture")]


MAYBE = "it went wrong"
TWO = (make_phase("validation", commands=("ship",)), make_phase("review", "reviewer"), make_phase("release", commands=("tag",), after=("review",)))  # fmt: skip
LINE = (make_phase("validation", commands=("ship",), condition=MAYBE), make_phase("review", "reviewer"), make_phase("release", commands=("tag",)))  # fmt: skip
UNSURE = (
    make_phase("validation"),
    make_phase("review", "reviewer", condition=MAYBE),
    make_phase("release", commands=("ship",)),
)
BESIDE = (make_phase("review", "reviewer"), make_phase("analysis"), make_phase("release", commands=("tag",), after=("review", "analysis")))  # fmt: skip
SHORT = (
    make_phase("analysis", fallback="release"),
    make_phase("review", "reviewer"),
    make_phase("release", commands=("tag",)),
)


@for_each_case(
    ("phases", "where"),
    [
        (TWO, ["validation", "review"]),
        (LINE, ["validation", "review"]),
        (UNSURE, ["release"]),
        (BESIDE, ["release"]),
        (SHORT, ["release"]),
    ],
)
def test_what_lasts_is_looked_at_whichever_way_leads_there(phases, where):
    """A branch of its own has its own review, one that hangs on a condition excuses nobody else, and none is passed by."""
    graph = yard(*phases, reviews=("release", "compliance"), plans=("ship", "tag"))
    assert gates_of(graph) == [(name, review) for name in where for review in ("compliance", "release")]


def test_a_review_phase_with_a_condition_is_no_place_for_reviews():
    """Also what nothing lasting belongs to stands where somebody always comes by."""
    graph = yard(
        make_phase("validation"), make_phase("review", "reviewer", condition=MAYBE), reviews=("architecture",)
    )
    assert gates_of(graph) == [("validation", "architecture")]


SHAPES = ("analysis", "validation", "review", "release", "operations")


@st.composite
def flows(draw):
    """Up to five phases in any order and shape, some with conditions, ways on and things that last."""
    names = draw(st.permutations(SHAPES))[: draw(st.integers(1, 5))]
    made = []
    for n, name in enumerate(names):
        doing = draw(st.sets(st.sampled_from(("ship_it", "migrate_it", "rotate_it", "edit_it"))))
        made.append(
            make_phase(
                name,
                commands=tuple(sorted(doing)),
                after=tuple(sorted(draw(st.sets(st.sampled_from(names[:n])) if n else st.just(set())))),
                condition=draw(st.sampled_from(("", "", MAYBE))),
                fallback=draw(st.sampled_from(("", "", *names))),
            )
        )
    return tuple(draw(st.permutations(made)))


DOES = {"ship_it": ("deploy",), "migrate_it": ("write", "data"), "rotate_it": ("write", "security"), "edit_it": ("write",)}  # fmt: skip
ABOUT = {"release": None, "cost": None, "compliance": None, "data": "data", "security": "security"}


def unseen(graph, phases, node, review):
    """Whether some way from a phase that nothing precedes leads to a node past every gate of a review that counts for it:
    of a phase with a condition the gates count only in that phase."""
    sure = {p.phase for p in phases if not p.condition} | {node.phase_ref}
    stop = {
        n.node_id
        for n in by_type(graph, "review_gate")
        if review in n.review_criteria and n.phase_ref in sure
    }
    after, entered = {}, set()
    for e in graph.edges:
        after.setdefault(e.from_node, []).append(e.to_node)
        entered |= {e.to_node} if e.edge_type != "fallback" else set()
    seen, waiting = set(), [n.node_id for n in by_type(graph, "phase") if n.node_id not in entered]
    while waiting:
        name = waiting.pop()
        if name not in seen | stop:
            seen.add(name)
            waiting += after.get(name, ())
    return node.node_id in seen


@pytest.mark.untraced
@settings(max_examples=250, deadline=None)
@given(flows(), st.sets(st.sampled_from(sorted(ABOUT)), min_size=1))
def test_no_way_leads_to_what_lasts_past_a_review_that_the_intent_asks_for(phases, reviews):
    """On every way of every workflow, whether its conditions hold or not, each wanted review stands before what it is about
    and nobody can take back."""
    known = make_registry(
        make_workflow("bug_fix", *phases),
        *(make_command(id_, *SHAPES, effects=does) for id_, does in DOES.items()),
    )
    of = make_intent(
        selected_workflows=(selected_workflow("bug_fix", *(p.phase for p in phases)),),
        planned_commands=tuple(planned_command(id_) for id_ in DOES),
        risk=replace(make_intent().risk, requires_review=tuple(sorted(reviews))),
    )
    graph = draft_plan_graph(make_plan_inputs(of, known=known))
    plain = replace(graph, edges=tuple(e for e in graph.edges if not e.from_node.startswith("n_question")))
    for node in by_type(graph, "action_proposal"):
        lasts = {"deploy", "data"} & set(node.effects) or node.phase_ref in ("release", "operations")
        for review in reviews:
            if node.phase_ref and lasts and ABOUT[review] in (None, *node.effects):
                assert not unseen(plain, phases, node, review), (node.command_ref, node.phase_ref, review)
    assert {r for _, r in gates_of(graph)} >= reviews


def test_without_after_the_declared_order_holds():
    """Where no phase of a workflow says what it comes after, they follow each other as they are declared."""
    flow = make_workflow(
        "bug_fix", make_phase("analysis"), make_phase("design"), make_phase("review", "reviewer")
    )
    of = make_intent(
        selected_workflows=(selected_workflow("bug_fix", "review", "analysis"),), planned_commands=()
    )
    graph = draft_plan_graph(make_plan_inputs(of, known=make_registry(flow)))
    assert edges(graph) >= {("phase/analysis", "phase/review", "sequential")}


def test_a_phase_that_is_not_selected_is_stepped_over():
    """What came before an unselected phase comes before what came after it."""
    of = make_intent(selected_workflows=(selected_workflow("bug_fix", "analysis", "validation", "review"),))
    assert ("action_proposal/analysis/read_code", "phase/validation", "sequential") in edges(
        draft_plan_graph(make_plan_inputs(of))
    )


def test_a_circle_through_an_unselected_phase_is_still_a_circle():
    """Stepping over a phase that comes after itself ends, and the circle is seen."""
    flow = make_workflow(
        "bug_fix", make_phase("analysis", after=("design",)),
        make_phase("design", after=("analysis", "setup")), make_phase("setup", after=("design",)),
    )  # fmt: skip
    of = make_intent(selected_workflows=(selected_workflow("bug_fix", "analysis"),), planned_commands=())
    i = make_plan_inputs(of, known=make_registry(flow))
    assert len(find_graph_faults(draft_plan_graph(i), i).cycles) == 1


def test_a_condition_is_on_the_edge_into_its_phase():
    """001 §5: a conditional edge says its condition."""
    flow = make_workflow(
        "bug_fix", make_phase("analysis"), make_phase("review", "reviewer", condition="something changed")
    )
    of = make_intent(
        selected_workflows=(selected_workflow("bug_fix", "analysis", "review"),), planned_commands=()
    )
    found = [
        e
        for e in draft_plan_graph(make_plan_inputs(of, known=make_registry(flow))).edges
        if e.edge_type == "conditional"
    ]
    assert [e.condition for e in found] == ["something changed"]


@for_each_case(
    ("fallback", "found"),
    [("review", {"review"}), ("analysis", set()), ("design", set()), ("release", set())],
)
def test_a_fallback_is_an_edge_where_it_leads_on(fallback, found):
    """A fallback to a later phase is an edge; one that leads back or nowhere is none, so the graph stays without circles."""
    flow = make_workflow(
        "bug_fix", make_phase("analysis"), make_phase("design", after=("analysis",), fallback=fallback),
        make_phase("implementation", after=("design",)),
        make_phase("review", "reviewer", after=("implementation",)),
    )  # fmt: skip
    of = make_intent(
        selected_workflows=(selected_workflow("bug_fix", "analysis", "design", "implementation", "review"),),
        selected_agents=(
            selected_agent("agent_coder", "coder"),
            selected_agent("agent_reviewer", "reviewer"),
        ),
    )
    i = make_plan_inputs(of, known=make_registry(flow))
    graph = draft_plan_graph(i)
    names = {node.node_id: node.phase_ref for node in graph.nodes}
    assert {names[e.to_node] for e in graph.edges if e.edge_type == "fallback"} == found
    said = [n.description for n in by_type(graph, "phase") if "back to" in n.description]
    assert len(said) == (fallback in ("analysis", "design"))
    assert find_graph_faults(graph, i).cycles == ()


@pytest.mark.parametrize("what", ["warn", "require_review", "deny"])
def test_what_rules_do_not_simply_allow_is_a_decision_point(what):
    """001 §5: a decision point with its rules stands before the action, with the condition on the edge."""
    graph = draft_plan_graph(make_plan_inputs(ruled=(make_decision("edit_files", what, "warn"),)))
    (point,) = by_type(graph, "decision_point")
    assert point.rule_refs == ("rule_no_writes@1.0.0",)
    (out,) = [e for e in graph.edges if e.from_node == point.node_id]
    assert out.edge_type == "conditional"
    assert out.condition == f"{what}: because of a test"
    (action,) = [n for n in by_type(graph, "action_proposal") if n.command_ref == "edit_files"]
    assert action.status == ("excluded" if what == "deny" else "proposed")


def test_a_rule_that_is_outweighed_is_seen():
    """An objection that another rule outweighs is a decision point all the same."""
    objecting = make_decision("edit_files", "deny", "warn").rules
    graph = draft_plan_graph(
        make_plan_inputs(ruled=(make_decision("edit_files", "allow", "block", rules=objecting),))
    )
    (point,) = by_type(graph, "decision_point")
    assert point.command_ref == "edit_files"
    assert (
        by_type(
            draft_plan_graph(make_plan_inputs(ruled=(make_decision("edit_files", "allow", "block"),))),
            "decision_point",
        )
        == []
    )


@pytest.mark.parametrize(
    ("effects", "review", "expected"),
    [
        (("write",), ("security", "data"), ["data", "security"]),
        (("write",), (), ["architecture"]),
        (("deploy", "write"), (), ["release"]),
    ],
)
def test_a_review_that_a_rule_wants_stands_before_the_action(effects, review, expected):
    """A review gate is between the decision and the action; where the rule names no category, the effects do."""
    of = make_intent(
        planned_commands=(
            planned_command("read_code"),
            planned_command("edit_files", effects=effects),
            planned_command("run_tests"),
        )
    )
    i = make_plan_inputs(of, ruled=(make_decision("edit_files", "require_review", "warn", review=review),))
    graph = draft_plan_graph(i)
    gates = [n for n in by_type(graph, "review_gate") if n.command_ref == "edit_files"]
    assert [n.review_criteria[0] for n in gates] == expected
    assert (
        "review_gate/implementation/edit_files",
        "action_proposal/implementation/edit_files",
        "sequential",
    ) in edges(graph)


@pytest.mark.parametrize(("phases", "where"), [(ALL, "review"), (ALL[:3], "validation")])
def test_what_the_intent_wants_reviewed_has_a_gate_in_the_review_phase_or_at_the_end(phases, where):
    """001 §9: every category of requires_review has a gate in each workflow."""
    of = make_intent(selected_workflows=(selected_workflow("bug_fix", *phases),))
    gates = by_type(draft_plan_graph(make_plan_inputs(of)), "review_gate")
    assert [(n.phase_ref, n.review_criteria) for n in gates] == [(where, ("architecture",))]


def test_a_command_belongs_where_a_phase_asks_for_it():
    """Phases that name the command have it; where none does, those that name no commands; else all it is made for."""
    flow = make_workflow(
        "bug_fix", make_phase("analysis", commands=("read_code", "read_code")),
        make_phase("implementation", commands=("edit_files",)),
        make_phase("validation", "tester", commands=("something_else",)), make_phase("review", "reviewer"),
    )  # fmt: skip
    known = make_registry(flow, make_command("look_again", "review", "analysis", "review"))
    of = make_intent(planned_commands=(*make_intent().planned_commands, planned_command("look_again")))
    found = [
        (n.phase_ref, n.command_ref)
        for n in by_type(draft_plan_graph(make_plan_inputs(of, known=known)), "action_proposal")
    ]
    assert found == [
        ("analysis", "read_code"),
        ("implementation", "edit_files"),
        ("validation", "run_tests"),
        ("review", "look_again"),
    ]


def test_a_command_without_a_phase_is_shown_as_left_out():
    """A planned command that belongs to no selected phase is in the graph, excluded, with the reason."""
    of = make_intent(
        planned_commands=(
            *make_intent().planned_commands, planned_command("deploy_it"), planned_command("unknown_one"),
        ),
    )  # fmt: skip
    i = make_plan_inputs(of, known=make_registry(make_command("deploy_it", "release")))
    found = {
        n.command_ref: n for n in by_type(draft_plan_graph(i), "action_proposal") if n.status == "excluded"
    }
    assert {id_: n.reason for id_, n in found.items()} == {
        "deploy_it": "it belongs to no selected phase",
        "unknown_one": "it belongs to no selected phase",
    }


def test_effects_and_risk_are_never_less_than_the_registry_says():
    """An intent cannot talk a command down: effects add up, and the graver risk holds."""
    of = make_intent(
        planned_commands=(
            planned_command("read_code"),
            planned_command("edit_files"),
            planned_command("run_tests"),
        )
    )
    (node,) = [n for n in draft_plan_graph(make_plan_inputs(of)).nodes if n.command_ref == "edit_files"]
    assert node.effects == ("read", "write")
    assert node.risk_level == "medium"


def test_every_node_is_in_the_lane_that_its_phase_asks_for():
    """001 §5: swimlanes by role, reviews in the reviewer's."""
    lanes = {lane.agent_id: lane for lane in draft_plan_graph(make_plan_inputs()).swimlanes}
    assert {id_: len(lane.node_refs) for id_, lane in lanes.items()} == {
        "agent_coder": 5, "agent_reviewer": 2, "agent_tester": 2,
    }  # fmt: skip


def test_an_agent_that_only_covers_a_phase_has_it_when_no_role_fits():
    """Phase coverage is the second choice after the role."""
    known = make_registry(make_agent("agent_tester", "someone else", "validation"))
    of = make_intent(
        selected_agents=(
            selected_agent("agent_coder", "coder"),
            selected_agent("agent_coder", "maker"),
            selected_agent("agent_tester", "helper"),
            selected_agent("agent_reviewer", "reviewer"),
        )
    )
    i = make_plan_inputs(of, known=known)
    graph = draft_plan_graph(i)
    assert find_graph_faults(graph, i).unassigned == ()
    assert [lane.role for lane in graph.swimlanes] == ["coder", "reviewer", "helper"]


def test_a_security_review_goes_to_whoever_has_that_area():
    """Of two reviewers the one whose area it is has the gate."""
    known = make_registry(make_agent("agent_all", "reviewer", "review"))
    of = make_intent(
        risk=replace(make_intent().risk, requires_review=("security", "cost")),
        selected_agents=(*make_intent().selected_agents, selected_agent("agent_all", "reviewer")),
    )
    graph = draft_plan_graph(make_plan_inputs(of, known=known))
    gates = {n.node_id: n.review_criteria[0] for n in by_type(graph, "review_gate")}
    held = {gates[r]: lane.agent_id for lane in graph.swimlanes for r in lane.node_refs if r in gates}
    assert held == {"security": "agent_reviewer", "cost": "agent_all"}


def test_a_node_in_two_lanes_is_a_fault():
    """001 §5 guard: who does what is told once; a node of two lanes is nobody's."""
    graph = draft_plan_graph(make_plan_inputs())
    coder, reviewer, *rest = graph.swimlanes
    node = coder.node_refs[0]
    both = replace(reviewer, node_refs=(*reviewer.node_refs, node))
    (fault,) = find_graph_faults(
        replace(graph, swimlanes=(coder, both, *rest)), make_plan_inputs()
    ).unassigned
    assert (fault.field, fault.message.split(" is in ")[1]) == ("selected_agents", "2 lanes instead of one.")
    assert find_graph_faults(graph, make_plan_inputs()).unassigned == ()


def test_an_agent_for_whom_there_is_nothing_has_no_lane_and_is_a_fault():
    """001 §5 guard: all agents have swimlane assignments."""
    known = make_registry(make_agent("agent_idle", "idler", "release"))
    of = make_intent(selected_agents=(*make_intent().selected_agents, selected_agent("agent_idle", "idler")))
    i = make_plan_inputs(of, known=known)
    (problem,) = find_graph_faults(draft_plan_graph(i), i).unassigned
    assert problem.field == "selected_agents[3]"


def test_nodes_that_nobody_covers_are_faults():
    """001 §8 guard: swimlanes cover all nodes; a graph without any agent says so of every node."""
    of = make_intent(
        selected_agents=(selected_agent("agent_lost", "coder"),),
        planned_commands=(planned_command("unknown_one"),),
    )
    i = make_plan_inputs(of)
    graph = draft_plan_graph(i)
    assert graph.swimlanes == ()
    assert len(find_graph_faults(graph, i).unassigned) == 1 + len(graph.nodes)


def test_a_phase_that_the_workflow_lacks_is_unmapped():
    """001 §5 guard: all phases mapped to nodes; the field is named."""
    of = make_intent(
        selected_workflows=(selected_workflow("bug_fix", *ALL, "release"), selected_workflow("gone", "setup"))
    )
    i = make_plan_inputs(of)
    assert [p.field for p in find_graph_faults(draft_plan_graph(i), i).unmapped] == [
        "selected_workflows[0].phases[4]",
        "selected_workflows[1].phases[0]",
    ]


def test_of_two_phases_with_one_name_the_first_holds():
    """A workflow that declares a phase twice has one node for it."""
    flow = make_workflow(
        "bug_fix", make_phase("analysis", condition="one"), make_phase("analysis", condition="two")
    )
    of = make_intent(selected_workflows=(selected_workflow("bug_fix", "analysis"),), planned_commands=())
    assert len(by_type(draft_plan_graph(make_plan_inputs(of, known=make_registry(flow))), "phase")) == 1


def test_an_action_without_evidence_or_verdict_is_unsupported():
    """Red line 4: every action proposal has evidence; and a verdict of the rules."""
    i = make_plan_inputs()
    graph = draft_plan_graph(i)
    bare = tuple(replace(n, evidence_refs=()) if n.command_ref == "run_tests" else n for n in graph.nodes)
    found = find_graph_faults(replace(graph, nodes=bare), i._replace(decisions=i.decisions[1:]))
    assert [p.field for p in found.unsupported] == [
        "planned_commands[0].evidence_refs",
        "planned_commands[0].evidence_refs",
        "planned_commands[2].evidence_refs",
    ]


def test_a_node_without_what_its_kind_needs_is_incomplete():
    """001 §8 guard: all nodes have required fields."""
    i = make_plan_inputs(ruled=(make_decision("edit_files", "warn", "warn"),))
    graph = draft_plan_graph(i)
    hollow = tuple(
        replace(n, rule_refs=(), workflow_ref="") if n.node_type in ("decision_point", "phase") else n
        for n in graph.nodes
    )
    found = find_graph_faults(replace(graph, nodes=hollow), i).incomplete
    assert len(found) == 1 + 4
    assert {p.field for p in found} == {"planned_commands", "selected_workflows"}


def test_a_graph_that_is_too_large_is_no_plan():
    """A graph has at most so many nodes as its schema takes."""
    i = make_plan_inputs()
    graph = draft_plan_graph(i)
    many = tuple(replace(graph.nodes[0], node_id=f"n_{n}") for n in range(MAX_GRAPH_NODES + 1))
    found = find_graph_faults(replace(graph, nodes=many, edges=()), i).unmapped
    assert found[-1].message.startswith(f"The graph would have {MAX_GRAPH_NODES + 1} nodes")


def test_a_cyclic_workflow_is_told_with_its_path():
    """001 §5 failure branch: a graph with cycles is no plan, and the error has the cycle's path."""
    flow = make_workflow(
        "bug_fix",
        make_phase("analysis", after=("validation",)),
        make_phase("implementation", after=("analysis",)),
        make_phase("validation", "tester", after=("implementation",)),
        make_phase("review", "reviewer", after=("validation",)),
    )
    i = make_plan_inputs(known=make_registry(flow))
    (problem,) = find_graph_faults(draft_plan_graph(i), i).cycles
    assert "bug_fix/analysis" in problem.message
    assert "bug_fix/validation/run_tests" in problem.message
    assert problem.message.count("→") == 7
    assert draft_plan_graph(i).estimated_duration.value == 0


def test_circles_are_shortest_first_and_one_for_each_knot():
    """One path for each knot; the node of a circle is named at both ends."""
    found = find_graph_cycles(
        ("a", "b", "c", "d", "e", "f"),
        (
            edge("a", "b"),
            edge("b", "c"),
            edge("c", "a"),
            edge("a", "c"),
            edge("d", "d"),
            edge("c", "e"),
            edge("e", "f"),
        ),
    )
    assert found == (("d", "d"), ("a", "c", "a"))


def test_a_long_way_is_not_bounded_by_recursion():
    """A circle of ten thousand nodes is found."""
    names = tuple(f"n{k:05}" for k in range(10_000))
    ring = tuple(edge(a, b) for a, b in zip(names, (*names[1:], names[0]), strict=True))
    assert len(find_graph_cycles(names, ring)[0]) == 10_001
    assert find_graph_cycles(names, ring[:-1]) == ()


@given(st.integers(2, 9), st.data())
def test_circles_are_found_exactly_where_there_are_some(size, data):
    """A graph has a circle by our reckoning exactly when no order of its nodes fits all its edges."""
    names = tuple(str(n) for n in range(size))
    pairs = data.draw(st.lists(st.tuples(st.sampled_from(names), st.sampled_from(names)), max_size=20))
    left = set(names)
    while ready := {n for n in left if not any(a in left and b == n for a, b in pairs)}:
        left -= ready
    found = find_graph_cycles(names, tuple(edge(a, b) for a, b in pairs))
    assert bool(found) == bool(left)
    for path in found:
        assert path[0] == path[-1]
        assert all((a, b) in pairs for a, b in pairwise(path))


def test_duration_is_the_longest_chain_of_commands():
    """001 §9: duration by the critical path, with its basis."""
    estimate = draft_plan_graph(make_plan_inputs()).estimated_duration
    assert estimate.value == 5 + 5 + 30 + 10
    assert "read_code 5 → read_code 5 → edit_files 30 → run_tests 10" in estimate.basis[0]


def test_the_longest_chain_of_nothing_is_nothing():
    """Without weights there is no chain."""
    assert find_heaviest_chain({"a": 0, "b": 0}, (edge("a", "b"),)) == (0, ())
    assert find_heaviest_chain(
        {"a": 1, "b": 0, "c": 2}, (edge("a", "b"), edge("a", "c"), edge("b", "c"))
    ) == (3, ("a", "c"))


def test_complexity_names_its_parts():
    """001 §9: complexity from 0 to 100, its parts named; what is left out counts nothing."""
    plain, less = (
        draft_plan_graph(make_plan_inputs()),
        draft_plan_graph(make_plan_inputs(ruled=(make_decision("edit_files", "deny", "warn"),))),
    )
    assert plain.complexity.value == 4 * 1 + 4 * 2 + 1 * 3 + 5
    assert plain.complexity.basis[-1] == "risk: medium, 5"
    assert less.complexity.value == 4 * 1 + 3 * 2 + 1 * 3 + 1 * 3 + 5


def test_a_draft_has_a_placeholder_for_each_question_and_a_final_graph_none():
    """001 §8: question placeholders are removed when the answers are worked in."""
    i = make_plan_inputs(ruled=(make_decision("edit_files", "require_review", "warn"),))
    (question,) = by_type(draft_plan_graph(i), "question")
    assert question.status == "placeholder"
    final = finalize_plan_graph(i, default_answers(i))
    assert by_type(final, "question") == []
    assert find_graph_faults(final, i).all() == ()


def test_a_question_that_nothing_settles_keeps_the_graph_incomplete():
    """001 §8 failure branch: a placeholder that is left is a fault of a final graph, not of a draft."""
    i = make_plan_inputs(ruled=(make_decision("edit_files", "require_review", "warn"),))
    final = finalize_plan_graph(i, SettledQuestions(plan_id=i.plan_id, rounds=0, asked=(), answers=()))
    assert len(find_graph_faults(final, i).placeholders) == 1
    assert find_graph_faults(draft_plan_graph(i), i).placeholders == ()


def test_answers_change_the_graph():
    """001 §8: leave_out excludes the action, approve takes its gate away, keep_with_review keeps both."""
    i = make_plan_inputs(ruled=(make_decision("edit_files", "require_review", "warn", review=("data",)),))
    found = {}
    for word in ("keep_with_review", "leave_out", "approve"):
        graph = finalize_plan_graph(i, default_answers(i, requires_review=word))
        (node,) = [n for n in by_type(graph, "action_proposal") if n.command_ref == "edit_files"]
        gates = [n for n in by_type(graph, "review_gate") if n.command_ref == "edit_files"]
        found[word] = (node.status, len(gates), bool(node.reason))
        assert find_graph_faults(graph, i).all() == ()
    assert found == {
        "keep_with_review": ("proposed", 1, False),
        "leave_out": ("excluded", 0, True),
        "approve": ("proposed", 0, True),
    }


def test_an_approval_that_leaves_a_placeholder_elsewhere_does_not_fall_over_the_missing_gate():
    """Questions about nodes that answers have taken away are drawn to what is left of them."""
    i = make_plan_inputs(
        make_intent(
            planned_commands=(
                *make_intent().planned_commands[:2],
                planned_command("run_tests", evidence_refs=("scan://gone",)),
            )
        ),
        ruled=(make_decision("run_tests", "require_review", "warn", review=("data",)),),
    )
    settled = default_answers(i, requires_review="approve")
    only = replace(settled, answers=tuple(a for a in settled.answers if a.answer == "approve"))
    assert len(find_graph_faults(finalize_plan_graph(i, only), i).placeholders) == 1


def test_evidence_that_a_person_accepts_is_the_answer_itself():
    """An answer stands beside what evidence is left; what leads nowhere is dropped."""
    of = make_intent(
        planned_commands=(
            planned_command("edit_files", evidence_refs=("memory://mem_gone", "fact://language/python")),
        )
    )
    i = make_plan_inputs(of)
    graph = finalize_plan_graph(
        i, default_answers(i, unmet_evidence="accept_without", missing_command="by_hand")
    )
    (node,) = by_type(graph, "action_proposal")
    assert [ref.partition("://")[0] for ref in node.evidence_refs] == ["answer", "fact"]
    by_hand = [n.reason for n in by_type(graph, "phase") if n.phase_ref == "validation"]
    assert by_hand[0].startswith("missing_command, not asked: by_hand")


def test_writes_can_be_left_out_together():
    """The answer to an open scope leaves out whatever writes."""
    of = make_intent(
        scope=replace(make_intent().scope, targets=replace(make_intent().scope.targets, files=()))
    )
    i = make_plan_inputs(of)
    graph = finalize_plan_graph(i, default_answers(i, ambiguous_scope="leave_out"))
    assert {n.command_ref for n in graph.nodes if n.status == "excluded"} == {"edit_files"}


def shuffled(i, seed):
    """The same inputs, everything that has no order in another order."""
    mix = random.Random(seed)  # noqa: S311 - no secret hangs on it

    def turned(items):
        return tuple(mix.sample(list(items), len(items)))

    of = i.intent
    turned_intent = replace(
        of,
        planned_commands=turned(of.planned_commands),
        selected_agents=turned(of.selected_agents),
        selected_workflows=tuple(replace(w, phases=turned(w.phases)) for w in turned(of.selected_workflows)),
    )
    content = turned(
        (
            *REGISTRY_CONTENT,
            *(make_workflow(f"more_{n}", make_phase("analysis"), make_phase("design")) for n in (1, 2)),
        )
    )
    by_id = {c.id: c for c in content}
    known = Registry(tuple(RegistryItem(c, "built-in") for c in by_id.values()))
    return i._replace(
        intent=turned_intent, registry=known, decisions=turned(i.decisions),
        bundle=make_context_bundle(evidence_refs=turned(i.bundle.evidence_refs)),
    )  # fmt: skip


@given(st.integers(0, 10_000), st.integers(0, 10_000))
@settings(max_examples=40, deadline=None)
def test_the_order_of_what_has_none_changes_no_byte(one, other):
    """001 Implementation Notes: same input, same output, whatever order lists without one happen to have."""
    flows = (
        selected_workflow(),
        selected_workflow("more_1", "analysis", "design"),
        selected_workflow("more_2", "design"),
    )
    more = (
        make_workflow("more_1", make_phase("analysis"), make_phase("design")),
        make_workflow("more_2", make_phase("analysis"), make_phase("design")),
    )
    i = make_plan_inputs(
        make_intent(selected_workflows=flows),
        known=make_registry(*more),
        ruled=(
            make_decision("edit_files", "require_review", "warn"),
            make_decision("read_code", "deny", "warn"),
        ),
    )
    first, second = shuffled(i, one), shuffled(i, other)
    assert canonical_bytes(draft_plan_graph(first)) == canonical_bytes(draft_plan_graph(second))
    assert canonical_bytes(finalize_plan_graph(first, default_answers(first))) == canonical_bytes(
        finalize_plan_graph(second, default_answers(second))
    )
