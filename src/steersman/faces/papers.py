"""The documents of a task for a person's eyes: which there are, whether the disk still has them, and one in full.

**Invariant:** what is shown is what was recorded; where the disk has something else, that is said beside it.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import msgspec

from steersman.contracts.task.words import COPIES, PATCH, STATE, TRANSCRIPT
from steersman.errors import UserError
from steersman.faces.deck import Deck
from steersman.kernel.snapshot import fields
from steersman.runtime.projections import Picture, made, overrides, picture
from steersman.views.status import waiver

if TYPE_CHECKING:
    from steersman.judges.task.inspection import Damage

LISTED = 20  # damaged files in a list of all tasks
BESIDE = (STATE, TRANSCRIPT, "report.md")  # projections: made from the tape whenever they are wanted
RIGHT, UNKNOWN = "as recorded", "NOT on record: nobody has laid it down"


class Paper(msgspec.Struct, frozen=True):
    """One document and how the disk compares."""

    name: str
    digest: str
    disk: str  # as recorded | NOT as recorded | missing | NOT on record …


def papers(deck: Deck, run: str) -> list[Paper]:
    """Every document of a run in the order of their names, then what lies among them and is none, and what hands did to
    the files that are made from the tape."""
    from steersman.runtime.looking import strangers
    from steersman.runtime.projections import by_hand

    live, world = deck.sight.live(run), deck.sight.world
    c = fields(live.snapshot.context)
    recorded: dict[str, str] = c.get("artifacts", {})
    found = [Paper(name, digest, _disk(deck, run, name, digest)) for name, digest in sorted(recorded.items())]
    if "artifacts" in c:
        found += [Paper(name, "", UNKNOWN) for name in strangers(world.artifacts, run, recorded)]
    return [
        *found,
        *(Paper(name, "", f"NOT what the tape says: {why}") for name, why in by_hand(world, live).items()),
    ]


def _disk(deck: Deck, run: str, name: str, recorded: str) -> str:
    from steersman.judges.task.inspection import no_file
    from steersman.runtime.looking import digests

    artifacts = deck.sight.world.artifacts
    if digests(artifacts, run, (name,))[name] == recorded:
        return RIGHT
    found = artifacts.read(run, name)
    if name == COPIES or found.kind == "file":
        return "NOT as recorded"
    return "missing" if found.kind == "missing" else f"NOT as recorded: it {no_file(found)}"


def touched(deck: Deck, run: str) -> list[str]:
    """What hands did to a task's documents and to the files that are made from its tape, in words, with what to do."""
    from steersman.judges.text import one_line
    from steersman.runtime.mending import damaged
    from steersman.runtime.projections import by_hand

    world, live = deck.sight.world, deck.sight.live(run)
    again = "/restore" if deck.prompting else f"{deck.me} tasks restore {run}"
    wrong = [f"{one_line(d.name)} {d.problem}: {_next(deck, run, d, again)}" for d in damaged(world, live)]
    return [
        *(
            wrong
            if len(wrong) <= LISTED
            else [*wrong[:LISTED], f"… and {len(wrong) - LISTED} more files: {again}"]
        ),
        *(
            f"{name} {why}: it counts for nothing; `{again}` makes it again from the tape"
            for name, why in by_hand(world, live).items()
        ),
    ]


def _next(deck: Deck, run: str, wrong: "Damage", again: str) -> str:
    """What to type for a document; a plan is taken over only where the task asks about it."""
    asked = any("adopt" in gate.choices for gate in deck.sight.world.journal.gates(run) if not gate.answer)
    adopt = "/adopt" if deck.prompting else f"{deck.me} tasks adopt {run}"
    mine = f"`{adopt}` takes" if asked else "the task's next step asks whether it takes"
    return wrong.next.replace("`adopt` takes", mine).replace("`restore`", f"`{again}`")


def tell_papers(deck: Deck, run: str) -> None:
    """The list."""
    there = papers(deck, run)
    waived = overrides(deck.sight.world, run)
    folder = deck.sight.world.artifacts.folder(run)
    deck.tell({"run": run, "folder": folder, "documents": there, "overrides": waived})
    deck.say(f"documents in {folder}:")
    for p in there:
        deck.say(f"  {p.digest[:12]:12}  {p.name}  {p.disk}", fg=None if p.disk == RIGHT else "red")
    if not there:
        deck.say("  none yet")
    for o in waived:
        deck.say(f"overridden: {waiver(o)}", fg="yellow")
    for told in touched(deck, run):
        deck.say(told, fg="red")


def tell_paper(deck: Deck, run: str, name: str) -> None:
    """One document as it was recorded, or made from the tape; else a file beside them as it is on disk."""
    seen = picture(deck.sight.world, run)
    documents = fields(seen.snapshot.context).get("documents", {})
    if name in documents:
        text = seen.text(documents[name])
        _told_changes(deck, run, name, seen)
    elif (projection := made(seen, name)) is not None:
        text = projection.decode("utf-8", "backslashreplace")
        for told in (t for t in touched(deck, run) if t.startswith(f"{name} ")):
            deck.warn(f"{told}; this is what the tape says", fg="yellow")
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
    if not name.startswith(f"{COPIES}/"):
        deck.warn(
            f"{name} is not on record: nobody has laid it down; this is what lies on the disk", fg="yellow"
        )
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
