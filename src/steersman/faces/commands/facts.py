"""`steersman facts`: what the project's own files say about it, with the line that says so. Nothing is written."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, get_args

import click
import msgspec

from steersman.contracts.planning.context import FactKind
from steersman.faces.deck import DONE, Deck, verb

if TYPE_CHECKING:
    from steersman.contracts.planning.context import Evidence, Fact, FactPack

KINDS = get_args(FactKind)
WIDE = 44  # columns for a name


@verb(
    "facts",
    "steersman facts",
    "steersman facts --kind test_command --kind ci",
    "steersman facts --json",
    exits="0 scanned · 2 wrong usage",
)
@click.option(
    "--kind", "kinds", multiple=True, type=click.Choice(KINDS), help="Only this kind; may be repeated."
)
def facts(deck: Deck, *, kinds: tuple[str, ...]) -> int:
    """Look the project over and show what its own files say: languages, frameworks, packages, commands, CI, owners.

    Each fact has the file and line that says so. Vendored folders, ignored files and links are left out; files that
    look like they keep secrets are named and never opened. Planning goes by these facts, and `init` by the same."""
    deck.quiet = True
    pack = deck.helm.scanner(deck.project).scan(deck.project.name[:120] or "project")
    shown = tuple(fact for fact in pack.facts if not kinds or fact.kind in kinds)
    cited = {name for fact in shown for name in fact.evidence}
    deck.tell(
        msgspec.structs.replace(pack, facts=shown, evidence=tuple(e for e in pack.evidence if e.id in cited))
    )
    for line in _lines(shown, {e.id: e for e in pack.evidence}):
        deck.say(line)
    for why in pack.bounds.unread:
        deck.say(f"cannot be read: {why}", fg="yellow")
    deck.say(_bounds(pack), fg=None if pack.bounds.complete else "yellow")
    return DONE


def _lines(shown: "tuple[Fact, ...]", evidence: "dict[str, Evidence]") -> Iterator[str]:
    kind = ""
    for fact in shown:
        if fact.kind != kind:
            kind = fact.kind
            yield kind
        place = evidence[fact.evidence[0]]
        at = f"{place.source_file}:{place.first_line}" if place.first_line else place.source_file
        said = f"{fact.name}  {fact.value}".strip()
        within = f"  (in {fact.root})" if fact.root != "." else ""
        yield f"  {said:{WIDE}}  {at}{within}"


def _bounds(pack: "FactPack") -> str:
    b = pack.bounds
    read = f"{b.files_seen} files seen, {b.files_read} read, {b.skipped} left out"
    return f"{read}; complete" if b.complete else f"{read}; not complete: {b.stopped_by}"
