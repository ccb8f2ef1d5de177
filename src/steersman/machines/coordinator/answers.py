"""Answers held against the questions and the rules: what is wrong with their form, what contradicts a rule, what holds.

**Invariant:** no answer is never an approval: what nobody has said takes the question's own default, which says so.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import msgspec
from msgspec.structs import replace

from steersman.contracts.planning.decisions import Problem, RuleDecision
from steersman.contracts.planning.policy import ExecutionPolicy
from steersman.contracts.planning.questions import (
    Answer,
    AnswerPack,
    AskedQuestion,
    Conflict,
    QuestionPack,
    Settled,
)
from steersman.judges.planning.paths import why_outside, why_pattern
from steersman.judges.planning.places import NO_LINES, Lines, problem
from steersman.judges.planning.raw import at, each, text
from steersman.judges.planning.shape import schema_problems
from steersman.judges.planning.sight import why_unnamed, why_unseen
from steersman.judges.text import clip
from steersman.machines.coordinator.choices import STOP, TEXT, default_word, named

# The commands of the plan, as answers make it, that a rule denies or cannot judge: by id, with the decision.
Object = Callable[[Settled], Mapping[str, RuleDecision]]

_BLANKS = str.maketrans("\n\r\t", "   ")  # between names, one a line


class Weighed(NamedTuple):
    """What answers come to."""

    settled: Settled
    conflicts: tuple[Conflict, ...]
    blocked: tuple[Answer, ...]  # that stop the run


def problems(pack: QuestionPack, raw: Any, lines: Lines = NO_LINES) -> tuple[Problem, ...]:
    """Everything that is wrong with an answer pack as it was given; empty when it can be taken."""
    if blank := tuple(_blank(pack, raw, lines)):
        return blank
    if broken := schema_problems(raw, lines, "answer_pack"):
        return broken
    answers = msgspec.convert(raw, AnswerPack)
    return (*_misfits(pack, answers), *_unanswered(pack, answers.answers))


def misfits(question: AskedQuestion, answer: Answer) -> tuple[Problem, ...]:
    """What is wrong with one answer, whatever the others say."""
    return tuple(_unfit(question, answer, question.question_id))


def _blank(pack: QuestionPack, raw: Any, lines: Lines) -> Iterable[Problem]:
    """Questions of a template that nobody has filled in yet: told before its form, for that is all that is wrong."""
    asked = {q.question_id: q for q in pack.questions}
    for path, item in each(raw, "answers"):
        question = asked.get(text(item, "question_id"))
        if question is not None and at(item, ("answer",)) in (None, ""):
            told = f"{question.question_id} is not answered: {clip(question.question_text, 600)}"
            yield problem((*path, "answer"), told, _one_of(question), lines)


def _one_of(question: AskedQuestion) -> str:
    return f"Say one of: {', '.join(suggestion.answer for suggestion in question.suggested_answers)}."


def unanswered(pack: QuestionPack, answers: Iterable[Answer]) -> tuple[AskedQuestion, ...]:
    """Critical questions that nobody has answered."""
    said = {answer.question_id for answer in answers}
    return tuple(q for q in pack.questions if q.blocking_level == "critical" and q.question_id not in said)


def weigh(
    pack: QuestionPack,
    given: tuple[Answer, ...],
    policy: ExecutionPolicy,
    object_to: Object,
    *,
    person: str = "",
    before: Settled | None = None,
) -> Weighed:
    """What holds after a round; an answer that contradicts a rule is no answer, and its question comes up again.

    `person` has given the answers and left the other questions to their defaults. Without one, nobody did in time."""
    said = round_answers(pack, given, policy, person)
    settled = _settled(pack, said, before)
    known = {answer.question_id for answer in given}
    conflicts = tuple(_conflicts(settled, sorted(known), object_to))
    if not conflicts:  # a default is no answer of anybody, but what ends a run ends it
        silent = sorted({answer.question_id for answer in said} - known)
        conflicts = tuple(_conflicts(settled, silent, lambda tried: _ending(object_to(tried))))
    settled = _without(settled, {conflict.question_id for conflict in conflicts})
    settled = replace(settled, conflicts=(*settled.conflicts, *conflicts))
    return Weighed(settled, conflicts, tuple(a for a in settled.answers if a.answer == STOP))


def round_answers(
    pack: QuestionPack, given: tuple[Answer, ...], policy: ExecutionPolicy, person: str
) -> tuple[Answer, ...]:
    """Everything that a round says: what was answered, and the defaults of what was not."""
    known = {answer.question_id for answer in given}
    silent = tuple(q for q in pack.questions if q.question_id not in known)
    return (
        *(replace(answer, answered_by=person) for answer in given),
        *_defaults(silent, "fallback", policy, person),
        *_defaults(pack.defaulted, "policy_default", policy),
    )


def default_answers(pack: QuestionPack, policy: ExecutionPolicy) -> tuple[Answer, ...]:
    """The answers of a person who takes every default."""
    return tuple(_defaults(pack.questions, "human", policy))


def defaults(
    questions: Iterable[AskedQuestion], plan_id: str, policy: ExecutionPolicy, before: Settled | None = None
) -> Weighed:
    """What holds where nobody is asked: defaults for everything that is not settled yet."""
    known = {answer.question_id for answer in before.answers} if before else set()
    rest = tuple(q for q in questions if q.question_id not in known)
    said = (*(before.answers if before else ()), *_defaults(rest, "policy_default", policy))
    settled = Settled(
        plan_id=plan_id,
        rounds=before.rounds if before else 0,
        asked=before.asked if before else (),
        answers=tuple(sorted(said, key=lambda a: a.question_id)),
        conflicts=before.conflicts if before else (),
    )
    return Weighed(settled, (), tuple(a for a in settled.answers if a.answer == STOP))


def _misfits(pack: QuestionPack, answers: AnswerPack) -> Iterable[Problem]:
    if answers.question_pack_id != pack.pack_id:
        yield Problem(
            field="question_pack_id",
            message=f"These are answers to {answers.question_pack_id}; asked is {pack.pack_id}.",
            fix=f"Answer {pack.pack_id}.",
        )
    asked = {q.question_id: q for q in pack.questions}
    seen: set[str] = set()
    for n, answer in enumerate(answers.answers):
        where = f"answers[{n}]"
        if answer.question_id not in asked:
            yield Problem(
                field=f"{where}.question_id",
                message=f"{answer.question_id} is not asked.",
                fix="Take it out; the pack lists what is asked.",
            )
            continue
        if answer.question_id in seen:
            yield Problem(
                field=f"{where}.question_id",
                message=f"{answer.question_id} is answered twice.",
                fix="Keep one of the answers.",
            )
        seen.add(answer.question_id)
        yield from _unfit(asked[answer.question_id], answer, where)


def _unfit(question: AskedQuestion, answer: Answer, where: str) -> Iterable[Problem]:
    words = [suggestion.answer for suggestion in question.suggested_answers]
    if answer.answer not in words:
        yield Problem(
            field=f"{where}.answer",
            message=f"{clip(answer.answer, 60)} is no answer to {question.question_id}.",
            fix=_one_of(question),
        )
    if answer.provided_by != "human":
        yield Problem(
            field=f"{where}.provided_by",
            message=f"{answer.provided_by} is said of defaults, never of an answer that is given.",
            fix="Leave provided_by out.",
        )
    if answer.answered_by:
        yield Problem(
            field=f"{where}.answered_by",
            message="The name is that of whoever gives the answers, and is written by steersman.",
            fix="Leave answered_by out.",
        )
    for name, why in (
        ("text", why_unnamed(answer.text.translate(_BLANKS))),
        ("rationale", why_unseen(answer.rationale)),
    ):
        if why:
            yield Problem(field=f"{where}.{name}", message=f"It {why}.", fix="Write it again by hand.")
    yield from _unfit_words(question, answer, where)


def _unfit_words(question: AskedQuestion, answer: Answer, where: str) -> Iterable[Problem]:
    """Words go with the answer that takes them: beside another one nobody knows which of both is meant."""
    files = named(answer.text)
    if answer.answer != TEXT and files:
        yield Problem(
            field=f"{where}.text",
            message=f"There are words beside {clip(answer.answer, 60)}, which takes none.",
            fix=f"Say {TEXT} as the answer, or take the words out.",
        )
    elif answer.answer == TEXT:
        if not files:
            yield Problem(field=f"{where}.text", message="There are no words.", fix="Name files, one a line.")
        for file in files:
            if why := why_outside(file, question.within) or why_pattern(file):
                yield Problem(
                    field=f"{where}.text",
                    message=clip(f"{clip(file, 100)} {why}.", 1000),
                    fix="Name files and directories that the plan may reach, from the top of the project, without `..`.",
                )


def _unanswered(pack: QuestionPack, answers: tuple[Answer, ...]) -> Iterable[Problem]:
    for question in unanswered(pack, answers):
        yield Problem(
            field="answers",
            message=f"{question.question_id} is critical and not answered: {clip(question.question_text, 600)}",
            fix=_one_of(question),
        )


def _conflicts(settled: Settled, given: list[str], object_to: Object) -> Iterable[Conflict]:
    """The answers among `given` without which a rule would not object; all of them where it takes several."""
    against = object_to(settled)
    if not against:
        return
    anyway = object_to(_without(settled, given))
    by_answer = {id_: against.keys() - object_to(_without(settled, [id_])).keys() for id_ in given}
    caused = {id_: commands for id_, commands in by_answer.items() if commands}
    for id_ in caused or given:
        for command in sorted(caused.get(id_, against.keys() - anyway.keys())):
            yield _conflict(id_, against[command])


def _ending(against: Mapping[str, RuleDecision]) -> Mapping[str, RuleDecision]:
    """The decisions that abort a run."""
    return {id_: decision for id_, decision in against.items() if decision.hard or decision.conflict}


def _conflict(question_id: str, decision: RuleDecision) -> Conflict:
    outcome = "undecidable" if decision.undecidable else "fired"
    rules = (r.rule_id for r in decision.rules if r.outcome == outcome and r.decision == decision.decision)
    return Conflict(
        question_id=question_id,
        command_id=decision.command_id,
        rule_id=min(rules, default=""),
        reason=clip(f"{decision.decision} ({decision.severity}): {decision.reason}", 400),
    )


def _defaults(
    questions: Iterable[AskedQuestion], by: Any, policy: ExecutionPolicy, person: str = ""
) -> Iterable[Answer]:
    for question in questions:
        word = default_word(question) if policy.auto_fallback else STOP
        reason = question.default_strategy.reason if policy.auto_fallback else "The policy takes no default."
        yield Answer(
            question_id=question.question_id,
            answer=word,
            provided_by=by,
            answered_by=person,
            rationale=reason,
        )


def _without(settled: Settled, questions: Iterable[str]) -> Settled:
    gone = set(questions)
    return replace(settled, answers=tuple(a for a in settled.answers if a.question_id not in gone))


def _settled(pack: QuestionPack, answers: tuple[Answer, ...], before: Settled | None) -> Settled:
    kept: Mapping[str, Answer] = {a.question_id: a for a in before.answers} if before else {}
    now = {**kept, **{a.question_id: a for a in answers}}
    asked = {*(before.asked if before else ()), *(q.question_id for q in pack.questions)}
    return Settled(
        plan_id=pack.plan_id,
        rounds=pack.round,
        asked=tuple(sorted(asked)),
        answers=tuple(answer for _, answer in sorted(now.items())),
        conflicts=before.conflicts if before else (),
    )
