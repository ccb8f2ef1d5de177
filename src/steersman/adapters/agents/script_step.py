"""Chooses a step of a script and carries it out, the same in this process and in a child.

**Invariant:** the choice depends on the request alone; nothing here remembers an earlier call.
"""

import json
import time

from steersman.adapters.agents.script_edits import EditRefused, apply_script_edits, edit_target
from steersman.contracts.agent import AgentReply, AgentRequest, ProviderUsage
from steersman.contracts.script import AgentScript, ScriptJob, ScriptStep
from steersman.judges.commands.agent_shell import is_outside_allowed_commands
from steersman.judges.text import escape_surrogates

SCRIPTED_PROVIDER = "scripted"


def choose_script_step(script: AgentScript, request: AgentRequest) -> ScriptStep | None:
    """The most specific step that fits: an attempt weighs more than a round, a round more than a mode."""
    fitting = [step for step in script.roles.get(request.role, ()) if _is_step_for_request(step, request)]
    return max(fitting, key=_step_specificity, default=None)


def perform_script_job(job: ScriptJob) -> AgentReply:
    """Edits, then answers or fails as the step says; an edit that is not allowed is a denial."""
    try:
        denied = _apply_job_edits(job)
    except EditRefused as refused:
        return _build_scripted_reply(job, AgentReply(error=refused.error_class, detail=str(refused)))
    except OSError as error:
        detail = f"working directory: {error.strerror}"
        return _build_scripted_reply(job, AgentReply(error="provider_crashed", detail=detail))
    if denied is not None:
        return _build_scripted_reply(job, denied)
    step = job.step
    reset_at = None if step.reset_in is None else time.time_ns() // 10**6 + step.reset_in * 1000
    reply = AgentReply(
        text=render_step_answer(step, job.nonce), error=step.error, detail=step.detail, reset_at=reset_at
    )
    return _build_scripted_reply(job, reply)


def render_step_answer(step: ScriptStep, nonce: str) -> str:
    """The text of the answer; a reply gets the nonce of the request, or a wrong one where the step says so."""
    content = step.reply if step.json is None else json.loads(step.json)
    if content is None:
        return escape_surrogates(step.raw or step.say or "")
    returned_nonce = f"not-{nonce}" if step.nonce == "wrong" else nonce
    return json.dumps({"nonce": returned_nonce, **content}, ensure_ascii=False, indent=2)


def _is_step_for_request(step: ScriptStep, request: AgentRequest) -> bool:
    return (
        step.mode in (None, request.mode)
        and step.round in (None, request.round)
        and step.attempt in (None, request.attempt)
    )


def _step_specificity(step: ScriptStep) -> tuple[bool, bool, bool]:
    return (step.attempt is not None, step.round is not None, step.mode is not None)


def _apply_job_edits(job: ScriptJob) -> AgentReply | None:
    edits = job.step.edit
    if edits and not job.writes:
        denied = tuple(" ".join(edit_target(edit)) for edit in edits)
        return AgentReply(
            error="provider_permission_denied", detail=f"may not write: {', '.join(denied)}", denied=denied
        )
    if edits:
        apply_script_edits(job.workdir, edits)
    return None


def _find_commands_outside(job: ScriptJob) -> tuple[str, ...]:
    allows = job.allows
    return (
        ()
        if allows is None
        else tuple(script for script in job.step.wants if is_outside_allowed_commands(script, allows))
    )


def _build_scripted_reply(job: ScriptJob, outcome: AgentReply) -> AgentReply:
    return AgentReply(
        text=outcome.text,
        error=outcome.error,
        detail=escape_surrogates(outcome.detail),
        reset_at=outcome.reset_at,
        usage=ProviderUsage(job.step.tokens, job.step.micro_usd),
        session=job.session,
        provider=SCRIPTED_PROVIDER,
        model=job.model,
        denied=outcome.denied,
        outside=_find_commands_outside(job),
    )
