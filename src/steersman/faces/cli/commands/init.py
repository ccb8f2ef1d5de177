"""`steersman init`: proposes setup and checks, proves them the way a run runs them, and writes steersman.toml."""

import asyncio
import json
import shlex
import sys
from collections.abc import Container, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from steersman.contracts.commands import CommandResult
from steersman.contracts.config import Config
from steersman.errors import MemoryUnavailable, UserError
from steersman.faces.cli.context import EXIT_DONE, EXIT_ENDED, EXIT_REFUSED, CommandContext, define_command
from steersman.judges.text import count_with_noun
from steersman.ports.sandbox import NOT_ISOLATED

if TYPE_CHECKING:
    from steersman.contracts.workspace import RunBase
    from steersman.engine.check_proof import CheckProof
    from steersman.faces.cli.setup_plans import ProvenSetup

CONFIG_FILE_NAME = "steersman.toml"
INIT_CREW_ROLES = ("coder", "reviewer", "tester")
DEFAULT_CHECK_SECONDS = 600
INIT_MEMORY_SOURCE = "steersman init"
MAX_FAILING_TESTS = 20  # failing tests that are named


@define_command(
    "init",
    "steersman init",
    "steersman init --yes              # run the proposed commands without asking",
    "steersman init --check            # prove the checks of steersman.toml again",
    "steersman init --check --acknowledge-failures   # and keep what fails now",
    "steersman init --script crew.yaml   # a scripted crew, for trying things out",
    exits="0 written, or with --check all proven · 1 not proven · 2 wrong usage · 4 refused",
)
@click.option(
    "--force",
    is_flag=True,
    help="Replace an existing steersman.toml. The old file becomes steersman.toml.bak.",
)
@click.option("--yes", is_flag=True, help="Run the proposed commands without asking.")
@click.option(
    "--check",
    is_flag=True,
    help="Run the setup and checks of the existing steersman.toml again, and propose nothing.",
)
@click.option(
    "--acknowledge-failures", is_flag=True, help="Write the tests that fail now into known_failures."
)
@click.option(
    "--script", metavar="FILE", default=None, help="Let scripted agents play every role, with this script."
)
@click.option(
    "--seconds",
    type=click.IntRange(1),
    default=DEFAULT_CHECK_SECONDS,
    show_default=True,
    help="Seconds that each command may take.",
)
def init_command(
    context: CommandContext,
    *,
    force: bool,
    yes: bool,
    check: bool,
    acknowledge_failures: bool,
    script: str | None,
    seconds: int,
) -> int:
    """Write steersman.toml for this repository.

    init reads the project's files, proposes setup commands and checks, asks once, runs them in a fresh copy of the last commit, and writes those that work. It also writes which installed agent plays which role."""
    if acknowledge_failures and context.services.find_calling_effect(context.project_root):
        raise _InitRefusedError("failures are acknowledged by a person: an agent never speaks for one")
    if check:
        return _prove_existing_checks(context, yes=yes, acknowledge=acknowledge_failures)
    path = _find_config_target(context.project, force=force)
    problem = (
        context.services.open_ports(context.project, journal=None).workspace(Config()).find_start_problem()
    )
    proven, notes = (
        (_detect_unproven_setup(context), [])
        if problem
        else _propose_and_prove_setup(context, seconds, yes=yes)
    )
    if proven is None:
        context.print("nothing was run and nothing was written")
        return EXIT_REFUSED
    for line in _setup_result_lines(proven):  # why a check fails is said before a person is asked about it
        context.print(line)
    known_failures = _choose_known_failures(context, proven.proof, is_requested=acknowledge_failures)
    roles = (
        {name: {"agent": "scripted", "script": script} for name in INIT_CREW_ROLES}
        if script
        else choose_installed_crew(context)
    )
    config = proven.config
    from steersman.faces.cli.commands.acknowledge import write_config_with_backup

    backup_path = write_config_with_backup(
        path,
        context.services.render_project_config(config=config, roles=roles, known_failures=known_failures),
    )
    _trust_written_config(context, path)
    memory = _remember_project_facts(context)
    code = EXIT_DONE if problem or not config.checks or _is_setup_proven(proven.proof) else EXIT_ENDED
    context.set_result(
        {
            **_proven_setup_fields(proven),
            "file": str(path),
            "notes": notes,
            "known_failures": known_failures,
            "memory": memory,
        }
        | {"copy": backup_path, "problem": problem, "exit_code": code}
    )
    for line in _init_next_lines(context, proven, known_failures, roles, path, backup_path):
        context.print(line)
    if problem:
        context.warn(f"before a run can start: {problem}", fg="yellow")
    return code


