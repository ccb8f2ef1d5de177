"""An agent's answer against its contract: parsed, or refused with all its problems.

**Invariant:** pure and total: no text makes it raise, and nothing doubtful is repaired or guessed.
"""

from collections.abc import Callable
from typing import Any

import msgspec

from steersman.contracts.replies import NO_COMMAND, REPLIES, reply_schema
from steersman.judges.problems import problems_of
from steersman.judges.strict_json import Refused, read_object

__all__ = ["Parsed", "Refused", "parse_reply"]

Plain = dict[str, Any]


class Parsed(msgspec.Struct, frozen=True):
    """The answer fits: `value` is the struct of its contract."""

    value: msgspec.Struct


def parse_reply(text: str, contract: str, nonce: str) -> Parsed | Refused:
    """The reply as its contract's struct, or everything that is wrong with it."""
    if contract not in REPLIES:
        return Refused((f"contract: {contract!r} is unknown; known are {', '.join(sorted(REPLIES))}",))
    found = read_object(text)
    if isinstance(found, Refused):
        return found
    broken = (*_nonce(found.value, nonce), *_rules(found.value, contract))
    try:
        value = msgspec.json.decode(found.body, type=REPLIES[contract])
    except msgspec.DecodeError as error:
        listed = tuple(map(str, problems_of(found.value, reply_schema(contract))))
        return Refused((*(listed or (f"reply: {error}",)), *broken))
    return Refused(broken) if broken else Parsed(value)


def _nonce(value: Plain, nonce: str) -> tuple[str, ...]:
    if isinstance(value.get("nonce"), str) and value["nonce"] != nonce:
        return ("nonce: is not the one given with this request",)
    return ()


def _rules(value: Plain, contract: str) -> tuple[str, ...]:
    rule = _JOINED.get(contract)
    return rule(value) if rule else ()


def _reviewer(value: Plain) -> tuple[str, ...]:
    decision, must_fix = value.get("decision"), value.get("must_fix")
    if not isinstance(must_fix, list):
        return ()
    if decision == "approve" and must_fix:
        return ("decision: approve contradicts a must_fix that is not empty",)
    if decision == "changes_requested" and not must_fix:
        return ("decision: changes_requested needs at least one must_fix",)
    return ()


def _tester(value: Plain) -> tuple[str, ...]:
    return (f"commands: {NO_COMMAND}",) if value.get("commands") == [] else ()


# The rules that join fields, which a JSON Schema cannot say in words an agent can act on.
_JOINED: dict[str, Callable[[Plain], tuple[str, ...]]] = {"reviewer": _reviewer, "tester": _tester}
