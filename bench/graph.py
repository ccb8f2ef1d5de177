"""Graphs that grow: a plan of 1,000 and one of 10,000 nodes, each step of making one timed.

    python bench/graph.py            nine repetitions
    python bench/graph.py --quick    one

The larger plan has ten times the workflows and ten times the questions, and is otherwise the same. The time of the
smaller is the mean of ten different ones, so that both sides go over as much memory. CPU time, interleaved; the
best of each side is taken, for whatever else runs only adds. Linear means at most 11 times for ten times the work.
"""

import json
import sys
from collections.abc import Callable
from gc import collect, freeze
from pathlib import Path
from time import process_time
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from msgspec.structs import replace
from tests.support.planning_documents import (
    make_command,
    make_decision,
    make_intent,
    make_phase,
    make_plan_inputs,
    make_registry,
    make_workflow,
    planned_command,
    selected_workflow,
)

from steersman.contracts.planning.graph import GraphEdge
from steersman.judges.planning.answers import weigh_default_answers
from steersman.judges.planning.plan_inputs import PlanInputs
from steersman.kernel.canonical import canonical_bytes
from steersman.machines.coordinator.faults import find_graph_cycles, find_graph_faults
from steersman.machines.coordinator.graph import draft_plan_graph, finalize_plan_graph, questions_for_inputs
from steersman.views.planning.mermaid import render_graph_mermaid

PHASES = ("analysis", "implementation", "validation", "review")
ROLES = ("coder", "coder", "tester", "reviewer")
MOST = 11  # times as long for ten times the work


def grown(workflows: int, first: int = 0) -> PlanInputs:
    """Inputs with so many workflows of four phases, each phase with its own two commands; every fourth is reviewed."""
    flows, specs, wanted, ruled = [], [], [], []
    for n in range(first, first + workflows):
        named = {name: tuple(f"cmd_{n:05d}_{name}_{k}" for k in (1, 2)) for name in PHASES}
        flows.append(
            make_workflow(
                f"flow_{n:05d}",
                *(
                    make_phase(name, role, commands=named[name], after=PHASES[max(0, k - 1) : k])
                    for k, (name, role) in enumerate(zip(PHASES, ROLES, strict=True))
                ),
            )
        )
        ids = [(name, id_) for name in PHASES for id_ in named[name]]
        specs += [make_command(id_, name) for name, id_ in ids]
        wanted += [planned_command(id_) for _, id_ in ids]
        ruled += [make_decision(id_, "require_review", "warn") for _, id_ in ids[::4]]
    of = make_intent(
        selected_workflows=tuple(selected_workflow(flow.id, *PHASES) for flow in flows),
        planned_commands=tuple(wanted),
    )
    return make_plan_inputs(of, known=make_registry(*flows, *specs), ruled=tuple(ruled))


def steps(made: PlanInputs) -> dict[str, Callable[[], Any]]:
    """Everything that is done with a graph, by name."""
    graph = draft_plan_graph(made)
    ring = ring_of(len(graph.nodes))
    settled = weigh_default_answers(questions_for_inputs(made), made.plan_id, made.bundle.policy).settled
    return {
        "draft": lambda: draft_plan_graph(made),
        "faults": lambda: find_graph_faults(graph, made),
        "circle through all": lambda: find_graph_cycles(*ring),
        "finalize": lambda: finalize_plan_graph(made, settled),
        "bytes": lambda: canonical_bytes(graph),
        "Mermaid": lambda: render_graph_mermaid(graph),
    }


def ring_of(size: int) -> tuple[tuple[str, ...], tuple[GraphEdge, ...]]:
    names = tuple(f"n_{n}" for n in range(size))
    edge = GraphEdge(edge_id="e_0000000000000000", from_node="n_0", to_node="n_0", edge_type="sequential")
    turned = (*names[1:], names[0])
    return names, tuple(replace(edge, from_node=a, to_node=b) for a, b in zip(names, turned, strict=True))


def timed(some: list[dict[str, Callable[[], Any]]], name: str) -> float:
    """Seconds of CPU for one of some."""
    collect()
    start = process_time()
    for each in some:
        each[name]()
    return (process_time() - start) / len(some)


def measured(reps: int) -> dict[str, Any]:
    """The growth of every step, and the sizes it was taken at."""
    small, large = [grown(63, first=n) for n in range(0, 630, 63)], grown(630)
    sizes = [len(draft_plan_graph(made).nodes) for made in (small[0], large)]
    few, many = [steps(made) for made in small], [steps(large)]
    freeze()  # what is only there to be measured is not gone over again and again
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in many[0]}
    for _ in range(reps):
        for name, pairs in found.items():
            pairs.append((timed(few, name), timed(many, name)))
    return {
        "nodes": sizes,
        "work": sizes[1] / sizes[0],
        "steps": {
            name: {
                "ms": round(1000 * min(b for _, b in pairs), 1),
                "growth": round(min(b for _, b in pairs) / min(a for a, _ in pairs), 2),
            }
            for name, pairs in found.items()
        },
    }


def main() -> None:
    figures = measured(1 if "--quick" in sys.argv else 9)
    print(f"{figures['nodes'][0]} and {figures['nodes'][1]} nodes: {figures['work']:.1f} times the work")
    for name, one in figures["steps"].items():
        word = "met" if one["growth"] <= MOST else "missed"
        print(f"  {name:20} {one['ms']:9.1f} ms   {one['growth']:6.2f} times   at most {MOST}: {word}")
    if "--json" in sys.argv:
        print(json.dumps(figures))


if __name__ == "__main__":
    main()
