"""An agent's answer against its contract: parsed, or refused with all its problems.

**Invariant:** pure and total: no text makes it raise, and nothing doubtful is repaired or guessed. A text is read once:
what was checked is what is returned.
"""

import hashlib
import re
import unicodedata
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import msgspec

from steersman.contracts.replies import (
    NO_COMMAND_PROBLEM,
    NOT_BLANK_PATTERN,
    PlainVerdict,
    PlannerReply,
    ReplyContract,
    ReviewerReply,
    TesterReply,
    plain_verdict_schema,
)
from steersman.judges.replies.strict_json import (
    JsonReading,
    RefusedReply,
    find_json_schema_problems,
    read_strict_json,
)
from steersman.judges.text import has_visible_text

__all__ = [
    "SHARED_REPLY_CONTRACTS",
    "FieldRule",
    "ParsedReply",
    "RefusedReply",
    "check_field_rules",
    "find_text_schema_problems",
    "find_unfounded_fixes",
    "finding_id",
    "identify_finding",
    "parse_reply",
    "parse_verdict",
]

JsonObject = dict[str, Any]
MAX_REPLY_PROBLEMS = 100  # problems that are listed


class ParsedReply(msgspec.Struct, frozen=True):
    """The answer fits: `value` is the struct of its contract."""

    value: msgspec.Struct


def parse_reply(text: str, contract: ReplyContract, nonce: str | None) -> ParsedReply | RefusedReply:
    """The reply as its contract's struct, or everything that is wrong with it; without a nonce any or none will do."""
    reading = read_strict_json(text)
    if nonce is None and reading.value is not None:
        reading = msgspec.structs.replace(reading, value={"nonce": "", **reading.value})
    return _check_reply_contract(reading, contract.reply, contract.schema, contract.find_problems, nonce)


def parse_verdict(text: str) -> ParsedReply | RefusedReply:
    """A verdict in its plainest form: decision, summary and must_fix, and nothing beside them."""
    return _check_reply_contract(
        read_strict_json(text), PlainVerdict, plain_verdict_schema(), _find_reviewer_problems, None
    )


def find_text_schema_problems(text: str, schema: JsonObject) -> tuple[str, ...]:
    """Everything that is wrong with a text, read as strictly as a reply, under any JSON Schema; nothing when it fits."""
    reading = read_strict_json(text)
    problems = [] if reading.value is None else find_json_schema_problems(reading.value, schema)
    return _limit_listed_problems((*reading.problems, *map(str, problems)))


def _check_reply_contract(
    reading: JsonReading,
    contract_type: type[msgspec.Struct],
    schema: JsonObject,
    rule: Callable[[JsonObject], tuple[str, ...]],
    nonce: str | None,
) -> ParsedReply | RefusedReply:
    if reading.value is None:
        return RefusedReply(_limit_listed_problems(reading.problems))
    rule_problems = (
        *_find_nonce_problem(reading.value, nonce),
        *_find_invisible_texts(reading.value, schema),
        *rule(reading.value),
    )
    try:
        value = msgspec.convert(reading.value, type=contract_type)
    except msgspec.ValidationError as error:
        # What an agent is asked for and what is refused without it differ by the fields that have a default.
        needed = [field.encode_name for field in msgspec.structs.fields(contract_type) if field.required]
        contract_problems = tuple(
            map(str, find_json_schema_problems(reading.value, {**schema, "required": needed}))
        )
        return RefusedReply(
            _limit_listed_problems(
                (*reading.problems, *(contract_problems or (f"reply: {error}",)), *rule_problems)
            )
        )
    problems = (*reading.problems, *rule_problems)
    return RefusedReply(_limit_listed_problems(problems)) if problems else ParsedReply(value)


def _limit_listed_problems(problems: tuple[str, ...]) -> tuple[str, ...]:
    return (
        (*problems[:MAX_REPLY_PROBLEMS], "reply: and more problems")
        if len(problems) > MAX_REPLY_PROBLEMS
        else problems
    )


def _find_nonce_problem(value: JsonObject, nonce: str | None) -> tuple[str, ...]:
    if nonce is not None and isinstance(value.get("nonce"), str) and value["nonce"] != nonce:
        return ("nonce: is not the one given with this request",)
    return ()


def _find_invisible_texts(value: JsonObject, schema: JsonObject) -> tuple[str, ...]:
    """Texts that are not empty but show nothing. Where the contract asks for words, a reader has to see them."""
    return tuple(
        f"{where}: holds nothing that can be seen"
        for where, text in _find_worded_texts(value, schema, "")
        if text.strip() and not has_visible_text(text)
    )


