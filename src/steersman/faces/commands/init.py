"""`steersman init`: proposes setup and checks, proves them the way a run runs them, and writes steersman.toml."""

import asyncio
import json
import os
import shlex
import sys
from collections.abc import Container, Iterator
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from steersman.contracts.commands import CommandResult
from steersman.contracts.config import Config
from steersman.errors import MemoryUnavailable, UserError
from steersman.faces.deck import DONE, ENDED, REFUSED, Deck, verb
from steersman.judges.text import count_of
from steersman.ports.sandbox import NOT_ISOLATED

if TYPE_CHECKING:
    from steersman.contracts.workspace import Base
    from steersman.faces.setup_plans import ProvenSetup
    from steersman.runtime.check_proof import Proof

NAME = "steersman.toml"
ROLES = ("coder", "reviewer", "tester")
SECONDS = 600
SOURCE = "steersman init"
LISTED = 20  # failing tests that are named


@verb(
    "init",
    "steersman init",
    "steersman init --yes              # run the proposed commands without asking",
    "steersman init --check            # prove the checks of steersman.toml again",
    "steersman init --check --acknowledge-failures   # and keep what fails now",
    "steersman init --script crew.yaml   # a scripted crew, for trying things out",
    exits="0 written, or with --check all proven · 1 not proven · 2 wrong usage · 4 refused",
)
@click.option("--force", is_flag=True, help="Write over a steersman.toml that is there; a copy is kept.")
@click.option("--yes", is_flag=True, help="Run the proposed commands without asking.")
@click.option("--check", is_flag=True, help="Prove the checks of steersman.toml again; propose nothing.")
@click.option("--acknowledge-failures", is_flag=True, help="Write tests that fail now into known_failures.")
@click.option("--script", metavar="FILE", default=None, help="Let a scripted crew play every role.")
@click.option(
    "--seconds", type=click.IntRange(1), default=SECONDS, show_default=True, help="For each command."
)
def init(
    deck: Deck,
    *,
    force: bool,
    yes: bool,
    check: bool,
    acknowledge_failures: bool,
    script: str | None,
    seconds: int,
) -> int:
    """Propose setup and checks, prove them in a fresh copy of the last commit, and write steersman.toml."""
    if acknowledge_failures and deck.helm.inside(deck.top):
        raise _RefusedError("failures are acknowledged by a person: an agent never speaks for one")
    if check:
        return _check_again(deck, yes=yes, acknowledge=acknowledge_failures)
    path = deck.project / NAME
    if path.is_symlink():
        raise UserError(f"cannot use {path}: it is a symlink. Replace it with a file or remove it.")
    if path.exists() and not force:
        raise _RefusedError(f"{path} is there already: prove it with --check, or write over it with --force")
    problem = deck.helm.open_world(deck.project, journal=None).workspace(Config()).problem()
    proven, notes = (_unproven(deck), []) if problem else _propose_and_prove(deck, seconds, yes=yes)
    if proven is None:
        deck.say("nothing was run and nothing was written")
        return REFUSED
    for line in _result_lines(proven):  # why a check fails is said before a person is asked about it
        deck.say(line)
    known = _acknowledged(deck, proven.proof, asked=acknowledge_failures)
    roles = {name: {"agent": "scripted", "script": script} for name in ROLES} if script else crew(deck)
    config = proven.config
    copy = _write(path, deck.helm.render_config(config=config, roles=roles, known_failures=known))
    _trust_written(deck, path)
    memory = _remember(deck)
    code = DONE if problem or not config.checks or _is_proven(proven.proof) else ENDED
    deck.tell(
        {**_facts(proven), "file": str(path), "notes": notes, "known_failures": known, "memory": memory}
        | {"copy": copy, "problem": problem, "exit_code": code}
    )
    for line in _next_lines(deck, proven, known, roles, path, copy):
        deck.say(line)
    if problem:
        deck.warn(f"before a run can start: {problem}", fg="yellow")
    return code


class _RefusedError(UserError):
    """Nothing was written."""

    exit_code = 4


# ── proposing and proving ───────────────────────────────────────────────────────────────────────────────────────────


def _unproven(deck: Deck) -> "ProvenSetup":
    """Where there is no commit nothing can be proven: what the files on disk name."""
    from steersman.contracts.config import Check
    from steersman.faces.setup_plans import ProvenSetup
    from steersman.runtime.check_proof import Proof

    checks = {name: Check(tuple(argv)) for name, argv in deck.helm.detect_checks(deck.project).items()}
    return ProvenSetup(Config(checks=checks), Proof(problem="there is no commit to prove them on"))


