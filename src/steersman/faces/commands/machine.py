"""`steersman machine …`: the published tables are the executed tables."""

import asyncio
from typing import Any

import click

from steersman.errors import UserError
from steersman.faces.cli import Lazy
from steersman.faces.deck import DONE, ENDED, Deck, verb

HERE = "machine"
KNOWN = {
    "list": (f"{HERE}:list_", "The machines there are."),
    "show": (f"{HERE}:show", "A machine's table, as Markdown, Mermaid or JSON."),
    "check": (f"{HERE}:check", "Explore a machine to the end and report what is wrong with it."),
    "migrate": (f"{HERE}:migrate", "Take a paused run over to the machine as it is now."),
    "lock": (f"{HERE}:lock", "Write or check the lock over every function that decides."),
}
EXITS = "0 done · 1 findings · 2 wrong usage"


@click.group("machine", cls=Lazy, known=KNOWN, no_args_is_help=False, epilog=f"Exit codes: {EXITS}")
def machine() -> None:
    """The state machines: list, show, check, migrate, lock."""


@verb("list", "steersman machine list", exits=EXITS)
def list_(deck: Deck) -> None:
    """The machines there are, with their states, rows and the digest of what decides."""
    found = [
        {
            "name": m.name,
            "meaning": m.meaning,
            "states": len(m.states),
            "rows": len(m.rows),
            "digest": m.digest,
        }
        for m in deck.helm.machines().values()
    ]
    deck.tell(found)
    for m in found:
        deck.say(f"{m['name']}  {m['meaning']}  {m['states']} states, {m['rows']} rows, digest {m['digest']}")


@verb(
    "show",
    "steersman machine show roundtable",
    "steersman machine show roundtable --format mermaid",
    "steersman machine show roundtable --format json",
    exits=EXITS,
)
@click.argument("name")
@click.option(
    "--format",
    "form",
    type=click.Choice(["markdown", "mermaid", "json"]),
    default=None,
    help="[default: markdown]",
)
def show(deck: Deck, *, name: str, form: str | None) -> None:
    """The table of machine NAME: states, rows with guards, caps, labels and sources, laws."""
    m = _named(deck, name)
    match form or ("json" if deck.as_json else "markdown"):
        case "json":
            import msgspec

            from steersman.views.machine_json import machine_json

            if deck.as_json:
                deck.tell(machine_json(m))
                return
            deck.say(msgspec.json.format(msgspec.json.encode(machine_json(m))).decode())
        case "mermaid":
            from steersman.views.mermaid import mermaid

            _text(deck, m.name, "mermaid", mermaid(m))
        case _:
            from steersman.views.markdown import markdown

            _text(deck, m.name, "markdown", markdown(m))


def _text(deck: Deck, name: str, form: str, words: str) -> None:
    deck.tell({"name": name, form: words})
    deck.say(words.rstrip("\n"))


@verb("check", "steersman machine check", "steersman machine check roundtable", exits=EXITS)
@click.argument("name", required=False)
def check(deck: Deck, *, name: str | None) -> int:
    """Explore machine NAME (or every one) to a fixpoint; print the number of cases and every finding."""
    from steersman.kernel.check import check as explore

    chosen = [_named(deck, name)] if name else list(deck.helm.machines().values())
    reports = [explore(m) for m in chosen]
    deck.tell([_plain(r) for r in reports])
    for r in reports:
        deck.say(
            f"{r.machine}: {r.cases} cases, {len(r.findings) or 'no'} finding{'s' if len(r.findings) != 1 else ''}"
        )
        for finding in r.findings:
            deck.say(f"  {finding}", fg="red")
    return ENDED if any(r.findings for r in reports) else DONE


def _plain(r: Any) -> dict[str, Any]:
    found = [{"kind": f.kind, "where": f.where, "path": list(f.path)} for f in r.findings]
    return {"machine": r.machine, "cases": r.cases, "findings": found}


@verb("migrate", 'steersman machine migrate 261116-abc --reason "the new table only adds a row"')
@click.argument("run")
@click.option("--reason", required=True, help="Why it may go on under another table; it stays on tape.")
def migrate(deck: Deck, *, run: str, reason: str) -> int:
    """Take the paused RUN over to its machine as it is now."""
    from steersman.faces.speech import insider

    found = deck.bridge.find(run)
    refused = insider(deck, found, "migrate")
    if refused is not None:
        return refused
    head = asyncio.run(deck.bridge.migrate(found, deck.person, reason))
    deck.tell({"run": found, "definition": head.definition, "state": head.state, "exit_code": DONE})
    deck.say(f"run {found} is on definition {head.definition} now, in {head.state}: {deck.me} resume {found}")
    return DONE


@verb(
    "lock",
    "steersman machine lock --check",
    "steersman machine lock   # after a version was raised",
    exits=EXITS,
)
@click.option(
    "--check",
    "only",
    is_flag=True,
    help="Change nothing; exit 1 when a function changed without its version.",
)
@click.option("--file", "path", default=None, metavar="FILE", help="Another lock file.")
def lock(deck: Deck, *, only: bool, path: str | None) -> int:
    """Write, or with --check compare, the lock over every function and constant that decides."""
    locks = deck.helm.lockfile()
    where = path or str(locks.PATH)
    found = locks.check(where) if only else _written(locks, where)
    deck.tell({"file": where, "problems": found, "exit_code": ENDED if found else DONE})
    for problem in found:
        deck.say(problem, fg="red")
    if not found:
        deck.say(f"{where} is current" if only else f"{where} is written")
    return ENDED if found else DONE


def _written(locks: Any, where: str) -> list[str]:
    locks.write(where)
    return []


def _named(deck: Deck, name: str) -> Any:
    known = deck.helm.machines()
    if name not in known:
        raise UserError(f"there is no machine {name!r}: there are {', '.join(sorted(known))}")
    return known[name]
