"""Asks a person once before a repository's settings start programs, read, write, widen the sandbox or weaken evidence.

**Invariant:** there is no way around the question but the digest of exactly these lines; nothing inside a run can trust.
"""

import os
import re
import shlex
import shutil
import sys
import textwrap
import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import click

from steersman.errors import UserError
from steersman.judges.powerful_parts import Line, compare_lines, digest_lines, group_lines, is_file_line

if TYPE_CHECKING:
    from steersman.faces.deck import Deck

WIDTH = 80
FEW = 12  # lines that are shown one by one; more are shown in groups
FEW_FILES = 5  # files that a command names one by one
MEANING = (
    "These lines can start programs, read or write outside the repository, widen",
    "the sandbox, or weaken evidence, review and redaction:",
)
_SPACES = re.compile("[\\s\u2800]{9,}")


class NotTrustedError(UserError):
    """A person has to trust the repository's settings first; nothing was started."""

    exit_code = 4

    def __init__(self, message: str, **details: str) -> None:
        super().__init__(message)
        self.details = details  # for programs: the digest, and the command that trusts it


def require_trust(deck: "Deck", loaded: Any, *, ask: bool = True) -> None:
    """Returns when a person trusts the settings as they are; asks where a person is at a terminal, else refuses."""
    if is_trusted(deck, loaded):
        return
    refuse_inside(deck)
    if not ask or deck.as_json or not _has_terminal():
        raise NotTrustedError(_explain(deck, loaded), **trust_details(deck, loaded))
    if not ask_for_trust(deck, loaded):
        show, ask = trust_command(deck, "--show"), trust_command(deck)
        raise NotTrustedError(
            f"not trusted: nothing was started.\nnext: `{show}` lists the lines, `{ask}` asks again"
        )


def is_trusted(deck: "Deck", loaded: Any) -> bool:
    """Whether a person trusts these settings, or nothing in them needs trust."""
    return not loaded.powerful or trusted_lines(deck, loaded) == loaded.powerful


def refuse_inside(deck: "Deck") -> None:
    """Raises where this process works for a run: only a person can trust."""
    if effect := deck.helm.inside(deck.top):
        raise NotTrustedError(
            f"refused: this comes from inside, from effect {effect}: an agent never speaks for a person"
        )


def ask_for_trust(deck: "Deck", loaded: Any) -> bool:
    """Shows what a person has not trusted yet and asks; a yes is recorded."""
    from steersman.faces.haste import forget_typed

    details = trust_details(deck, loaded)
    agreed = _print_pages(deck, list(describe_lines(deck, loaded)))
    if agreed:
        forget_typed()
        count = count_lines(len(_changes(deck, loaded)))
        agreed = deck.agreed(f"trust {'this' if count == '1 line' else 'these'} {count}?", details["command"])
    if agreed:
        record_trust(deck, loaded, loaded.powerful)
    return agreed


def _print_pages(deck: "Deck", rows: Sequence[str]) -> bool:
    """Prints everything, a screen at a time; whether a person has read on to the end."""
    from steersman.faces.haste import forget_typed

    page = max(10, shutil.get_terminal_size().lines - 3)
    for number, row in enumerate(rows):
        if number and number % page == 0:
            forget_typed()
            click.echo(f"{number} of {len(rows)} rows; Enter shows more, n ends: ", nl=False, err=True)
            if sys.stdin.readline().strip().lower() not in ("", "y", "yes"):
                return False
        deck.warn(row)
    return True