def _propose_and_prove(deck: Deck, seconds: int, *, yes: bool) -> "tuple[ProvenSetup | None, list[str]]":
    from steersman.faces.setup_plans import (
        ProvenSetup,
        commands_shown,
        propose_plans,
        prove_plans,
        read_project,
    )
    from steersman.runtime.check_proof import Proof

    deck.helm.state_dir(deck.project).mkdir(parents=True, exist_ok=True)  # setup that is kept is kept there
    world = deck.helm.open_world(deck.project, journal=None)
    workspace = world.workspace(Config())
    base = workspace.base(None)
    choice, notes = propose_plans(read_project(workspace, base.commit), deck.helm.detect_checks(deck.project))
    config = choice.config(seconds)
    for note in notes:
        deck.say(f"note: {note}")
    if not config.checks:
        return ProvenSetup(config, Proof()), notes
    if not _agreed(deck, base, config, [*commands_shown(config, choice)], yes=yes):
        return None, notes
    return asyncio.run(prove_plans(world, base.commit, choice, seconds, _progress(deck))), notes


def _agreed(deck: Deck, base: "Base", config: Config, lines: list[str], *, yes: bool) -> bool:
    """A person's yes to everything that is about to run: the project's own code is in it."""
    box = deck.helm.sandbox(config)
    open_ = [] if box.isolated else [f"{NOT_ISOLATED}: {box.why}"]
    branch = f" ({base.branch})" if base.branch else ""
    head = f"these commands run in a fresh copy of commit {base.commit[:12]}{branch}:"
    included = deck.helm.listed_includes(deck.project)
    copied = [f"  copied from your checkout (.worktreeinclude): {', '.join(included)}"] if included else []
    for line in (head, *lines, *copied, *open_):
        deck.say(line) if yes or not deck.as_json else deck.warn(line)
    if base.dirty:
        deck.warn("uncommitted changes are not part of a run: checks are proven without them", fg="yellow")
    return yes or deck.agreed("run them?", f"run them with `{_typed_command(deck)} --yes`")


def _typed_command(deck: Deck) -> str:
    """This command with the options that were typed."""
    typed = click.get_current_context().params
    words = [f"--{n.replace('_', '-')}" for n in ("force", "check", "acknowledge_failures") if typed[n]]
    words += ["--script", shlex.quote(typed["script"])] if typed["script"] else []
    words += ["--seconds", str(typed["seconds"])] if typed["seconds"] != SECONDS else []
    return " ".join((deck.me, "init", *words, *(["--json"] if deck.as_json else [])))


def _progress(deck: Deck) -> Any:
    def heard(what: str, seconds: int) -> None:
        deck.say(f"  … {what}" + (f", {seconds} s" if seconds else ""))

    return heard


def _check_again(deck: Deck, *, yes: bool, acknowledge: bool) -> int:
    """`init --check`: the checks of the file that is there, as they are; `acknowledge` writes what fails into the file."""
    from steersman.faces.commands.acknowledge import edit_known_failures, write_known_failures
    from steersman.faces.setup_plans import ProvenSetup, commands_shown
    from steersman.runtime.check_proof import prove_checks

    loaded = deck.load_config()
    config: Config = loaded.config
    if loaded.path is None or not config.checks:
        raise UserError(f"there is no check to prove: add one under [checks], or run `{deck.me} init`")
    world = deck.helm.open_world(deck.project, journal=None)
    workspace = world.workspace(config)
    if problem := workspace.problem():
        raise UserError(problem)
    deck.helm.state_dir(deck.project).mkdir(parents=True, exist_ok=True)
    base = workspace.base(config.base)
    if not _agreed(deck, base, config, [*commands_shown(config)], yes=yes):
        deck.say("nothing was run")
        return REFUSED
    world = deck.helm.open_world(deck.project, journal=None)
    proof = asyncio.run(prove_checks(world, config, base.commit, _progress(deck)))
    proven, failures = ProvenSetup(config, proof), _unknown_failures(config, proof)
    for line in _result_lines(proven):
        deck.say(line)
    added = failures if acknowledge else []
    if added:
        write_known_failures(deck, loaded, edit_known_failures(loaded.path, added))
    known = (*config.known_failures, *added)
    code = DONE if _is_proven(proof, known) and added == failures else ENDED
    deck.tell({**_facts(proven), "file": str(loaded.path), "added": added, "exit_code": code})
    for line in _acknowledged_lines(added, loaded.path) if added else _failure_remedies(deck, failures):
        deck.say(line)
    deck.say("every check is proven" if code == DONE else "not every check is proven", bold=True)
    return code


