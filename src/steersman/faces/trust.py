"""Asks a person once before a repository's settings start programs, read, write or widen the sandbox.

**Invariant:** there is no way around the question but the digest of exactly these lines; nothing inside a run can trust.
"""

import os
import shlex
import sys
import textwrap
import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from steersman.errors import UserError
from steersman.judges.powerful_parts import Line, compare_lines, digest_lines

if TYPE_CHECKING:
    from steersman.faces.deck import Deck

WIDTH = 80
MEANING = (
    "These lines can start programs, read or write outside the repository,",
    "or widen the sandbox:",
)


class NotTrustedError(UserError):
    """A person has to trust the repository's settings first; nothing was started."""

    exit_code = 4


def require_trust(deck: "Deck", loaded: Any, *, ask: bool = True) -> None:
    """Returns when a person trusts the settings as they are; asks where a person is at a terminal, else refuses."""
    if is_trusted(deck, loaded):
        return
    refuse_inside(deck)
    if not ask or deck.as_json or not _has_terminal():
        raise NotTrustedError(_explain(deck, loaded))
    if not ask_for_trust(deck, loaded):
        raise NotTrustedError(f"not trusted: nothing of {_name(deck, loaded)} was started")


def is_trusted(deck: "Deck", loaded: Any) -> bool:
    """Whether a person trusts these settings, or nothing in them needs trust."""
    return not loaded.powerful or _trusted_lines(deck, loaded) == loaded.powerful


def refuse_inside(deck: "Deck") -> None:
    """Raises where this process works for a run: only a person can trust."""
    if effect := deck.helm.inside(deck.top):
        raise NotTrustedError(
            f"refused: this comes from inside, from effect {effect}: an agent never speaks for a person"
        )


def ask_for_trust(deck: "Deck", loaded: Any) -> bool:
    """Shows what a person has not trusted yet and asks; a yes is recorded."""
    from steersman.faces.haste import forget_typed

    for line in describe_lines(deck, loaded):
        deck.warn(line)
    forget_typed()
    agreed = deck.agreed("trust them?", trust_command(deck, loaded))
    if agreed:
        record_trust(deck, loaded, loaded.powerful)
    return agreed


def record_trust(deck: "Deck", loaded: Any, lines: Sequence[Line]) -> None:
    """Trusts these lines in the person's name."""
    from steersman.contracts.trust import Trusted

    refuse_inside(deck)
    trusted = Trusted(tuple(lines), deck.person, time.time_ns() // 1_000_000)
    deck.helm.trust_file(deck.project).record(_key(deck, loaded), trusted)


def describe_lines(deck: "Deck", loaded: Any) -> Iterator[str]:
    """The lines to read before trusting: all of them, or after a change only those that differ."""
    old, name = _trusted_lines(deck, loaded), _name(deck, loaded)
    if old is None:
        yield from (f"{name} is new here.", *MEANING)
        yield from list_lines(loaded)
        return
    yield from (f"{name} has changed since you trusted it.", *MEANING)
    for place, before, after in compare_lines(old, loaded.powerful):
        yield from _wrap(f"  {place}")
        yield from _wrap(f"    was {before if before is not None else '(not there)'}")
        yield from _wrap(f"    now {after if after is not None else '(not there)'}")


def list_lines(loaded: Any) -> Iterator[str]:
    """Every line that needs trust, whole."""
    for place, value in loaded.powerful:
        yield from _wrap(f"  {place} = {value}")


def trust_command(deck: "Deck", loaded: Any) -> str:
    """The command that trusts exactly these settings without a question."""
    where = "" if deck.given is None else f" --project {shlex.quote(deck.start)}"
    return f"steersman{where} trust --digest {digest_lines(loaded.powerful)}"


def revoke_trust(deck: "Deck", loaded: Any) -> bool:
    """Forgets what was trusted; whether anything was."""
    known: bool = deck.helm.trust_file(deck.project).revoke(_key(deck, loaded))
    return known


def _explain(deck: "Deck", loaded: Any) -> str:
    old = _trusted_lines(deck, loaded)
    count = len(loaded.powerful if old is None else compare_lines(old, loaded.powerful))
    what = "is not trusted yet" if old is None else "has changed since it was trusted"
    lines = "1 line" if count == 1 else f"{count} lines"
    show = trust_command(deck, loaded).partition(" --digest")[0]
    return (
        f"{_name(deck, loaded)} {what}: nothing was started.\n"
        f"Read {lines} with `{show} --show`, then trust with\n{trust_command(deck, loaded)}"
    )


def _trusted_lines(deck: "Deck", loaded: Any) -> tuple[Line, ...] | None:
    trusted = deck.helm.trust_file(deck.project).read(_key(deck, loaded))
    return None if trusted is None else trusted.lines


def _key(deck: "Deck", loaded: Any) -> str:
    """One repository can hold several settings files; each is trusted by its path."""
    return os.path.relpath(loaded.path, deck.top) if loaded.path is not None else ""


def _name(deck: "Deck", loaded: Any) -> str:
    return _key(deck, loaded) or ".steersman/"


def _wrap(text: str) -> list[str]:
    """Whole, however long: a person trusts nothing that was not shown."""
    keep = {"drop_whitespace": False, "replace_whitespace": False, "expand_tabs": False}
    return textwrap.wrap(text, WIDTH - 2, subsequent_indent=" " * 8, break_on_hyphens=False, **keep)


def _has_terminal() -> bool:
    return sys.stdin is not None and sys.stdin.isatty()
