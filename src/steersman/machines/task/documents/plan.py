"""Turns a planner's draft into the plan of a task, and finds what is wrong with a plan.

**Invariant:** every parsed reply becomes a document that fits its contract, and no blocking question is lost.
"""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter
from types import MappingProxyType

import msgspec

from steersman.judges.text import clip_text, has_visible_text, printable_line
from steersman.machines.task.documents.schemas import (
    AcceptanceCriterion,
    PlanFiles,
    PlanFlaw,
    PlannedFile,
    TaskPlan,
    TaskQuestion,
    TaskRisk,
    TaskScope,
    TestPlan,
    WorkStep,
)
from steersman.machines.task.documents.scope import find_scope_path_problem, normalize_scope_path
from steersman.machines.task.documents.words import FileIntent
from steersman.machines.task.replies import PlanCommentReply, ProposedQuestion, TaskPlannerReply

NO_TEXTS: Mapping[str, str] = MappingProxyType({})
MAX_PLAN_LINE_CHARACTERS, MAX_PLAN_TEXT_CHARACTERS, MAX_PLAN_QUESTIONS, MAX_PLAN_NOTES, MAX_PLAN_FILES = (
    400,
    4000,
    100,
    200,
    500,
)  # the bounds of the contract


def plan_question_id(text: str) -> str:
    """The same for the same question, whatever its spacing and case."""
    words = " ".join(text.split()).casefold()
    return "q-" + hashlib.sha256(words.encode("utf-8", "backslashreplace")).hexdigest()[:10]


def build_task_plan(
    task_id: str,
    round_: int,
    reply: TaskPlannerReply,
    comments: Mapping[str, PlanCommentReply],
    answers: Mapping[str, str],
    earlier_questions: Mapping[str, str] = NO_TEXTS,
) -> TaskPlan:
    """The plan of a round; `answers` are by the id of their question, and so are the words of earlier questions."""
    questions = _collect_plan_questions(reply, comments, answers)
    return TaskPlan(
        task_id=clip_text(task_id, MAX_PLAN_LINE_CHARACTERS),
        round=round_,
        title=clip_text(reply.title, MAX_PLAN_LINE_CHARACTERS),
        brief=clip_text(reply.brief, MAX_PLAN_TEXT_CHARACTERS),
        requirements=_clip_plan_lines(reply.requirements),
        scope=TaskScope(
            in_scope=_clip_plan_lines(reply.in_scope), out_of_scope=_clip_plan_lines(reply.out_of_scope)
        ),
        work=tuple(
            WorkStep(id=f"s{n}", title=text) for n, text in enumerate(_clip_plan_lines(reply.steps), 1)
        ),
        risks=tuple(TaskRisk(description=text) for text in _clip_plan_lines(reply.risks)[:50]),
        assumptions=_clip_plan_lines(reply.assumptions),
        acceptance_criteria=tuple(
            AcceptanceCriterion(id=f"AC{n}", description=text)
            for n, text in enumerate(_clip_plan_lines(reply.acceptance_criteria), 1)
        ),
        file_plan=tuple(
            PlannedFile(
                path=planned_file.path,
                intent=planned_file.intent,
                summary=clip_text(planned_file.summary, MAX_PLAN_LINE_CHARACTERS),
            )
            for planned_file in reply.files[:MAX_PLAN_FILES]
        ),
        test_plan=TestPlan(
            strategy=clip_text(reply.test_strategy, MAX_PLAN_TEXT_CHARACTERS),
            cases=_clip_plan_lines(reply.test_cases),
        ),
        questions=questions[:MAX_PLAN_QUESTIONS],
        notes=_list_settled_notes({question.id for question in questions}, answers, earlier_questions),
    )


def _clip_plan_lines(texts: Sequence[str]) -> tuple[str, ...]:
    return tuple(clip_text(text, MAX_PLAN_LINE_CHARACTERS) for text in texts)


def _collect_plan_questions(
    reply: TaskPlannerReply, comments: Mapping[str, PlanCommentReply], answers: Mapping[str, str]
) -> tuple[TaskQuestion, ...]:
    """Each question once, blocking ones first. A question blocks if one agent says so."""
    questions_by_id: dict[str, TaskQuestion] = {}
    for role, question in _list_asked_questions(reply, comments):
        key = plan_question_id(question.text)
        earlier = questions_by_id.get(key)
        questions_by_id[key] = (
            TaskQuestion(
                id=key,
                text=clip_text(question.text, MAX_PLAN_TEXT_CHARACTERS),
                blocking=question.blocking,
                asked_by=role,
                answer=clip_text(answers.get(key, ""), MAX_PLAN_TEXT_CHARACTERS),
            )
            if earlier is None
            else msgspec.structs.replace(earlier, blocking=earlier.blocking or question.blocking)
        )
    return tuple(sorted(questions_by_id.values(), key=lambda each: not each.blocking))


def _list_asked_questions(
    reply: TaskPlannerReply, comments: Mapping[str, PlanCommentReply]
) -> Iterator[tuple[str, ProposedQuestion]]:
    yield from (("planner", question) for question in reply.questions)
    for role, comment in comments.items():
        yield from ((role, question) for question in comment.questions)


