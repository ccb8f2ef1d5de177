"""`steersman trust`: shows what a repository's settings can do, and trusts them ahead of the first run."""

from typing import Any

import click

from steersman.errors import UserError
from steersman.faces import trust as asking
from steersman.faces.deck import DONE, ENDED, Deck, verb


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
    programs, read or write outside the repository, widen the sandbox, or weaken evidence, review and redaction. Until a
    person has trusted them they are only data: nothing that they name is started. Budgets, rounds and timeouts need no
    trust. A line that changes later is shown and asked about again, alone. What you trust is kept outside the
    repository, for this copy of it."""
    if show + revoke + bool(digest) > 1:
        raise UserError("--show, --digest and --revoke do different things: give one of them")
    loaded = deck.read_config(only_look=True)
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
    old = asking.trusted_lines(deck, loaded) or ()
    deck.tell(
        {
            "trusted": known,
            **asking.trust_details(deck, loaded),
            "lines": [{"place": p, "value": v, "trusted": (p, v) in old} for p, v in lines],
            "not_allowed": loaded.excesses,
        }
    )
    for row in () if known else asking.describe_lines(deck, loaded, whole=True):
        deck.say(row)
    if same := [line for line in lines if line in old]:
        deck.say("trusted:")
    for row in asking.list_lines(same):
        deck.say(row)
    if not lines:
        deck.say("nothing here needs trust")
    elif not known:
        deck.say(f"not trusted; to trust:\n{asking.trust_details(deck, loaded)['command']}")
    return DONE if known else ENDED


def _trust_digest(deck: Deck, loaded: Any, digest: str) -> int:
    asking.refuse_inside(deck)
    details = asking.trust_details(deck, loaded)
    if digest.lower() != details["digest"]:
        show = asking.trust_command(deck, "--show")
        raise asking.NotTrustedError(
            f"not trusted: the lines here have the digest {details['digest']}. Read them with `{show}`",
            **details,
        )
    asking.record_trust(deck, loaded, loaded.powerful)
    return _trusted(deck, loaded)


def _trusted(deck: Deck, loaded: Any) -> int:
    lines, digest = loaded.powerful, asking.trust_details(deck, loaded)["digest"]
    deck.tell({"trusted": True, "digest": digest})
    count = asking.count_lines(len(lines))
    deck.say(f"trusted: {count}, digest {digest}" if lines else "nothing here needs trust")
    return DONE


def _revoke(deck: Deck, loaded: Any) -> int:
    asking.refuse_inside(deck)
    known = asking.revoke_trust(deck, loaded)
    deck.tell({"revoked": known})
    deck.say("no longer trusted" if known else "nothing was trusted here")
    return DONE
