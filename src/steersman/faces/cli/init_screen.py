"""What `steersman init` shows: the commands it is about to run, what they proved, and what to do next."""

import json
import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from steersman.app.setup_plans import (
    ProvenSetup,
    SetupChoice,
    is_setup_proven,
    list_base_failures,
    list_plan_commands,
)
from steersman.contracts.commands import CommandResult
from steersman.contracts.config import Config
from steersman.faces.cli.context import CommandContext
from steersman.judges.evidence.baseline import count_known_failures
from steersman.judges.text import count_with_noun
from steersman.views.failed_check import failed_check_lines, group_test_names
from steersman.views.run_summary import verdict_words

CONFIG_FILE_NAME = "steersman.toml"
MAX_FALLBACK_COMMANDS = 6  # other commands that are named before the question


def render_setup_commands(config: Config, choice: SetupChoice | None = None) -> Iterator[str]:
    """Everything that is about to run, in groups, on one screen."""
    if config.worktree.setup:
        yield "  setup:"
        yield from (f"    {_render_setup_command(step.run, step.cwd)}" for step in config.worktree.setup)
    yield "  checks:"
    yield from (
        f"    {name}: {_render_setup_command(check.run, check.cwd)}" for name, check in config.checks.items()
    )
    if config.env:
        yield f"  variables: {', '.join(f'{name}={value}' for name, value in config.env.items())}"
    others = list(_fallback_commands(choice)) if choice is not None else []
    if others:
        yield "  only if that fails:"
        yield from (f"    {line}" for line in others[:MAX_FALLBACK_COMMANDS])
    if len(others) > MAX_FALLBACK_COMMANDS:
        yield f"    and {len(others) - MAX_FALLBACK_COMMANDS} more of the same kind"


def _fallback_commands(choice: SetupChoice) -> Iterator[str]:
    rendered = {
        _render_setup_command(planned_command.run, planned_command.cwd)
        for plan in choice.plans
        for planned_command in list_plan_commands(plan)
    }
    for proposal in choice.proposals:
        for plan in proposal.plans[1:]:
            for command in list_plan_commands(plan):
                if (line := _render_setup_command(command.run, command.cwd)) not in rendered:
                    rendered.add(line)
                    yield line


def _render_setup_command(argv: Sequence[str], cwd: str) -> str:
    return shlex.join(argv) + (f"   (in {cwd})" if cwd else "")


def proven_setup_fields(proven: ProvenSetup) -> dict[str, Any]:
    """What was proven, as JSON."""
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


def setup_result_lines(proven: ProvenSetup) -> Iterator[str]:
    """What was proven, one line for each check; what failed, with the end of its output."""
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


def init_next_lines(
    context: CommandContext,
    proven: ProvenSetup,
    known_failures: list[str],
    roles: dict[str, Any],
    path: Path,
    backup_path: str,
) -> Iterator[str]:
    """What was written, what keeps a run from starting, and the next step."""
    config, proof = proven.config, proven.proof
    for name, role_table in roles.items():
        if "script" not in role_table:  # one that was found, not one that was asked for
            yield f"  {name}: {role_table['agent']}"
    yield f"written: {path}"
    if backup_path:
        yield f"  the file that was there is kept in {Path(backup_path).name}: take over what you need of it"
    if known_failures:
        yield from known_failure_lines(known_failures, path)
    if not config.checks:
        yield "no check was found: add one under [checks], for without evidence nothing is approved"
    yield from base_failure_remedies(
        context, [name for name in list_base_failures(proof) if name not in known_failures]
    )
    for result in proof.results:
        if result.verdict == "no_tests":
            yield f"{result.name} counts no test; say how in [checks], one of:"
            argv = json.dumps(list(result.argv))
            yield f"  {result.name} = {{ run = {argv}, summary = 'Passed: +(?P<passed>\\d+)' }}"
            yield f"  {result.name} = {{ run = {argv}, exit_code_is_enough = true }}"
    if config.checks and not is_setup_proven(proof):
        yield f"next: edit {CONFIG_FILE_NAME}, then `{context.command_prefix} init --check`"
    elif not roles:
        yield f"no agent was found: install one, or name an agent under [roles.…] in {CONFIG_FILE_NAME}. `steersman demo` needs none"


def base_failure_remedies(context: CommandContext, failures: list[str]) -> Iterator[str]:
    """Says what a person can do about unacknowledged failures on the base."""
    if not failures:
        return
    is_single = len(failures) == 1
    count = "1 test fails" if is_single else f"{len(failures)} tests fail"
    pronoun = "it" if is_single else "them"
    yield f"{count} on the base, and no run starts there until you do one of these:"
    yield f"  acknowledge {pronoun} by name:"
    yield f"    {context.command_prefix} init --check --acknowledge-failures"
    yield f"  let a run repair {pronoun}:"
    yield f'    {context.command_prefix} run "Make the failing tests pass" --fix-base'


def known_failure_lines(names: list[str], path: Path) -> Iterator[str]:
    """What was written into known_failures."""
    count = "1 failure" if len(names) == 1 else f"{len(names)} failures"
    yield f"{count} acknowledged in {path.name}; any other still counts:"
    yield from (f"  {line}" for line in group_test_names(names))
