"""The port to one coding agent: a call in, neutral facts out."""

from typing import Protocol

from steersman.contracts.agent import AgentReply, AgentRequest


class Agent(Protocol):
    """Does one bounded piece of work in one directory and says what happened, never what it means."""

    @property
    def tells_cost(self) -> bool:
        """Whether every reply says what it cost; unknown is never zero."""
        ...

    async def call(self, request: AgentRequest) -> AgentReply:
        """Returns what happened; an agent that fails is a reply with an `error`, never an exception."""
        ...
