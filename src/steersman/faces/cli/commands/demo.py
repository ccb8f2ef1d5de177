"""`steersman demo`: scripted agents drive a whole run in a temporary repository, with real edits and real tests."""

import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

import click

from steersman.contracts.machine_names import DEFAULT_MACHINE
from steersman.errors import UserError
from steersman.faces.cli.context import EXIT_DONE, EXIT_ENDED, EXIT_WAITING, CommandContext, define_command
from steersman.judges.text import count_with_noun

if TYPE_CHECKING:
    from steersman.app.audit import AuditVerdict

DEMO_OPERATOR = "demo operator"
DEMO_TASK = "A discount is taken off as cents; it has to be a percentage"
DEMO_CONFIG = """version = 1

[checks]
unit = [{python}, "-m", "unittest", "-v"]

[roles.coder]
agent = "scripted"
script = "crew.yaml"
[roles.reviewer]
agent = "scripted"
script = "crew.yaml"
[roles.tester]
agent = "scripted"
script = "crew.yaml"

[budget]
tokens = 100_000
turns = 60
"""


@define_command(
    "demo",
    "steersman demo",
    "steersman demo --json",
    exits="0 the run is approved and its tape is verified · 1 it is not · 2 git is missing or fails",
)
@click.option(
    "--keep-state",
    is_flag=True,
    help="Keep the run in your state directory. By default it is kept in the demo's temporary directory.",
)
def demo_command(context: CommandContext, *, keep_state: bool) -> int:
    """Show a whole run in a few seconds, in a temporary repository.

    Scripted agents propose a fix for a failing test, the demo approves it, the agents implement it in two rounds, steersman runs the tests, delivers a branch and verifies the tape. The demo needs Python and git, but no model, no login and no network. The demo keeps the repository and ends with commands that show what happened."""
    program_words = _find_program_words()
    demo_directory = Path(tempfile.mkdtemp(prefix="steersman-demo-"))
    repository = demo_directory / "shop"
    if not keep_state:
        os.environ["XDG_STATE_HOME"] = str(demo_directory / "state")
    # The tester's command starts `python3`: the one that runs this, whatever else PATH leads to.
    os.environ["PATH"] = os.pathsep.join(
        (str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath))
    )
    _create_demo_repository(repository)
    context.print(f"The repository of the demo: {repository}", bold=True)
    context.print("One of its tests fails:")
    for line in _run_demo_tests(repository)[-4:]:
        context.print(f"    {line}")
    demo_context = CommandContext(context.services, str(repository), as_json=False, mute=context.as_json)
    demo_context.answers_gates = True
    demo_context.command_prefix = _write_demo_command(
        demo_directory / "steersman",
        *(() if keep_state else (f"XDG_STATE_HOME={shlex.quote(str(demo_directory / 'state'))}",)),
        f"exec {program_words} --project {shlex.quote(str(repository))}",
    )
    try:
        return _drive_demo_run(context, demo_context)
    finally:
        demo_context.close()


def _drive_demo_run(context: CommandContext, demo_context: CommandContext) -> int:
    from steersman.app.audit import StoreAudit
    from steersman.app.start import StartRequest
    from steersman.faces.cli.drive import drive_new_run, wait_for_verdict
    from steersman.faces.cli.trust_prompt import open_settings_trust

    loaded = demo_context.read_config()
    open_settings_trust(demo_context, loaded).record(demo_context.principal)  # the demo has just written it
    config = loaded.config
    runs = demo_context.create_runs()
    context.print("\nScripted agents discuss a proposal:", bold=True)
    code = drive_new_run(
        demo_context, StartRequest(DEFAULT_MACHINE, DEMO_TASK, DEMO_OPERATOR, config, {"red_base": "fix"})
    )
    if code != EXIT_WAITING:
        return EXIT_ENDED
    run = runs.ports.journal.heads()[0].run
    context.print(
        f"\nThe demo approves the proposal as {DEMO_OPERATOR!r}. In your own runs you decide.",
        bold=True,
    )
    code = wait_for_verdict(demo_context, run, runs.answer(runs.gate(run), "approve", DEMO_OPERATOR))
    verdict = StoreAudit(runs.ports).verify_run(run)
    return _print_demo_summary(context, demo_context, run, code, verdict)


