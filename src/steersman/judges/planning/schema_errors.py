"""Explains every way in which a planning document breaks its schema: field, line, what is wrong, what to write.

**Invariant:** total: any plain value gets an answer. A document without problems has been decoded. Where the schema says
nothing about a field, nothing is guessed.
"""

import re
from collections.abc import Collection
from functools import cache
from typing import Any, TypeVar

import msgspec

from steersman.contracts.planning.decisions import DocumentProblem
from steersman.contracts.planning.documents import PLANNING_DOCUMENTS, planning_document_schema
from steersman.contracts.planning.words import FORMER_WORDS
from steersman.judges.planning.payload import is_inspectable
from steersman.judges.planning.places import NO_FIELD_LINES, FieldLines, FieldPath, document_problem
from steersman.judges.replies.strict_json import (
    MAX_JSON_DEPTH,
    SchemaProblem,
    build_schema_validator,
    find_schema_errors,
    spell_schema_error,
    suggest_known_word,
)
from steersman.judges.text import clip_text
from steersman.kernel.canonical import encode_sorted_json, find_unacceptable_value

JsonSchema = dict[str, Any]
T = TypeVar("T", bound=msgspec.Struct)

MAX_SCHEMA_PROBLEMS = 300
_BOOLEAN_TEXTS = {"true": True, "false": False}
_INTEGER_TEXT = re.compile(r"-?(0|[1-9][0-9]{0,15})")

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
            document_problem((), "is nested too deeply or is too large to read", "make it smaller", lines),
        )
    if unacceptable_part := find_unacceptable_value(raw, "document"):
        message = f"holds what no document may hold: {clip_text(unacceptable_part, 400)}"
        return (document_problem((), message, "use text, whole numbers and true or false", lines),)
    if _is_plainly_valid(raw, PLANNING_DOCUMENTS[name]):
        return ()
    schema = planning_document_schema(name)
    problems: dict[FieldPath, DocumentProblem] = {}
    for error in find_schema_errors(raw, _cached_document_validator(name)):
        for problem in spell_schema_error(error):
            fix = _advise_fix(error, problem, schema, name)
            problems.setdefault(problem.path, document_problem(problem.path, problem.what, fix, lines))
    if not problems and (why := _find_decode_error(raw, PLANNING_DOCUMENTS[name])):
        problems[()] = document_problem((), why, "correct the field that the message names", lines)
    return tuple(problems.values())[:MAX_SCHEMA_PROBLEMS]


def convert_valid_document(raw: Any, shape: type[T], name: str) -> T | None:
    """The document as a value, where nothing is wrong with its form."""
    return None if find_schema_problems(raw, name=name) else msgspec.convert(raw, shape)


@cache
def _cached_document_validator(name: str) -> Any:
    return build_schema_validator(planning_document_schema(name))


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


def _advise_fix(error: Any, problem: SchemaProblem, schema: JsonSchema, document: str) -> str:
    """What to write instead."""
    match error.kind.name:
        case "required":
            return _advise_field(error.kind.property, document) or "add this field"
        case "additionalProperties":
            known_fields = find_schema_part(schema, problem.path[:-1]).get("properties", {})
            return suggest_known_word(str(problem.path[-1]), sorted(known_fields))
        case "enum" if isinstance(error.instance, str):
            options, value = error.kind.options, error.instance
            former = FORMER_WORDS.get(value)
            if former in options:
                return f"`{value}` is called `{former}` here"
            return suggest_known_word(value, [str(option) for option in options])
        case "type" if isinstance(error.instance, str):
            return "write it without quotes"
        case "pattern" if error.kind.pattern == r"\S":
            return "write at least one visible character"
        case _:
            return _advise_path(problem.path, document)


def _advise_field(name: str, document: str) -> str:
    if name == "id" and document in _EXAMPLE_IDS:
        return (
            f"3 to 80 small letters, digits and _, beginning with a letter, such as {_EXAMPLE_IDS[document]}"
        )
    return _FIELD_ADVICE.get(name, "")


def _advise_path(path: FieldPath, document: str) -> str:
    return next((_advise_field(p, document) for p in reversed(path) if isinstance(p, str)), "")


def find_schema_part(schema: JsonSchema, path: FieldPath) -> JsonSchema:
    """What a schema says about the field at a path; empty where it says nothing."""
    node = _resolve_schema_ref(schema, schema)
    for name in path:
        node = _resolve_schema_ref(schema, _child_schema(node, name))
    return node


def _child_schema(node: JsonSchema, name: str | int) -> JsonSchema:
    child = node.get("items", {}) if isinstance(name, int) else node.get("properties", {}).get(name, {})
    return child if isinstance(child, dict) else {}


def _resolve_schema_ref(schema: JsonSchema, node: JsonSchema) -> JsonSchema:
    while "$ref" in node:
        node = schema["$defs"][node["$ref"].removeprefix("#/$defs/")]
    return node


def convert_unquoted_scalars(
    value: Any, schema: JsonSchema, unquoted_paths: Collection[FieldPath], path: FieldPath = ()
) -> Any:
    """Text that was written without quotes, as a number or true or false exactly where the schema wants one."""
    match value:
        case dict() | list() if (
            len(path) >= MAX_JSON_DEPTH
        ):  # no schema reaches that depth, and the check of the document reports it
            return value
        case dict():
            return {
                key: convert_unquoted_scalars(item, schema, unquoted_paths, (*path, key))
                for key, item in value.items()
            }
        case list():
            return [
                convert_unquoted_scalars(item, schema, unquoted_paths, (*path, n))
                for n, item in enumerate(value)
            ]
        case str() if path in unquoted_paths:
            return _convert_scalar(value, find_schema_part(schema, path))
        case _:
            return value


def _convert_scalar(text: str, field_schema: JsonSchema) -> Any:
    if field_schema.get("type") == "integer" and _INTEGER_TEXT.fullmatch(text):
        return int(text)
    is_boolean = field_schema.get("type") == "boolean" or field_schema.get("enum") == [True]
    return _BOOLEAN_TEXTS.get(text, text) if is_boolean else text
