"""Who asks for something, through which face, and whether that caller may speak for a person.

**Invariant:** nothing that works for a run speaks for a person. The attempt goes on the run's tape, and it is refused.
"""

from typing import Literal

import msgspec

from steersman.engine.ports import Ports
from steersman.errors import SteersmanError

Face = Literal["cli", "repl", "chat", "http", "mcp"]


class Principal(msgspec.Struct, frozen=True):
    """A caller: the person's name, the face, and the effect that the caller works for where it is no person."""

    person: str
    face: Face = "cli"
    effect: str = ""
    command_prefix: str = "steersman"  # how the commands in error messages begin for this caller

    @property
    def may_approve(self) -> bool:
        """Whether the caller speaks for a person; an effect's child process does not."""
        return not self.effect


class PostedMessage(msgspec.Struct, frozen=True):
    """What was put into a run's inbox; `RunService.settle` waits for the verdict on it."""

    run: str
    message_id: int
    wants_end: bool = False  # the person has asked the run to stop, so that its stopping is a success


class AgentCallerError(SteersmanError):
    """A caller that works for a run tried to speak for a person; `attempt` is what its run records, if there is one."""

    exit_code = 4

    def __init__(self, effect: str, attempt: PostedMessage | None = None) -> None:
        super().__init__(
            f"refused: effect {effect} of a run sent this, and an agent never speaks for a person"
        )
        self.effect = effect
        self.attempt = attempt


def require_person(principal: Principal) -> None:
    """Refuses a caller that works for a run, where there is no run that could record the attempt."""
    if not principal.may_approve:
        raise AgentCallerError(principal.effect)


def require_person_for_run(ports: Ports, principal: Principal, run: str, word: str) -> None:
    """Refuses a caller that works for a run; the attempt goes into the inbox of the run that it was about."""
    if principal.may_approve:
        return
    body = {"event": word, "inside": principal.effect, "person": principal.person}
    message_id = ports.journal.post(run, "event", body, ports.clock.now())
    raise AgentCallerError(principal.effect, PostedMessage(run, message_id))
