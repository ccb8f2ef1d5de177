"""`steersman init`: proposes setup and checks, proves them the way a run runs them, and writes steersman.toml."""

import asyncio
import shlex
import sys
from pathlib import Path
from typing import Any

import click

from steersman.app.known_failures import (
    edit_known_failures,
    write_config_with_backup,
    write_known_failures,
)
from steersman.app.setup_plans import (
    CheckProof,
    ProvenSetup,
    is_setup_proven,
    list_base_failures,
    list_unknown_failures,
    propose_setup_plans,
    prove_checks,
    prove_setup_plans,
    read_project_files,
)
from steersman.contracts.config import Check, Config
from steersman.contracts.workspace import RunBase
from steersman.errors import MemoryUnavailable, UserError
from steersman.faces.cli.context import EXIT_DONE, EXIT_ENDED, EXIT_REFUSED, CommandContext, define_command
from steersman.faces.cli.init_screen import (
    CONFIG_FILE_NAME,
    base_failure_remedies,
    init_next_lines,
    known_failure_lines,
    proven_setup_fields,
    render_setup_commands,
    setup_result_lines,
)
from steersman.faces.cli.trust_prompt import open_settings_trust
from steersman.judges.evidence.baseline import UNNAMED_FAILURES_REASON, list_failure_names
from steersman.ports.sandbox import NOT_ISOLATED

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
    "steersman init --script crew.yaml   # scripted agents, for trying things out",
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
        raise _InitRefusedError(
            "a person has to acknowledge failures, and an agent never speaks for a person"
        )
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
    for line in setup_result_lines(proven):  # print why a check fails before asking about it
        context.print(line)
    return _write_proven_config(
        context, path, proven, notes, problem, script=script, acknowledge=acknowledge_failures
    )


def _write_proven_config(
    context: CommandContext,
    path: Path,
    proven: ProvenSetup,
    notes: list[str],
    problem: str | None,
    *,
    script: str | None,
    acknowledge: bool,
) -> int:
    """Writes steersman.toml and trusts it, remembers the project, and says what comes next."""
    known_failures = _choose_known_failures(context, proven.proof, is_requested=acknowledge)
    roles = (
        {name: {"agent": "scripted", "script": script} for name in INIT_CREW_ROLES}
        if script
        else choose_installed_crew(context)
    )
    config = proven.config
    backup_path = write_config_with_backup(
        path,
        context.services.render_project_config(config=config, roles=roles, known_failures=known_failures),
    )
    _trust_written_config(context, path)
    memory = _remember_project_facts(context)
    code = EXIT_DONE if problem or not config.checks or is_setup_proven(proven.proof) else EXIT_ENDED
    context.set_result(
        {
            **proven_setup_fields(proven),
            "file": str(path),
            "notes": notes,
            "known_failures": known_failures,
            "memory": memory,
        }
        | {"copy": backup_path, "problem": problem, "exit_code": code}
    )
    for line in init_next_lines(context, proven, known_failures, roles, path, backup_path):
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


def _detect_unproven_setup(context: CommandContext) -> ProvenSetup:
    """Where there is no commit nothing can be proven: what the files on disk name."""

    checks = {
        name: Check(tuple(argv))
        for name, argv in context.services.detect_project_checks(context.project).items()
    }
    return ProvenSetup(Config(checks=checks), CheckProof(problem="there is no commit to prove them on"))


