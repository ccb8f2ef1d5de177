"""The agent that follows a script: it really edits files, and costs nothing.

**Invariant:** same request, same step: its answers are chosen by role, mode, round and attempt, never by a counter.
"""

import asyncio
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

import steersman
from steersman.adapters.agents.program_copies import project_program_path
from steersman.adapters.agents.script_step import (
    SCRIPTED_PROVIDER,
    choose_script_step,
    edit_path_problem,
    perform_script_job,
)
from steersman.adapters.config.plain_yaml import PlainYaml, read_plain_yaml
from steersman.adapters.process.program_runner import ProgramResult, run_program
from steersman.contracts.agent import AgentReply, AgentRequest, ProviderClass
from steersman.contracts.script import AgentScript, ScriptEdit, ScriptJob, ScriptStep, script_schema
from steersman.errors import UserError
from steersman.judges.replies.strict_json import (
    RefusedReply,
    SchemaProblem,
    find_json_schema_problems,
    read_json_object,
)
from steersman.judges.text import decode_outside_bytes

# ── script file ─────────────────────────────────────────────────────────────────────────────────────────────────────────

# Reads a script file and finds everything wrong with it before anything runs.
#
# **Invariant:** a script is accepted completely or rejected; every problem names file, line and field.


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
    lines = [f"{name}, line {document.line_of(p.path)}: {p if p.path else p.what}" for p in problems]
    return UserError("\n".join(["the script cannot be used; correct it and try again:", *lines]))


def _convert_script_scalars(value: Any) -> Any:
    """Converts the number and boolean fields of a script; all other scalars stay text."""
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
            yield from (SchemaProblem((role, index, *p.path), p.what) for p in _find_step_problems(step))


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
        yield from (SchemaProblem(("edit", index, *p.path), p.what) for p in _find_edit_problems(edit))


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


# ── scripted agent ────────────────────────────────────────────────────────────────────────────────


# -P: the working tree must not be able to stand in for a module of steersman.
SCRIPTED_CHILD_COMMAND = (
    os.path.abspath(sys.executable),
    "-P",
    "-m",
    "steersman.adapters.agents.script_step",
)
_CHILD_VARIABLES = ("PATH", "HOME", "LANG", "LC_ALL", "TMPDIR")
_CHILD_OUTPUT_CAP = 4 * 1024 * 1024


class ScriptedAgent:
    """Implements `ports.agent.Agent` over one script file."""

    def __init__(self, script: Path) -> None:
        """Reads the script at once: a broken one is a UserError here, not in the middle of a run."""
        self._path = script
        self._script = load_script(script)

    @property
    def tells_cost(self) -> bool:
        """Whether every step says what it costs: a budget in money alone needs that."""
        return all(step.micro_usd is not None for steps in self._script.roles.values() for step in steps)

    async def call(self, request: AgentRequest) -> AgentReply:
        """What the script says to this request; whatever goes wrong is a reply with an `error`."""
        step = choose_script_step(self._script, request)
        if step is None:
            return _scripted_failure("provider_invalid_request", self._nothing_for(request))
        job = ScriptJob(
            step=step,
            workdir=request.workdir,
            writes=request.writes,
            allows=request.allows,
            nonce=request.nonce,
            model=str(request.options.get("model") or ""),
            session=request.session,
        )
        return await (
            _perform_in_child(job, request) if step.process else _perform_in_process(job, request.seconds)
        )

    def _nothing_for(self, request: AgentRequest) -> str:
        text = f"role {request.role}, mode {request.mode}, round {request.round}, attempt {request.attempt}"
        steps = [_describe_step_conditions(step) for step in self._script.roles.get(request.role, ())]
        name = project_program_path(str(self._path))
        return f"{name} has no step for {text}; for this role it has: {'; '.join(steps) or 'nothing'}"


def _describe_step_conditions(step: ScriptStep) -> str:
    conditions = [
        f"{field} {field_value}"
        for field in ("mode", "round", "attempt")
        if (field_value := getattr(step, field)) is not None
    ]
    return ", ".join(conditions) or "any"


async def _perform_in_process(job: ScriptJob, seconds: int) -> AgentReply:
    try:
        async with asyncio.timeout(seconds):
            await asyncio.sleep(float(job.step.sleep))
    except TimeoutError:
        return _scripted_failure("provider_timeout", f"no answer within {seconds} seconds")
    return perform_script_job(job)


async def _perform_in_child(job: ScriptJob, request: AgentRequest) -> AgentReply:
    result = await run_program(
        SCRIPTED_CHILD_COMMAND,
        request.workdir if request.writes else "/",  # who only reads starts outside the changed tree
        _child_environment(),
        request.seconds,
        request.effect,
        msgspec.json.encode(job),
        cap=_CHILD_OUTPUT_CAP,
    )
    return _parse_child_reply(result, request.seconds)


def _child_environment() -> dict[str, str]:
    inherited = {name: os.environ[name] for name in _CHILD_VARIABLES if name in os.environ}
    return {
        **inherited,
        "PYTHONPATH": str(Path(steersman.__file__).parents[1]),
        "PYTHONDONTWRITEBYTECODE": "1",
    }


def _parse_child_reply(result: ProgramResult, seconds: int) -> AgentReply:
    if result.timed_out:
        return _scripted_failure("provider_timeout", f"no answer within {seconds} seconds")
    if result.exit_code != 0:
        message = result.reason or decode_outside_bytes(result.errors)
        return _scripted_failure("provider_crashed", f"exit code {result.exit_code}: {message}")
    try:
        return msgspec.json.decode(result.output, type=AgentReply)
    except msgspec.DecodeError as error:
        return _scripted_failure("provider_protocol_error", f"the child's answer cannot be read: {error}")


def _scripted_failure(error: ProviderClass, detail: str) -> AgentReply:
    return AgentReply(error=error, detail=detail, provider=SCRIPTED_PROVIDER)
