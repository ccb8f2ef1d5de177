"""What is said when a run parks, stops or has its outcome: the outcome, what is asked, and what to type next."""

from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

from steersman.faces.deck import DONE, ENDED, Deck
from steersman.ports.journal import Gate
from steersman.runtime.projections import Picture, picture
from steersman.views.acceptance import acceptance
from steersman.views.base_stop import start_again_command
from steersman.views.gates import EVIDENCE, asked, commands
from steersman.views.moments import span
from steersman.views.phase import phase_lines
from steersman.views.screen import check, finding, stop_lines, stop_remedies
from steersman.views.status import Check
from steersman.views.ways import command
from steersman.views.why import FOLLOWUP, redelivery, undelivered, unreverted

LISTED = 10
DETAIL = 24  # lines of why it stopped
SHOWN = 100  # lines of a change; all of them are shown to whoever accepts it


def tell_ending(deck: Deck, run: str, code: int) -> int:
    """For people in words, for programs the status with the exit code; gives that code, which is not 0 where an
    approved change could not be handed over, or not be taken back."""
    seen = picture(deck.bridge.world, run)
    if code == DONE and (undelivered(seen.snapshot) or unreverted(seen.snapshot)):
        code = ENDED
    _tell(deck, seen, code)
    return code


def _tell(deck: Deck, seen: Picture, code: int) -> None:
    if deck.as_json:
        told = {**msgspec.to_builtins(seen.status), "exit_code": code, "next": _next(deck, seen)}
        deck.tell(told if seen.live.machine.tree else {**told, **_plan(seen)})
        return
    s = seen.status
    match s.status:
        case "done" | "stopped":
            _outcome(deck, seen)
        case "waiting for you":
            for gate in (g for g in s.gates if not g.answer):
                _tell_gate(deck, seen, gate)
        case _:
            deck.say(f"run {s.run} is let go in {s.state}, nothing is lost")
            for line in () if deck.prompting else _next(deck, seen):
                deck.say(f"  {line}")


def _tell_gate(deck: Deck, seen: Picture, gate: Gate) -> None:
    """What a gate is about, in words where there are some, and what it asks."""
    told: list[str] = []
    if gate.job == "next":
        told = phase_lines(seen.snapshot, seen.text)
    elif gate.job == "decide":
        told = acceptance(seen.snapshot, seen.status, gate, seen.text, most=SHOWN)
        gate = replace(gate, shown={n: ref for n, ref in gate.shown.items() if n == "detail"})
    more = [command(word, seen.status.run, deck.me) for word in seen.status.besides if gate.job == "again"]
    why = seen.status.cause if gate.job == "again" else ""
    if gate.job in ("again", EVIDENCE):
        told = [line for c in seen.status.checks for line in c.failure]
    if gate.job == "again" and seen.status.base_problem:
        told = stop_lines(seen.status, "" if deck.prompting else deck.me)
        gate = replace(gate, shown={})
    lines = asked(gate, seen.text, deck.me, not_isolated=seen.status.not_isolated, cause=why, more=more)
    for line in (*told, *(lines[: lines.index("answer with:")] if deck.prompting else lines)):
        deck.say(line)


def _outcome(deck: Deck, seen: Picture) -> None:
    s = seen.status
    good = s.status == "done"
    deck.say(
        f"run {s.run}: {s.outcome} after {span(s.at - s.created)}", fg="green" if good else "red", bold=True
    )
    if not seen.live.machine.tree:
        _tell_plan(deck, seen)
        return
    if s.base_problem:
        _tell_base_stop(deck, seen)
        return
    for line in check_lines(s.checks[:LISTED]):
        deck.say(f"  {line}")
    for f in [f for f in s.findings if f.state == "open"][:LISTED]:
        deck.say(f"  open {finding(f)}")
    if s.delivered:
        deck.say(f"  delivered as {s.delivered.removeprefix('refs/heads/')} at {s.commit[:12]}")
        if s.url:
            deck.say(f"  draft pull request: {s.url}")
        if s.reverted:
            deck.say(f"  taken back by commit {s.reverted[:12]}")
        if unreverted(seen.snapshot):
            deck.say("  it could not be taken back, and nothing was changed:", fg="red")
    elif undelivered(seen.snapshot):
        deck.say("  the delivery failed:", fg="red")
    elif good:
        deck.say("  not delivered: see why it stopped")
    for line in s.detail.splitlines()[:DETAIL]:
        deck.say(f"  {line}")
    for run in _followers(deck, seen):
        deck.say(f"  task {run} waits for this one")
    deck.say("next:")
    for line in _next(deck, seen):
        deck.say(f"  {line}")


