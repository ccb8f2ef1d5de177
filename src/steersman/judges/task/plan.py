"""A planner's draft as the plan of a task, and what steersman itself finds wrong with a plan.

**Invariant:** whatever parsed as a reply becomes a document that fits its contract; a blocking question never gets lost.
"""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter
from types import MappingProxyType

import msgspec

from steersman.contracts.task.documents import (
    Criterion,
    Danger,
    Flaw,
    Plan,
    PlanFiles,
    PlannedFile,
    Question,
    Scope,
    Step,
    TestPlan,
)
from steersman.contracts.task.replies import Asked, PlanCommentReply, TaskPlannerReply
from steersman.contracts.task.words import Touch
from steersman.judges.task.paths import normal, unfit
from steersman.judges.text import clip, one_line, visible

NOTHING: Mapping[str, str] = MappingProxyType({})
LINE, TEXT, QUESTIONS, NOTES, FILES = 400, 4000, 100, 200, 500  # the bounds of the contract


def question_id(text: str) -> str:
    """The same for the same question, whatever its spacing and case."""
    words = " ".join(text.split()).casefold()
    return "q-" + hashlib.sha256(words.encode("utf-8", "backslashreplace")).hexdigest()[:10]


def plan_of(
    task_id: str,
    round_: int,
    reply: TaskPlannerReply,
    comments: Mapping[str, PlanCommentReply],
    answers: Mapping[str, str],
    asked: Mapping[str, str] = NOTHING,
) -> Plan:
    """The plan of a round; `answers` are by the id of their question, and so are the words of earlier questions."""
    questions = _questions(reply, comments, answers)
    return Plan(
        task_id=clip(task_id, LINE),
        round=round_,
        title=clip(reply.title, LINE),
        brief=clip(reply.brief, TEXT),
        requirements=_lines(reply.requirements),
        scope=Scope(in_scope=_lines(reply.in_scope), out_of_scope=_lines(reply.out_of_scope)),
        work=tuple(Step(id=f"s{n}", title=t) for n, t in enumerate(_lines(reply.steps), 1)),
        risks=tuple(Danger(description=t) for t in _lines(reply.risks)[:50]),
        assumptions=_lines(reply.assumptions),
        acceptance_criteria=tuple(
            Criterion(id=f"AC{n}", description=t) for n, t in enumerate(_lines(reply.acceptance_criteria), 1)
        ),
        file_plan=tuple(
            PlannedFile(path=f.path, intent=f.intent, summary=clip(f.summary, LINE))
            for f in reply.files[:FILES]
        ),
        test_plan=TestPlan(strategy=clip(reply.test_strategy, TEXT), cases=_lines(reply.test_cases)),
        questions=questions[:QUESTIONS],
        notes=_settled({q.id for q in questions}, answers, asked),
    )


def _lines(texts: Sequence[str]) -> tuple[str, ...]:
    return tuple(clip(text, LINE) for text in texts)


def _questions(
    reply: TaskPlannerReply, comments: Mapping[str, PlanCommentReply], answers: Mapping[str, str]
) -> tuple[Question, ...]:
    """Each question once, those that block before the others; one that anybody calls blocking is."""
    found: dict[str, Question] = {}
    for role, one in _all_asked(reply, comments):
        key = question_id(one.text)
        before = found.get(key)
        found[key] = (
            Question(
                id=key,
                text=clip(one.text, TEXT),
                blocking=one.blocking,
                asked_by=role,
                answer=clip(answers.get(key, ""), TEXT),
            )
            if before is None
            else msgspec.structs.replace(before, blocking=before.blocking or one.blocking)
        )
    return tuple(sorted(found.values(), key=lambda q: not q.blocking))


def _all_asked(
    reply: TaskPlannerReply, comments: Mapping[str, PlanCommentReply]
) -> Iterator[tuple[str, Asked]]:
    yield from (("planner", one) for one in reply.questions)
    for role, comment in comments.items():
        yield from ((role, one) for one in comment.questions)


def _settled(now: set[str], answers: Mapping[str, str], asked: Mapping[str, str]) -> tuple[str, ...]:
    """What was answered before and is not asked any more."""
    told = [
        f"asked: {clip(asked.get(key, key), LINE // 2)} answered: {answer}"
        for key, answer in answers.items()
        if key not in now and visible(answer)
    ]
    return _lines(told[:NOTES])


