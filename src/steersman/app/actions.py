"""What a person does to a run: send an event, ask for more, take a change back, waive a guard, stop it, fork it.

Each function puts a message into the run's inbox; `RunService.settle` waits for the verdict.
**Invariant:** the run's machine decides what a message leads to; nothing that works for a run gets past a function here.
"""

from collections.abc import Iterable
from typing import Any

import msgspec

from steersman.app.gates import AnswerRequest, CheckedAnswer, check_answer, post_answer
from steersman.app.principal import PostedMessage, Principal, require_person_for_run
from steersman.app.runs import RunService
from steersman.engine.machine_package import find_package
from steersman.engine.ports import Ports
from steersman.engine.projections import read_run_view
from steersman.errors import UserError
from steersman.judges.text import has_visible_text
from steersman.kernel.definition import EventDef, Origin
from steersman.kernel.machine import Machine
from steersman.kernel.snapshot import Snapshot
from steersman.kernel.step import legal_events
from steersman.views.gates import GateView, choice_word
from steersman.views.legal_actions import LegalAction, event_word

FOLLOWUP_WORD = "followup"
REVERT_WORD = "revert"
CONFIRM_GATE = "confirm"  # the gate of a proposal
RESUME_DESPITE_VERIFY = "resume --despite-verify"


class ForkedRun(msgspec.Struct, frozen=True):
    """A new run that begins as another was after one of its entries."""

    run: str
    source: str
    entry: int


def post_event(
    runs: RunService, principal: Principal, run: str, event: str, data: dict[str, Any], reason: str = ""
) -> PostedMessage:
    """Sends a person's event; the kernel refuses one that a person may not cause or that is not legal now."""
    require_person_for_run(runs.ports, principal, run, event)
    return PostedMessage(run, runs.send(run, event, data, principal.person, reason))


def post_follow_up(runs: RunService, principal: Principal, run: str, text: str) -> PostedMessage:
    """Asks a run that has its outcome for more."""
    event = _event_for_word(runs, run, FOLLOWUP_WORD)
    require_person_for_run(runs.ports, principal, run, event)
    data = {"choice": "followup", "text": runs.text(run, text), "person": principal.person}
    return post_event(runs, principal, run, event, data)


def confirm_proposal(runs: RunService, principal: Principal, run: str) -> PostedMessage:
    """Approves the proposal that a run waits with."""
    require_person_for_run(runs.ports, principal, run, "approve")
    gates = [gate for gate in runs.ports.journal.gates(run) if not gate.answer and gate.job == CONFIRM_GATE]
    if not gates:
        raise UserError(f"run {run} has no proposal to confirm: see `{principal.command_prefix} why {run}`")
    return PostedMessage(run, runs.answer(gates[0], "approve", principal.person))


def post_abort(runs: RunService, principal: Principal, run: str, reason: str = "") -> PostedMessage:
    """Stops a run for good, with everything that it started."""
    require_person_for_run(runs.ports, principal, run, "abort")
    return PostedMessage(run, runs.abort(run, principal.person, reason), wants_end=True)


def post_override(
    runs: RunService, principal: Principal, run: str, target_state: str, reason: str
) -> PostedMessage:
    """Waives the guard before a state, with a reason; the kernel refuses what may not be waived."""
    require_person_for_run(runs.ports, principal, run, "override")
    return PostedMessage(run, runs.override(run, target_state, principal.person, reason))


def post_revert(
    runs: RunService, principal: Principal, run: str, branch: str = "", reason: str = ""
) -> PostedMessage:
    """Takes a delivered change back by a commit on top of its branch."""
    data = {"branch": branch, "person": principal.person}
    return post_event(runs, principal, run, _event_for_word(runs, run, REVERT_WORD), data, reason)


def _event_for_word(runs: RunService, run: str, word: str) -> str:
    """The event that the run's machine gives this word; a machine without one refuses the word itself."""
    events = runs.live(run).machine.events.values()
    return next((e.name for e in events if e.action is not None and e.action.word == word), word)


def explain_refused_revert(ports: Ports, run: str) -> str:
    """Says why there is nothing to revert."""
    view = read_run_view(ports, run)
    if view.status.reverted:
        return f"it is reverted already, by commit {view.status.reverted[:12]}"
    if view.status.outcome != "approved":
        return "it has delivered nothing: only an approved change can be reverted"
    return "it has delivered nothing that could be reverted"


