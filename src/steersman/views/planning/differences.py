"""What differs between two plans, in words: what is done, how far it may go, who looks, what was answered.

**Invariant:** a function of the plans' own documents; two plans of which nothing is told here may be carried out alike.
"""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from steersman.contracts.planning.graph import ExecutionGraph
from steersman.contracts.planning.questions import Answer, AskedQuestion, QuestionPack, Settled
from steersman.contracts.planning.review import ReviewPack
from steersman.judges.planning.paths import region
from steersman.judges.text import clip, one_line
from steersman.views.planning.phases import phases

NOTHING = "nothing"


class Side(NamedTuple):
    """What is looked at of one plan."""

    pack: ReviewPack
    packs: tuple[QuestionPack, ...]
    settled: Settled
    graph: ExecutionGraph


def differences(one: Side, other: Side) -> tuple[str, ...]:
    """Every difference in a line of its own; what was there before comes first."""
    return (
        *_commands(one.pack, other.pack),
        *_phases(one.graph, other.graph),
        *_reach(one.pack, other.pack),
        *_reviews(one.pack, other.pack),
        *_figures(one.pack, other.pack),
        *_answers(one, other),
    )


def _commands(a: ReviewPack, b: ReviewPack) -> Iterator[str]:
    first, second = ([p.command_id for p in pack.actions] for pack in (a, b))
    yield from (f"{name}: no longer planned" for name in sorted(set(first) - set(second)))
    yield from (f"{name}: newly planned" for name in sorted(set(second) - set(first)))
    here, there = ([(p.phase, p.command_id) for p in pack.actions] for pack in (a, b))
    if here != there and set(first) == set(second):
        yield "the order or the phases of the commands"
    argvs = [{p.command_id: p.argv for p in pack.actions} for pack in (a, b)]
    for name in sorted(set(first) & set(second)):
        if argvs[0][name] != argvs[1][name]:
            yield _changed(f"{name}, as it is typed", *(" ".join(argv[name]) for argv in argvs))
    yield from _more_and_less("left out", a.excluded, b.excluded)


def _phases(a: ExecutionGraph, b: ExecutionGraph) -> Iterator[str]:
    """Which phases there are, on what each hangs, what comes before it and where it leads when it does not succeed."""
    first, second = phases(a), phases(b)
    names = [["/".join(name) for name in known] for known in (first, second)]
    yield from _more_and_less("phases", *names)
    for name in first:
        if name in second:
            one, other, what = first[name], second[name], f"phase {'/'.join(name)}"
            yield from _unlike(f"{what}, only if", one.condition, other.condition)
            yield from _unlike(f"{what}, comes after", ", ".join(one.after), ", ".join(other.after))
            yield from _unlike(f"{what}, if it does not succeed", one.instead, other.instead)
            yield from _unlike(f"{what}, in words", one.purpose, other.purpose)


def _reach(a: ReviewPack, b: ReviewPack) -> Iterator[str]:
    one, other = a.change_impact, b.change_impact
    yield from _more_and_less("files", one.files, other.files)
    yield from _more_and_less("modules", one.modules, other.modules)
    yield from _more_and_less("areas", one.areas, other.areas)
    yield from _unlike("bounded by", region(one.within), region(other.within))
    yield from _unlike("lock", *(f"{i.lock.mode} {', '.join(i.lock.paths)}".strip() for i in (one, other)))


def _reviews(a: ReviewPack, b: ReviewPack) -> Iterator[str]:
    first, second = (tuple(f"{g.category} in {g.phase}: {g.why}" for g in p.review_gates) for p in (a, b))
    yield from _more_and_less("reviews", first, second)


def _figures(a: ReviewPack, b: ReviewPack) -> Iterator[str]:
    yield from _unlike("mode", a.execution_mode, b.execution_mode)
    yield from _unlike("overall risk", a.risk_assessment.overall_risk, b.risk_assessment.overall_risk)
    limits = [{x.name: x for x in pack.change_impact.budgets} for pack in (a, b)]
    for name in sorted(limits[0].keys() & limits[1].keys()):
        yield from _unlike(f"budget {name}", *(str(known[name].limit) for known in limits))
        yield from _unlike(f"expected of {name}", *(str(known[name].estimate) for known in limits))
    yield from _unlike("estimated minutes", str(a.estimated_duration.value), str(b.estimated_duration.value))


def _answers(one: Side, other: Side) -> Iterator[str]:
    texts = {q.question_id: q for side in (one, other) for pack in side.packs for q in _of(pack)}
    said = [{a.question_id: a for a in side.settled.answers} for side in (one, other)]
    for name in sorted(said[0].keys() | said[1].keys()):
        words = [_words(known.get(name)) for known in said]
        yield from _unlike(f"answer to {_named(texts.get(name), name)}", *words)


def _of(pack: QuestionPack) -> tuple[AskedQuestion, ...]:
    return (*pack.questions, *pack.defaulted)


def _named(question: AskedQuestion | None, name: str) -> str:
    return f"{question.cause} ({question.about}, {name})" if question is not None else name


def _words(answer: Answer | None) -> str:
    if answer is None:
        return NOTHING
    by = "" if answer.provided_by == "human" else f", by {answer.provided_by}"
    return f"{answer.answer}{by}" + (f": {answer.text}" if answer.text else "")


def _more_and_less(what: str, a: Iterable[str], b: Iterable[str]) -> Iterator[str]:
    first, second = set(a), set(b)
    yield from (f"{what}, no longer: {_line(one)}" for one in sorted(first - second))
    yield from (f"{what}, newly: {_line(one)}" for one in sorted(second - first))


def _unlike(what: str, a: str, b: str) -> Iterator[str]:
    if a != b:
        yield _changed(what, a, b)


def _changed(what: str, a: str, b: str) -> str:
    return f"{what}: {_line(a)} → {_line(b)}"


def _line(text: str) -> str:
    return clip(one_line(text), 300) or NOTHING
