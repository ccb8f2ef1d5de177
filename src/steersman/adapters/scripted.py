"""The agent that follows a script: it really edits files, and costs nothing.

**Invariant:** same request, same step: its answers are chosen by role, mode, round and attempt, never by a counter.
"""

import asyncio
import os
import sys
from pathlib import Path

import msgspec

import steersman
from steersman.adapters.kept_programs import project_name
from steersman.adapters.processes import Executed, execute
from steersman.adapters.script_file import load_script
from steersman.adapters.script_step import PROVIDER, choose, perform
from steersman.contracts.agent import AgentReply, AgentRequest, ProviderClass
from steersman.contracts.script import Job, Step
from steersman.judges.text import clip, decode

__all__ = ["ScriptedAgent", "load_script"]

# -P: the working tree must not be able to stand in for a module of ours.
CHILD = (os.path.abspath(sys.executable), "-P", "-m", "steersman.adapters.scripted_child")
_KEPT = ("PATH", "HOME", "LANG", "LC_ALL", "TMPDIR")
_OUTPUT_CAP = 4 * 1024 * 1024


class ScriptedAgent:
    """Implements `ports.agent.Agent` over one script file."""

    def __init__(self, script: Path) -> None:
        """Reads the script at once: a broken one is a UserError here, not in the middle of a run."""
        self._path = script
        self._script = load_script(script)

    @classmethod
    def load(cls, script: Path) -> "ScriptedAgent":
        """The agent of a script file."""
        return cls(script)

    @property
    def tells_cost(self) -> bool:
        """Whether every step says what it costs: a budget in money alone needs that."""
        return all(step.micro_usd is not None for steps in self._script.roles.values() for step in steps)

    async def call(self, request: AgentRequest) -> AgentReply:
        """What the script says to this request; whatever goes wrong is a reply with an `error`."""
        step = choose(self._script, request)
        if step is None:
            return _failed("provider_invalid_request", self._nothing_for(request))
        job = Job(
            step=step,
            workdir=request.workdir,
            writes=request.writes,
            allows=request.allows,
            nonce=request.nonce,
            model=str(request.options.get("model") or ""),
            session=request.session,
        )
        return await (_in_a_child(job, request) if step.process else _here(job, request.seconds))

    def _nothing_for(self, request: AgentRequest) -> str:
        looked_for = (
            f"role {request.role}, mode {request.mode}, round {request.round}, attempt {request.attempt}"
        )
        there = [_named(step) for step in self._script.roles.get(request.role, ())]
        name = project_name(str(self._path))
        return f"{name} has no step for {looked_for}; for this role it has: {'; '.join(there) or 'nothing'}"


def _named(step: Step) -> str:
    given = [f"{k} {v}" for k in ("mode", "round", "attempt") if (v := getattr(step, k)) is not None]
    return ", ".join(given) or "any"


async def _here(job: Job, seconds: int) -> AgentReply:
    try:
        async with asyncio.timeout(seconds):
            await asyncio.sleep(float(job.step.sleep))
    except TimeoutError:
        return _failed("provider_timeout", f"no answer within {seconds} seconds")
    return perform(job)


async def _in_a_child(job: Job, request: AgentRequest) -> AgentReply:
    done = await execute(
        CHILD,
        request.workdir if request.writes else "/",  # who only reads starts outside the changed tree
        _environment(),
        request.seconds,
        request.effect,
        msgspec.json.encode(job),
        cap=_OUTPUT_CAP,
        errors_apart=True,
    )
    return _heard(done, request.seconds)


def _environment() -> dict[str, str]:
    kept = {name: os.environ[name] for name in _KEPT if name in os.environ}
    return {**kept, "PYTHONPATH": str(Path(steersman.__file__).parents[1]), "PYTHONDONTWRITEBYTECODE": "1"}


def _heard(done: Executed, seconds: int) -> AgentReply:
    if done.timed_out:
        return _failed("provider_timeout", f"no answer within {seconds} seconds")
    if done.exit_code != 0:
        said = done.reason or decode(done.errors)
        return _failed("provider_crashed", f"exit code {done.exit_code}: {clip(said, 2000)}")
    try:
        return msgspec.json.decode(done.output, type=AgentReply)
    except msgspec.DecodeError as error:
        return _failed("provider_protocol_error", f"the child's answer cannot be read: {error}")


def _failed(error: ProviderClass, detail: str) -> AgentReply:
    return AgentReply(error=error, detail=detail, provider=PROVIDER)
