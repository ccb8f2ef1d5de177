"""`steersman memory …`: what was learnt before, kept for the next plan."""

import sys
import time
from typing import TYPE_CHECKING, Any

import click

from steersman.errors import NoMemory, UserError
from steersman.faces.cli import Lazy
from steersman.faces.deck import DONE, Deck, verb

if TYPE_CHECKING:
    from collections.abc import Callable

    from steersman.contracts.planning.context import Memory

HERE = "memory"
KNOWN = {
    "add": (f"{HERE}:add", "Keep a sentence for the next plan."),
    "search": (f"{HERE}:search", "Find what was kept, the best first."),
    "list": (f"{HERE}:entries", "Everything that was kept, the youngest first."),
    "forget": (f"{HERE}:forget", "Remove one for good."),
}
EXITS = "0 done · 2 wrong usage · 4 refused · 5 the memories cannot be used"
SCOPES = ("project", "repo", "task", "agent")
_scopes = click.option(
    "--scope", "scopes", multiple=True, type=click.Choice(SCOPES), help="Only these; may be repeated."
)
_subject = click.option("--subject", default="", metavar="NAME", help="Only about this task or agent.")
_limit = click.option(
    "--limit", type=click.IntRange(1, 10_000), default=20, show_default=True, help="At most so many."
)


@click.group("memory", cls=Lazy, known=KNOWN, no_args_is_help=False, epilog=f"Exit codes: {EXITS}")
def memory() -> None:
    """What was learnt before: a plan is made with it, and there is no plan without at least one memory."""


@verb(
    "add",
    'steersman memory add "Invoices are rounded half to even, by contract."',
    'steersman memory add "Deploy only on weekdays" --tag release',
    'steersman memory add "Reads the tests first" --scope agent --subject coder',
    "steersman memory add - < lesson.txt",
    exits=EXITS,
)
@click.argument("text")
@click.option(
    "--scope", type=click.Choice(SCOPES), default="project", show_default=True, help="What it is about."
)
@click.option("--subject", default="", metavar="NAME", help="The task or agent it is about.")
@click.option(
    "--tag", "tags", multiple=True, metavar="WORD", help="A word it is found by too; may be repeated."
)
def add(deck: Deck, *, text: str, scope: str, subject: str, tags: tuple[str, ...]) -> int:
    """Keep TEXT, or with `-` what comes on standard input, for the next plan.

    Secrets are taken out before anything is kept. The same text of the same scope and subject is kept once; its name is
    made of what it says."""
    _by_a_person(deck)
    said = sys.stdin.read(64_000) if text == "-" else text
    store = deck.helm.memories(deck.project)
    kept, new = store.add(said, scope=scope, subject=subject, tags=tags, source=deck.person, created_at=now())
    deck.tell({"memory": kept, "new": new})
    deck.say(f"{kept.id}: {'kept' if new else 'was kept already'}")
    if kept.text != said.strip():
        deck.say("a secret was taken out of it", fg="yellow")
    return DONE


@verb(
    "search",
    'steersman memory search "rounding of invoices"',
    "steersman memory search 部署 --scope project --json",
    exits=EXITS,
)
@click.argument("query")
@_scopes
@_subject
@_limit
def search(deck: Deck, *, query: str, scopes: tuple[Any, ...], subject: str, limit: int) -> int:
    """Find what was kept by the words of QUERY, the best first. Words are words: there is no language of queries.

    Longer words also find what begins with them; text without spaces is found by any two characters of it."""
    return _show(deck, lambda m: m.search(query, scopes=scopes or SCOPES, subject=subject, limit=limit))


@verb(
    "list", "steersman memory list", "steersman memory list --scope agent --subject coder --json", exits=EXITS
)
@_scopes
@_subject
@_limit
def entries(deck: Deck, *, scopes: tuple[Any, ...], subject: str, limit: int) -> int:
    """Show what was kept, the youngest first."""
    return _show(deck, lambda m: m.entries(scopes=scopes or SCOPES, subject=subject, limit=limit))


@verb("forget", "steersman memory forget mem_0f3a5c7e9b1d", exits=EXITS)
@click.argument("name")
def forget(deck: Deck, *, name: str) -> int:
    """Remove the memory NAME for good: from the file, from its index and from its log."""
    _by_a_person(deck)
    if not deck.helm.memories(deck.project).forget(name):
        raise UserError(f"there is no memory {name!r}: see `{deck.me} memory list`")
    deck.tell({"forgotten": name})
    deck.say(f"{name}: forgotten")
    return DONE


def now() -> str:
    """This second, in the form of every document."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


def _show(deck: Deck, ask: "Callable[[Any], list[Memory]]") -> int:
    deck.quiet = True
    try:
        found = ask(deck.helm.memories(deck.project))
    except NoMemory as nothing:
        deck.tell([])
        deck.say(str(nothing))
        return DONE
    deck.tell(found)
    for kept in found:
        about = f"{kept.scope} {kept.subject}".strip()
        deck.say(f"{kept.id}  {kept.created_at}  {about}", bold=True)
        deck.say("\n".join(f"  {line}" for line in kept.text.split("\n")))
        if kept.tags:
            deck.say(f"  tags: {', '.join(kept.tags)}")
    if not found:
        deck.say("nothing was found")
    return DONE


class _InsideError(UserError):
    """A plan goes by memories: no agent plants one."""

    exit_code = 4


def _by_a_person(deck: Deck) -> None:
    effect = deck.helm.inside(deck.top)
    if effect:
        raise _InsideError(f"this works for {effect}: an agent's words are no memory; a person may keep them")
