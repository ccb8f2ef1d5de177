"""Every way in which an intent or a policy breaks its schema, in our words: field, line, what is wrong, what to write.

**Invariant:** total: any plain value is answered, and what is called fit has been decoded.
"""

from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, TypeVar

import msgspec

from steersman.contracts.planning.decisions import DocumentProblem
from steersman.contracts.planning.documents import PLANNING_DOCUMENTS, planning_document_schema
from steersman.contracts.planning.words import FORMER_WORDS
from steersman.judges.planning.payload import is_inspectable
from steersman.judges.planning.places import NO_FIELD_LINES, FieldLines, FieldPath, document_problem
from steersman.judges.planning.schema import JsonSchema, find_schema_part
from steersman.judges.replies.schema_problems import build_schema_validator, find_schema_errors
from steersman.judges.text import clip_text
from steersman.kernel.canonical import encode_sorted_json, find_unacceptable_value

T = TypeVar("T", bound=msgspec.Struct)

MAX_SCHEMA_PROBLEMS = 300

_TYPE_WORDS = {
    "string": "text",
    "integer": "a whole number",
    "boolean": "true or false",
    "array": "a list",
    "object": "a group of fields",
    "null": "nothing",
    "number": "a number with a fraction",
}
_JSON_TYPES = {type(None): "null", bool: "boolean", int: "integer", str: "string", list: "array"}
_CONTENT_ID_ADVICE = "an id of the registry has 3 to 80 small letters, digits and _, such as wf_bug_fix; `steersman registry list` has them all"
# What to write, by the name of the field.
_FIELD_ADVICE = {
    "id": "intent_ and then 6 to 64 small letters, digits or _, such as intent_fix_login",
    "version": "three numbers, such as 1.0.0",
    "created_at": "a moment in UTC, such as 2026-01-25T09:30:00Z",
    "checksum": "run `steersman intent seal FILE`, which works it out",
    "audit": "created_by, source and checksum; `steersman intent seal FILE` works the checksum out",
    "evidence_refs": "a reference, such as fact://test_command/pytest; `steersman facts` has those of this project",
    "workflow_id": _CONTENT_ID_ADVICE,
    "agent_id": _CONTENT_ID_ADVICE,
    "command_id": _CONTENT_ID_ADVICE,
    "forbidden_operations": "an effect or the id of a command, such as deploy or cmd_delete_files",
    "policy_id": "3 to 80 small letters, digits and _, beginning with a letter, such as policy_team",
    "execution": "execution: forbidden",
    "no_fabrication": "no_fabrication: true",
    "registry_only": "registry_only: true",
    "requires_review": "a list of security, data, release, architecture, cost, compliance; it may be empty",
    "max_cost_usd": "whole dollars, from 0 to 10000",
}
# Of a registry's content: an id of its kind.
_EXAMPLE_IDS = {
    "workflow": "wf_bug_fix",
    "agent": "agent_coder",
    "command": "cmd_run_tests",
    "rule": "rule_two_reviews",
}


def find_schema_problems(
    raw: Any, lines: FieldLines = NO_FIELD_LINES, name: str = "execution_intent"
) -> tuple[DocumentProblem, ...]:
    """All that is wrong with the form of a document, in the order of its schema; nothing when it fits."""
    if not is_inspectable(raw):
        return (
            document_problem((), "is nested too deeply or too large to be read", "make it smaller", lines),
        )
    if unacceptable_part := find_unacceptable_value(raw, "document"):
        message = f"holds what no document may hold: {clip_text(unacceptable_part, 400)}"
        return (document_problem((), message, "use text, whole numbers and true or false", lines),)
    if _is_plainly_valid(raw, PLANNING_DOCUMENTS[name]):
        return ()
    schema = _cached_document_schema(name)
    problems: dict[tuple[FieldPath, str], DocumentProblem] = {}
    for error in find_schema_errors(raw, _cached_document_validator(name)):
        for path, message, fix in _spell_schema_error(error, schema, name):
            kind = "" if error.kind.name in _ONE_PER_FIELD else error.kind.name
            problems.setdefault((path, kind), document_problem(path, message, fix, lines))
    if not problems and (why := _find_decode_error(raw, PLANNING_DOCUMENTS[name])):
        problems[(), "decoded"] = document_problem((), why, "correct the field that is named", lines)
    return tuple(problems.values())[:MAX_SCHEMA_PROBLEMS]


def convert_valid_document(raw: Any, shape: type[T], name: str) -> T | None:
    """The document as a value, where nothing is wrong with its form."""
    return None if find_schema_problems(raw, name=name) else msgspec.convert(raw, shape)


@cache
def _cached_document_schema(name: str) -> JsonSchema:
    return planning_document_schema(name)


