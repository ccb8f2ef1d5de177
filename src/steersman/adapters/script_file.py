"""Reads a script file and finds everything wrong with it before anything runs.

**Invariant:** a script is whole or refused; every problem names file, line and field.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from steersman.adapters.edits import unfit_path
from steersman.adapters.kept_programs import project_name
from steersman.adapters.plain_yaml import PlainYaml, read_yaml
from steersman.contracts.script import Edit, Script, Step, script_schema
from steersman.errors import UserError
from steersman.judges.problems import Problem, problems_of
from steersman.judges.strict_json import Refused, read_object

_WHOLE = re.compile(r"0|[1-9][0-9]{0,15}")
_NUMBERS = ("round", "attempt", "reset_in", "tokens", "micro_usd")
_WORDS = {"yes": True, "true": True, "no": False, "false": False}
_NEEDS = {"write": {"text"}, "append": {"text"}, "delete": set(), "replace": {"find", "with"}}


def load_script(path: Path) -> Script:
    """The script in a file; a UserError lists all its problems."""
    name = project_name(str(path))
    try:
        with path.open("rb") as file:
            document = read_yaml(file.read(2 * 1024 * 1024), name)
    except OSError as error:
        raise UserError(
            f"cannot read the script {name}: {error.strerror}; correct `script` in steersman.toml"
        ) from None
    value = _typed(document.value)
    found = problems_of(value, script_schema())
    if found:
        raise _broken(name, document, found)
    steps = {role: msgspec.convert(value[role], tuple[Step, ...]) for role in value if role != "version"}
    joined = tuple(_joined(steps))
    if joined:
        raise _broken(name, document, joined)
    return Script(roles=steps)


def _broken(name: str, document: PlainYaml, found: tuple[Problem, ...]) -> UserError:
    lines = [f"{name}, line {document.line_of(p.path)}: {p if p.path else p.what}" for p in found]
    return UserError("\n".join(["the script cannot be used; mend it and try again:", *lines]))


def _typed(value: Any) -> Any:
    """The few numbers and yes-or-no words of a script, read by us; all other scalars stay text."""
    if not isinstance(value, dict):
        return value
    typed = {
        role: [_typed_step(s) for s in steps] if isinstance(steps, list) else steps
        for role, steps in value.items()
    }
    return {**typed, **({"version": 1} if value.get("version") == "1" else {})}


def _typed_step(step: Any) -> Any:
    if not isinstance(step, dict):
        return step
    numbers = {
        k: int(step[k]) for k in _NUMBERS if isinstance(step.get(k), str) and _WHOLE.fullmatch(step[k])
    }
    process = step.get("process")
    words = {"process": _WORDS[process]} if isinstance(process, str) and process in _WORDS else {}
    return {**step, **numbers, **words}


def _joined(roles: dict[str, tuple[Step, ...]]) -> Iterator[Problem]:
    """What no schema says: rules that join fields, or steps."""
    for role, steps in roles.items():
        seen: dict[tuple[object, ...], int] = {}
        for n, step in enumerate(steps):
            first = seen.setdefault((step.mode, step.round, step.attempt), n)
            if first != n:
                yield Problem(
                    (role, n), f"has the same mode, round and attempt as step {first}: which one is meant?"
                )
            yield from (Problem((role, n, *p.path), p.what) for p in _step(step))


def _step(step: Step) -> Iterator[Problem]:
    answers = [name for name in ("say", "reply", "json", "raw") if getattr(step, name) is not None]
    if len(answers) > 1:
        yield Problem((answers[1],), f"cannot stand beside `{answers[0]}`: a step has one answer")
    if step.nonce == "wrong" and step.reply is None and step.json is None:
        yield Problem(("nonce",), "only means something with `reply` or `json`")
    if step.error is None and (step.detail or step.reset_in is not None):
        yield Problem(("detail" if step.detail else "reset_in",), "only means something with `error`")
    if step.json is not None and isinstance(read := read_object(step.json), Refused):
        yield from (Problem(("json",), what) for what in read.problems)
    for n, edit in enumerate(step.edit):
        yield from (Problem(("edit", n, *p.path), p.what) for p in _edit(edit))


def _edit(edit: Edit) -> Iterator[Problem]:
    given = {k for k, v in msgspec.to_builtins(edit).items() if v is not None}
    verbs = sorted(given & set(_NEEDS))
    if len(verbs) != 1:
        yield Problem((), f"needs exactly one of {', '.join(_NEEDS)}")
        return
    (verb,) = verbs
    for name in sorted(_NEEDS[verb] ^ (given - {verb})):
        yield Problem((name,), "is missing" if name in _NEEDS[verb] else f"does not belong to `{verb}`")
    if (reason := unfit_path(msgspec.to_builtins(edit)[verb])) is not None:
        yield Problem((verb,), reason)
    if edit.find == "":
        yield Problem(("find",), "is empty")
