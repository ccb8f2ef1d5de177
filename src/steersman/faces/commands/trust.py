"""`steersman trust`: shows what a repository's settings can do, and trusts them ahead of the first run."""

from typing import Any

import click

from steersman.errors import UserError
from steersman.faces import trust as asking
from steersman.faces.deck import DONE, ENDED, Deck, verb
from steersman.judges.powerful_parts import digest_lines


@verb(
    "trust",
    "steersman trust                    # read the lines, answer once",
    "steersman trust --show             # only read them",
    "steersman trust --digest 3f2a…     # in a script: only if they are exactly these",
    "steersman trust --revoke           # ask again before the next run",
    exits="0 trusted, shown or forgotten · 1 with --show: not trusted · 2 wrong usage · 4 refused",
)
@click.option("--show", is_flag=True, help="Print the lines and their digest; trust nothing.")
@click.option("--digest", metavar="HEX", default="", help="Trust without a question if this is their digest.")
@click.option("--revoke", is_flag=True, help="Forget that they were trusted.")
def trust(deck: Deck, *, show: bool, digest: str, revoke: bool) -> int:
    """Trust the settings of this repository: the lines of steersman.toml and the files of .steersman/ that can start
    programs, read or write outside the repository, or widen the sandbox. Until a person has trusted them they are only
    data: nothing that they name is started. Budgets, rounds and the like need no trust. A line that changes later is
    shown and asked about again, alone. What you trust is kept outside the repository, for this copy of it."""
    if show + revoke + bool(digest) > 1:
        raise UserError("--show, --digest and --revoke do different things: give one of them")
    loaded = deck.read_config()
    if revoke:
        return _revoke(deck, loaded)
    if show or (deck.as_json and not digest):
        return _show(deck, loaded)
    if digest:
        return _trust_digest(deck, loaded, digest)
    if not asking.is_trusted(deck, loaded):
        asking.require_trust(deck, loaded)
    return _trusted(deck, loaded)


def _show(deck: Deck, loaded: Any) -> int:
    lines, known = loaded.powerful, asking.is_trusted(deck, loaded)
    deck.tell(
        {
            "trusted": known,
            "digest": digest_lines(lines),
            "lines": [{"place": place, "value": value} for place, value in lines],
        }
    )
    for line in asking.list_lines(loaded):
        deck.say(line)
    deck.say("trusted" if known else f"not trusted; to trust:\n{asking.trust_command(deck, loaded)}")
    return DONE if known else ENDED


def _trust_digest(deck: Deck, loaded: Any, digest: str) -> int:
    asking.refuse_inside(deck)
    lines = loaded.powerful
    if digest != digest_lines(lines):
        raise asking.NotTrustedError(
            f"not trusted: the lines here have the digest {digest_lines(lines)}. Read them with `{deck.me} trust --show`"
        )
    asking.record_trust(deck, loaded, lines)
    return _trusted(deck, loaded)


def _trusted(deck: Deck, loaded: Any) -> int:
    lines = loaded.powerful
    deck.tell({"trusted": True, "digest": digest_lines(lines)})
    deck.say(
        f"trusted: {len(lines)} lines, digest {digest_lines(lines)}" if lines else "nothing here needs trust"
    )
    return DONE


def _revoke(deck: Deck, loaded: Any) -> int:
    asking.refuse_inside(deck)
    known = asking.revoke_trust(deck, loaded)
    deck.tell({"revoked": known})
    deck.say("no longer trusted" if known else "nothing was trusted here")
    return DONE