class _InitRefusedError(UserError):
    """Nothing was written."""

    exit_code = 4


def _find_config_target(project: Path, *, force: bool) -> Path:
    """Where the file is written; refuses a symlink, and a file that is there already unless `force` is set."""
    path = project / CONFIG_FILE_NAME
    if path.is_symlink():
        raise UserError(f"cannot use {path}: it is a symlink. Replace it with a file or remove it.")
    if path.exists() and not force:
        raise _InitRefusedError(
            f"{path} is there already: prove it with --check, or write over it with --force"
        )
    return path


# ── proposing and proving ───────────────────────────────────────────────────────────────────────────────────────────


def _detect_unproven_setup(context: CommandContext) -> "ProvenSetup":
    """Where there is no commit nothing can be proven: what the files on disk name."""
    from steersman.contracts.config import Check
    from steersman.engine.check_proof import CheckProof
    from steersman.faces.cli.setup_plans import ProvenSetup

    checks = {
        name: Check(tuple(argv))
        for name, argv in context.services.detect_project_checks(context.project).items()
    }
    return ProvenSetup(Config(checks=checks), CheckProof(problem="there is no commit to prove them on"))


def _propose_and_prove_setup(
    context: CommandContext, seconds: int, *, yes: bool
) -> "tuple[ProvenSetup | None, list[str]]":
    from steersman.engine.check_proof import CheckProof
    from steersman.faces.cli.setup_plans import (
        ProvenSetup,
        propose_setup_plans,
        prove_setup_plans,
        read_project_files,
        render_setup_commands,
    )

    context.services.project_state_directory(context.project).mkdir(
        parents=True, exist_ok=True
    )  # setup that is kept is kept there
    ports = context.services.open_ports(context.project, journal=None)
    workspace = ports.workspace(Config())
    base = workspace.base(None)
    choice, notes = propose_setup_plans(
        read_project_files(workspace, base.commit), context.services.detect_project_checks(context.project)
    )
    config = choice.config(seconds)
    for note in notes:
        context.print(f"note: {note}")
    if not config.checks:
        return ProvenSetup(config, CheckProof()), notes
    if not _confirm_setup_commands(context, base, config, [*render_setup_commands(config, choice)], yes=yes):
        return None, notes
    return asyncio.run(
        prove_setup_plans(ports, base.commit, choice, seconds, _build_progress_printer(context))
    ), notes


def _confirm_setup_commands(
    context: CommandContext, base: "RunBase", config: Config, lines: list[str], *, yes: bool
) -> bool:
    """A person's yes to everything that is about to run: the project's own code is in it."""
    sandbox = context.services.open_project_sandbox(config)
    isolation_warnings = [] if sandbox.isolated else [f"{NOT_ISOLATED}: {sandbox.why}"]
    branch = f" ({base.branch})" if base.branch else ""
    head = f"these commands run in a fresh copy of commit {base.commit[:12]}{branch}:"
    included_patterns = context.services.list_worktree_includes(context.project)
    copied_lines = (
        [f"  copied from your checkout (.worktreeinclude): {', '.join(included_patterns)}"]
        if included_patterns
        else []
    )
    for line in (head, *lines, *copied_lines, *isolation_warnings):
        context.print(line) if yes or not context.as_json else context.warn(line)
    if base.dirty:
        context.warn("uncommitted changes are not part of a run: checks are proven without them", fg="yellow")
    return yes or context.confirm("run them?", f"run them with `{_retyped_init_command(context)} --yes`")


