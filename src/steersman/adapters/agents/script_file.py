"""Reads a script file and finds everything wrong with it before anything runs.

**Invariant:** a script is whole or refused; every problem names file, line and field.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from steersman.adapters.agents.program_copies import project_program_path
from steersman.adapters.agents.script_step import edit_path_problem
from steersman.adapters.config.plain_yaml import PlainYaml, read_plain_yaml
from steersman.contracts.script import AgentScript, ScriptEdit, ScriptStep, script_schema
from steersman.errors import UserError
from steersman.judges.replies.schema_problems import SchemaProblem, find_json_schema_problems
from steersman.judges.replies.strict_json import RefusedReply, read_json_object

_SCRIPT_NUMBER = re.compile(r"0|[1-9][0-9]{0,15}")
_NUMBER_FIELDS = ("round", "attempt", "reset_in", "tokens", "micro_usd")
_SCRIPT_BOOLEANS = {"yes": True, "true": True, "no": False, "false": False}
_EDIT_FIELDS = {"write": {"text"}, "append": {"text"}, "delete": set(), "replace": {"find", "with"}}


def load_script(path: Path) -> AgentScript:
    """The script in a file; a UserError lists all its problems."""
    name = project_program_path(str(path))
    try:
        with path.open("rb") as file:
            document = read_plain_yaml(file.read(2 * 1024 * 1024), name)
    except OSError as error:
        raise UserError(
            f"cannot read the script {name}: {error.strerror}; correct `script` in steersman.toml"
        ) from None
    value = _convert_script_scalars(document.value)
    problems = find_json_schema_problems(value, script_schema())
    if problems:
        raise _script_error(name, document, problems)
    steps = {
        role: msgspec.convert(value[role], tuple[ScriptStep, ...]) for role in value if role != "version"
    }
    conflicts = tuple(_find_script_conflicts(steps))
    if conflicts:
        raise _script_error(name, document, conflicts)
    return AgentScript(roles=steps)


def _script_error(name: str, document: PlainYaml, problems: tuple[SchemaProblem, ...]) -> UserError:
    lines = [
        f"{name}, line {document.line_of(problem.path)}: {problem if problem.path else problem.what}"
        for problem in problems
    ]
    return UserError("\n".join(["the script cannot be used; correct it and try again:", *lines]))


def _convert_script_scalars(value: Any) -> Any:
    """The few numbers and yes-or-no words of a script, read by us; all other scalars stay text."""
    if not isinstance(value, dict):
        return value
    typed = {
        role: [_convert_step_scalars(step) for step in steps] if isinstance(steps, list) else steps
        for role, steps in value.items()
    }
    return {**typed, **({"version": 1} if value.get("version") == "1" else {})}


def _convert_step_scalars(step: Any) -> Any:
    if not isinstance(step, dict):
        return step
    numbers = {
        field: int(step[field])
        for field in _NUMBER_FIELDS
        if isinstance(step.get(field), str) and _SCRIPT_NUMBER.fullmatch(step[field])
    }
    process = step.get("process")
    booleans = (
        {"process": _SCRIPT_BOOLEANS[process]}
        if isinstance(process, str) and process in _SCRIPT_BOOLEANS
        else {}
    )
    return {**step, **numbers, **booleans}


def _find_script_conflicts(roles: dict[str, tuple[ScriptStep, ...]]) -> Iterator[SchemaProblem]:
    """What no schema says: rules that join fields, or steps."""
    for role, steps in roles.items():
        first_uses: dict[tuple[object, ...], int] = {}
        for index, step in enumerate(steps):
            earlier = first_uses.setdefault((step.mode, step.round, step.attempt), index)
            if earlier != index:
                yield SchemaProblem(
                    (role, index),
                    f"has the same mode, round and attempt as step {earlier}: which one is meant?",
                )
            yield from (
                SchemaProblem((role, index, *problem.path), problem.what)
                for problem in _find_step_problems(step)
            )


def _find_step_problems(step: ScriptStep) -> Iterator[SchemaProblem]:
    answers = [name for name in ("say", "reply", "json", "raw") if getattr(step, name) is not None]
    if len(answers) > 1:
        yield SchemaProblem((answers[1],), f"cannot stand beside `{answers[0]}`: a step has one answer")
    if step.nonce == "wrong" and step.reply is None and step.json is None:
        yield SchemaProblem(("nonce",), "only means something with `reply` or `json`")
    if step.error is None and (step.detail or step.reset_in is not None):
        yield SchemaProblem(("detail" if step.detail else "reset_in",), "only means something with `error`")
    if step.json is not None and isinstance(parsed := read_json_object(step.json), RefusedReply):
        yield from (SchemaProblem(("json",), what) for what in parsed.problems)
    for index, edit in enumerate(step.edit):
        yield from (
            SchemaProblem(("edit", index, *problem.path), problem.what)
            for problem in _find_edit_problems(edit)
        )


def _find_edit_problems(edit: ScriptEdit) -> Iterator[SchemaProblem]:
    fields = {field for field, field_value in msgspec.to_builtins(edit).items() if field_value is not None}
    verbs = sorted(fields & set(_EDIT_FIELDS))
    if len(verbs) != 1:
        yield SchemaProblem((), f"needs exactly one of {', '.join(_EDIT_FIELDS)}")
        return
    (verb,) = verbs
    for name in sorted(_EDIT_FIELDS[verb] ^ (fields - {verb})):
        yield SchemaProblem(
            (name,), "is missing" if name in _EDIT_FIELDS[verb] else f"does not belong to `{verb}`"
        )
    if (reason := edit_path_problem(msgspec.to_builtins(edit)[verb])) is not None:
        yield SchemaProblem((verb,), reason)
    if edit.find == "":
        yield SchemaProblem(("find",), "is empty")