def check_lines(checks: Sequence[Check]) -> list[str]:
    """One line for each check, and below the first that did not pass why."""
    bad = next((c for c in checks if c.failure), None)
    return [line for c in checks for line in (c.failure if c is bad else [f"check {check(c)}"])]


def _tell_base_stop(deck: Deck, seen: Picture) -> None:
    for line in stop_lines(seen.status, "" if deck.prompting else deck.me):
        deck.say(f"  {line}")


def _followers(deck: Deck, seen: Picture) -> list[str]:
    """The tasks that wait for a task that is accepted."""
    if seen.status.machine != "task" or seen.status.outcome != "accepted":
        return []
    from steersman.faces.tasks import followers

    return followers(deck, seen.status.run)


def _plan(seen: Picture) -> dict[str, Any]:
    """What a planning run has brought, for programs."""
    from steersman.views.planning.outcome import failure_of, summary_of

    return {
        "plan": plan_folder(seen) or None,
        "summary": msgspec.to_builtins(summary_of(seen.snapshot, seen.text, seen.entries)),
        "failure": msgspec.to_builtins(failure_of(seen.snapshot, seen.text)),
    }


def plan_folder(seen: Picture) -> str:
    """Where the frozen plan of a run lies; nothing where there is none."""
    if seen.snapshot.state != "DONE":
        return ""
    world, out = seen.live.world, seen.text(seen.snapshot.context.out_ref)
    return out or (world.planning().plans.place(seen.snapshot.run) if world.planning is not None else "")


def _tell_plan(deck: Deck, seen: Picture) -> None:
    from steersman.views.planning.outcome import outcome_lines

    for line in outcome_lines(seen.snapshot, seen.text, seen.entries):
        deck.say(f"  {line}")
    folder = plan_folder(seen)
    if folder:
        deck.say(f"  frozen in {folder}")
    deck.say("next:")
    for line in _next(deck, seen):
        deck.say(f"  {line}")


def _next(deck: Deck, seen: Picture) -> list[str]:
    s: Any = seen.status
    if not seen.live.machine.tree and s.status in ("done", "stopped"):
        folder = plan_folder(seen)
        look = [f"{deck.me} plan verify {folder}"] if folder else []
        return [f"{deck.me} plan explain {s.run}", *look, f"{deck.me} audit tape {s.run} --as runtape"]
    match s.status:
        case "waiting for you":
            return [c for g in s.gates if not g.answer for c in commands(g, deck.me)]
        case "done":
            look = (
                [f"git diff {s.base[:12]} {s.delivered.removeprefix('refs/heads/')}"] if s.delivered else []
            )
            again = [redelivery(s.run, deck.me)] if undelivered(seen.snapshot) else []
            then = [f"{deck.me} tasks next {run}" for run in _followers(deck, seen)]
            return [*again, *then, *look, f"{deck.me} report {s.run}", f"{deck.me} audit verify {s.run}"]
        case "stopped" if s.base_problem:
            return [r.command for r in stop_remedies(s, deck.me)]
        case "stopped" if s.outcome == "setup_failed":
            begin = start_again_command(s.machine, s.title, deck.me)
            return [f"edit [worktree] setup in steersman.toml, then {deck.me} init --check", begin]
        case "stopped":
            again = f'{deck.me} followup {s.run} "what to do differently"'
            return [f"{deck.me} show {s.run}", *([again] if FOLLOWUP in seen.live.machine.events else [])]
        case _:
            return [f"{deck.me} resume {s.run}", f"{deck.me} why {s.run}"]
