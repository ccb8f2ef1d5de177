"""What the agents of a task answer with; a nonce says that it is the answer to this very question."""

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from steersman.contracts.planning.words import LongText, ShortText
from steersman.contracts.replies import ReplyContract
from steersman.judges.replies.agent_reply import FieldRule, check_field_rules
from steersman.machines.task.documents.words import FileIntent, TaskPath

TaskReplyTexts = Annotated[tuple[LongText, ...], Meta(max_length=50)]
TaskReplyLines = Annotated[tuple[ShortText, ...], Meta(max_length=100)]


class ProposedQuestion(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A question to the person."""

    text: LongText
    blocking: bool


class ProposedFile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A file that will be touched."""

    path: TaskPath
    intent: FileIntent
    summary: Annotated[str, Meta(max_length=400)]


class TaskPlannerReply(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A draft of the plan, whole; what is not known is asked."""

    nonce: str
    title: ShortText
    brief: LongText
    requirements: TaskReplyLines
    in_scope: TaskReplyLines
    out_of_scope: TaskReplyLines
    steps: TaskReplyLines
    risks: TaskReplyLines
    assumptions: TaskReplyLines
    acceptance_criteria: TaskReplyLines
    files: Annotated[tuple[ProposedFile, ...], Meta(max_length=500)]
    test_strategy: Annotated[str, Meta(max_length=4000)]
    test_cases: TaskReplyLines
    questions: Annotated[tuple[ProposedQuestion, ...], Meta(max_length=20)]


class PlanCommentReply(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What another planner thinks of the draft."""

    nonce: str
    ready: bool  # nothing below has to be settled first
    comment: LongText
    concerns: TaskReplyTexts
    questions: Annotated[tuple[ProposedQuestion, ...], Meta(max_length=20)]


class PlanReviewerReply(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A verdict on a plan."""

    nonce: str
    decision: Literal["accept", "needs_changes", "blocked"]
    summary: LongText
    blocking_issues: TaskReplyTexts
    suggestions: TaskReplyTexts


class TaskCoderReply(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the coder says of its own work; the change itself is what git sees."""

    nonce: str
    status: Literal["done", "plan_unclear", "scope_mismatch"]
    summary: LongText
    missing: TaskReplyTexts  # what of the plan is unclear, or which files it lacks


class CodeReviewerReply(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A verdict on a change."""

    nonce: str
    decision: Literal["approve", "needs_changes", "plan_flawed"]
    summary: LongText
    blocking_issues: TaskReplyTexts
    plan_issues: TaskReplyTexts
    suggestions: TaskReplyTexts


def _plan_facts(reply: TaskPlannerReply) -> dict[str, Any]:
    blocking_count = sum(question.blocking for question in reply.questions)
    return {"files": len(reply.files), "questions": len(reply.questions), "blocking": blocking_count}


def _comment_facts(reply: PlanCommentReply) -> dict[str, Any]:
    blocking_count = sum(question.blocking for question in reply.questions)
    return {"ready": reply.ready, "concerns": len(reply.concerns), "blocking": blocking_count}


def _decision_facts(reply: PlanReviewerReply | CodeReviewerReply) -> dict[str, Any]:
    return {"decision": reply.decision}


TASK_REPLY_CONTRACTS = {
    "task_planner": ReplyContract(TaskPlannerReply, facts=_plan_facts),
    "plan_comment": ReplyContract(
        PlanCommentReply,
        check_field_rules(FieldRule("ready", word=True, other="concerns", filled=False)),
        _comment_facts,
    ),
    "plan_reviewer": ReplyContract(
        PlanReviewerReply,
        check_field_rules(
            FieldRule("decision", "accept", "blocking_issues", filled=False),
            FieldRule("decision", "needs_changes", "blocking_issues", filled=True),
            FieldRule("decision", "blocked", "blocking_issues", filled=True),
        ),
        _decision_facts,
    ),
    "task_coder": ReplyContract(
        TaskCoderReply,
        check_field_rules(
            FieldRule("status", "plan_unclear", "missing", filled=True),
            FieldRule("status", "scope_mismatch", "missing", filled=True),
        ),
        lambda reply: {"status": reply.status},
        keeps_outside_commands=True,
    ),
    "code_reviewer": ReplyContract(
        CodeReviewerReply,
        check_field_rules(
            FieldRule("decision", "approve", "blocking_issues", filled=False),
            FieldRule("decision", "approve", "plan_issues", filled=False),
            FieldRule("decision", "needs_changes", "blocking_issues", filled=True),
            FieldRule("decision", "plan_flawed", "plan_issues", filled=True),
        ),
        _decision_facts,
    ),
}