def _find_worded_texts(value: Any, schema: JsonObject, where: str) -> Iterator[tuple[str, str]]:
    """Every text of which the contract asks that it says something, with its place."""
    match value:
        case str() if schema.get("pattern") == NOT_BLANK_PATTERN:
            yield where, value
        case list():
            for index, item in enumerate(value):
                yield from _find_worded_texts(item, schema.get("items", {}), f"{where}[{index}]")
        case dict():
            for name, field in schema.get("properties", {}).items():
                if name in value:
                    yield from _find_worded_texts(value[name], field, f"{where}.{name}".removeprefix("."))


class FieldRule(NamedTuple):
    """What one word says of a list beside it: that something is in it, or that nothing is."""

    field: str
    word: str | bool
    other: str
    filled: bool


def check_field_rules(*rules: FieldRule) -> Callable[[JsonObject], tuple[str, ...]]:
    """Builds a function that lists the rules which a reply breaks. The schema reports a list of the wrong type."""

    def find_broken_rules(value: JsonObject) -> tuple[str, ...]:
        return tuple(
            _explain_broken_rule(rule)
            for rule in rules
            if value.get(rule.field) == rule.word
            and isinstance(value.get(rule.other), list)
            and bool(value[rule.other]) != rule.filled
        )

    return find_broken_rules


def _explain_broken_rule(rule: FieldRule) -> str:
    word = "true" if rule.word is True else rule.word
    if rule.filled:
        return f"{rule.field}: {word} needs at least one {rule.other}"
    return f"{rule.field}: {word} contradicts a {rule.other} that is not empty"


def _find_tester_problems(value: JsonObject) -> tuple[str, ...]:
    return (f"commands: {NO_COMMAND_PROBLEM}",) if value.get("commands") == [] else ()


_find_reviewer_problems = check_field_rules(
    FieldRule("decision", "approve", "must_fix", filled=False),
    FieldRule("decision", "changes_requested", "must_fix", filled=True),
)
SHARED_REPLY_CONTRACTS = {  # a machine's own are in its package
    "reviewer": ReplyContract(ReviewerReply, _find_reviewer_problems),
    "tester": ReplyContract(TesterReply, _find_tester_problems),
    "planner": ReplyContract(PlannerReply),
}


# ── findings ────────────────────────────────────────────────────────────────────────────────────────────────────────────

# Stable names for a reviewer's findings, so that a loop knows "same finding, still open".
#
# **Invariant:** the id of a new finding depends on the words alone: not on case, spacing, punctuation, round or order.


_LEADING_FINDING_ID = re.compile(r"\s*\[?(?P<id>f-[0-9a-f]{10})\]?[\s:.,–-]*")


def finding_id(text: str) -> str:
    """The id of a finding: `f-` and ten hex digits."""
    words = _normalize_finding_words(text)
    return "f-" + hashlib.sha256(words.encode("utf-8", "backslashreplace")).hexdigest()[:10]


def identify_finding(text: str, open_before: Mapping[str, object]) -> tuple[str, str]:
    """The id of a finding and its words: a text that begins with the id of an open one speaks of that one."""
    match = _LEADING_FINDING_ID.match(text)
    if match is not None and match["id"] in open_before:
        return match["id"], text[match.end() :].strip()
    return finding_id(text), text


def find_unfounded_fixes(reply: ReviewerReply, open_before: Mapping[str, object]) -> tuple[str, ...]:
    """What a reviewer says of findings that cannot be: fixed without having been open, or fixed and to be fixed."""
    unknown_ids = [finding for finding in dict.fromkeys(reply.fixed) if finding not in open_before]
    fix_ids = {identify_finding(text, open_before)[0] for text in reply.must_fix}
    ids = [finding for finding in dict.fromkeys(reply.fixed) if finding in fix_ids and finding in open_before]
    open_ids = ", ".join(open_before) or "none"
    return (
        *(f"fixed: {finding} is not an open finding; open are {open_ids}" for finding in unknown_ids),
        *(f"fixed: {finding} is in must_fix too; say one of both" for finding in ids),
    )


def _normalize_finding_words(text: str) -> str:
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    spaced = "".join(" " if _is_noise_character(char) else char for char in folded)
    # A finding of punctuation alone ("???") still has a name of its own.
    return " ".join(spaced.split()) or " ".join(folded.split())


def _is_noise_character(char: str) -> bool:
    """Spaces, controls, punctuation and accents standing alone (a backtick is one); not symbols such as `<`."""
    category = unicodedata.category(char)
    return category[0] in "PZC" or category == "Sk"
