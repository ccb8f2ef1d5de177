"""What agents must answer with where more than words are wanted, and the JSON Schemas an agent is shown.

**Invariant:** shapes only: the rules that join two fields are judged in `judges.reply`.
"""

from functools import cache
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from steersman.contracts.planning.words import Area, Line, Review
from steersman.contracts.task.replies import (
    CodeReviewerReply,
    PlanCommentReply,
    PlanReviewerReply,
    TaskCoderReply,
    TaskPlannerReply,
)

NOT_BLANK = r"\S"  # a line of spaces is not a finding; that it can be seen is judged too
Text = Annotated[str, Meta(min_length=1, max_length=4000, pattern=NOT_BLANK)]
Texts = Annotated[tuple[Text, ...], Meta(max_length=50)]
Word = Annotated[str, Meta(max_length=4000)]
Words = Annotated[tuple[Word, ...], Meta(min_length=1, max_length=64)]
Ids = Annotated[tuple[Annotated[str, Meta(pattern="^f-[0-9a-f]{10}$")], ...], Meta(max_length=200)]
NO_COMMAND = "no command: absence of evidence is failure"


class ReviewerReply(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The reviewer's verdict on a diff."""

    nonce: str
    decision: Literal["approve", "changes_requested"]
    summary: Text
    must_fix: Texts
    nice_to_have: Texts
    tests: Texts
    security: Texts
    fixed: Ids = ()  # open findings that are fixed now; one that is neither here nor in must_fix stays open


class TesterReply(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The commands a tester proposes beside the project's own checks."""

    nonce: str
    test_plan: Text
    commands: Annotated[tuple[Words, ...], Meta(min_length=1, max_length=20)]
    expected_results: Texts


class PlannerReply(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What an agent proposes for the draft of an intent: words, scope and caution; never a command more."""

    nonce: str
    title: Annotated[str, Meta(min_length=5, max_length=160, pattern=NOT_BLANK)]
    description: Annotated[str, Meta(max_length=4000)]
    success_criteria: Annotated[tuple[Line, ...], Meta(min_length=1, max_length=20)]
    non_goals: Annotated[tuple[Line, ...], Meta(max_length=20)]
    files: Annotated[tuple[Line, ...], Meta(max_length=200)]
    areas: Annotated[tuple[Area, ...], Meta(max_length=8)]
    risk_drivers: Annotated[tuple[Line, ...], Meta(max_length=20)]
    requires_review: Annotated[tuple[Review, ...], Meta(max_length=6)]
    leave_out: Annotated[tuple[Line, ...], Meta(max_length=80)]  # ids of planned commands


REPLIES: dict[str, type[msgspec.Struct]] = {
    "reviewer": ReviewerReply,
    "tester": TesterReply,
    "planner": PlannerReply,
    "task_planner": TaskPlannerReply,
    "plan_comment": PlanCommentReply,
    "plan_reviewer": PlanReviewerReply,
    "task_coder": TaskCoderReply,
    "code_reviewer": CodeReviewerReply,
}


@cache
def reply_schema(contract: str) -> dict[str, Any]:
    """The JSON Schema of one reply, without references, ready to be shown to an agent.

    It asks for every field; one that has a default may be left out all the same.
    """
    _, components = msgspec.json.schema_components((REPLIES[contract],))
    shape = _whole(components[REPLIES[contract].__name__], components)
    asked = {name: {k: v for k, v in f.items() if k != "default"} for name, f in shape["properties"].items()}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **shape,
        "properties": asked,
        "required": list(asked),
    }


def _whole(schema: Any, components: dict[str, Any]) -> Any:
    """The schema with what it refers to in the place of the reference."""
    match schema:
        case {"$ref": str(ref)}:
            return _whole(components[ref.rpartition("/")[2]], components)
        case dict():
            return {name: _whole(part, components) for name, part in schema.items()}
        case list():
            return [_whole(part, components) for part in schema]
        case _:
            return schema
