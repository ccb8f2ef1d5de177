"""`steersman demo`: a whole run on a throw-away repository: real edits, real tests, a verified tape. No network."""

import os
import shutil
import subprocess
import sys
import tempfile
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from steersman.errors import UserError
from steersman.faces.cli.context import EXIT_DONE, EXIT_ENDED, EXIT_WAITING, CommandContext, define_command
from steersman.judges.text import count_with_noun

if TYPE_CHECKING:
    from steersman.engine.audit import AuditVerdict

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
    "demo", "steersman demo", "steersman demo --json", exits="0 approved, tested, verified · 1 not so"
)
@click.option("--keep-state", is_flag=True, help="Keep the store where other projects have theirs.")
def demo_command(context: CommandContext, *, keep_state: bool) -> int:
    """A whole run in seconds: proposal, approval, two rounds, real tests, a delivered branch, a verified tape."""
    demo_directory = Path(tempfile.mkdtemp(prefix="steersman-demo-"))
    repository = demo_directory / "shop"
    if not keep_state:
        os.environ["XDG_STATE_HOME"] = str(demo_directory / "state")
    _create_demo_repository(repository)
    context.print(f"a throw-away repository: {repository}", bold=True)
    context.print("its own test fails, and shall pass at the end:")
    for line in _run_demo_tests(repository)[-4:]:
        context.print(f"    {line}")
    demo_context = CommandContext(context.services, str(repository), as_json=False, mute=context.as_json)
    demo_context.command_prefix = (
        f"{'' if keep_state else f'XDG_STATE_HOME={demo_directory}/state '}steersman --project {repository}"
    )
    try:
        return _drive_demo_run(context, demo_context)
    finally:
        demo_context.close()


def _drive_demo_run(context: CommandContext, demo_context: CommandContext) -> int:
    from steersman.engine.audit import audit_run
    from steersman.engine.start import StartRequest
    from steersman.faces.cli.drive import drive_new_run, wait_for_verdict
    from steersman.faces.cli.trust_prompt import record_trust

    loaded = demo_context.read_config()
    record_trust(demo_context, loaded, loaded.powerful)  # the demo has just written it
    config = loaded.config
    runs = demo_context.create_runs()
    context.print("\nthe crew discusses a proposal:", bold=True)
    code = drive_new_run(
        demo_context, StartRequest("roundtable", DEMO_TASK, DEMO_OPERATOR, config, {"red_base": "fix"})
    )
    if code != EXIT_WAITING:
        return EXIT_ENDED
    run = runs.ports.journal.heads()[0].run
    context.print(
        f"\nthe demo plays the operator here and approves as {DEMO_OPERATOR!r}; in your runs that is you:",
        bold=True,
    )
    code = wait_for_verdict(demo_context, run, runs.answer(runs.gate(run), "approve", DEMO_OPERATOR))
    verdict = audit_run(runs.ports, run)
    return _print_demo_summary(context, demo_context, run, code, verdict)


def _print_demo_summary(
    context: CommandContext, demo_context: CommandContext, run: str, code: int, verdict: "AuditVerdict"
) -> int:
    run_context: Any = demo_context.runs.live(run).snapshot.context
    is_success = (
        code == EXIT_DONE
        and run_context.outcome == "approved"
        and run_context.tests > 0
        and verdict.ok
        and verdict.anchored
    )
    next_commands = [
        f"git -C {demo_context.project} diff main steersman/{run}",
        *(
            f"{demo_context.command_prefix} {word} {run}"
            for word in ("show", "report", "audit tape", "audit verify")
        ),
        f"{demo_context.command_prefix} machine show roundtable --format mermaid",
    ]
    context.set_result(
        {
            "run": run,
            "outcome": run_context.outcome,
            "tests": run_context.tests,
            "verified": verdict.ok,
            "anchored": verdict.anchored,
            "repository": str(demo_context.project),
            "next": next_commands,
            "exit_code": EXIT_DONE if is_success else EXIT_ENDED,
        }
    )
    audit_text = "verified, and an anchor agrees" if verdict.ok and verdict.anchored else "NOT verified"
    context.print(f"\n{run_context.outcome} · {count_with_noun(run_context.tests, 'test')} really run · the tape of {verdict.entries} entries is {audit_text}",
             bold=True, fg="green" if is_success else "red")  # fmt: skip
    context.print("look at it:")
    for command in next_commands:
        context.print(f"  {command}")
    return EXIT_DONE if is_success else EXIT_ENDED


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
    # Started from a hook, say, git would be told of another repository.
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