def _retyped_init_command(context: CommandContext) -> str:
    """This command with the options that were typed."""
    options = click.get_current_context().params
    words = [
        f"--{option_name.replace('_', '-')}"
        for option_name in ("force", "check", "acknowledge_failures")
        if options[option_name]
    ]
    words += ["--script", shlex.quote(options["script"])] if options["script"] else []
    words += ["--seconds", str(options["seconds"])] if options["seconds"] != DEFAULT_CHECK_SECONDS else []
    return " ".join((context.command_prefix, "init", *words, *(["--json"] if context.as_json else [])))


def _build_progress_printer(context: CommandContext) -> Any:
    def print_progress(progress_text: str, seconds: int) -> None:
        context.print(f"  … {progress_text}" + (f", {seconds} s" if seconds else ""))

    return print_progress


def _prove_existing_checks(context: CommandContext, *, yes: bool, acknowledge: bool) -> int:
    """`init --check`: the checks of the file that is there, as they are; `acknowledge` writes what fails into the file."""
    from steersman.engine.check_proof import prove_checks
    from steersman.faces.cli.commands.acknowledge import edit_known_failures, write_known_failures
    from steersman.faces.cli.setup_plans import ProvenSetup, render_setup_commands

    loaded = context.load_config()
    config: Config = loaded.config
    if loaded.path is None or not config.checks:
        raise UserError(
            f"there is no check to prove: add one under [checks], or run `{context.command_prefix} init`"
        )
    ports = context.services.open_ports(context.project, journal=None)
    workspace = ports.workspace(config)
    if problem := workspace.find_start_problem():
        raise UserError(problem)
    context.services.project_state_directory(context.project).mkdir(parents=True, exist_ok=True)
    base = workspace.base(config.base)
    if not _confirm_setup_commands(context, base, config, [*render_setup_commands(config)], yes=yes):
        context.print("nothing was run")
        return EXIT_REFUSED
    ports = context.services.open_ports(context.project, journal=None)
    proof = asyncio.run(prove_checks(ports, config, base.commit, _build_progress_printer(context)))
    proven, failures = ProvenSetup(config, proof), _list_unknown_failures(config, proof)
    for line in _setup_result_lines(proven):
        context.print(line)
    added_failures = failures if acknowledge else []
    if added_failures:
        write_known_failures(context, loaded, edit_known_failures(loaded.path, added_failures))
    known_failures = (*config.known_failures, *added_failures)
    code = EXIT_DONE if _is_setup_proven(proof, known_failures) and added_failures == failures else EXIT_ENDED
    context.set_result(
        {**_proven_setup_fields(proven), "file": str(loaded.path), "added": added_failures, "exit_code": code}
    )
    for line in (
        _known_failure_lines(added_failures, loaded.path)
        if added_failures
        else _base_failure_remedies(context, failures)
    ):
        context.print(line)
    context.print("every check is proven" if code == EXIT_DONE else "not every check is proven", bold=True)
    return code


# ── judging what happened ───────────────────────────────────────────────────────────────────────────────────────────


def _is_setup_proven(proof: "CheckProof", known_failures: Container[str] = ()) -> bool:
    """Whether setup worked, tests were counted, and each check passed or came to its tests or is known to fail."""
    from steersman.faces.cli.setup_plans import has_counted_tests

    if proof.problem or proof.failed_setup is not None or not proof.results:
        return False
    all_reached_tests = all(
        result.verdict == "passed"
        or (result.verdict == "failed" and (has_counted_tests(result) or result.name in known_failures))
        for result in proof.results
    )
    return all_reached_tests and any(has_counted_tests(result) for result in proof.results)


def _list_base_failures(proof: "CheckProof") -> list[str]:
    """The tests that fail on the base, by name; where a failure has no name, the check."""
    from steersman.faces.cli.setup_plans import has_counted_tests

    names: dict[str, None] = {}
    for result in proof.results:
        if result.verdict == "failed" and has_counted_tests(
            result
        ):  # one that did not come to its tests is broken, not red
            has_names = result.report is not None and not result.report.cut and bool(result.report.failed)
            names |= dict.fromkeys(
                result.report.failed if has_names and result.report is not None else (result.name,)
            )
    return list(names)


