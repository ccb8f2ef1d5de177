"""The agent that follows a script: it really edits files, and costs nothing.

**Invariant:** same request, same step: its answers are chosen by role, mode, round and attempt, never by a counter.
"""

import asyncio
import os
import sys
from pathlib import Path

import msgspec

import steersman
from steersman.adapters.agents.program_copies import project_program_path
from steersman.adapters.agents.script_file import load_script
from steersman.adapters.agents.script_step import SCRIPTED_PROVIDER, choose_script_step, perform_script_job
from steersman.adapters.process.program_runner import ProgramResult, run_program
from steersman.contracts.agent import AgentReply, AgentRequest, ProviderClass
from steersman.contracts.script import ScriptJob, ScriptStep
from steersman.judges.text import decode_outside_bytes

# -P: the working tree must not be able to stand in for a module of ours.
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
