"""What agents must answer with where more than words are wanted, and the JSON Schemas an agent is shown.

The replies here are those that several machines use. A machine's own are in its folder, named by its package.
"""

from collections.abc import Callable
from functools import cache
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from steersman.contracts.planning.words import ProjectArea, ReviewCategory, ShortText

NOT_BLANK_PATTERN = r"\S"  # a line of spaces is not a finding; that it can be seen is judged too
ReplyText = Annotated[str, Meta(min_length=1, max_length=4000, pattern=NOT_BLANK_PATTERN)]
ReplyTexts = Annotated[tuple[ReplyText, ...], Meta(max_length=50)]
ReplyWord = Annotated[str, Meta(max_length=4000)]
ReplyArgv = Annotated[tuple[ReplyWord, ...], Meta(min_length=1, max_length=64)]
FindingIds = Annotated[tuple[Annotated[str, Meta(pattern="^f-[0-9a-f]{10}$")], ...], Meta(max_length=200)]
NO_COMMAND_PROBLEM = "no command: absence of evidence is failure"


class ReviewerReply(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The reviewer's verdict on a diff."""

    nonce: str
    decision: Literal["approve", "changes_requested"]
    summary: ReplyText
    must_fix: ReplyTexts
    nice_to_have: ReplyTexts
    tests: ReplyTexts
    security: ReplyTexts
    fixed: FindingIds = ()  # open findings that are fixed now; one that is neither here nor in must_fix stays open


class TesterReply(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The commands a tester proposes beside the project's own checks."""

    nonce: str
    test_plan: ReplyText
    commands: Annotated[tuple[ReplyArgv, ...], Meta(min_length=1, max_length=20)]
    expected_results: ReplyTexts


class PlannerReply(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What an agent proposes for the draft of an intent: words, scope and caution; never a command more."""

    nonce: str
    title: Annotated[str, Meta(min_length=5, max_length=160, pattern=NOT_BLANK_PATTERN)]
    description: Annotated[str, Meta(max_length=4000)]
    success_criteria: Annotated[tuple[ShortText, ...], Meta(min_length=1, max_length=20)]
    non_goals: Annotated[tuple[ShortText, ...], Meta(max_length=20)]
    files: Annotated[tuple[ShortText, ...], Meta(max_length=200)]
    areas: Annotated[tuple[ProjectArea, ...], Meta(max_length=8)]
    risk_drivers: Annotated[tuple[ShortText, ...], Meta(max_length=20)]
    requires_review: Annotated[tuple[ReviewCategory, ...], Meta(max_length=6)]
    leave_out: Annotated[tuple[ShortText, ...], Meta(max_length=80)]  # ids of planned commands


def _find_no_problems(_: dict[str, Any]) -> tuple[str, ...]:
    return ()


def _list_no_facts(_: Any) -> dict[str, Any]:
    return {}


class ReplyContract(msgspec.Struct, frozen=True, eq=False):
    """What one kind of call has to be answered with."""

    reply: type[msgspec.Struct]
    find_problems: Callable[[dict[str, Any]], tuple[str, ...]] = (
        _find_no_problems  # of what joins two fields, which a JSON Schema cannot say in words an agent can act on
    )
    facts: Callable[[Any], dict[str, Any]] = (
        _list_no_facts  # what guards need of it: words and counts, never texts
    )
    keeps_outside_commands: bool = (
        False  # commands outside a frozen plan are facts, and do not deny the reply
    )

    @property
    def schema(self) -> dict[str, Any]:
        """The JSON Schema that an agent is shown."""
        return reply_schema(self.reply)


@cache
def reply_schema(reply: type[msgspec.Struct]) -> dict[str, Any]:
    """The JSON Schema of one reply, without references, ready to be shown to an agent.

    It asks for every field; one that has a default may be left out all the same.
    """
    _, components = msgspec.json.schema_components((reply,))
    shape = _inline_schema_refs(components[reply.__name__], components)
    properties = {
        name: {k: v for k, v in f.items() if k != "default"} for name, f in shape["properties"].items()
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **shape,
        "properties": properties,
        "required": list(properties),
    }


def _inline_schema_refs(schema: Any, components: dict[str, Any]) -> Any:
    """The schema with what it refers to in the place of the reference."""
    match schema:
        case {"$ref": str(ref)}:
            return _inline_schema_refs(components[ref.rpartition("/")[2]], components)
        case dict():
            return {name: _inline_schema_refs(part, components) for name, part in schema.items()}
        case list():
            return [_inline_schema_refs(part, components) for part in schema]
        case _:
            return schema


VerdictFinding = Annotated[str, Meta(min_length=1, pattern=NOT_BLANK_PATTERN)]


class PlainVerdict(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Yes or no, why, and what has to change."""

    decision: Literal["approve", "changes_requested"]
    summary: ReplyText
    must_fix: Annotated[tuple[VerdictFinding, ...], Meta(max_length=200)]


@cache
def plain_verdict_schema() -> dict[str, Any]:
    """Its JSON Schema, without references."""
    _, components = msgspec.json.schema_components((PlainVerdict,))
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **components["PlainVerdict"]}