# ── judging what happened ───────────────────────────────────────────────────────────────────────────────────────────


def _is_proven(proof: "Proof", known: Container[str] = ()) -> bool:
    """Whether setup worked, tests were counted, and each check passed or came to its tests or is known to fail."""
    from steersman.faces.setup_plans import counts_tests

    if proof.problem or proof.failed_setup is not None or not proof.results:
        return False
    came_to_tests = all(
        r.verdict == "passed" or (r.verdict == "failed" and (counts_tests(r) or r.name in known))
        for r in proof.results
    )
    return came_to_tests and any(counts_tests(r) for r in proof.results)


def _failures(proof: "Proof") -> list[str]:
    """The tests that fail on the base, by name; where a failure has no name, the check."""
    from steersman.faces.setup_plans import counts_tests

    names: dict[str, None] = {}
    for r in proof.results:
        if r.verdict == "failed" and counts_tests(r):  # one that did not come to its tests is broken, not red
            named = r.report is not None and not r.report.cut and bool(r.report.failed)
            names |= dict.fromkeys(r.report.failed if named and r.report is not None else (r.name,))
    return list(names)


def _unknown_failures(config: Config, proof: "Proof") -> list[str]:
    """The failures that nobody has acknowledged in the file."""
    from steersman.judges.baseline import is_known
    from steersman.runtime.check_proof import Proof

    left = tuple(r for r in proof.results if r.name not in config.known_failures)
    return [name for name in _failures(Proof(left)) if not is_known(name, config.known_failures)]


def _acknowledged(deck: Deck, proof: "Proof", *, asked: bool) -> list[str]:
    """The failures that a person acknowledges: by the option, or by a yes to a question of its own."""
    from steersman.judges.base_checks import NO_NAMES, failure_names

    nameless = [r.name for r in proof.results if r.name in _failures(proof) and not failure_names(r)]
    for name in dict.fromkeys(nameless):
        deck.warn(f"{name} cannot be acknowledged: {NO_NAMES}", fg="yellow")
    names = [name for name in _failures(proof) if name not in nameless]
    if not names or asked:
        return names
    if deck.as_json or sys.stdin is None or not sys.stdin.isatty():
        return []
    for name in names[:LISTED]:
        deck.say(f"  fails now: {name}", fg="yellow")
    more = f" ({len(names)} in all)" if len(names) > LISTED else ""
    question = f"acknowledge these failures{more} in known_failures? Other failures still count"
    return names if deck.agreed(question, otherwise=None) else []


# ── saying it ───────────────────────────────────────────────────────────────────────────────────────────────────────


def _facts(proven: "ProvenSetup") -> dict[str, Any]:
    config, proof = proven.config, proven.proof
    results = {r.name: r for r in reversed(proof.results)}
    return {
        "setup": [{"run": list(step.run), "cwd": step.cwd} for step in config.worktree.setup],
        "env": dict(config.env),
        "checks": {
            name: {"argv": list(check.run), "cwd": check.cwd, **_result(results.get(name))}
            for name, check in config.checks.items()
        },
        "failed_setup": _result(proof.failed_setup) if proof.failed_setup else None,
        "unproven": proof.problem,
        "given_up": list(proven.given_up),
    }


def _result(r: CommandResult | None) -> dict[str, Any]:
    if r is None:
        return {"verdict": "not run"}
    return {
        "verdict": r.verdict,
        "exit_code": r.exit_code,
        "tests": r.tests,
        "failed": list(r.report.failed) if r.report is not None else [],
        "reason": r.reason,
    }


