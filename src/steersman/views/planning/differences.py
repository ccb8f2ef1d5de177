"""Describes the differences of two plans: steps, bounds, reviewers, answers.

**Invariant:** a function of the plans' own documents; two plans without differences here may be executed alike.
"""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from steersman.contracts.planning.graph import ExecutionGraph
from steersman.contracts.planning.questions import (
    AskedQuestion,
    QuestionAnswer,
    QuestionPack,
    SettledQuestions,
)
from steersman.contracts.planning.review import ReviewPack
from steersman.judges.planning.paths import describe_region
from steersman.judges.text import clip_text, printable_line
from steersman.views.planning.phases import summarize_graph_phases

NOTHING_TEXT = "nothing"


class ComparedPlan(NamedTuple):
    """The parts of one plan that are compared."""

    pack: ReviewPack
    packs: tuple[QuestionPack, ...]
    settled: SettledQuestions
    graph: ExecutionGraph


def compare_plans(old: ComparedPlan, new: ComparedPlan) -> tuple[str, ...]:
    """Returns one line for each difference, old value first."""
    return (
        *_compare_commands(old.pack, new.pack),
        *_compare_phases(old.graph, new.graph),
        *_compare_reach(old.pack, new.pack),
        *_compare_reviews(old.pack, new.pack),
        *_compare_figures(old.pack, new.pack),
        *_compare_answers(old, new),
    )


def _compare_commands(old_pack: ReviewPack, new_pack: ReviewPack) -> Iterator[str]:
    old_ids, new_ids = ([p.command_id for p in pack.actions] for pack in (old_pack, new_pack))
    yield from (f"{name}: no longer planned" for name in sorted(set(old_ids) - set(new_ids)))
    yield from (f"{name}: newly planned" for name in sorted(set(new_ids) - set(old_ids)))
    old_order, new_order = ([(p.phase, p.command_id) for p in pack.actions] for pack in (old_pack, new_pack))
    if old_order != new_order and set(old_ids) == set(new_ids):
        yield "the order or the phases of the commands"
    argvs = [{p.command_id: p.argv for p in pack.actions} for pack in (old_pack, new_pack)]
    for name in sorted(set(old_ids) & set(new_ids)):
        if argvs[0][name] != argvs[1][name]:
            yield _render_plan_change(f"{name}, as it is typed", *(" ".join(argv[name]) for argv in argvs))
    yield from _compare_sets("left out", old_pack.excluded, new_pack.excluded)


def _compare_phases(old_graph: ExecutionGraph, new_graph: ExecutionGraph) -> Iterator[str]:
    """Describes each phase: condition, predecessors, fallback."""
    old_phases, new_phases = summarize_graph_phases(old_graph), summarize_graph_phases(new_graph)
    names = [["/".join(name) for name in graph_phases] for graph_phases in (old_phases, new_phases)]
    yield from _compare_sets("phases", *names)
    for name in old_phases:
        if name in new_phases:
            old_phase, phase, label = old_phases[name], new_phases[name], f"phase {'/'.join(name)}"
            yield from _compare_values(f"{label}, only if", old_phase.condition, phase.condition)
            yield from _compare_values(
                f"{label}, comes after", ", ".join(old_phase.after), ", ".join(phase.after)
            )
            yield from _compare_values(f"{label}, if it does not succeed", old_phase.instead, phase.instead)
            yield from _compare_values(f"{label}, in words", old_phase.purpose, phase.purpose)


def _compare_reach(old_pack: ReviewPack, new_pack: ReviewPack) -> Iterator[str]:
    old_impact, new_impact = old_pack.change_impact, new_pack.change_impact
    yield from _compare_sets("files", old_impact.files, new_impact.files)
    yield from _compare_sets("modules", old_impact.modules, new_impact.modules)
    yield from _compare_sets("areas", old_impact.areas, new_impact.areas)
    yield from _compare_values(
        "bounded by", describe_region(old_impact.within), describe_region(new_impact.within)
    )
    yield from _compare_values(
        "lock", *(f"{i.lock.mode} {', '.join(i.lock.paths)}".strip() for i in (old_impact, new_impact))
    )


def _compare_reviews(old_pack: ReviewPack, new_pack: ReviewPack) -> Iterator[str]:
    old_gates, new_gates = (
        tuple(f"{g.category} in {g.phase}: {g.why}" for g in p.review_gates) for p in (old_pack, new_pack)
    )
    yield from _compare_sets("reviews", old_gates, new_gates)


def _compare_figures(old_pack: ReviewPack, new_pack: ReviewPack) -> Iterator[str]:
    yield from _compare_values("mode", old_pack.execution_mode, new_pack.execution_mode)
    yield from _compare_values(
        "overall risk", old_pack.risk_assessment.overall_risk, new_pack.risk_assessment.overall_risk
    )
    limits = [{x.name: x for x in pack.change_impact.budgets} for pack in (old_pack, new_pack)]
    for name in sorted(limits[0].keys() & limits[1].keys()):
        yield from _compare_values(f"budget {name}", *(str(budgets[name].limit) for budgets in limits))
        yield from _compare_values(
            f"expected of {name}", *(str(budgets[name].estimate) for budgets in limits)
        )
    yield from _compare_values(
        "estimated minutes", str(old_pack.estimated_duration.value), str(new_pack.estimated_duration.value)
    )


def _compare_answers(old: ComparedPlan, new: ComparedPlan) -> Iterator[str]:
    texts = {
        q.question_id: q for side in (old, new) for pack in side.packs for q in _all_pack_questions(pack)
    }
    answers_by_plan = [{a.question_id: a for a in side.settled.answers} for side in (old, new)]
    for name in sorted(answers_by_plan[0].keys() | answers_by_plan[1].keys()):
        descriptions = [_describe_plan_answer(plan_answers.get(name)) for plan_answers in answers_by_plan]
        yield from _compare_values(
            f"answer to {_describe_plan_question(texts.get(name), name)}", *descriptions
        )


def _all_pack_questions(pack: QuestionPack) -> tuple[AskedQuestion, ...]:
    return (*pack.questions, *pack.defaulted)


def _describe_plan_question(question: AskedQuestion | None, name: str) -> str:
    return f"{question.cause} ({question.about}, {name})" if question is not None else name


def _describe_plan_answer(answer: QuestionAnswer | None) -> str:
    if answer is None:
        return NOTHING_TEXT
    by = "" if answer.provided_by == "human" else f", by {answer.provided_by}"
    return f"{answer.answer}{by}" + (f": {answer.text}" if answer.text else "")


def _compare_sets(label: str, old_lines: Iterable[str], new_lines: Iterable[str]) -> Iterator[str]:
    old_set, new_set = set(old_lines), set(new_lines)
    yield from (f"{label}, no longer: {_shorten_plan_line(line)}" for line in sorted(old_set - new_set))
    yield from (f"{label}, newly: {_shorten_plan_line(line)}" for line in sorted(new_set - old_set))


def _compare_values(label: str, old_value: str, new_value: str) -> Iterator[str]:
    if old_value != new_value:
        yield _render_plan_change(label, old_value, new_value)


def _render_plan_change(label: str, old_value: str, new_value: str) -> str:
    return f"{label}: {_shorten_plan_line(old_value)} → {_shorten_plan_line(new_value)}"


def _shorten_plan_line(text: str) -> str:
    return clip_text(printable_line(text), 300) or NOTHING_TEXT
