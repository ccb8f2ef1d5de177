"""Asks an agent to propose words and scope for the draft of an intent.

**Invariant:** the agent reads a checkout of its own and writes nothing that lasts; its reply is parsed as strictly as any
verdict, and what becomes of it is for a person to say. No secret of it is handed on.
"""

import asyncio
import json
from typing import Any, NamedTuple, cast

import msgspec

from steersman.contracts.agent import AgentReply, AgentRequest
from steersman.contracts.config import Config
from steersman.contracts.replies import PlannerReply, reply_schema
from steersman.judges.planning.hidden import hidden
from steersman.judges.reply import Refused, parse_reply
from steersman.runtime.chat_call import reading_place
from steersman.runtime.performers.prompt import DATA, PLACE, marked, project_words
from steersman.runtime.project_files import freeze_now
from steersman.runtime.roles import role_of
from steersman.runtime.world import World

CONTRACT, MACHINE, PROMPT = "planner", "coordinator", "draft"
GRACE = 5.0


class Proposal(NamedTuple):
    """What came back: a reply that fits its contract, or why there is none."""

    reply: PlannerReply | None
    problems: tuple[str, ...]
    hid: bool = False  # a secret was taken out of it


async def propose(world: World, config: Config, role: str, goal: str, draft: dict[str, Any]) -> Proposal:
    """Asks, and asks again with all problems where the reply does not fit, as often as the role allows."""
    settings = role_of(config, role)
    frozen = await asyncio.to_thread(freeze_now, world, config)
    agent, problems = world.agent(role, frozen), ()
    known = world.secrets(config.redact.env)
    for attempt in range(1, settings.retries + 2):
        nonce = world.chance.nonce()
        effect = f"intent-{nonce}:1:{attempt}"
        async with reading_place(world, config, effect) as workdir:
            given = (frozen.prompts.get(role, ""), world.tree_path(config, workdir))
            prompt = _prompt(world, role, goal, draft, nonce, problems, *given)
            request = AgentRequest(
                role=role, mode=PROMPT, prompt=prompt, workdir=workdir, writes=False, effect=effect, nonce=nonce,
                attempt=attempt, contract=CONTRACT, seconds=settings.seconds, start_seconds=settings.start_seconds,
                idle_seconds=settings.idle_seconds, permissions="read",
                options={**settings.options, "model": settings.model} if settings.model else settings.options,
            )  # fmt: skip
            try:
                said = await agent.call(request)
            finally:
                await asyncio.to_thread(world.processes.stop_tree, effect, GRACE)
        parsed = _parsed(said, nonce)
        if isinstance(parsed, PlannerReply):
            return _without_secrets(parsed, known)
        problems = tuple(hidden(problem, known) for problem in parsed)
        if said.error:
            break
    return Proposal(None, problems)


def _parsed(said: AgentReply, nonce: str) -> PlannerReply | tuple[str, ...]:
    if said.error:
        return (f"{said.error}: {said.detail or 'it said nothing more'}",)
    found = parse_reply(said.text, CONTRACT, nonce)
    return found.problems if isinstance(found, Refused) else cast("PlannerReply", found.value)


def _without_secrets(reply: PlannerReply, known: tuple[str, ...]) -> Proposal:
    """The reply as it may be written down; none where nothing fitting is left of it."""
    said = msgspec.json.encode(reply).decode()
    told = hidden(said, known)
    try:
        kept = msgspec.json.decode(told, type=PlannerReply)
    except msgspec.ValidationError as error:
        return Proposal(None, (f"its reply holds a secret, and does not fit without it: {error}",))
    return Proposal(kept, (), hid=told != said)


def _prompt(
    world: World,
    role: str,
    goal: str,
    draft: dict[str, Any],
    nonce: str,
    problems: tuple[str, ...],
    own: str,
    tree: str,
) -> str:
    mark = world.chance.nonce()
    shown = marked("draft", json.dumps(draft, indent=1, ensure_ascii=False), mark)
    parts = [
        world.prompt(MACHINE, PROMPT),
        f"## goal\n\n{goal}",
        DATA.format(mark=mark),
        PLACE.format(path=tree),
        f"## draft\n\n{shown}",
        "## your last reply was refused\n\n" + marked("problems", "\n".join(problems), mark)
        if problems
        else "",
        *project_words(role, own, mark),
        f"## reply\n\nAnswer with exactly one JSON object that fits this schema, nonce {nonce}:\n\n"
        + json.dumps(reply_schema(CONTRACT), sort_keys=True),
    ]
    return "\n\n".join(part for part in parts if part)
