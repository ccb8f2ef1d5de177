"""An oracle for intents: which red lines one breaks, worked out from plain values alone.

It shares no code with `steersman.judges`: its own walk, its own reading of the specification, the rfc8785 package for bytes.
Payload keys it knows by having seen them planted, so that how names are folded is not asked of the code under test.
"""

import hashlib
from collections.abc import Iterator
from typing import Any

import rfc8785

GRAVE = {"high", "critical"}


def keys(value: Any) -> Iterator[str]:
    """Every key at any depth."""
    waiting = [value]
    while waiting:
        here = waiting.pop()
        if isinstance(here, dict):
            yield from here
            waiting.extend(here.values())
        elif isinstance(here, list):
            waiting.extend(here)


def broken(
    raw: Any, policy: Any, risks: dict[str, str], known: dict[str, set[str]], planted: set[str]
) -> set[str]:
    """The red lines that an intent breaks; `risks` and `known` are the registry's, `planted` the payload keys."""
    found = set()
    if not isinstance(raw, dict):
        return {"I1", "I5"}
    if any(key in planted for key in keys(raw)) or _group(raw, "constraints").get("execution") != "forbidden":
        found.add("I1")
    asking = _group(raw, "interaction")
    if asking.get("mode") == "full_auto" and not (
        type(asking.get("question_budget")) is int
        and asking["question_budget"] == 0
        and asking.get("question_policy") == "never"
    ):
        found.add("I2")
    commands = raw.get("planned_commands")
    commands = commands if isinstance(commands, list) else []
    alone = "full_auto" in (asking.get("mode"), policy.get("mode") if isinstance(policy, dict) else None)
    if alone and _dangers(raw, commands, risks) & GRAVE:
        found.add("I3")
    if not all(_is_supported(command) for command in commands):
        found.add("I4")
    promises = _group(raw, "constraints")
    if promises.get("no_fabrication") is not True or promises.get("registry_only") is not True:
        found.add("I5")
    if not all(_is_known(raw, *place, known) for place in _PLACES):
        found.add("I5")
    return found


_PLACES = (
    ("selected_workflows", "workflow_id", "workflow"),
    ("selected_agents", "agent_id", "agent"),
    ("planned_commands", "command_id", "command"),
)


def _group(raw: dict[str, Any], name: str) -> dict[str, Any]:
    found = raw.get(name)
    return found if isinstance(found, dict) else {}


def _dangers(raw: dict[str, Any], commands: list[Any], risks: dict[str, str]) -> set[Any]:
    said = [_group(raw, "risk").get("overall")]
    for command in commands:
        if isinstance(command, dict):
            said.append(command.get("risk_level"))
            id_ = command.get("command_id")
            said.append(risks.get(id_) if isinstance(id_, str) else None)
    return {word for word in said if isinstance(word, str)}


def _is_supported(command: Any) -> bool:
    refs = command.get("evidence_refs") if isinstance(command, dict) else None
    return isinstance(refs, list) and any(isinstance(ref, str) and ref.strip() for ref in refs)


def _is_known(raw: dict[str, Any], group: str, name: str, kind: str, known: dict[str, set[str]]) -> bool:
    listed = raw.get(group)
    for item in listed if isinstance(listed, list) else []:
        id_ = item.get(name) if isinstance(item, dict) else None
        if not isinstance(id_, str) or id_ not in known[kind]:
            return False
    return True


def is_sealed(raw: Any) -> bool:
    """Whether the checksum in a document is that of its bytes."""
    audit = raw.get("audit") if isinstance(raw, dict) else None
    if not isinstance(audit, dict):
        return False
    rest = {**raw, "audit": {k: v for k, v in audit.items() if k != "checksum"}}
    try:
        data = rfc8785.dumps(rest)
    except (rfc8785.CanonicalizationError, RecursionError, UnicodeEncodeError):
        return False
    return audit.get("checksum") == hashlib.sha256(data).hexdigest()
