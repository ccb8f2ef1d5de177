"""`revert`: takes a delivered change back, by a commit of its own. **Invariant:** a person's event like any other."""

import click

from steersman.faces.deck import REFUSED, Deck, verb
from steersman.faces.speech import insider
from steersman.faces.voyage import spoken
from steersman.kernel.snapshot import fields
from steersman.runtime.projections import picture

EVENT = "revert_requested"


@verb(
    "revert",
    "steersman revert 261116-abc",
    'steersman revert 261116-abc --on release/1.2 --reason "breaks the import"',
    exits="0 taken back · 1 it could not be: nothing was changed · 2 wrong usage · 4 refused · 5 store trouble",
)
@click.argument("run")
@click.option(
    "--on", "branch", default="", metavar="BRANCH", help="Where the change is (default: where it went)."
)
@click.option("--reason", default="", help="Why; it stays on tape.")
def revert(deck: Deck, *, run: str, branch: str, reason: str) -> int:
    """Take back what RUN has delivered: a commit on top of the branch undoes it, whatever came later.

    Where later commits have changed the same lines, nothing is changed, and the files are named.
    """
    return take_back(deck, deck.bridge.find(run), branch, reason)


def take_back(deck: Deck, found: str, branch: str, reason: str) -> int:
    """Has a delivered change undone."""
    if deck.bridge.head(found).machine == "task":
        from steersman.errors import UserError
        from steersman.faces.deeds import Deeds

        if branch:
            raise UserError("a task is taken back where it was delivered to: leave --on out")
        return Deeds(deck, found).revert(reason)
    refused = insider(deck, found, EVENT)
    if refused is not None:
        return refused
    data = {"branch": branch, "person": deck.person}
    code = spoken(deck, found, deck.bridge.send(found, EVENT, data, deck.person, reason))
    if code == REFUSED:
        deck.warn(_why_not(fields(picture(deck.bridge.world, found).snapshot.context)), fg="yellow")
    return code


def _why_not(now: dict[str, object]) -> str:
    if now.get("handover") == "reverted":
        return f"it was taken back already, by commit {str(now.get('reverted_commit'))[:12]}"
    if now.get("outcome") != "approved":
        return "it has delivered nothing: only an approved change can be taken back"
    return "it has delivered nothing that could be taken back"