def _print_demo_summary(
    context: CommandContext, demo_context: CommandContext, run: str, code: int, verdict: "AuditVerdict"
) -> int:
    from steersman.app.runs import read_run_details

    summary = read_run_details(demo_context.runs.ports, run).summary
    tests = sum(check.tests or 0 for check in summary.checks if not check.variant)
    is_success = (
        code == EXIT_DONE and summary.status == "done" and tests > 0 and verdict.ok and verdict.anchored
    )
    next_commands = [
        f"git -C {shlex.quote(str(demo_context.project))} diff main steersman/{run}",
        *(
            f"{demo_context.command_prefix} {word} {run}"
            for word in ("show", "report", "audit tape", "audit verify")
        ),
        f"{demo_context.command_prefix} machine show {DEFAULT_MACHINE} --format mermaid",
    ]
    context.set_result(
        {
            "run": run,
            "outcome": summary.outcome,
            "tests": tests,
            "verified": verdict.ok,
            "anchored": verdict.anchored,
            "repository": str(demo_context.project),
            "next": next_commands,
            "exit_code": EXIT_DONE if is_success else EXIT_ENDED,
        }
    )
    audit_text = "verified and confirmed by an anchor" if verdict.ok and verdict.anchored else "NOT verified"
    context.print(f"\n{summary.outcome} · {count_with_noun(tests, 'test')} run · the tape of {verdict.entries} entries is {audit_text}",
             bold=True, fg="green" if is_success else "red")  # fmt: skip
    context.print("Look at the run:")
    for command in next_commands:
        demo_context.print(f"  {command}")
    return EXIT_DONE if is_success else EXIT_ENDED


def _write_demo_command(path: Path, *words: str) -> str:
    """Writes a short command that runs steersman on the demo's repository, and returns how a shell calls it."""
    path.write_text(
        f'#!/bin/sh\n# Runs steersman on the repository of the demo.\n{" ".join(words)} "$@"\n',
        encoding="utf-8",
    )
    path.chmod(0o755)
    quoted_path = shlex.quote(str(path))
    return quoted_path if os.access(path, os.X_OK) else f"sh {quoted_path}"  # a disk can be mounted noexec


def _find_program_words() -> str:
    """Returns how a shell starts this program: by its name if PATH leads to it, else by its path."""
    program = Path(sys.argv[0])
    if program.name != "steersman":
        return f"{shlex.quote(sys.executable)} -m steersman"
    on_path = shutil.which("steersman")
    is_on_path = on_path is not None and program.exists() and os.path.samefile(on_path, program)
    return "steersman" if is_on_path else shlex.quote(str(program.absolute()))


def _create_demo_repository(repository: Path) -> None:
    import json

    repository.mkdir()
    demo_files = files("steersman.faces.cli.demo")
    for name in ("prices.py", "test_prices.py"):
        (repository / name).write_text(
            demo_files.joinpath(f"{name}.txt").read_text(encoding="utf-8"), encoding="utf-8"
        )
    crew = demo_files.joinpath("crew.yaml").read_text(encoding="utf-8")
    python = next((name for name in ("python3", "python") if shutil.which(name)), sys.executable)
    (repository / "crew.yaml").write_text(crew.replace("[[python3,", f"[[{python},"), encoding="utf-8")
    (repository / "steersman.toml").write_text(
        DEMO_CONFIG.format(python=json.dumps(sys.executable)), encoding="utf-8"
    )
    git_identity = [
        "-c",
        f"user.name={DEMO_OPERATOR}",
        "-c",
        "user.email=demo@localhost",
        "-c",
        "commit.gpgSign=false",
    ]
    for git_arguments in (
        ["init", "-q", "-b", "main"],
        ["add", "-A"],
        [*git_identity, "commit", "-q", "-m", "A shop with a wrong discount"],
    ):
        _run_demo_git(repository, git_arguments)


def _run_demo_git(repository: Path, git_arguments: list[str]) -> None:
    # A git hook sets GIT_DIR; with it git would work in another repository.
    env = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    try:
        completed = subprocess.run(
            ["git", *git_arguments], cwd=repository, env=env, capture_output=True, check=False, timeout=60
        )
    except OSError:
        raise UserError("git was not found on PATH; install git 2.38 or newer and try again") from None
    if completed.returncode:
        raise UserError(f"git {git_arguments[0]} said: {completed.stderr.decode('utf-8', 'replace').strip()}")


def _run_demo_tests(repository: Path) -> list[str]:
    argv = [sys.executable, "-m", "unittest", "-q"]
    env = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    completed = subprocess.run(argv, cwd=repository, capture_output=True, check=False, env=env, timeout=60)
    return [line for line in completed.stderr.decode("utf-8", "replace").splitlines() if line.strip()]
