"""Chooses a step of a script and carries it out, the same in this process and in a child.

**Invariant:** the choice depends on the request alone; nothing here remembers an earlier call.
"""

import json
import time

from steersman.adapters.edits import EditRefused, apply_edits, target
from steersman.contracts.agent import AgentReply, AgentRequest, Usage
from steersman.contracts.script import Job, Script, Step
from steersman.judges.own_shell import outside
from steersman.judges.text import well_formed

PROVIDER = "scripted"


def choose(script: Script, request: AgentRequest) -> Step | None:
    """The most specific step that fits: an attempt weighs more than a round, a round more than a mode."""
    fitting = [step for step in script.roles.get(request.role, ()) if _fits(step, request)]
    return max(fitting, key=_weight, default=None)


def perform(job: Job) -> AgentReply:
    """Edits, then answers or fails as the step says; an edit that is not allowed is a denial."""
    try:
        denied = _edit(job)
    except EditRefused as refused:
        return _reply(job, AgentReply(error=refused.error_class, detail=str(refused)))
    except OSError as error:
        detail = f"working directory: {error.strerror}"
        return _reply(job, AgentReply(error="provider_crashed", detail=detail))
    if denied is not None:
        return _reply(job, denied)
    step = job.step
    reset_at = None if step.reset_in is None else time.time_ns() // 10**6 + step.reset_in * 1000
    said = AgentReply(text=answer(step, job.nonce), error=step.error, detail=step.detail, reset_at=reset_at)
    return _reply(job, said)


def answer(step: Step, nonce: str) -> str:
    """The text of the answer; a reply gets the nonce of the request, or a wrong one where the step says so."""
    given = step.reply if step.json is None else json.loads(step.json)
    if given is None:
        return well_formed(step.raw or step.say or "")
    back = f"not-{nonce}" if step.nonce == "wrong" else nonce
    return json.dumps({"nonce": back, **given}, ensure_ascii=False, indent=2)


def _fits(step: Step, request: AgentRequest) -> bool:
    return (
        step.mode in (None, request.mode)
        and step.round in (None, request.round)
        and step.attempt in (None, request.attempt)
    )


def _weight(step: Step) -> tuple[bool, bool, bool]:
    return (step.attempt is not None, step.round is not None, step.mode is not None)


def _edit(job: Job) -> AgentReply | None:
    edits = job.step.edit
    if edits and not job.writes:
        denied = tuple(" ".join(target(edit)) for edit in edits)
        return AgentReply(
            error="provider_permission_denied", detail=f"may not write: {', '.join(denied)}", denied=denied
        )
    if edits:
        apply_edits(job.workdir, edits)
    return None


def _outside(job: Job) -> tuple[str, ...]:
    allows = job.allows
    return () if allows is None else tuple(script for script in job.step.wants if outside(script, allows))


def _reply(job: Job, said: AgentReply) -> AgentReply:
    return AgentReply(
        text=said.text,
        error=said.error,
        detail=well_formed(said.detail),
        reset_at=said.reset_at,
        usage=Usage(job.step.tokens, job.step.micro_usd),
        session=job.session,
        provider=PROVIDER,
        model=job.model,
        denied=said.denied,
        outside=_outside(job),
    )
