"""A person's message to a run, and what became of it; an agent's attempt to send one is refused on the run's tape."""

from collections.abc import Callable
from typing import Never

from steersman.app.principal import AgentCallerError, PostedMessage, require_person_for_run
from steersman.faces.cli.context import CommandContext
from steersman.faces.cli.drive import wait_for_verdict


def post_and_drive(
    context: CommandContext, post: Callable[[], PostedMessage], legal: Callable[[], list[str]] | None = None
) -> int:
    """Posts a message and drives its run until the verdict; an agent's attempt is driven to its refusal."""
    try:
        posted = post()
    except AgentCallerError as refusal:
        if refusal.attempt is None:
            raise
        posted = refusal.attempt
    return wait_for_verdict(context, posted.run, posted.message_id, wanted_end=posted.wants_end, legal=legal)


def refuse_agent_caller(context: CommandContext, run: str, word: str) -> int | None:
    """The exit code of the refusal where this process works for a run; None where a person speaks."""
    if context.principal.may_approve:
        return None
    return post_and_drive(context, lambda: _post_agent_attempt(context, run, word))


def _post_agent_attempt(context: CommandContext, run: str, word: str) -> Never:
    require_person_for_run(context.runs.ports, context.principal, run, word)
    raise AssertionError(word)  # an agent's attempt is always refused