def _list_unknown_failures(config: Config, proof: "CheckProof") -> list[str]:
    """The failures that nobody has acknowledged in the file."""
    from steersman.engine.check_proof import CheckProof
    from steersman.judges.evidence.baseline import is_known_failure

    remaining_results = tuple(result for result in proof.results if result.name not in config.known_failures)
    return [
        name
        for name in _list_base_failures(CheckProof(remaining_results))
        if not is_known_failure(name, config.known_failures)
    ]


def _choose_known_failures(context: CommandContext, proof: "CheckProof", *, is_requested: bool) -> list[str]:
    """The failures that a person acknowledges: by the option, or by a yes to a question of its own."""
    from steersman.judges.evidence.base_checks import UNNAMED_FAILURES_REASON, list_failure_names

    nameless = [
        result.name
        for result in proof.results
        if result.name in _list_base_failures(proof) and not list_failure_names(result)
    ]
    for name in dict.fromkeys(nameless):
        context.warn(f"{name} cannot be acknowledged: {UNNAMED_FAILURES_REASON}", fg="yellow")
    names = [name for name in _list_base_failures(proof) if name not in nameless]
    if not names or is_requested:
        return names
    if context.as_json or sys.stdin is None or not sys.stdin.isatty():
        return []
    for name in names[:MAX_FAILING_TESTS]:
        context.print(f"  fails now: {name}", fg="yellow")
    more = f" ({len(names)} in all)" if len(names) > MAX_FAILING_TESTS else ""
    question = f"acknowledge these failures{more} in known_failures? Other failures still count"
    return names if context.confirm(question, otherwise=None) else []


# ── saying it ───────────────────────────────────────────────────────────────────────────────────────────────────────


def _proven_setup_fields(proven: "ProvenSetup") -> dict[str, Any]:
    config, proof = proven.config, proven.proof
    results = {result.name: result for result in reversed(proof.results)}
    return {
        "setup": [{"run": list(step.run), "cwd": step.cwd} for step in config.worktree.setup],
        "env": dict(config.env),
        "checks": {
            name: {"argv": list(check.run), "cwd": check.cwd, **_command_result_fields(results.get(name))}
            for name, check in config.checks.items()
        },
        "failed_setup": _command_result_fields(proof.failed_setup) if proof.failed_setup else None,
        "unproven": proof.problem,
        "given_up": list(proven.given_up),
    }


def _command_result_fields(result: CommandResult | None) -> dict[str, Any]:
    if result is None:
        return {"verdict": "not run"}
    return {
        "verdict": result.verdict,
        "exit_code": result.exit_code,
        "tests": result.tests,
        "failed": list(result.report.failed) if result.report is not None else [],
        "reason": result.reason,
    }


def _setup_result_lines(proven: "ProvenSetup") -> Iterator[str]:
    """What was proven, one line for each check; what failed, with the end of its output."""
    from steersman.judges.evidence.base_checks import count_known_failures
    from steersman.views.failed_check import failed_check_lines
    from steersman.views.run_summary import verdict_words

    proof, acknowledged = proven.proof, frozenset(proven.config.known_failures)
    for attempt in proven.given_up:
        yield f"  given up: {attempt}"
    if proof.problem:
        yield f"  not proven: {proof.problem}"
    if proof.failed_setup is not None:
        yield from (f"  {line}" for line in failed_check_lines(proof.failed_setup))
    for result in proof.results:
        if result.verdict == "passed":
            tests = (
                count_with_noun(result.tests, "test")
                if result.tests is not None
                else result.reason or "no tests counted"
            )
            yield f"  {result.name}: passed · {tests} · {result.micros / 1_000_000:.1f} s"
        elif known_count := count_known_failures(result, proof.results, acknowledged):
            yield f"  {result.name}: {verdict_words(result.verdict, known_count)} · {result.micros / 1_000_000:.1f} s"
        else:
            yield from (f"  {line}" for line in failed_check_lines(result))