def _list_settled_notes(
    current_ids: set[str], answers: Mapping[str, str], earlier_questions: Mapping[str, str]
) -> tuple[str, ...]:
    """What was answered before and is not asked any more."""
    notes = [
        f"asked: {clip_text(earlier_questions.get(key, key), MAX_PLAN_LINE_CHARACTERS // 2)} answered: {answer}"
        for key, answer in answers.items()
        if key not in current_ids and has_visible_text(answer)
    ]
    return _clip_plan_lines(notes[:MAX_PLAN_NOTES])


def find_open_plan_questions(plan: TaskPlan) -> tuple[TaskQuestion, ...]:
    """What has to be answered before anything is built; an answer in which nothing can be seen is none."""
    return tuple(q for q in plan.questions if q.blocking and not has_visible_text(q.answer))


def infer_plan_files(plan: TaskPlan) -> PlanFiles | None:
    """The scope that a plan itself names; None where it names nothing that is fit."""
    files: dict[str, PlannedFile] = {}
    for file in plan.file_plan:
        if find_scope_path_problem(file.path) is None:
            path = normalize_scope_path(file.path)
            earlier = files.get(path, file)
            intent = _merge_file_intents(earlier.intent, file.intent)
            files[path] = PlannedFile(path=path, intent=intent, summary=earlier.summary or file.summary)
    return (
        PlanFiles(task_id=plan.task_id, inferred=True, files=tuple(files.values())[:MAX_PLAN_FILES])
        if files
        else None
    )


def _merge_file_intents(earlier: FileIntent, later: FileIntent) -> FileIntent:
    """What a file that is named twice may be; to delete it and to keep it is not one intent, and the first holds."""
    return earlier if earlier == later or "delete" in (earlier, later) else "create_or_update"


def find_plan_flaws(
    plan: TaskPlan, files: PlanFiles | None, outside: Sequence[str] = ()
) -> tuple[PlanFlaw, ...]:
    """What is wrong with a plan and its scope; `outside` says which of its files a frozen plan does not allow."""
    return (
        *_find_empty_plan_parts(plan, files),
        *_find_unfit_plan_paths(plan, files),
        *_find_open_question_flaws(plan),
        *_find_step_dependency_flaws(plan),
        *_find_files_beyond_plan(outside),
    )


def _find_empty_plan_parts(plan: TaskPlan, files: PlanFiles | None) -> Iterator[PlanFlaw]:
    if not any(map(has_visible_text, plan.requirements)):
        yield PlanFlaw(id="REQ_EMPTY", severity="warning", message="the plan names no requirement")
    if not any(has_visible_text(criterion.description) for criterion in plan.acceptance_criteria):
        yield PlanFlaw(
            id="ACCEPTANCE_EMPTY",
            severity="error",
            message="the plan has no acceptance criterion, so no one can decide when the task is done",
        )
    if files is None:
        yield PlanFlaw(
            id="FILES_EMPTY",
            severity="error",
            message="the plan names no file that a change may touch, so the change has no scope",
        )
    if not any(map(has_visible_text, (plan.test_plan.strategy, *plan.test_plan.cases))):
        yield PlanFlaw(
            id="TEST_PLAN_EMPTY", severity="warning", message="the plan does not say how it will be tested"
        )


def _find_unfit_plan_paths(plan: TaskPlan, files: PlanFiles | None) -> Iterator[PlanFlaw]:
    planned_files = (*plan.file_plan, *(files.files if files is not None else ()))
    for path in dict.fromkeys(planned_file.path for planned_file in planned_files):
        if (problem := find_scope_path_problem(path)) is not None:
            yield PlanFlaw(
                id="FILES_UNFIT", severity="error", message=f"{_render_plan_path(path)}: {problem}"
            )


def _find_open_question_flaws(plan: TaskPlan) -> Iterator[PlanFlaw]:
    for question in find_open_plan_questions(plan):
        message = f"{question.id} has no answer: {clip_text(printable_line(question.text), MAX_PLAN_LINE_CHARACTERS)}"
        yield PlanFlaw(id="QUESTION_OPEN", severity="error", message=message)


def _find_step_dependency_flaws(plan: TaskPlan) -> Iterator[PlanFlaw]:
    known = {step.id for step in plan.work}
    for step in plan.work:
        for wanted in dict.fromkeys(step.depends):
            if wanted not in known:
                message = f"step {step.id} depends on {wanted}, and there is no such step"
                yield PlanFlaw(id="DEPENDS_UNKNOWN", severity="error", message=message)
    order: TopologicalSorter[str] = TopologicalSorter()
    for step in plan.work:
        order.add(step.id, *step.depends)
    try:
        order.prepare()
    except CycleError as error:
        # It tells the way from what is needed to who needs it; the first is the last again.
        round_trip = " → ".join(reversed(error.args[1]))
        yield PlanFlaw(
            id="DEPENDS_CYCLE",
            severity="error",
            message=clip_text(f"steps depend on each other: {round_trip}", MAX_PLAN_TEXT_CHARACTERS),
        )


def _find_files_beyond_plan(outside: Sequence[str]) -> Iterator[PlanFlaw]:
    for path in dict.fromkeys(outside):
        yield PlanFlaw(id="OUTSIDE_PLAN", severity="error", message=_render_plan_path(path))


def _render_plan_path(path: str) -> str:
    return clip_text(printable_line(path), MAX_PLAN_TEXT_CHARACTERS // 2)
