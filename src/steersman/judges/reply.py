"""An agent's answer against its contract: parsed, or refused with all its problems.

**Invariant:** pure and total: no text makes it raise, and nothing doubtful is repaired or guessed. A text is read once:
what was checked is what is returned.
"""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import msgspec

from steersman.contracts.replies import NO_COMMAND, NOT_BLANK, REPLIES, reply_schema
from steersman.contracts.verdicts import PLAIN, PlainVerdict, plain_schema
from steersman.judges.problems import problems_of
from steersman.judges.strict_json import Reading, Refused, read
from steersman.judges.text import visible

__all__ = ["Parsed", "Refused", "parse_reply", "parse_verdict", "schema_problems"]

Plain = dict[str, Any]
MOST = 100  # problems that are listed


class Parsed(msgspec.Struct, frozen=True):
    """The answer fits: `value` is the struct of its contract."""

    value: msgspec.Struct


def parse_reply(text: str, contract: str, nonce: str | None) -> Parsed | Refused:
    """The reply as its contract's struct, or everything that is wrong with it; without a nonce any or none will do."""
    if contract not in REPLIES:
        return Refused((f"contract: {contract!r} is unknown; known are {', '.join(sorted(REPLIES))}",))
    reading = read(text)
    if nonce is None and reading.value is not None:
        reading = msgspec.structs.replace(reading, value={"nonce": "", **reading.value})
    return _held(reading, REPLIES[contract], reply_schema(contract), _JOINED.get(contract, _nothing), nonce)


def parse_verdict(text: str) -> Parsed | Refused:
    """A verdict in its plainest form: decision, summary and must_fix, and nothing beside them."""
    return _held(read(text), PlainVerdict, plain_schema(), _JOINED[PLAIN], None)


def schema_problems(text: str, schema: Plain) -> tuple[str, ...]:
    """Everything that is wrong with a text, read as strictly as a reply, under any JSON Schema; nothing when it fits."""
    reading = read(text)
    found = [] if reading.value is None else problems_of(reading.value, schema)
    return _listed((*reading.problems, *map(str, found)))


def _held(
    reading: Reading,
    shape: type[msgspec.Struct],
    schema: Plain,
    rule: Callable[[Plain], tuple[str, ...]],
    nonce: str | None,
) -> Parsed | Refused:
    if reading.value is None:
        return Refused(_listed(reading.problems))
    broken = (*_nonce(reading.value, nonce), *_unseen(reading.value, schema), *rule(reading.value))
    try:
        value = msgspec.convert(reading.value, type=shape)
    except msgspec.ValidationError as error:
        # What an agent is asked for and what is refused without it differ by the fields that have a default.
        needed = [f.encode_name for f in msgspec.structs.fields(shape) if f.required]
        listed = tuple(map(str, problems_of(reading.value, {**schema, "required": needed})))
        return Refused(_listed((*reading.problems, *(listed or (f"reply: {error}",)), *broken)))
    wrong = (*reading.problems, *broken)
    return Refused(_listed(wrong)) if wrong else Parsed(value)


def _listed(problems: tuple[str, ...]) -> tuple[str, ...]:
    return (*problems[:MOST], "reply: and more problems") if len(problems) > MOST else problems


def _nonce(value: Plain, nonce: str | None) -> tuple[str, ...]:
    if nonce is not None and isinstance(value.get("nonce"), str) and value["nonce"] != nonce:
        return ("nonce: is not the one given with this request",)
    return ()


def _unseen(value: Plain, schema: Plain) -> tuple[str, ...]:
    """Texts that look empty without being so: where the contract asks for words, somebody has to be able to read them."""
    return tuple(
        f"{where}: holds nothing that can be seen"
        for where, text in _worded(value, schema, "")
        if text.strip() and not visible(text)
    )


def _worded(value: Any, schema: Plain, where: str) -> Iterator[tuple[str, str]]:
    """Every text of which the contract asks that it says something, with its place."""
    match value:
        case str() if schema.get("pattern") == NOT_BLANK:
            yield where, value
        case list():
            for n, item in enumerate(value):
                yield from _worded(item, schema.get("items", {}), f"{where}[{n}]")
        case dict():
            for name, field in schema.get("properties", {}).items():
                if name in value:
                    yield from _worded(value[name], field, f"{where}.{name}".removeprefix("."))


def _nothing(_: Plain) -> tuple[str, ...]:
    return ()


class _Rule(NamedTuple):
    """What one word says of a list beside it: that something is in it, or that nothing is."""

    field: str
    word: str | bool
    other: str
    filled: bool


def _rules(*rules: _Rule) -> Callable[[Plain], tuple[str, ...]]:
    """Which of these rules a reply breaks; a list that is none is told elsewhere."""

    def broken(value: Plain) -> tuple[str, ...]:
        return tuple(
            _told(rule)
            for rule in rules
            if value.get(rule.field) == rule.word
            and isinstance(value.get(rule.other), list)
            and bool(value[rule.other]) != rule.filled
        )

    return broken


def _told(rule: _Rule) -> str:
    word = "true" if rule.word is True else rule.word
    if rule.filled:
        return f"{rule.field}: {word} needs at least one {rule.other}"
    return f"{rule.field}: {word} contradicts a {rule.other} that is not empty"


def _tester(value: Plain) -> tuple[str, ...]:
    return (f"commands: {NO_COMMAND}",) if value.get("commands") == [] else ()


_reviewer = _rules(
    _Rule("decision", "approve", "must_fix", filled=False),
    _Rule("decision", "changes_requested", "must_fix", filled=True),
)
# The rules that join fields, which a JSON Schema cannot say in words an agent can act on.
_JOINED: dict[str, Callable[[Plain], tuple[str, ...]]] = {
    PLAIN: _reviewer,
    "reviewer": _reviewer,
    "tester": _tester,
    "plan_comment": _rules(_Rule("ready", word=True, other="concerns", filled=False)),
    "plan_reviewer": _rules(
        _Rule("decision", "accept", "blocking_issues", filled=False),
        _Rule("decision", "needs_changes", "blocking_issues", filled=True),
        _Rule("decision", "blocked", "blocking_issues", filled=True),
    ),
    "task_coder": _rules(
        _Rule("status", "plan_unclear", "missing", filled=True),
        _Rule("status", "scope_mismatch", "missing", filled=True),
    ),
    "code_reviewer": _rules(
        _Rule("decision", "approve", "blocking_issues", filled=False),
        _Rule("decision", "approve", "plan_issues", filled=False),
        _Rule("decision", "needs_changes", "blocking_issues", filled=True),
        _Rule("decision", "plan_flawed", "plan_issues", filled=True),
    ),
}
