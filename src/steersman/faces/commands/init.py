"""`steersman init`: finds the project's checks, proves each by running it, writes steersman.toml."""

import asyncio
from pathlib import Path
from typing import Any

import click

from steersman.contracts.commands import Command, CommandResult
from steersman.errors import MemoryUnavailable, UserError
from steersman.faces.deck import DONE, Deck, verb

NAME = "steersman.toml"
ROLES = ("coder", "reviewer", "tester")
SECONDS = 600
SOURCE = "steersman init"


@verb(
    "init",
    "steersman init",
    "steersman init --force",
    "steersman init --script crew.yaml   # a scripted crew, for trying things out",
    exits="0 written · 2 wrong usage · 4 refused: the file is there already",
)
@click.option("--force", is_flag=True, help="Write over a steersman.toml that is there.")
@click.option("--script", metavar="FILE", default=None, help="Let a scripted crew play every role.")
@click.option("--seconds", type=click.IntRange(1), default=SECONDS, show_default=True, help="For each check.")
def init(deck: Deck, *, force: bool, script: str | None, seconds: int) -> int:
    """Find the project's checks, prove each by running it, and write steersman.toml."""
    path = deck.project / NAME
    if path.exists() and not force:
        raise _ThereError(f"{path} is there already: look at it, or write over it with --force")
    found = dict(deck.helm.detect_checks(deck.project))
    proven = asyncio.run(_prove(deck, found, seconds))
    kept = {name: found[name] for name, r in proven.items() if r.exit_code is not None}
    roles = {name: {"agent": "scripted", "script": script} for name in ROLES} if script else crew(deck)
    _write(path, deck.helm.render_config(checks=kept, roles=roles))
    memory = _remember(deck)
    missing = _missing(deck)
    checks = {n: _plain(found[n], r) for n, r in proven.items()}
    deck.tell({"file": str(path), "checks": checks, "memory": memory, "problem": missing, "exit_code": DONE})
    _tell(deck, path, proven, kept, roles)
    if missing:
        deck.warn(f"before a run can start: {missing}", fg="yellow")
    return DONE


def _remember(deck: Deck) -> str | None:
    """The first memory, without which nothing is planned: what the project is, from its own files."""
    from steersman.faces.commands.memory import now
    from steersman.faces.intents import project_id
    from steersman.judges.planning.facts.sentence import about

    words = about(deck.helm.scanner(deck.project).scan(project_id(deck)))
    memories = deck.helm.memories(deck.project)
    try:
        kept, _ = memories.add(words, source=SOURCE, created_at=now())
        for old in memories.entries(scopes=("project",), limit=10_000):
            if old.source == SOURCE and old.id != kept.id:  # what the project was before
                memories.forget(old.id)
    except MemoryUnavailable as trouble:  # whoever plans is told again; checks can be written without it
        deck.warn(str(trouble), fg="yellow")
        return None
    return str(kept.id)


def _missing(deck: Deck) -> str | None:
    """What a run needs of git and does not find here."""
    world = deck.helm.open_world(deck.project, journal=None)
    return world.workspace(deck.load_config().config).problem()


def crew(deck: Deck) -> dict[str, dict[str, str]]:
    """Whoever is installed: one CLI plays every role; with two, another one reviews and tests than writes."""
    there = list(deck.helm.installed_agents())[:2]
    return {name: {"agent": there[0 if name == "coder" else -1]} for name in ROLES} if there else {}


class _ThereError(UserError):
    """Nothing was written."""

    exit_code = 4


async def _prove(deck: Deck, checks: dict[str, Any], seconds: int) -> dict[str, CommandResult]:
    from steersman.contracts.config import Check, Config

    world = deck.helm.open_world(deck.project, journal=None)
    commands = world.commands(Config(checks={name: Check(tuple(argv)) for name, argv in checks.items()}))
    results = {}
    for name, argv in checks.items():
        deck.say(f"running {name}: {' '.join(argv)}")
        results[name] = await commands.run(Command(name, tuple(argv)), str(deck.project), "init:1", seconds)
    return results


def _plain(argv: Any, r: CommandResult) -> dict[str, Any]:
    return {
        "argv": list(argv),
        "verdict": r.verdict,
        "exit_code": r.exit_code,
        "tests": r.tests,
        "reason": r.reason,
    }


def _write(path: Path, words: str) -> None:
    try:
        path.write_text(words, encoding="utf-8")
    except OSError as error:
        raise UserError(f"cannot write {path}: {error.strerror}; check who owns the directory") from None


def _tell(
    deck: Deck, path: Path, proven: dict[str, CommandResult], kept: dict[str, Any], roles: dict[str, Any]
) -> None:
    for name, r in proven.items():
        tests = f", {r.tests} tests" if r.tests is not None else ""
        left = "" if name in kept else f"; left out: {r.reason}"
        deck.say(f"  {name}: {r.verdict}{tests}{left}", fg="green" if r.verdict == "passed" else "yellow")
    if not kept:
        deck.say(
            "no check was found: add one under [checks], for without evidence nothing is approved",
            fg="yellow",
        )
    for name, table in roles.items():
        if "script" not in table:  # one that was found, not one that was asked for
            deck.say(f"  {name}: {table['agent']}")
    deck.say(f"written: {path}")
    if not roles:
        deck.say(
            "next: say who plays coder, reviewer and tester in [roles.…], or look at `steersman demo` first"
        )