def record_trust(deck: "Deck", loaded: Any, lines: Sequence[Line]) -> None:
    """Trusts these lines in the person's name."""
    from steersman.contracts.trust import Trusted

    refuse_inside(deck)
    trusted = Trusted(tuple(lines), deck.person, time.time_ns() // 1_000_000)
    deck.helm.trust_file(deck.project).record(_key(deck, loaded), trusted)


def describe_lines(deck: "Deck", loaded: Any, *, whole: bool = False) -> Iterator[str]:
    """The lines to read before trusting: all of them, or after a change only those that differ; many in groups."""
    changes, asked_before = _changes(deck, loaded), trusted_lines(deck, loaded) is not None
    new = [(place, after) for place, before, after in changes if before is None and after is not None]
    changed = [change for change in changes if None not in change]
    removed = [(place, before) for place, before, after in changes if after is None and before is not None]
    yield from (f"{describe_state(deck, loaded)}.", *MEANING)
    yield from ["new:"] if new and asked_before else []
    yield from list_lines(new, whole=whole)
    yield from ["changed:"] if changed else []
    for place, before, after in changed:
        yield from (*_wrap(f"  {place}"), *_wrap(f"    was {before}"), *_wrap(f"    now {after}"))
    yield from ["removed:"] if removed else []
    yield from list_lines(removed, whole=whole)
    if commands := _read_commands(deck, loaded, [(place, after or "") for place, _, after in changes]):
        yield from ("To read the files as a run uses them:", *(f"  {command}" for command in commands))
    if loaded.excesses:
        yield "Not allowed on this machine, trusted or not:"
        yield from (row for excess in loaded.excesses for row in _wrap(f"  {excess}"))
    if not whole and len(new) > FEW:
        yield f"One by one: {trust_command(deck, '--show')}"


def list_lines(lines: Sequence[Line], *, whole: bool = True) -> Iterator[str]:
    """Every line; where they are many and not to be whole, alike ones in one row."""
    texts = [f"{p} = {v}" for p, v in lines] if whole or len(lines) <= FEW else group_lines(lines)
    for text in texts:
        yield from _wrap(f"  {text}")


def _read_commands(deck: "Deck", loaded: Any, lines: Sequence[Line]) -> list[str]:
    """Commands that show the text behind the digests: prompts as the base commit has them, the rest as it lies here."""
    from steersman.runtime.project_files import PROMPTS

    files = [line[0] for line in lines if is_file_line(line) and line[1].startswith("sha256 ")]
    prompts = [path for path in files if path.startswith(f"{PROMPTS}/")]
    git = "git" if deck.given is None else f"git -C {shlex.quote(deck.top)}"
    shown = [f"{git} show {shlex.quote(f'{loaded.base_commit[:12]}:{path}')}" for path in prompts]
    others = [path for path in files if path not in prompts]
    if not others:
        return shown
    many = len(others) > FEW_FILES
    parts = dict.fromkeys("/".join(path.split("/")[:2]) if many else path for path in others)
    places = shlex.join(os.path.relpath(os.path.join(deck.top, part)) for part in parts)
    return [*shown, f"find {places} -type f -exec tail -n +1 {{}} +" if many else f"tail -n +1 {places}"]


def describe_state(deck: "Deck", loaded: Any) -> str:
    """What is not trusted yet, and how much of it."""
    changes, old = _changes(deck, loaded), trusted_lines(deck, loaded)
    names = list(dict.fromkeys(_name_source(deck, loaded, place) for place, _, _ in changes))
    subject, many = " and ".join(names), len(names) > 1
    if old is None:
        return f"{subject} {'are' if many else 'is'} new here: {count_lines(len(changes))}"
    kinds = [
        "new" if before is None else "removed" if after is None else "changed" for _, before, after in changes
    ]
    counts = ", ".join(f"{kinds.count(kind)} {kind}" for kind in dict.fromkeys(kinds))
    return f"{subject} {'have' if many else 'has'} changed since you trusted the settings: {counts}"


def count_lines(count: int) -> str:
    """A number of lines in words."""
    return "1 line" if count == 1 else f"{count} lines"


def trust_details(deck: "Deck", loaded: Any) -> dict[str, str]:
    """The digest of the lines and the command that trusts exactly these without a question."""
    digest = digest_lines(loaded.powerful)
    return {"digest": digest, "command": trust_command(deck, f"--digest {digest}")}


def trust_command(deck: "Deck", option: str = "") -> str:
    """`steersman trust` as it is typed from here."""
    where = "" if deck.given is None else f" --project {shlex.quote(deck.start)}"
    return f"steersman{where} trust {option}".rstrip()


def revoke_trust(deck: "Deck", loaded: Any) -> bool:
    """Forgets what was trusted; whether anything was."""
    known: bool = deck.helm.trust_file(deck.project).revoke(_key(deck, loaded))
    return known


def _explain(deck: "Deck", loaded: Any) -> str:
    count = count_lines(len(_changes(deck, loaded)))
    return (
        f"not trusted yet: {describe_state(deck, loaded)}. Nothing was started.\n"
        f"Read {count} with `{trust_command(deck, '--show')}`, then trust with\n{trust_details(deck, loaded)['command']}"
    )


def _changes(deck: "Deck", loaded: Any) -> list[tuple[str, str | None, str | None]]:
    return compare_lines(trusted_lines(deck, loaded) or (), loaded.powerful)


def trusted_lines(deck: "Deck", loaded: Any) -> tuple[Line, ...] | None:
    """What a person has trusted here; None where nothing was."""
    trusted = deck.helm.trust_file(deck.project).read(_key(deck, loaded))
    return None if trusted is None else trusted.lines


def _key(deck: "Deck", loaded: Any) -> str:
    """One repository can hold several settings files; each is trusted by its path."""
    return os.path.relpath(loaded.path, deck.top) if loaded.path is not None else ""


def _name_source(deck: "Deck", loaded: Any, place: str) -> str:
    """The file or folder that a line comes from."""
    if not is_file_line((place, "")):
        return _key(deck, loaded)
    return ".steersman/" if place.startswith(".steersman/") else place


def _wrap(text: str) -> list[str]:
    """Whole, however long: a person trusts nothing that was not shown; no run of spaces pushes text out of sight."""
    text = _SPACES.sub(lambda spaces: f"[{len(spaces[0])} spaces]", text)
    keep = {"drop_whitespace": False, "replace_whitespace": False, "expand_tabs": False}
    rows = textwrap.wrap(text, WIDTH - 2, subsequent_indent=" " * 8, break_on_hyphens=False, **keep)
    return [row for row in rows if row.strip()]


def _has_terminal() -> bool:
    return sys.stdin is not None and sys.stdin.isatty()
