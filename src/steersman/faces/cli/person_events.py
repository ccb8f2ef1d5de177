"""A person's word to a run. **Invariant:** nothing that works for a run speaks here: that is refused, and on tape."""

from typing import Any

from steersman.faces.cli.context import CommandContext
from steersman.faces.cli.drive import wait_for_verdict


def refuse_agent_caller(context: CommandContext, run: str, word: str) -> int | None:
    """The exit code of a refusal when this process works for a run of this machine; None when a person speaks."""
    effect = context.services.find_calling_effect(context.project_root)
    if not effect:
        return None
    message_body: dict[str, Any] = {"event": word, "inside": effect, "person": context.person}
    journal, clock = context.runs.ports.journal, context.runs.ports.clock
    return wait_for_verdict(context, run, journal.post(run, "event", message_body, clock.now()))
