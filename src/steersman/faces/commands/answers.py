"""`approve`, `accept-evidence`, `rework`, `reject`, `answer`: a person answers a gate, once; the loser of a race is told."""

from typing import Any

import click

from steersman.errors import UserError
from steersman.faces.deck import Deck, verb
from steersman.faces.speech import insider
from steersman.faces.voyage import spoken
from steersman.judges.text import visible
from steersman.ports.journal import Gate
from steersman.views.gates import EVIDENCE, PREFIX, commands, gate_reason

_gate = click.argument("gate", metavar="RUN_OR_GATE")
_reason = click.option("--reason", default="", help="Why; it stays on tape.")
_digest = click.option(
    "--digest", default=None, help="Answer only if this is what the gate is about: the digest you looked at."
)


@verb("approve", "steersman approve 261116-abc", 'steersman approve 261116-abc --reason "looks right"')
@_gate
@_reason
@_digest
def approve(deck: Deck, *, gate: str, reason: str, digest: str | None) -> int:
    """Answer a gate: yes. The run is then driven on until it parks or ends."""
    return answered(deck, gate, "approve", digest, reason=reason)


@verb(
    "accept-evidence",
    "steersman gates 261116-abc   # look first: it says why, and the digest",
    "steersman accept-evidence 261116-abc 1a2b3c4d",
)
@_gate
@click.argument("digest", metavar="DIGEST-PREFIX", default="")
@_reason
def accept_evidence(deck: Deck, *, gate: str, digest: str, reason: str) -> int:
    """Accept the results that an evidence gate questions. DIGEST-PREFIX is at least the first 8 characters of its digest."""
    return accept_looked_at(deck, gate, digest, reason)


@verb("rework", 'steersman rework 261116-abc "keep the old function as an alias"')
@_gate
@click.argument("text")
@_reason
@_digest
def rework(deck: Deck, *, gate: str, text: str, reason: str, digest: str | None) -> int:
    """Answer a gate: again, and TEXT is what to change."""
    found = open_gate(deck, gate)
    ref = deck.bridge.text(found.run, _some(text))
    return answered(deck, gate, "rework", digest, reason=reason, text=ref)


@verb(
    "reject",
    "steersman reject 261116-abc",
    'steersman reject 261116-abc --reason "we do not want this"',
    exits="0 the run has stopped as asked · 2 wrong usage · 3 waiting for someone · 4 refused · 5 store trouble",
)
@_gate
@_reason
@_digest
def reject(deck: Deck, *, gate: str, reason: str, digest: str | None) -> int:
    """Answer a gate: no. The run ends without approval."""
    return answered(deck, gate, "reject", digest, reason=reason)


@verb(
    "answer",
    "steersman answer 261116-abc raise --tokens 2000000",
    "steersman answer 261116-abc raise --usd 12.50 --hours 8",
    "steersman answer 261116-abc stop",
)
@_gate
@click.argument("choice")
@click.option("--usd", default=None, metavar="N", help="The new limit in dollars.")
@click.option("--tokens", type=click.IntRange(1), default=None, help="The new limit of tokens.")
@click.option("--turns", type=click.IntRange(1), default=None, help="The new limit of agent calls.")
@click.option("--hours", default=None, metavar="N", help="The new limit of working time.")
@_reason
@_digest
def answer(deck: Deck, *, gate: str, choice: str, reason: str, digest: str | None, **limits: Any) -> int:
    """Answer a gate with one of its own CHOICEs. A budget gate takes `raise`, with at least one new limit, or `stop`."""
    return chosen(deck, gate, choice, limits, digest, reason)


def chosen(
    deck: Deck, gate: str, choice: str, limits: dict[str, Any], digest: str | None = None, reason: str = ""
) -> int:
    """One of a gate's own choices; `raise` with new limits as a person writes them."""
    given = _limits(limits)
    found = open_gate(deck, gate)
    if choice in found.choices:  # what a gate does not offer, it says itself
        if choice == "raise" and not given:
            raise UserError("raise what? give the new limit: --usd, --tokens, --turns or --hours")
        if choice != "raise" and given:
            raise UserError(f"limits go with `raise`, not with `{choice}`")
        _higher(deck, found.run, given)
    return answered(deck, gate, choice, digest, reason=reason, **({"limits": given} if given else {}))


def open_gate(deck: Deck, name: str) -> Gate:
    """An open gate by its id, or the only one of a run; who comes too late is told who was first."""
    prefix, colon, rest = name.partition(":")
    run = deck.bridge.find(prefix)
    wanted = f"{run}:{rest}" if colon else run
    # One look: between two of them somebody else may answer.
    waiting = [g for g in deck.bridge.world.journal.gates(run) if not g.answer]
    meant = [g for g in waiting if wanted in (g.id, run)]
    if len(meant) == 1:
        return meant[0]
    if meant:
        raise UserError(f"run {run} has several gates, name one: {', '.join(g.id for g in meant)}")
    told = _last_word(deck, run, wanted)
    if told is None and waiting:
        raise UserError(f"run {run} has no gate {wanted}: it asks at {', '.join(g.id for g in waiting)}")
    raise _LateError(f"{told or f'run {run} asks nothing now'}: see `{deck.me} why {run}`")


class _LateError(UserError):
    """There is nothing to answer."""

    exit_code = 4


