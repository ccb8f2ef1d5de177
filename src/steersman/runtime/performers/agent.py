"""Asks an agent: a working tree at the recorded commit, a prompt, a strict reply, the change as git sees it."""

import asyncio
import json
from typing import Any

from steersman.contracts.agent import PASSING, AgentReply, AgentRequest
from steersman.contracts.facts import AgentFacts
from steersman.contracts.replies import ReviewerReply, TesterReply, reply_schema
from steersman.contracts.workspace import Change, Checkout
from steersman.errors import ContractError
from steersman.judges.findings import finding_id
from steersman.judges.reply import Parsed, parse_reply
from steersman.runtime.call import Again, Call, Performed
from steersman.runtime.performers.tree import ready_tree, tree_at
from steersman.runtime.roles import role_of

BACKOFF_MS = 1_000
LONGEST_MS = 60_000


async def ask(call: Call) -> Performed:
    """One attempt: facts, or a wish for another one when the error can pass or the reply can be asked for again."""
    workspace = call.world.workspace(call.config)
    # A proposal only reads; what is built is built in a tree that is set up.
    tree = await (ready_tree(call) if call.given("mode") == "implementation" else tree_at(call))
    nonce = call.world.chance.nonce()
    prompt = compose(call, nonce)
    prompt_ref = call.payloads.put(prompt)
    reply = await call.world.agent(call.given("role"), call.config).call(request(call, prompt, nonce, tree))
    change = (
        await asyncio.to_thread(_capture, call, workspace, tree)
        if call.given("writes") and not reply.error
        else None
    )
    return judge(call, reply, prompt_ref, nonce, change)


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
        seconds=role.seconds,
        options={**role.options, "model": role.model} if role.model else role.options,
    )


def compose(call: Call, nonce: str) -> str:
    """The prompt as sent: the machine's Markdown, the texts it names, the project's own words, the reply contract."""
    parts = [call.world.prompt(call.machine, call.given("prompt"))]
    for name, ref in call.given("texts", {}).items():
        parts.append(f"## {name.replace('_', ' ')}\n\n{call.payloads.get(ref)}")
    wanted = [
        f"- [{i['id']}] {call.payloads.get(i.get('text', '')) or i.get('why', '')}"
        for i in call.given("must_fix", [])
    ]
    if wanted:
        parts.append("## must fix\n\n" + "\n".join(wanted))
    if call.item.hint:
        parts.append(f"## your last reply was refused\n\n{call.payloads.get(call.item.hint)}")
    extra = call.world.role_prompt(call.given("role"))
    if extra:
        parts.append(extra)
    if call.given("contract"):
        schema = json.dumps(reply_schema(call.given("contract")), sort_keys=True)
        parts.append(
            f"## reply\n\nAnswer with exactly one JSON object that fits this schema, nonce {nonce}:\n\n{schema}"
        )
    return "\n\n".join(parts)


def _capture(call: Call, workspace: Any, tree: Checkout) -> Change:
    # With the entry that asked for it: rounds begin anew after a follow-up, and no tree may lose its pin.
    asked = call.effect.split(":")[1]
    label = f"{call.given('mode')}-{call.given('round', 1)}-{call.item.attempt}-{asked}"
    change: Change = workspace.capture(call.run, tree.path, call.given("base"), label)
    return change


def judge(call: Call, reply: AgentReply, prompt_ref: str, nonce: str, change: Change | None) -> Performed:
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
    if problems and call.item.attempt <= role_of(call.config, call.given("role")).retries:
        return Again("reply_invalid", 0, put(problems), spent)
    return AgentFacts(
        error=reply.error or "",
        detail_ref=put(reply.detail),
        reset_at=reply.reset_at,
        text_ref=put(reply.text),
        prompt_ref=prompt_ref,
        reply=plain_reply(call, parsed.value) if isinstance(parsed, Parsed) else None,
        problems_ref=put(problems),
        provider=reply.provider,
        model=reply.model,
        session=reply.session or "",
        tree=change.tree if change else "",
        commit=change.commit if change else "",
        files=len(change.files) if change else 0,
        added=change.added if change else 0,
        removed=change.removed if change else 0,
        patch_ref=put(change.patch) if change else "",
        tokens=reply.usage.tokens,
        micro_usd=reply.usage.micro_usd,
    )


def plain_reply(call: Call, value: Any) -> dict[str, Any]:
    """A parsed reply with every text replaced by the name of its payload."""
    put = call.payloads.put
    match value:
        case ReviewerReply():
            items = [{"id": finding_id(t), "text": put(t)} for t in value.must_fix]
            nice = [put(t) for t in value.nice_to_have]
            return {
                "decision": value.decision,
                "must_fix": items,
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