def _propose_and_prove_setup(
    context: CommandContext, seconds: int, *, yes: bool
) -> tuple[ProvenSetup | None, list[str]]:

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
    context: CommandContext, base: RunBase, config: Config, lines: list[str], *, yes: bool
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
    return yes or context.confirm("run them?", f"Run them with `{_retyped_init_command(context)} --yes`")


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
    proven, failures = ProvenSetup(config, proof), list_unknown_failures(config, proof)
    for line in setup_result_lines(proven):
        context.print(line)
    added_failures = failures if acknowledge else []
    if added_failures:
        text = edit_known_failures(loaded.path, added_failures)
        trust = open_settings_trust(context, loaded)
        write_known_failures(trust, context.principal, loaded.path, text, context.read_config)
    known_failures = (*config.known_failures, *added_failures)
    code = EXIT_DONE if is_setup_proven(proof, known_failures) and added_failures == failures else EXIT_ENDED
    context.set_result(
        {**proven_setup_fields(proven), "file": str(loaded.path), "added": added_failures, "exit_code": code}
    )
    for line in (
        known_failure_lines(added_failures, loaded.path)
        if added_failures
        else base_failure_remedies(context, failures)
    ):
        context.print(line)
    context.print("every check is proven" if code == EXIT_DONE else "not every check is proven", bold=True)
    return code


def _choose_known_failures(context: CommandContext, proof: CheckProof, *, is_requested: bool) -> list[str]:
    """The failures that a person acknowledges: by the option, or by a yes to a question of its own."""
    nameless = [
        result.name
        for result in proof.results
        if result.name in list_base_failures(proof) and not list_failure_names(result)
    ]
    for name in dict.fromkeys(nameless):
        context.warn(f"{name} cannot be acknowledged: {UNNAMED_FAILURES_REASON}", fg="yellow")
    names = [name for name in list_base_failures(proof) if name not in nameless]
    if not names or is_requested:
        return names
    if context.as_json or sys.stdin is None or not sys.stdin.isatty():
        return []
    for name in names[:MAX_FAILING_TESTS]:
        context.print(f"  fails now: {name}", fg="yellow")
    more = f" ({len(names)} in all)" if len(names) > MAX_FAILING_TESTS else ""
    question = f"acknowledge these failures{more} in known_failures? Other failures still count"
    return names if context.confirm(question, otherwise=None) else []


# ── the rest of the file ────────────────────────────────────────────────────────────────────────────────────────────


def _remember_project_facts(context: CommandContext) -> str | None:
    """The first memory, without which nothing is planned: what the project is, from its own files."""
    from steersman.app.intents import find_project_id
    from steersman.faces.cli.commands.memory import memory_timestamp
    from steersman.judges.facts.sentence import summarize_project

    project_id = find_project_id(context.read_config().config, context.project_root)
    summary = summarize_project(context.services.open_fact_scanner(context.project).scan(project_id))
    memories = context.services.open_memories(context.project)
    try:
        new_memory, _ = memories.add(summary, source=INIT_MEMORY_SOURCE, created_at=memory_timestamp())
        for old_memory in memories.entries(scopes=("project",), limit=10_000):
            if (
                old_memory.source == INIT_MEMORY_SOURCE and old_memory.id != new_memory.id
            ):  # what the project was before
                memories.forget(old_memory.id)
    except MemoryUnavailable as problem:  # planning reports it again; checks can be written without it
        context.warn(str(problem), fg="yellow")
        return None
    return str(new_memory.id)


def choose_installed_crew(context: CommandContext) -> dict[str, dict[str, str]]:
    """Assigns installed agents to roles: one agent plays every role; of two, one codes and the other reviews and tests."""
    agents = list(context.services.installed_agents())[:2]
    return (
        {name: {"agent": agents[0 if name == "coder" else -1]} for name in INIT_CREW_ROLES} if agents else {}
    )


def _trust_written_config(context: CommandContext, path: Path) -> None:
    """Trusts what init has written for the person who runs it; files of `.steersman/` came with the repository."""
    from steersman.judges.config.limits import is_file_setting_line

    if not context.principal.may_approve:  # an agent can write the file, and trust nothing
        return
    loaded = context.services.load_limited_config(path.parent)
    lines = [line for line in loaded.powerful if not is_file_setting_line(line)]
    open_settings_trust(context, loaded).record(context.principal, lines)
