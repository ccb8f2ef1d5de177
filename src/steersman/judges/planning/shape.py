"""Every way in which an intent or a policy breaks its schema, in our words: field, line, what is wrong, what to write.

**Invariant:** total: any plain value is answered, and what is called fit has been decoded.
"""

from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, TypeVar

import msgspec

from steersman.contracts.planning.decisions import Problem
from steersman.contracts.planning.documents import DOCUMENTS, document_schema
from steersman.contracts.planning.words import FORMER
from steersman.judges.planning.payload import is_fathomable
from steersman.judges.planning.places import NO_LINES, Lines, Path, problem
from steersman.judges.planning.schema import Schema, part
from steersman.judges.problems import errors_of, validator_of
from steersman.judges.text import clip, well_formed
from steersman.kernel.canonical import encode, unacceptable

T = TypeVar("T", bound=msgspec.Struct)

MOST = 300

_KINDS = {
    "string": "text",
    "integer": "a whole number",
    "boolean": "true or false",
    "array": "a list",
    "object": "a group of fields",
    "null": "nothing",
    "number": "a number with a fraction",
}
_AN_ID = "an id of the registry has 3 to 80 small letters, digits and _, such as wf_bug_fix; `steersman registry list` has them all"
# What to write, by the name of the field.
_FORMS = {
    "id": "intent_ and then 6 to 64 small letters, digits or _, such as intent_fix_login",
    "version": "three numbers, such as 1.0.0",
    "created_at": "a moment in UTC, such as 2026-01-25T09:30:00Z",
    "checksum": "run `steersman intent seal FILE`, which works it out",
    "audit": "created_by, source and checksum; `steersman intent seal FILE` works the checksum out",
    "evidence_refs": "a reference, such as fact://test_command/pytest; `steersman facts` has those of this project",
    "workflow_id": _AN_ID,
    "agent_id": _AN_ID,
    "command_id": _AN_ID,
    "forbidden_operations": "an effect or the id of a command, such as deploy or cmd_delete_files",
    "policy_id": "3 to 80 small letters, digits and _, beginning with a letter, such as policy_team",
    "execution": "execution: forbidden",
    "no_fabrication": "no_fabrication: true",
    "registry_only": "registry_only: true",
    "requires_review": "a list of security, data, release, architecture, cost, compliance; it may be empty",
    "max_cost_usd": "whole dollars, from 0 to 10000",
}
# Of a registry's content: an id of its kind.
_IDS = {
    "workflow": "wf_bug_fix",
    "agent": "agent_coder",
    "command": "cmd_run_tests",
    "rule": "rule_two_reviews",
}


def schema_problems(raw: Any, lines: Lines = NO_LINES, name: str = "execution_intent") -> tuple[Problem, ...]:
    """All that is wrong with the form of a document, in the order of its schema; nothing when it fits."""
    if not is_fathomable(raw):
        return (problem((), "is nested too deeply or too large to be read", "make it smaller", lines),)
    odd = unacceptable(raw, "document")
    if odd is None and _plainly_fits(raw, DOCUMENTS[name]):
        return ()
    schema = _schema(name)
    found: dict[tuple[Path, str], Problem] = {}
    for error in errors_of(raw if odd is None else _encodable(raw), _validator(name)):
        for path, what, fix in _spelled(error, schema, name):
            kind = "" if error.kind.name in _GRADED else error.kind.name
            found.setdefault((path, kind), problem(path, what, fix, lines))
    if odd is not None:
        found[(), "odd"] = problem((), f"holds what no document may hold: {clip(odd, 400)}", "use text, whole numbers and true or false", lines)  # fmt: skip
    if not found and (why := _undecoded(raw, DOCUMENTS[name])):
        found[(), "decoded"] = problem((), why, "correct the field that is named", lines)
    return tuple(found.values())[:MOST]


def fitting(raw: Any, shape: type[T], name: str) -> T | None:
    """The document as a value, where nothing is wrong with its form."""
    return None if schema_problems(raw, name=name) else msgspec.convert(raw, shape)


@cache
def _schema(name: str) -> Schema:
    return document_schema(name)


@cache
def _validator(name: str) -> Any:
    return validator_of(_schema(name))


