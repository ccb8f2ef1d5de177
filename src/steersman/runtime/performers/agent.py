"""Asks an agent: a working tree at the recorded commit, a prompt, a strict reply, the change as git sees it."""

import asyncio
import json
from collections.abc import Callable
from typing import Any

import msgspec

from steersman.contracts.agent import PASSING, AgentReply, AgentRequest, Permissions
from steersman.contracts.config import FrozenConfig, Role
from steersman.contracts.facts import AgentFacts
from steersman.contracts.replies import ReviewerReply, TesterReply, reply_schema
from steersman.contracts.task.replies import (
    CodeReviewerReply,
    PlanCommentReply,
    PlanReviewerReply,
    TaskCoderReply,
    TaskPlannerReply,
)
from steersman.contracts.workspace import Change, Checkout
from steersman.errors import ContractError, UnrecordableError
from steersman.judges.changes import Suspect
from steersman.judges.findings import named_finding, unfounded
from steersman.judges.reply import Parsed, parse_reply
from steersman.judges.text import clip, one_line
from steersman.runtime.budget import ceiling
from steersman.runtime.call import Again, Call, Performed
from steersman.runtime.performers.bounds import allows, bounds_of, commands_beyond
from steersman.runtime.performers.instructions import as_on_the_base, conventions
from steersman.runtime.performers.prompt import compose
from steersman.runtime.performers.suspicion import counted, suspected
from steersman.runtime.performers.tree import ready_tree, tree_at
from steersman.runtime.project_files import freeze_project_files
from steersman.runtime.roles import role_of
from steersman.runtime.words import outside_name

BACKOFF_MS = 1_000
LONGEST_MS = 60_000
TASK_CODER = "task_coder"  # the contract of the only writer whose commands are judged with its change


async def ask(call: Call) -> Performed:
    """One attempt: facts, or a wish for another one when the error can pass or the reply can be asked for again."""
    workspace = call.world.workspace(call.config)
    # A proposal only reads; what is built is built in a tree that is set up.
    tree = await (ready_tree(call) if call.given("mode") == "implementation" else tree_at(call))
    nonce = call.world.chance.nonce()
    config = await asyncio.to_thread(_with_project_files, call)
    own, seen = config.prompts.get(call.given("role"), ""), _seen_at(call, tree)
    prompt = compose(call, nonce, await asyncio.to_thread(conventions, call, workspace), own, seen)
    prompt_ref = call.payloads.put(prompt)
    of = await asyncio.to_thread(bounds_of, call) if call.given("writes") else None
    asked = msgspec.structs.replace(request(call, prompt, nonce, tree), allows=allows(of))
    async with as_on_the_base(call, workspace, tree):
        reply = await call.world.agent(call.given("role"), config).call(asked)
    if reply.outside and call.given("contract") != TASK_CODER:
        reply = _stopped(reply, commands_beyond(of, reply.outside))
    change, found, unkept = (
        await asyncio.to_thread(_capture, call, workspace, tree)
        if call.given("writes") and not reply.error
        else (None, (), "")
    )
    return judge(call, reply, prompt_ref, nonce, change, found, unkept)


def _with_project_files(call: Call) -> FrozenConfig:
    """The run's configuration; one that an older version froze gets the prompts and programs of its base now."""
    if call.config.base_commit:
        return call.config
    return freeze_project_files(call.world, call.config, call.given("base"))


def _seen_at(call: Call, tree: Checkout) -> str:
    """Where an agent that only reads finds the tree: it starts somewhere else."""
    return "" if call.given("writes") else call.world.tree_path(call.config, tree.path)


def _stopped(reply: AgentReply, told: list[str]) -> AgentReply:
    """Whose work nobody holds to the plan afterwards has not done it when it wanted to leave it."""
    denied = "provider_permission_denied"
    return msgspec.structs.replace(reply, error=denied, detail=clip("\n".join(told), 2000), text="")