def require_resume_rights(runs: RunService, principal: Principal, run: str) -> None:
    """Refuses an agent that wants a run driven although `audit verify` rejects it."""
    require_person_for_run(runs.ports, principal, run, RESUME_DESPITE_VERIFY)


async def fork_run_at(
    runs: RunService, principal: Principal, run: str, entry: int | None = None
) -> ForkedRun:
    """Starts a new run as `run` was after an entry, the last one by default; nothing drives it yet."""
    require_person_for_run(runs.ports, principal, run, "fork")
    entry = entry or runs.head(run).seq
    return ForkedRun(await runs.fork(run, entry, principal.person), run, entry)


# ── by the machine's own words ──────────────────────────────────────────────────────────────────────────────────────


class ActionInput(msgspec.Struct, frozen=True, kw_only=True):
    """What a person gives with an action's word."""

    reason: str = ""
    text: str = ""  # for a choice or an event that takes words
    digest: str | None = None
    digest_prefix: str | None = None


class RunActions:
    """What a person can do with one run now, by the words that its machine gives to choices and events."""

    def __init__(self, runs: RunService, principal: Principal, run: str) -> None:
        self.runs, self.principal, self.run = runs, principal, run

    def list(self) -> tuple[LegalAction, ...]:
        """Every answer to an open gate and every event of a person that is legal now."""
        view = read_run_view(self.runs.ports, self.run)
        package = find_package(self.runs.ports.packages, view.machine)
        return package.legal_actions(view.machine, view.snapshot, view.status.gates)

    def check(self, word: str, given: ActionInput) -> CheckedAnswer | None:
        """The answer that this word gives to an open gate, with what it would accept; None for an event's word."""
        view = read_run_view(self.runs.ports, self.run)
        choice = _find_gate_choice(view.status.gates, word)
        if choice is None:
            return None
        gate, name = choice
        request = AnswerRequest(
            choice=name,
            reason=given.reason,
            text=given.text,
            digest=given.digest,
            digest_prefix=given.digest_prefix,
        )
        return check_answer(self.runs, self.principal, gate.id, request)

    def act(self, word: str, given: ActionInput | None = None) -> PostedMessage:
        """Does what the word says: answers the open gate that offers it, or sends the event; else lists what is legal."""
        given = given or ActionInput()
        answer = self.check(word, given)
        if answer is not None:
            return post_answer(self.runs, self.principal, answer)
        view = read_run_view(self.runs.ports, self.run)
        event = _find_legal_event(view.machine, view.snapshot, word)
        if event is None:
            legal = ", ".join(action.word for action in self.list()) or "nothing"
            raise ActionNotLegalNowError(f"run {self.run} takes no {word!r} now: legal now: {legal}")
        if event is view.machine.abort:
            return post_abort(self.runs, self.principal, self.run, given.reason)
        require_person_for_run(self.runs.ports, self.principal, self.run, event.name)
        return post_event(
            self.runs, self.principal, self.run, event.name, self._event_data(event, given), given.reason
        )

    def _event_data(self, event: EventDef, given: ActionInput) -> dict[str, Any]:
        """What the event carries, of what was given."""
        values = {"person": self.principal.person, "reason": given.reason}
        if has_visible_text(given.text):
            values["text"] = self.runs.text(self.run, given.text)
        return {name: value for name, value in values.items() if name in event.carries.__struct_fields__}


class ActionNotLegalNowError(UserError):
    """The action is not legal in the run's state; the message lists what is."""

    exit_code = 4


def _find_gate_choice(gates: Iterable[GateView], word: str) -> tuple[GateView, str] | None:
    offered = ((gate, choice) for gate in gates if not gate.answer for choice in gate.choices)
    return next(((gate, choice) for gate, choice in offered if word == choice_word(gate, choice)), None)


def _find_legal_event(machine: Machine, snapshot: Snapshot, word: str) -> EventDef | None:
    names = () if snapshot.ended else legal_events(machine, snapshot.state, Origin.PERSON, snapshot.context)
    events = (machine.events[name] for name in names)
    return next((event for event in events if word in (event.name, event_word(machine, event))), None)
