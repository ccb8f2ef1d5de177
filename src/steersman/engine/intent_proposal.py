"""Asks an agent to propose words and scope for the draft of an intent.

**Invariant:** the agent reads a checkout of its own and writes nothing that lasts; its reply is parsed as strictly as any
verdict, and what becomes of it is for a person to say. No secret of it is handed on.
"""

import asyncio
import json
from typing import Any, NamedTuple, cast

import msgspec

from steersman.contracts.agent import MAX_FAILURE_DETAIL, AgentReply, AgentRequest
from steersman.contracts.config import Config, find_role_settings
from steersman.contracts.machine_names import PLANNING_MACHINE
from steersman.contracts.replies import PlannerReply
from steersman.engine.chat.agent_call import read_only_checkout
from steersman.engine.effects.agent_work import (
    DATA_NOTICE,
    TREE_LOCATION_NOTICE,
    mark_outside_text,
    project_prompt_sections,
)
from steersman.engine.ports import Ports
from steersman.engine.project_files import freeze_current_files
from steersman.judges.redaction.redact import mask_secrets
from steersman.judges.replies.agent_reply import SHARED_REPLY_CONTRACTS, RefusedReply, parse_reply
from steersman.judges.text import clip_text

PLANNER_CONTRACT, DRAFT_PROMPT = SHARED_REPLY_CONTRACTS["planner"], "draft"
PROPOSAL_GRACE_SECONDS = 5.0


class IntentProposal(NamedTuple):
    """What came back: a reply that fits its contract, or why there is none."""

    reply: PlannerReply | None
    problems: tuple[str, ...]
    hid: bool = False  # a secret was taken out of it


async def propose_intent(
    ports: Ports, config: Config, role: str, goal: str, draft: dict[str, Any]
) -> IntentProposal:
    """Asks, and asks again with all problems where the reply does not fit, as often as the role allows."""
    settings = find_role_settings(config, role)
    frozen = await asyncio.to_thread(freeze_current_files, ports, config)
    agent = ports.agent(role, frozen)
    problems: tuple[str, ...] = ()
    secrets = ports.secrets(config.redact.env)
    for attempt in range(1, settings.retries + 2):
        nonce = ports.chance.nonce()
        effect = f"intent-{nonce}:1:{attempt}"
        async with read_only_checkout(ports, config, effect) as workdir:
            project_prompt_and_path = (frozen.prompts.get(role, ""), ports.tree_path(config, workdir))
            prompt = _proposal_prompt(ports, role, goal, draft, nonce, problems, *project_prompt_and_path)
            request = AgentRequest(
                role=role, mode=DRAFT_PROMPT, prompt=prompt, workdir=workdir, writes=False, effect=effect, nonce=nonce,
                attempt=attempt, schema=PLANNER_CONTRACT.schema, seconds=settings.seconds, start_seconds=settings.start_seconds,
                idle_seconds=settings.idle_seconds, permissions="read",
                options={**settings.options, "model": settings.model} if settings.model else settings.options,
            )  # fmt: skip
            try:
                agent_reply = await agent.call(request)
            finally:
                await asyncio.to_thread(ports.processes.stop_tree, effect, PROPOSAL_GRACE_SECONDS)
        parsed = _parse_planner_reply(agent_reply, nonce)
        if isinstance(parsed, PlannerReply):
            return _redact_proposal(parsed, secrets)
        problems = tuple(clip_text(mask_secrets(problem, secrets), MAX_FAILURE_DETAIL) for problem in parsed)
        if agent_reply.error:
            break
    return IntentProposal(None, problems)


def _parse_planner_reply(agent_reply: AgentReply, nonce: str) -> PlannerReply | tuple[str, ...]:
    if agent_reply.error:
        return (f"{agent_reply.error}: {agent_reply.detail or 'it said nothing more'}",)
    parsed = parse_reply(agent_reply.text, PLANNER_CONTRACT, nonce)
    return parsed.problems if isinstance(parsed, RefusedReply) else cast("PlannerReply", parsed.value)


def _redact_proposal(reply: PlannerReply, known_secrets: tuple[str, ...]) -> IntentProposal:
    """The reply as it may be written down; none where nothing fitting is left of it."""
    reply_json = msgspec.json.encode(reply).decode()
    redacted_json = mask_secrets(reply_json, known_secrets)
    try:
        redacted_reply = msgspec.json.decode(redacted_json, type=PlannerReply)
    except msgspec.ValidationError as error:
        return IntentProposal(None, (f"its reply holds a secret, and does not fit without it: {error}",))
    return IntentProposal(redacted_reply, (), hid=redacted_json != reply_json)


def _proposal_prompt(
    ports: Ports,
    role: str,
    goal: str,
    draft: dict[str, Any],
    nonce: str,
    problems: tuple[str, ...],
    own_words: str,
    tree_path: str,
) -> str:
    mark = ports.chance.nonce()
    marked_draft = mark_outside_text("draft", json.dumps(draft, indent=1, ensure_ascii=False), mark)
    parts = [
        ports.prompt(PLANNING_MACHINE, DRAFT_PROMPT),
        f"## goal\n\n{goal}",
        DATA_NOTICE.format(mark=mark),
        TREE_LOCATION_NOTICE.format(path=tree_path),
        f"## draft\n\n{marked_draft}",
        "## your last reply was refused\n\n" + mark_outside_text("problems", "\n".join(problems), mark)
        if problems
        else "",
        *project_prompt_sections(role, own_words, mark),
        f"## reply\n\nAnswer with exactly one JSON object that fits this schema, nonce {nonce}:\n\n"
        + json.dumps(PLANNER_CONTRACT.schema, sort_keys=True),
    ]
    return "\n\n".join(part for part in parts if part)