def request(call: Call, prompt: str, nonce: str, tree: Checkout) -> AgentRequest:
    """What the agent is told."""
    role = role_of(call.config, call.given("role"))
    return AgentRequest(
        role=call.given("role"),
        mode=call.given("mode"),
        prompt=prompt,
        workdir=tree.path,
        writes=call.given("writes", default=False),
        effect=call.effect,
        nonce=nonce,
        round=call.given("round", 1),
        attempt=call.item.attempt,
        contract=call.given("contract"),
        session=call.given("session"),
        seconds=role.seconds,
        start_seconds=role.start_seconds,
        idle_seconds=role.idle_seconds,
        permissions=permitted(role, writes=call.given("writes", default=False)),
        micro_usd=ceiling(call.config, call.given("role")).get("micro_usd"),
        options={**role.options, "model": role.model} if role.model else role.options,
    )


def permitted(role: Role, *, writes: bool) -> Permissions:
    """What the work needs, or less where the project says so; reading is never widened."""
    return (role.permissions or "shell") if writes else "read"


def _capture(call: Call, workspace: Any, tree: Checkout) -> tuple[Change, tuple[Suspect, ...], str]:
    """What the agent left, or the tree it was given and why nothing of what it left can be kept."""
    # With the entry that asked for it: rounds begin anew after a follow-up, and no tree may lose its pin.
    asked = call.effect.split(":")[1]
    label = f"{call.given('mode')}-{call.given('round', 1)}-{call.item.attempt}-{asked}"
    try:
        change = workspace.capture(call.run, tree.path, call.given("base"), label)
        return change, suspected(call, workspace, change), ""
    except UnrecordableError as error:
        return Change(tree.commit, tree.tree, (), "", 0, 0), (), str(error)


def judge(
    call: Call,
    reply: AgentReply,
    prompt_ref: str,
    nonce: str,
    change: Change | None,
    found: tuple[Suspect, ...] = (),
    unkept: str = "",
) -> Performed:
    """Facts from a reply; nothing in them says what they mean."""
    put = call.payloads.put
    spent = usage(reply)
    if reply.error and _can_pass(call, reply):
        return Again(reply.error, _wait(call, reply), call.item.hint, spent)
    parsed = (
        parse_reply(reply.text, call.given("contract"), nonce)
        if call.given("contract") and not reply.error
        else None
    )
    problems = (
        "" if parsed is None or isinstance(parsed, Parsed) else "\n".join(f"- {p}" for p in parsed.problems)
    )
    if isinstance(parsed, Parsed) and isinstance(parsed.value, ReviewerReply):
        problems = "\n".join(f"- {p}" for p in unfounded(parsed.value, _open(call)))
    if problems and call.item.attempt <= role_of(call.config, call.given("role")).retries:
        return Again("reply_invalid", 0, put(problems), spent)
    return AgentFacts(
        error=reply.error or "",
        detail_ref=put(reply.detail),
        reset_at=reply.reset_at,
        text_ref=put(reply.text),
        prompt_ref=prompt_ref,
        reply={**plain_reply(call, parsed.value), **_wanted(call, reply)}
        if isinstance(parsed, Parsed) and not problems
        else None,
        problems_ref=put(problems or unkept),
        provider=outside_name(call.world, reply.provider),
        model=outside_name(call.world, reply.model),
        session=outside_name(call.world, reply.session or ""),
        transcript=outside_name(call.world, reply.transcript),
        denied=len(reply.denied),
        tree=change.tree if change else "",
        commit=change.commit if change else "",
        files=len(change.files) if change else 0,
        added=change.added if change else 0,
        removed=change.removed if change else 0,
        patch_ref=put(change.patch) if change else "",
        **(counted(call, change, found) if change else {}),
        refused_ref=put("\n".join(reply.refused)),
        tokens=reply.usage.tokens,
        micro_usd=reply.usage.micro_usd,
    )


def _open(call: Call) -> dict[str, str]:
    """The findings the reviewer was told, by id."""
    return {i["id"]: i.get("text", "") for i in call.given("must_fix", [])}


