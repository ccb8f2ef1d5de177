"""Checks answers against their questions and against the rules, and computes what a round of answers settles.

**Invariant:** a missing answer is never an approval. It takes the default of the question, and the record says so.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import msgspec
from msgspec.structs import replace

from steersman.contracts.planning.decisions import DocumentProblem, RuleDecision
from steersman.contracts.planning.policy import ExecutionPolicy
from steersman.contracts.planning.questions import (
    AnswerConflict,
    AnswerPack,
    AskedQuestion,
    QuestionAnswer,
    QuestionPack,
    SettledQuestions,
)
from steersman.judges.planning.choices import ANSWER_STOP, ANSWER_TEXT, default_answer_word, parse_named_files
from steersman.judges.planning.paths import outside_plan_reason, path_spelling_problem
from steersman.judges.planning.places import (
    NO_FIELD_LINES,
    FieldLines,
    FieldPath,
    document_problem,
    get_text_at,
    get_value_at,
    iter_list_at,
)
from steersman.judges.planning.schema_errors import find_schema_problems
from steersman.judges.planning.visible_text import invisible_name_reason, invisible_sentence_reason
from steersman.judges.text import clip_text

# The commands of the plan, as answers make it, that a rule denies or cannot judge: by id, with the decision.
ObjectionFinder = Callable[[SettledQuestions], Mapping[str, RuleDecision]]

_LINE_BLANKS = str.maketrans("\n\r\t", "   ")  # between names, one a line


class WeighedAnswers(NamedTuple):
    """What answers come to."""

    settled: SettledQuestions
    conflicts: tuple[AnswerConflict, ...]
    blocked: tuple[QuestionAnswer, ...]  # that stop the run


def find_answer_pack_problems(
    pack: QuestionPack, raw: Any, lines: FieldLines = NO_FIELD_LINES
) -> tuple[DocumentProblem, ...]:
    """Everything that is wrong with an answer pack as it was given; empty when it can be taken."""
    if blank := tuple(_find_blank_answers(pack, raw, lines)):
        return blank
    if broken := find_schema_problems(raw, lines, "answer_pack"):
        return broken
    answers = msgspec.convert(raw, AnswerPack)
    return (*_find_pack_misfits(pack, answers), *_find_unanswered_questions(pack, answers.answers))


def find_answer_problems(question: AskedQuestion, answer: QuestionAnswer) -> tuple[DocumentProblem, ...]:
    """What is wrong with one answer, whatever the others say."""
    return tuple(_find_unfit_answer(question, answer, (question.question_id,)))


def _find_blank_answers(pack: QuestionPack, raw: Any, lines: FieldLines) -> Iterable[DocumentProblem]:
    """Questions of a template without an answer. They are reported before the schema, because nothing else is wrong."""
    questions_by_id = {q.question_id: q for q in pack.questions}
    for path, item in iter_list_at(raw, "answers"):
        question = questions_by_id.get(get_text_at(item, "question_id"))
        if question is not None and get_value_at(item, ("answer",)) in (None, ""):
            message = f"{question.question_id} is not answered: {clip_text(question.question_text, 600)}"
            yield document_problem((*path, "answer"), message, _suggested_answers_hint(question), lines)


def _suggested_answers_hint(question: AskedQuestion) -> str:
    return f"Answer one of: {', '.join(suggestion.answer for suggestion in question.suggested_answers)}."


def unanswered_critical_questions(
    pack: QuestionPack, answers: Iterable[QuestionAnswer]
) -> tuple[AskedQuestion, ...]:
    """Critical questions without an answer."""
    ids = {answer.question_id for answer in answers}
    return tuple(q for q in pack.questions if q.blocking_level == "critical" and q.question_id not in ids)


def weigh_round_answers(
    pack: QuestionPack,
    given_answers: tuple[QuestionAnswer, ...],
    policy: ExecutionPolicy,
    object_to: ObjectionFinder,
    *,
    person: str = "",
    before: SettledQuestions | None = None,
) -> WeighedAnswers:
    """What holds after a round. An answer that contradicts a rule does not count, and its question is asked again.

    `person` gave the answers and left the other questions to their defaults. Without a person, the time ran out."""
    all_answers = round_answers(pack, given_answers, policy, person)
    settled = _merge_settled_answers(pack, all_answers, before)
    known = {answer.question_id for answer in given_answers}
    conflicts = tuple(_find_rule_conflicts(settled, sorted(known), object_to))
    if not conflicts:  # a default is no person's answer, but a decision that ends a run still ends it
        silent = sorted({answer.question_id for answer in all_answers} - known)
        conflicts = tuple(
            _find_rule_conflicts(settled, silent, lambda tried: _run_ending_decisions(object_to(tried)))
        )
    settled = _drop_settled_answers(settled, {conflict.question_id for conflict in conflicts})
    settled = replace(settled, conflicts=(*settled.conflicts, *conflicts))
    return WeighedAnswers(settled, conflicts, tuple(a for a in settled.answers if a.answer == ANSWER_STOP))


def round_answers(
    pack: QuestionPack, given_answers: tuple[QuestionAnswer, ...], policy: ExecutionPolicy, person: str
) -> tuple[QuestionAnswer, ...]:
    """Everything that a round says: what was answered, and the defaults of what was not."""
    known = {answer.question_id for answer in given_answers}
    silent = tuple(q for q in pack.questions if q.question_id not in known)
    return (
        *(replace(answer, answered_by=person) for answer in given_answers),
        *_default_answers_from(silent, "fallback", policy, person),
        *_default_answers_from(pack.defaulted, "policy_default", policy),
    )


def default_answers(pack: QuestionPack, policy: ExecutionPolicy) -> tuple[QuestionAnswer, ...]:
    """The answers of a person who takes every default."""
    return tuple(_default_answers_from(pack.questions, "human", policy))


def weigh_default_answers(
    questions: Iterable[AskedQuestion],
    plan_id: str,
    policy: ExecutionPolicy,
    before: SettledQuestions | None = None,
) -> WeighedAnswers:
    """What holds where no person is asked: defaults for everything that is not settled yet."""
    known = {answer.question_id for answer in before.answers} if before else set()
    rest = tuple(q for q in questions if q.question_id not in known)
    all_answers = (
        *(before.answers if before else ()),
        *_default_answers_from(rest, "policy_default", policy),
    )
    settled = SettledQuestions(
        plan_id=plan_id,
        rounds=before.rounds if before else 0,
        asked=before.asked if before else (),
        answers=tuple(sorted(all_answers, key=lambda a: a.question_id)),
        conflicts=before.conflicts if before else (),
    )
    return WeighedAnswers(settled, (), tuple(a for a in settled.answers if a.answer == ANSWER_STOP))


def _find_pack_misfits(pack: QuestionPack, answers: AnswerPack) -> Iterable[DocumentProblem]:
    if answers.question_pack_id != pack.pack_id:
        message = f"This file answers {answers.question_pack_id}, and the open questions are {pack.pack_id}."
        yield document_problem(("question_pack_id",), message, f"Answer {pack.pack_id}.")
    questions_by_id = {q.question_id: q for q in pack.questions}
    answered_ids: set[str] = set()
    for n, answer in enumerate(answers.answers):
        path: FieldPath = ("answers", n)
        id_ = answer.question_id
        if id_ not in questions_by_id:
            advice = "Remove this answer. The pack lists the open questions."
            yield document_problem((*path, "question_id"), f"{id_} is not an open question.", advice)
            continue
        if id_ in answered_ids:
            message = f"{id_} is answered twice."
            yield document_problem((*path, "question_id"), message, "Keep one of the answers.")
        answered_ids.add(id_)
        yield from _find_unfit_answer(questions_by_id[id_], answer, path)


def _find_unfit_answer(
    question: AskedQuestion, answer: QuestionAnswer, path: FieldPath
) -> Iterable[DocumentProblem]:
    if answer.answer not in [suggestion.answer for suggestion in question.suggested_answers]:
        message = f"{clip_text(answer.answer, 60)} is not an answer to {question.question_id}."
        yield document_problem((*path, "answer"), message, _suggested_answers_hint(question))
    if answer.provided_by != "human":
        message = f"{answer.provided_by} marks a default. A person's answer cannot have it."
        yield document_problem((*path, "provided_by"), message, "Remove provided_by.")
    if answer.answered_by:
        message = "steersman writes this field: the name of the person who answers."
        yield document_problem((*path, "answered_by"), message, "Remove answered_by.")
    for name, why in (
        ("text", invisible_name_reason(answer.text.translate(_LINE_BLANKS))),
        ("rationale", invisible_sentence_reason(answer.rationale)),
    ):
        if why:
            yield document_problem((*path, name), f"It {why}.", "Type it again.")
    yield from _find_unfit_words(question, answer, (*path, "text"))


def _find_unfit_words(
    question: AskedQuestion, answer: QuestionAnswer, path: FieldPath
) -> Iterable[DocumentProblem]:
    """Only the answer `text` takes words; beside another answer it is unclear which of the two counts."""
    files = parse_named_files(answer.text)
    if answer.answer != ANSWER_TEXT and files:
        message = f"The answer {clip_text(answer.answer, 60)} takes no text."
        yield document_problem(path, message, f"Answer {ANSWER_TEXT}, or remove the text.")
    elif answer.answer == ANSWER_TEXT and not files:
        yield document_problem(path, "The text is empty.", "Name files, one on each line.")
    for file in files if answer.answer == ANSWER_TEXT else ():
        if why := outside_plan_reason(file, question.within) or path_spelling_problem(file):
            advice = "Name files and directories that the plan may reach, from the top of the project, without `..`."
            yield document_problem(path, f"{clip_text(file, 100)} {why}.", advice)


def _find_unanswered_questions(
    pack: QuestionPack, answers: tuple[QuestionAnswer, ...]
) -> Iterable[DocumentProblem]:
    for question in unanswered_critical_questions(pack, answers):
        message = (
            f"{question.question_id} is critical and not answered: {clip_text(question.question_text, 600)}"
        )
        yield document_problem(("answers",), message, _suggested_answers_hint(question))


def _find_rule_conflicts(
    settled: SettledQuestions, ids: list[str], object_to: ObjectionFinder
) -> Iterable[AnswerConflict]:
    """The answers among `given` without which a rule would not object; all of them where it takes several."""
    against = object_to(settled)
    if not against:
        return
    anyway = object_to(_drop_settled_answers(settled, ids))
    by_answer = {id_: against.keys() - object_to(_drop_settled_answers(settled, [id_])).keys() for id_ in ids}
    caused = {id_: commands for id_, commands in by_answer.items() if commands}
    for id_ in caused or ids:
        for command in sorted(caused.get(id_, against.keys() - anyway.keys())):
            yield _build_rule_conflict(id_, against[command])


def _run_ending_decisions(against: Mapping[str, RuleDecision]) -> Mapping[str, RuleDecision]:
    """The decisions that abort a run."""
    return {id_: decision for id_, decision in against.items() if decision.hard or decision.conflict}


def _build_rule_conflict(question_id: str, decision: RuleDecision) -> AnswerConflict:
    outcome = "undecidable" if decision.undecidable else "fired"
    rules = (r.rule_id for r in decision.rules if r.outcome == outcome and r.decision == decision.decision)
    return AnswerConflict(
        question_id=question_id,
        command_id=decision.command_id,
        rule_id=min(rules, default=""),
        reason=clip_text(f"{decision.decision} ({decision.severity}): {decision.reason}", 400),
    )


def _default_answers_from(
    questions: Iterable[AskedQuestion], by: Any, policy: ExecutionPolicy, person: str = ""
) -> Iterable[QuestionAnswer]:
    for question in questions:
        word = default_answer_word(question) if policy.auto_fallback else ANSWER_STOP
        reason = question.default_strategy.reason if policy.auto_fallback else "The policy takes no default."
        yield QuestionAnswer(
            question_id=question.question_id,
            answer=word,
            provided_by=by,
            answered_by=person,
            rationale=reason,
        )


def _drop_settled_answers(settled: SettledQuestions, questions: Iterable[str]) -> SettledQuestions:
    dropped = set(questions)
    return replace(settled, answers=tuple(a for a in settled.answers if a.question_id not in dropped))


def _merge_settled_answers(
    pack: QuestionPack, answers: tuple[QuestionAnswer, ...], before: SettledQuestions | None
) -> SettledQuestions:
    earlier_answers: Mapping[str, QuestionAnswer] = (
        {a.question_id: a for a in before.answers} if before else {}
    )
    now = {**earlier_answers, **{a.question_id: a for a in answers}}
    asked_ids = {*(before.asked if before else ()), *(q.question_id for q in pack.questions)}
    return SettledQuestions(
        plan_id=pack.plan_id,
        rounds=pack.round,
        asked=tuple(sorted(asked_ids)),
        answers=tuple(answer for _, answer in sorted(now.items())),
        conflicts=before.conflicts if before else (),
    )
