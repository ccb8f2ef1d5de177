"""An agent whose answers are a function of the request.

**Invariant:** same request, same answer: nothing is chosen by a counter.
"""

import json
from collections.abc import Callable
from typing import Any

from steersman.contracts.agent import AgentReply, AgentRequest, ProviderUsage

FakeAgentAnswer = Callable[[AgentRequest], AgentReply]


class FakeAgent:
    """Implements ports.agent.Agent with `answer`; remembers every request; tells its cost unless `tells_cost` is off."""

    def __init__(self, answer: FakeAgentAnswer, *, tells_cost: bool = True) -> None:
        self._answer, self.tells_cost = answer, tells_cost
        self.asked: list[AgentRequest] = []

    async def call(self, request: AgentRequest) -> AgentReply:
        self.asked.append(request)
        return self._answer(request)


def fake_reply(
    request: AgentRequest, what: str | dict[str, Any], *, tokens: int = 100, micro_usd: int = 10
) -> AgentReply:
    """A reply: text as it is, an object as JSON with the nonce of the request."""
    text = what if isinstance(what, str) else json.dumps({"nonce": request.nonce, **what})
    return AgentReply(text=text, usage=ProviderUsage(tokens, micro_usd), provider="fake", model="fake-1")
