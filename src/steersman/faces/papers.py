"""The documents of a task for a person's eyes: which there are, whether the disk still has them, and one in full.

**Invariant:** what is shown is what was recorded; where the disk has something else, that is said beside it.
"""

from collections.abc import Iterator

import msgspec

from steersman.contracts.task.words import PATCH, STATE, TRANSCRIPT
from steersman.errors import UserError
from steersman.faces.deck import Deck
from steersman.kernel.snapshot import fields
from steersman.runtime.projections import Picture, picture

BESIDE = (STATE, TRANSCRIPT, "report.md")  # projections: made from the tape whenever they are wanted


class Paper(msgspec.Struct, frozen=True):
    """One document and how the disk compares."""

    name: str
    digest: str
    disk: str  # as recorded | changed | missing | no plain file …


def papers(deck: Deck, run: str) -> list[Paper]:
    """Every document of a run, in the order of their names."""
    from steersman.runtime.looking import digests

    recorded: dict[str, str] = fields(deck.sight.live(run).snapshot.context).get("artifacts", {})
    found = digests(deck.sight.world.artifacts, run, recorded)
    return [Paper(name, digest, _compared(digest, found[name])) for name, digest in sorted(recorded.items())]


def _compared(recorded: str, found: str) -> str:
    if recorded == found:
        return "as recorded"
    return "NOT as recorded" if found else "missing"


def tell_papers(deck: Deck, run: str) -> None:
    """The list."""
    there = papers(deck, run)
    deck.tell({"run": run, "folder": deck.sight.world.artifacts.folder(run), "documents": there})
    deck.say(f"documents in {deck.sight.world.artifacts.folder(run)}:")
    for p in there:
        deck.say(f"  {p.digest[:12]}  {p.name}  {p.disk}", fg=None if p.disk == "as recorded" else "red")
    if not there:
        deck.say("  none yet")


def tell_paper(deck: Deck, run: str, name: str) -> None:
    """One document as it was recorded, else a file beside them as it is on disk."""
    seen = picture(deck.sight.world, run)
    documents = fields(seen.snapshot.context).get("documents", {})
    if name in documents:
        text = seen.text(documents[name])
        _told_changes(deck, run, name, seen)
    else:
        text = _beside(deck, run, name, sorted(documents))
    deck.tell({"run": run, "name": name, "text": text})
    deck.say(text.rstrip("\n"))


def _told_changes(deck: Deck, run: str, name: str, seen: Picture) -> None:
    from steersman.runtime.looking import digest_of

    found = deck.sight.world.artifacts.read(run, name)
    recorded = fields(seen.snapshot.context)["artifacts"].get(name, "")
    if digest_of(found) != recorded:
        told = "is not what was recorded" if found.kind == "file" else f"is not there ({found.kind})"
        deck.warn(f"{name} on disk {told}; this is what was recorded", fg="yellow")


def _beside(deck: Deck, run: str, name: str, known: list[str]) -> str:
    from steersman.judges.artifact_names import name_problem

    problem = name_problem(name)
    found = deck.sight.world.artifacts.read(run, name) if not problem else None
    if found is None or found.kind != "file":
        raise UserError(f"run {run} has no document {name!r}: {', '.join((*known, *BESIDE))}")
    return found.data.decode("utf-8", "backslashreplace")


def tell_diff(deck: Deck, run: str) -> None:
    """The change of a run as git shows it."""
    seen = picture(deck.sight.world, run)
    c = fields(seen.snapshot.context)
    patch = seen.text(c.get("documents", {}).get(PATCH, "") or c.get("patch_ref", ""))
    deck.tell({"run": run, "tree": c.get("tree", ""), "patch": patch})
    if not patch:
        deck.say("nothing is changed yet")
    for line in _coloured(patch):
        deck.say(line[0], fg=line[1])


def _coloured(patch: str) -> Iterator[tuple[str, str | None]]:
    for line in patch.splitlines():
        colour = {"+": "green", "-": "red", "@": "cyan"}.get(line[:1])
        yield line, None if line.startswith(("+++", "---")) else colour