def open_questions(plan: Plan) -> tuple[Question, ...]:
    """What has to be answered before anything is built; an answer in which nothing can be seen is none."""
    return tuple(q for q in plan.questions if q.blocking and not visible(q.answer))


def agreed(reply: TaskPlannerReply, comments: Mapping[str, PlanCommentReply]) -> bool:
    """Whether nobody has a concern or a question that blocks, and everybody is ready."""
    settled = all(c.ready and not c.concerns for c in comments.values())
    return settled and not any(one.blocking for _, one in _all_asked(reply, comments))


def files_of(plan: Plan) -> PlanFiles | None:
    """The scope that a plan itself names; None where it names nothing that is fit."""
    files: dict[str, PlannedFile] = {}
    for one in plan.file_plan:
        if unfit(one.path) is None:
            path = normal(one.path)
            before = files.get(path, one)
            intent = _either(before.intent, one.intent)
            files[path] = PlannedFile(path=path, intent=intent, summary=before.summary or one.summary)
    return (
        PlanFiles(task_id=plan.task_id, inferred=True, files=tuple(files.values())[:FILES]) if files else None
    )


def _either(one: Touch, other: Touch) -> Touch:
    """What a file that is named twice may be; to delete it and to keep it is not one intent, and the first holds."""
    return one if one == other or "delete" in (one, other) else "create_or_update"


def flaws(plan: Plan, files: PlanFiles | None, outside: Sequence[str] = ()) -> tuple[Flaw, ...]:
    """What is wrong with a plan and its scope; `outside` says which of its files a frozen plan does not allow."""
    return (*_empty(plan, files), *_unfit(plan, files), *_open(plan), *_depends(plan), *_beyond(outside))


def _empty(plan: Plan, files: PlanFiles | None) -> Iterator[Flaw]:
    if not any(map(visible, plan.requirements)):
        yield Flaw(id="REQ_EMPTY", severity="warning", message="the plan names no requirement")
    if not any(visible(c.description) for c in plan.acceptance_criteria):
        yield Flaw(
            id="ACCEPTANCE_EMPTY",
            severity="error",
            message="the plan has no acceptance criterion: nobody could say when the task is done",
        )
    if files is None:
        yield Flaw(
            id="FILES_EMPTY",
            severity="error",
            message="the plan names no file that may be touched: there is no scope to hold a change to",
        )
    if not any(map(visible, (plan.test_plan.strategy, *plan.test_plan.cases))):
        yield Flaw(
            id="TEST_PLAN_EMPTY", severity="warning", message="the plan does not say how it will be tested"
        )


def _unfit(plan: Plan, files: PlanFiles | None) -> Iterator[Flaw]:
    named = (*plan.file_plan, *(files.files if files is not None else ()))
    for path in dict.fromkeys(one.path for one in named):
        if (why := unfit(path)) is not None:
            yield Flaw(id="FILES_UNFIT", severity="error", message=f"{_shown(path)}: {why}")


def _open(plan: Plan) -> Iterator[Flaw]:
    for one in open_questions(plan):
        told = f"{one.id} has no answer: {clip(one_line(one.text), LINE)}"
        yield Flaw(id="QUESTION_OPEN", severity="error", message=told)


def _depends(plan: Plan) -> Iterator[Flaw]:
    known = {step.id for step in plan.work}
    for step in plan.work:
        for wanted in dict.fromkeys(step.depends):
            if wanted not in known:
                told = f"step {step.id} depends on {wanted}, and there is no such step"
                yield Flaw(id="DEPENDS_UNKNOWN", severity="error", message=told)
    order: TopologicalSorter[str] = TopologicalSorter()
    for step in plan.work:
        order.add(step.id, *step.depends)
    try:
        order.prepare()
    except CycleError as error:
        # It tells the way from what is needed to who needs it; the first is the last again.
        round_trip = " → ".join(reversed(error.args[1]))
        yield Flaw(
            id="DEPENDS_CYCLE",
            severity="error",
            message=clip(f"steps depend on each other: {round_trip}", TEXT),
        )


def _beyond(outside: Sequence[str]) -> Iterator[Flaw]:
    for told in dict.fromkeys(outside):
        yield Flaw(id="OUTSIDE_PLAN", severity="error", message=_shown(told))


def _shown(path: str) -> str:
    return clip(one_line(path), TEXT // 2)