@cache
def _cached_document_validator(name: str) -> Any:
    return build_schema_validator(_cached_document_schema(name))


def _is_plainly_valid(raw: Any, shape: type[msgspec.Struct]) -> bool:
    """The quick answer for a document without problems: listing them costs more than all the rest.

    Both readers of patterns agree on plain ASCII; Python's takes a newline at the end and digits of any script."""
    data = encode_sorted_json(raw)
    return data.isascii() and b"\\n" not in data and b"\\u" not in data and not _find_decode_error(raw, shape)


def _find_decode_error(raw: Any, shape: type[msgspec.Struct]) -> str:
    try:
        msgspec.convert(raw, shape)
    except msgspec.ValidationError as error:
        return str(error)
    return ""


SchemaProblemParts = tuple[FieldPath, str, str]


def _spell_schema_error(error: Any, schema: JsonSchema, document: str) -> Iterator[SchemaProblemParts]:
    path: FieldPath = tuple(error.instance_path)
    match error.kind.name:
        case "required":
            yield (
                (*path, error.kind.property),
                "is missing",
                _advise_field(error.kind.property, document) or "add it",
            )
        case "additionalProperties":
            known_fields = sorted(find_schema_part(schema, path).get("properties", {}))
            yield from (
                ((*path, name), "is not a known field", _suggest_known_word(name, known_fields))
                for name in error.kind.unexpected
            )
        case name:
            describe = _ERROR_DESCRIBERS.get(name, _describe_other_error)
            message, fix = describe(error)
            yield path, message, fix or _advise_path(path, document)


def _describe_type_error(error: Any) -> tuple[str, str]:
    wanted_types, given_type = (
        " or ".join(_TYPE_WORDS[t] for t in error.kind.types),
        _describe_value_type(error.instance),
    )
    is_quoted = given_type == "text" and error.kind.types != ["string"]
    return f"has to be {wanted_types}, and is {given_type}", "write it without quotes" if is_quoted else ""


def _describe_value_type(value: Any) -> str:
    return _TYPE_WORDS[_JSON_TYPES.get(type(value), "object")]


def _describe_enum_error(error: Any) -> tuple[str, str]:
    options, value = error.kind.options, error.instance
    choices = [str(o).lower() if isinstance(o, bool) else str(o) for o in options]
    if len(options) == 1:
        return f"has to be {choices[0]}", f"write {choices[0]}"
    message = f"{clip_text(ascii(value), 60) if isinstance(value, str) else _describe_value_type(value)} is not one of {', '.join(choices)}"
    if not isinstance(value, str):
        return message, ""
    return message, f"`{value}` is called `{FORMER_WORDS[value]}` here" if FORMER_WORDS.get(
        value
    ) in options else _suggest_known_word(value, choices)


def _describe_pattern_error(error: Any) -> tuple[str, str]:
    if error.kind.pattern == r"\S":
        return "is blank", "say something"
    return f"{clip_text(ascii(error.instance), 60)} does not have the right form", ""


def _make_bound_describer(words: str, fix: str) -> Callable[[Any], tuple[str, str]]:
    return lambda error: (words.replace("{}", str(error.kind.limit)), fix)


def _describe_other_error(error: Any) -> tuple[str, str]:
    return f"does not fit ({error.kind.name})", ""


_ERROR_DESCRIBERS: dict[str, Callable[[Any], tuple[str, str]]] = {
    "type": _describe_type_error,
    "enum": _describe_enum_error,
    "pattern": _describe_pattern_error,
    "minLength": _make_bound_describer("is shorter than {} characters", "say more"),
    "maxLength": _make_bound_describer("is longer than {} characters", "shorten it"),
    "minItems": _make_bound_describer("needs at least {}", ""),
    "maxItems": _make_bound_describer("has more than {}", "leave some out"),
    "minimum": _make_bound_describer("is less than {}", ""),
    "maximum": _make_bound_describer("is more than {}", ""),
}
_ONE_PER_FIELD = frozenset(_ERROR_DESCRIBERS)  # one of them is enough for one field


def _advise_field(name: str, document: str) -> str:
    if name == "id" and document in _EXAMPLE_IDS:
        return (
            f"3 to 80 small letters, digits and _, beginning with a letter, such as {_EXAMPLE_IDS[document]}"
        )
    return _FIELD_ADVICE.get(name, "")


def _advise_path(path: FieldPath, document: str) -> str:
    return next((_advise_field(p, document) for p in reversed(path) if isinstance(p, str)), "")


def _suggest_known_word(word: str, known_words: list[str]) -> str:
    import difflib  # slow to import, and only for what is misspelt

    close_matches = difflib.get_close_matches(word, known_words, 1, 0.6)
    return (
        f"did you mean `{close_matches[0]}`?" if close_matches else f"known here are {', '.join(known_words)}"
    )