def _init_next_lines(
    context: CommandContext,
    proven: "ProvenSetup",
    known_failures: list[str],
    roles: dict[str, Any],
    path: Path,
    backup_path: str,
) -> Iterator[str]:
    config, proof = proven.config, proven.proof
    for name, role_table in roles.items():
        if "script" not in role_table:  # one that was found, not one that was asked for
            yield f"  {name}: {role_table['agent']}"
    yield f"written: {path}"
    if backup_path:
        yield f"  the file that was there is kept in {Path(backup_path).name}: take over what you need of it"
    if known_failures:
        yield from _known_failure_lines(known_failures, path)
    if not config.checks:
        yield "no check was found: add one under [checks], for without evidence nothing is approved"
    yield from _base_failure_remedies(
        context, [name for name in _list_base_failures(proof) if name not in known_failures]
    )
    for result in proof.results:
        if result.verdict == "no_tests":
            yield f"{result.name} counts no test; say how in [checks], one of:"
            argv = json.dumps(list(result.argv))
            yield f"  {result.name} = {{ run = {argv}, summary = 'Passed: +(?P<passed>\\d+)' }}"
            yield f"  {result.name} = {{ run = {argv}, exit_code_is_enough = true }}"
    if config.checks and not _is_setup_proven(proof):
        yield f"next: edit {CONFIG_FILE_NAME}, then `{context.command_prefix} init --check`"
    elif not roles:
        yield "next: say who plays coder, reviewer and tester in [roles.…], or look at `steersman demo` first"


def _base_failure_remedies(context: CommandContext, failures: list[str]) -> Iterator[str]:
    """What a person can do about failures on the base that nobody has acknowledged."""
    if not failures:
        return
    is_single = len(failures) == 1
    count = "1 test fails" if is_single else f"{len(failures)} tests fail"
    yield f"{count} on the base, and no run starts there until you repair or acknowledge that"
    yield f"  to acknowledge by name: {context.command_prefix} init --check --acknowledge-failures"
    yield (
        f"  to have a run repair {'it' if is_single else 'them'}:"
        f' {context.command_prefix} run "Make the failing tests pass" --fix-base'
    )


def _known_failure_lines(names: list[str], path: Path) -> Iterator[str]:
    """What was written into known_failures."""
    from steersman.views.failed_check import group_test_names

    count = "1 failure" if len(names) == 1 else f"{len(names)} failures"
    yield f"{count} acknowledged in {path.name}; any other still counts:"
    yield from (f"  {line}" for line in group_test_names(names))


# ── the rest of the file ────────────────────────────────────────────────────────────────────────────────────────────


def _remember_project_facts(context: CommandContext) -> str | None:
    """The first memory, without which nothing is planned: what the project is, from its own files."""
    from steersman.faces.cli.commands.memory import memory_timestamp
    from steersman.faces.cli.intent_drafts import read_project_id
    from steersman.judges.facts.sentence import summarize_project

    summary = summarize_project(
        context.services.open_fact_scanner(context.project).scan(read_project_id(context))
    )
    memories = context.services.open_memories(context.project)
    try:
        new_memory, _ = memories.add(summary, source=INIT_MEMORY_SOURCE, created_at=memory_timestamp())
        for old_memory in memories.entries(scopes=("project",), limit=10_000):
            if (
                old_memory.source == INIT_MEMORY_SOURCE and old_memory.id != new_memory.id
            ):  # what the project was before
                memories.forget(old_memory.id)
    except MemoryUnavailable as problem:  # whoever plans is told again; checks can be written without it
        context.warn(str(problem), fg="yellow")
        return None
    return str(new_memory.id)


def choose_installed_crew(context: CommandContext) -> dict[str, dict[str, str]]:
    """Whoever is installed: one CLI plays every role; with two, another one reviews and tests than writes."""
    agents = list(context.services.installed_agents())[:2]
    return (
        {name: {"agent": agents[0 if name == "coder" else -1]} for name in INIT_CREW_ROLES} if agents else {}
    )


def _trust_written_config(context: CommandContext, path: Path) -> None:
    """Trusts what init has written for the person who runs it; files of `.steersman/` came with the repository."""
    from steersman.faces.cli.trust_prompt import record_trust
    from steersman.judges.config.powerful_parts import is_file_setting_line

    if context.services.find_calling_effect(
        context.project_root
    ):  # an agent can write the file, and trust nothing
        return
    loaded = context.services.load_limited_config(path.parent)
    record_trust(context, loaded, [line for line in loaded.powerful if not is_file_setting_line(line)])