def _last_word(deck: Deck, run: str, wanted: str) -> str | None:
    """Why there is nothing to answer: somebody was first, or has canceled the run that asked."""
    answered = [g for g in deck.bridge.world.journal.gates(run) if g.answer]
    waits = next((g for g in answered if wanted in (run, g.id)), None)
    if waits is not None:
        return f"gate {waits.id} was answered already: {waits.person} has answered {waits.answer}"
    from steersman.kernel.tape import read
    from steersman.views.status import person

    entries = [read(body) for _, body, _ in deck.bridge.world.journal.rows(run)]
    end = next((e for e in entries if e.ended), None)
    if end is not None and wanted == run:
        return f"run {run} was {end.ended} by {person(end.actor)} (entry {end.seq})"
    asked = {i.id for e in entries for i in e.planned if i.kind == "gate" and wanted in (run, i.id)}
    for e in reversed(entries):
        if e.cause in asked:
            choice = e.data.get("choice", "") if isinstance(e.data, dict) else ""
            return f"gate {e.cause} was answered already: {person(e.actor)} has answered {choice} (entry {e.seq})"
    return None


def accept_looked_at(deck: Deck, name: str, prefix: str, reason: str = "") -> int:
    """The yes to an evidence gate; `prefix` shows which digest was looked at."""
    return answered(deck, name, "approve", None, prefix=prefix, reason=reason)


def answered(
    deck: Deck, name: str, choice: str, digest: str | None, *, prefix: str | None = None, **more: Any
) -> int:
    """A gate's answer, and what became of it."""
    found = open_gate(deck, name)
    refused = insider(deck, found.run, choice)
    if refused is not None:
        return refused
    why, word = "", choice
    if prefix is not None or (found.job, choice) == (EVIDENCE, "approve"):
        why, word = _check_prefix(deck, found, prefix), "accept-evidence"
        digest = found.digest
    if (found.job, choice) == ("others", "begin"):
        from steersman.faces.deeds import with_reason

        with_reason(str(more.get("reason", "")))
    if (found.job, choice) == ("decide", "approve"):
        _show_accepted(deck, found)
    told = {key: value for key, value in more.items() if value}
    posted = deck.bridge.answer(found, choice, deck.person, digest=digest, **told)
    deck.say(f"{deck.person}: {word} · gate {found.id}{f' · {why}' if why else ''}")
    return spoken(deck, found.run, posted, wanted_end=_ends(found, choice))


class _NotAcceptedError(UserError):
    """The evidence was not accepted."""

    exit_code = 4


def _check_prefix(deck: Deck, gate: Gate, prefix: str | None) -> str:
    """Why the evidence gate is open; refuses a yes without the beginning of the digest that was looked at."""
    if gate.job != EVIDENCE:
        typed = "; ".join(commands(gate, deck.me))
        raise _NotAcceptedError(f"gate {gate.id} does not ask about evidence: it is answered by {typed}")
    from steersman.runtime.projections import reading

    why = gate_reason(gate, reading(deck.bridge.live(gate.run)))
    if prefix is not None and len(prefix) >= PREFIX and gate.digest.startswith(prefix):
        return why
    wrong = (
        "approve does not accept evidence"
        if prefix is None
        else f"the first {PREFIX} characters of its digest are needed{f', {prefix!r} are not those' if prefix else ''}"
    )
    look, word = (
        ("/why` and `/diff", "/accept-evidence") if deck.prompting else (f"{deck.me} gates {gate.run}", "")
    )
    line = f"{word} {gate.digest[:PREFIX]}" if word else commands(gate, deck.me)[0]
    raise _NotAcceptedError(
        f"gate {gate.id} was not answered: {wrong}.\n{why}\nRead it with `{look}`, then type `{line}`"
    )


def _show_accepted(deck: Deck, gate: Gate) -> None:
    """Whatever the word is by which a task's change is accepted, exactly that is shown first."""
    from steersman.faces.deeds import Deeds

    for line in Deeds(deck, gate.run).accepted(gate):
        deck.say(line)


def _ends(gate: Gate, choice: str) -> bool:
    """Whether the answer asks the run to stop: then its stopping is what was wanted."""
    return choice == "stop" or (choice == "reject" and gate.job not in ("merge", "recheck"))


def _higher(deck: Deck, run: str, limits: dict[str, int]) -> None:
    """A raise is upwards: a limit that is there already is not lowered by a slip."""
    from steersman.views.moments import LABELS, amount

    rows = deck.bridge.world.journal.budget(deck.bridge.head(run).root)
    bound = {row.name for row in rows if row.limit is not None}
    for name in limits.keys() - bound:
        raise UserError(f"this run has no limit on {LABELS.get(name, name)}: raise one that it has")
    for row in rows:
        new = limits.get(row.name)
        if new is not None and row.limit is not None and new <= row.limit:
            told = f"{LABELS.get(row.name, row.name)}: {amount(row.name, row.limit)}"
            raise UserError(f"the limit is there already ({told}): give a higher one")


def _limits(given: dict[str, Any]) -> dict[str, int]:
    limits: dict[str, int] = {n: given[n] for n in ("tokens", "turns") if given.get(n) is not None}
    if given.get("usd") is not None:
        limits["micro_usd"] = _amount(given["usd"], "--usd", 1_000_000)
    if given.get("hours") is not None:
        limits["ms"] = _amount(given["hours"], "--hours", 3_600_000)
    return limits


def _amount(words: str, option: str, units: int) -> int:
    from decimal import ROUND_CEILING, Decimal, InvalidOperation

    try:
        exact = Decimal(words) * units
        if not exact.is_finite() or exact <= 0 or exact >= 2**53:
            raise InvalidOperation  # noqa: TRY301  told like any other number that is none
    except InvalidOperation:
        raise UserError(
            f"{option} {words!r} is not an amount above 0: write {option} 8 or {option} 0.5"
        ) from None
    return int(exact.to_integral_value(ROUND_CEILING))


def _some(text: str) -> str:
    if not visible(text):
        raise UserError('rework needs words: steersman rework RUN "what to change"')
    return text