def _plainly_fits(raw: Any, shape: type[msgspec.Struct]) -> bool:
    """The quick answer for a document without problems: listing them costs more than all the rest.

    Both readers of patterns agree on plain ASCII; Python's takes a newline at the end and digits of any script."""
    data = encode(raw)
    return data.isascii() and b"\\n" not in data and b"\\u" not in data and not _undecoded(raw, shape)


def _encodable(value: Any) -> Any:
    """The same with every lone surrogate written out, so that the rest can be looked at."""
    match value:
        case str():
            return well_formed(value)
        case dict():
            return {well_formed(str(key)): _encodable(item) for key, item in value.items()}
        case list():
            return [_encodable(item) for item in value]
        case _:
            return value


def _undecoded(raw: Any, shape: type[msgspec.Struct]) -> str:
    try:
        msgspec.convert(raw, shape)
    except msgspec.ValidationError as error:
        return str(error)
    return ""


Told = tuple[Path, str, str]


def _spelled(error: Any, schema: Schema, of: str) -> Iterator[Told]:
    path: Path = tuple(error.instance_path)
    match error.kind.name:
        case "required":
            yield (*path, error.kind.property), "is missing", _form(error.kind.property, of) or "add it"
        case "additionalProperties":
            known = sorted(part(schema, path).get("properties", {}))
            yield from (
                ((*path, name), "is not a known field", _meant(name, known)) for name in error.kind.unexpected
            )
        case name:
            say = _SAYINGS.get(name, _otherwise)
            what, fix = say(error)
            yield path, what, fix or _form_at(path, of)


def _type(error: Any) -> tuple[str, str]:
    wanted, given = " or ".join(_KINDS[t] for t in error.kind.types), _kind_of(error.instance)
    quoted = given == "text" and error.kind.types != ["string"]
    return f"has to be {wanted}, and is {given}", "write it without quotes" if quoted else ""


def _kind_of(value: Any) -> str:
    match value:
        case None:
            return _KINDS["null"]
        case bool():
            return _KINDS["boolean"]
        case int():
            return _KINDS["integer"]
        case float():
            return _KINDS["number"]
        case str():
            return _KINDS["string"]
        case list():
            return _KINDS["array"]
        case _:
            return _KINDS["object"]


def _enum(error: Any) -> tuple[str, str]:
    options, given = error.kind.options, error.instance
    said = [str(o).lower() if isinstance(o, bool) else str(o) for o in options]
    if len(options) == 1:
        return f"has to be {said[0]}", f"write {said[0]}"
    what = f"{clip(ascii(given), 60) if isinstance(given, str) else _kind_of(given)} is not one of {', '.join(said)}"
    if not isinstance(given, str):
        return what, ""
    return what, f"`{given}` is called `{FORMER[given]}` here" if FORMER.get(given) in options else _meant(
        given, said
    )


def _pattern(error: Any) -> tuple[str, str]:
    if error.kind.pattern == r"\S":
        return "is blank", "say something"
    return f"{clip(ascii(error.instance), 60)} does not have the right form", ""


def _bound(words: str, fix: str) -> Callable[[Any], tuple[str, str]]:
    return lambda error: (words.replace("{}", str(error.kind.limit)), fix)


def _otherwise(error: Any) -> tuple[str, str]:
    return f"does not fit ({error.kind.name})", ""


_SAYINGS: dict[str, Callable[[Any], tuple[str, str]]] = {
    "type": _type,
    "enum": _enum,
    "pattern": _pattern,
    "minLength": _bound("is shorter than {} characters", "say more"),
    "maxLength": _bound("is longer than {} characters", "shorten it"),
    "minItems": _bound("needs at least {}", ""),
    "maxItems": _bound("has more than {}", "leave some out"),
    "minimum": _bound("is less than {}", ""),
    "maximum": _bound("is more than {}", ""),
}
_GRADED = frozenset(_SAYINGS)  # one of them is enough for one field


def _form(name: str, of: str) -> str:
    if name == "id" and of in _IDS:
        return f"3 to 80 small letters, digits and _, beginning with a letter, such as {_IDS[of]}"
    return _FORMS.get(name, "")


def _form_at(path: Path, of: str) -> str:
    return next((_form(p, of) for p in reversed(path) if isinstance(p, str)), "")


def _meant(word: str, known: list[str]) -> str:
    import difflib  # slow to import, and only for what is misspelt

    near = difflib.get_close_matches(word, known, 1, 0.6)
    return f"did you mean `{near[0]}`?" if near else f"known here are {', '.join(known)}"