def plain_reply(call: Call, value: Any) -> dict[str, Any]:
    """A parsed reply with every text replaced by the name of its payload."""
    put = call.payloads.put
    match value:
        case ReviewerReply():
            known = _open(call)
            named = [named_finding(t, known) for t in value.must_fix]
            items = [{"id": i, "text": put(words) or known.get(i, "")} for i, words in named]
            nice = [put(t) for t in value.nice_to_have]
            return {
                "decision": value.decision,
                "summary": put(value.summary),
                "must_fix": items,
                "fixed": list(value.fixed),
                "nice_to_have": nice,
                "security": len(value.security),
            }
        case TesterReply():
            argv = json.dumps([list(c) for c in value.commands])
            return {
                "commands": len(value.commands),
                "commands_ref": put(argv),
                "plan_ref": put(value.test_plan),
            }
        case _:
            return {"role": call.given("role"), **_counted(value), "reply": put(_whole(call, value))}


def _wanted(call: Call, reply: AgentReply) -> dict[str, str]:
    """Commands outside the frozen plan, one a line."""
    told = "\n".join(clip(one_line(script), 400) for script in reply.outside)
    return {"outside": call.payloads.put(told)} if told else {}


def _whole(call: Call, value: msgspec.Struct) -> str:
    """All that a reply says but its nonce; a text that got longer by what was hidden in it fits its contract again."""
    schema = reply_schema(call.given("contract"))
    said = _bounded(msgspec.to_builtins(value), schema, call.payloads.hide)
    return msgspec.json.encode({k: v for k, v in said.items() if k != "nonce"}).decode()


def _bounded(value: Any, schema: dict[str, Any], hide: Callable[[str], str]) -> Any:
    match value:
        case str() if "maxLength" in schema:
            return clip(hide(value), schema["maxLength"])
        case list() | tuple():
            return [_bounded(item, schema["items"], hide) for item in value]
        case dict():
            return {k: _bounded(item, schema["properties"][k], hide) for k, item in value.items()}
        case _:
            return value


def _counted(value: Any) -> dict[str, Any]:
    """What of a task's reply decides: a word, or how many there are."""
    match value:
        case TaskPlannerReply():
            return {
                "files": len(value.files),
                "questions": len(value.questions),
                "blocking": sum(q.blocking for q in value.questions),
            }
        case PlanCommentReply():
            return {
                "ready": value.ready,
                "concerns": len(value.concerns),
                "blocking": sum(q.blocking for q in value.questions),
            }
        case PlanReviewerReply() | CodeReviewerReply():
            return {"decision": value.decision}
        case TaskCoderReply():
            return {"status": value.status}
        case _:
            raise ContractError(
                f"no plain form for {type(value).__name__}: add it to runtime/performers/agent.py"
            )


def usage(reply: AgentReply) -> dict[str, int]:
    """What an attempt cost; what is not known is counted as unknown, never as nothing."""
    spent = {"turns": 1}
    if reply.usage.tokens is not None:
        spent["tokens"] = reply.usage.tokens
    if reply.usage.micro_usd is not None:
        spent["micro_usd"] = reply.usage.micro_usd
    if reply.usage.tokens is None or reply.usage.micro_usd is None:
        spent["unknown"] = 1
    return spent


def _can_pass(call: Call, reply: AgentReply) -> bool:
    """Worth a further attempt; a long limit is waited for only where the project says so."""
    if reply.error not in PASSING or call.item.attempt > role_of(call.config, call.given("role")).retries:
        return False
    long = reply.error == "provider_rate_limited" and _wait(call, reply) > LONGEST_MS
    return not long or call.config.unattended.on_limit == "wait"


def _wait(call: Call, reply: AgentReply) -> int:
    if reply.reset_at is not None:
        return max(0, reply.reset_at - call.world.clock.now())
    return min(BACKOFF_MS << (call.item.attempt - 1), LONGEST_MS)
