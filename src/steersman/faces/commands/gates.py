"""`steersman gates`: what waits for a person's answer."""

from typing import TYPE_CHECKING

import click
import msgspec

from steersman.errors import SteersmanError
from steersman.faces.deck import Deck, verb
from steersman.views.gates import EVIDENCE, EXCERPT, SHOWN, asked, commands, gate_reason, question

if TYPE_CHECKING:
    from steersman.ports.journal import Gate
    from steersman.views.base_stop import Remedy
    from steersman.views.status import Text


@verb(
    "gates",
    "steersman gates",
    "steersman gates 261116-abc --full",
    exits="0 done · 2 wrong usage · 5 store trouble",
)
@click.argument("run", required=False)
@click.option("--full", is_flag=True, help="The whole texts the gate is about.")
def gates(deck: Deck, *, run: str | None, full: bool) -> None:
    """What waits for a person's answer, with the texts it is about and the commands that answer; of RUN, or of all runs,
    then with the beginning of each text."""
    if not run and not deck.has_store():
        deck.tell([])
        deck.say("nothing waits for you")
        return
    found = deck.sight.find(run) if run else None
    waiting = [g for g in deck.sight.world.journal.gates(found) if not g.answer]
    from steersman.runtime.projections import not_isolated, overrides
    from steersman.views.base_stop import remedy_lines
    from steersman.views.status import waiver

    still = {g.id: _stands_still(deck, g) for g in waiting}
    open_ = {g.run: not_isolated(deck.sight.world, g.run) for g in waiting}
    texts = {g.run: _texts(deck, g.run, alone=run is not None) for g in waiting}
    waived = {g.run: overrides(deck.sight.world, g.run) for g in waiting}
    deck.tell(
        [
            {
                **msgspec.to_builtins(g),
                "question": question(g),
                "why": still[g.id][0] or gate_reason(g, texts[g.run]),
                "commands": commands(g, deck.me),
                "not_isolated": open_[g.run],
                "overrides": waived[g.run],
                "remedies": still[g.id][2],
            }
            for g in waiting
        ]
    )
    for name, why in ({} if run else deck.sight.world.journal.quarantined()).items():
        deck.warn(f"run {name} is put aside: {why}: {deck.me} audit verify {name}", fg="red")
    if not waiting:
        deck.say("nothing waits for you")
    titles = {h.run: h.title for h in deck.sight.world.journal.heads(unfinished=True, limit=100_000)}
    most = None if full else SHOWN if run else EXCERPT
    for gate in waiting:
        text = texts[gate.run]
        deck.say(f"run {gate.run} · {titles.get(gate.run, '')}", bold=True)
        why, more, remedies = still[gate.id]
        past = [waiver(o) for o in waived[gate.run]]
        told = asked(
            gate, text, deck.me, most=most, not_isolated=open_[gate.run], cause=why, more=more, waived=past
        )
        failures = _failure_lines(deck, gate) if run else []
        for line in (*failures, *told, *([""] if remedies else []), *remedy_lines(remedies)):
            deck.say(line)
        deck.say()


def _failure_lines(deck: Deck, gate: "Gate") -> list[str]:
    """What failed among the results that are in question: command, end, and last lines."""
    if gate.job != EVIDENCE:
        return []
    from steersman.runtime.projections import picture

    try:
        checks = picture(deck.sight.world, gate.run).status.checks
    except SteersmanError:  # that it cannot be read is told with its texts
        return []
    return [line for c in checks for line in c.failure]


def _stands_still(deck: Deck, gate: "Gate") -> "tuple[str, list[str], list[Remedy]]":
    """Of a task that cannot go on: why, what is legal beside the answer, and what helps where its base tree is red."""
    if gate.job != "again":
        return "", [], []
    from steersman.runtime.projections import picture
    from steersman.views.screen import stop_remedies
    from steersman.views.ways import command

    try:
        seen = picture(deck.sight.world, gate.run).status
    except SteersmanError:  # that it cannot be read is told with its texts
        return "", [], []
    more = [command(word, gate.run, deck.me) for word in seen.besides]
    return seen.cause, more, stop_remedies(seen, deck.me) if seen.base_problem else []


def _texts(deck: Deck, run: str, *, alone: bool) -> "Text":
    """The texts of a run; among others, one that cannot be read does not hide what else waits."""
    from steersman.runtime.projections import reading

    try:
        return reading(deck.sight.live(run))
    except SteersmanError as error:
        if alone:
            raise
        trouble = f"(this text cannot be read: {error})"
        return lambda _: trouble