def _result_lines(proven: "ProvenSetup") -> Iterator[str]:
    """What was proven, one line for each check; what failed, with the end of its output."""
    from steersman.judges.base_checks import count_known
    from steersman.views.failed_check import failed_check_lines
    from steersman.views.status import verdict_words

    proof, acknowledged = proven.proof, frozenset(proven.config.known_failures)
    for what in proven.given_up:
        yield f"  given up: {what}"
    if proof.problem:
        yield f"  not proven: {proof.problem}"
    if proof.failed_setup is not None:
        yield from (f"  {line}" for line in failed_check_lines(proof.failed_setup))
    for r in proof.results:
        if r.verdict == "passed":
            tests = count_of(r.tests, "test") if r.tests is not None else r.reason or "no tests counted"
            yield f"  {r.name}: passed · {tests} · {r.micros / 1_000_000:.1f} s"
        elif known := count_known(r, proof.results, acknowledged):
            yield f"  {r.name}: {verdict_words(r.verdict, known)} · {r.micros / 1_000_000:.1f} s"
        else:
            yield from (f"  {line}" for line in failed_check_lines(r))


def _next_lines(
    deck: Deck, proven: "ProvenSetup", known: list[str], roles: dict[str, Any], path: Path, copy: str
) -> Iterator[str]:
    config, proof = proven.config, proven.proof
    for name, table in roles.items():
        if "script" not in table:  # one that was found, not one that was asked for
            yield f"  {name}: {table['agent']}"
    yield f"written: {path}"
    if copy:
        yield f"  the file that was there is kept in {Path(copy).name}: take over what you need of it"
    if known:
        yield from _acknowledged_lines(known, path)
    if not config.checks:
        yield "no check was found: add one under [checks], for without evidence nothing is approved"
    yield from _failure_remedies(deck, [name for name in _failures(proof) if name not in known])
    for r in proof.results:
        if r.verdict == "no_tests":
            yield f"{r.name} counts no test; say how in [checks], one of:"
            argv = json.dumps(list(r.argv))
            yield f"  {r.name} = {{ run = {argv}, summary = 'Passed: +(?P<passed>\\d+)' }}"
            yield f"  {r.name} = {{ run = {argv}, exit_code_is_enough = true }}"
    if config.checks and not _is_proven(proof):
        yield f"next: edit {NAME}, then `{deck.me} init --check`"
    elif not roles:
        yield "next: say who plays coder, reviewer and tester in [roles.…], or look at `steersman demo` first"


def _failure_remedies(deck: Deck, failures: list[str]) -> Iterator[str]:
    """What a person can do about failures on the base that nobody has acknowledged."""
    if not failures:
        return
    one = len(failures) == 1
    count = "1 test fails" if one else f"{len(failures)} tests fail"
    yield f"{count} on the base, and no run starts there until you repair or acknowledge that"
    yield f"  to acknowledge by name: {deck.me} init --check --acknowledge-failures"
    yield (
        f"  to have a run repair {'it' if one else 'them'}:"
        f' {deck.me} run "Make the failing tests pass" --fix-base'
    )


def _acknowledged_lines(names: list[str], path: Path) -> Iterator[str]:
    """What was written into known_failures."""
    from steersman.views.failed_check import group_test_names

    count = "1 failure" if len(names) == 1 else f"{len(names)} failures"
    yield f"{count} acknowledged in {path.name}; any other still counts:"
    yield from (f"  {line}" for line in group_test_names(names))


# ── the rest of the file ────────────────────────────────────────────────────────────────────────────────────────────


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


def crew(deck: Deck) -> dict[str, dict[str, str]]:
    """Whoever is installed: one CLI plays every role; with two, another one reviews and tests than writes."""
    there = list(deck.helm.installed_agents())[:2]
    return {name: {"agent": there[0 if name == "coder" else -1]} for name in ROLES} if there else {}


def _trust_written(deck: Deck, path: Path) -> None:
    """Trusts what init has written for the person who runs it; files of `.steersman/` came with the repository."""
    from steersman.faces.trust import record_trust
    from steersman.judges.powerful_parts import is_file_line

    if deck.helm.inside(deck.top):  # an agent can write the file, and trust nothing
        return
    loaded = deck.helm.load_config(path.parent)
    record_trust(deck, loaded, [line for line in loaded.powerful if not is_file_line(line)])


def _write(path: Path, words: str) -> str:
    """Writes the file; one that was there with other words is kept beside it. Returns the path of that copy."""
    from steersman.faces.commands.acknowledge import write_settings

    copy = ""
    try:
        if path.exists() and (old := path.read_bytes()) != words.encode():
            copies = (f"{path}.bak{number or ''}" for number in count())
            copy = next(name for name in copies if not os.path.lexists(name))
            Path(copy).write_bytes(old)
    except OSError as error:
        raise UserError(f"cannot keep a copy of {path}: {error.strerror}; move it away yourself") from None
    write_settings(path, words)
    return copy
