"""The command line: finds a command, runs it, and decides the exit code of the command from its result or error.

A command is imported only when it runs, so that `steersman runs` starts quickly.
**Invariant:** an expected error is one line with the next step, never a traceback.
"""

import os
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from steersman import __version__
from steersman.errors import SteersmanError
from steersman.faces.cli.context import (
    EXIT_CODES_HELP,
    EXIT_DONE,
    EXIT_USAGE,
    OutputWriteError,
    convert_output_errors,
    encode_json_line,
    indent_stderr_text,
)
from steersman.judges.text import printable_line

if TYPE_CHECKING:
    from steersman.faces.services import Services

EXIT_DEFECT, EXIT_INTERRUPTED = 70, 130  # sysexits.h; 128 + SIGINT
COMMANDS_PACKAGE = "steersman.faces.cli.commands"

# name: (module and attribute, one line for the list of commands); in the order of --help
TOP_LEVEL_COMMANDS = {
    "demo": ("demo:demo_command", "Show a whole run in a temporary repository."),
    "init": ("init:init_command", "Find the project's checks, try them, and write steersman.toml."),
    "trust": ("trust:trust_command", "Read this repository's settings and trust them."),
    "run": ("run:run_command", "Give the agents a task and watch them work."),
    "plan": ("plan:plan_group", "Plan an intent or a goal; nothing is executed."),
    "tasks": (
        "tasks:tasks_group",
        "Work on a task phase by phase: plan, review, code, test, accept, revert.",
    ),
    "repl": ("repl:repl_command", "Work on a task at a prompt."),
    "runs": ("runs:runs_command", "List runs."),
    "show": ("show:show_command", "Show everything about one run."),
    "watch": ("watch:watch_command", "Follow a run that another process drives."),
    "why": ("why:why_command", "Say what a run waits for and which command moves it."),
    "acknowledge": (
        "acknowledge:acknowledge_command",
        "Accept failures that were there before the run, by name.",
    ),
    "gates": ("gates:gates_command", "List the questions that wait for a person."),
    "approve": ("answers:approve_command", "Answer a gate: yes."),
    "accept-evidence": (
        "answers:accept_evidence_command",
        "Accept the results that an evidence gate questions.",
    ),
    "rework": ("answers:rework_command", "Answer a gate: do it again, with this change."),
    "reject": ("answers:reject_command", "Answer a gate: no."),
    "answer": (
        "answers:answer_command",
        "Answer a gate with one of its own choices, such as a raised budget.",
    ),
    "followup": ("speak:followup_command", "Give a finished run another task."),
    "send": ("speak:send_command", "Send a run an event by its name."),
    "abort": ("speak:abort_command", "Stop a run for good."),
    "revert": ("revert:revert_command", "Undo what a run has delivered."),
    "resume": ("resume:resume_command", "Continue a run from the end of its tape."),
    "fork": ("resume:fork_command", "Start a new run from an entry of another run."),
    "report": ("report:report_command", "Print a run as a Markdown report."),
    "chat": ("chat:chat_group", "Talk with agents beside the runs."),
    "intent": ("intent:intent_group", "Draft, check and seal an intent: the input of a plan."),
    "audit": ("audit:audit_group", "Read, verify, replay, anchor, prune and export tapes."),
    "check": ("check:check_group", "Ask whether a command, a reply or a file name would be accepted."),
    "facts": ("facts:facts_command", "Show what the project's own files say about it."),
    "registry": (
        "registry:registry_group",
        "List and check the workflows, agents, commands and rules for plans.",
    ),
    "memory": ("memory:memory_group", "Add, search, list and forget sentences for later plans."),
    "machine": ("machine:machine_group", "List, show, check, migrate and lock the state machines."),
    "doctor": ("doctor:doctor_command", "Check this machine and say how to fix problems."),
}


class LazyGroup(click.Group):
    """A group whose commands are imported when they are asked for."""

    def __init__(self, *args: Any, known: dict[str, tuple[str, str]], **more: Any) -> None:
        super().__init__(*args, **more)
        self.known = known

    def make_context(self, *args: Any, **more: Any) -> click.Context:
        with convert_output_errors():  # --help and --version are answered here
            return super().make_context(*args, **more)

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002  click's
        return list(self.known)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002  click's
        if cmd_name not in self.known:
            return None
        import importlib

        module, _, attribute = self.known[cmd_name][0].partition(":")
        command: click.Command = getattr(importlib.import_module(f"{COMMANDS_PACKAGE}.{module}"), attribute)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002  click's
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in self.known.items()])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in self.known and not args[0].startswith("-"):
            import difflib

            close_matches = difflib.get_close_matches(args[0], self.known, 1, 0.6)
            hint = f". Did you mean `{close_matches[0]}`?" if close_matches else "."
            ctx.fail(f"there is no command {args[0]!r}{hint}")
        return super().resolve_command(ctx, args)


@click.group(
    cls=LazyGroup,
    known=TOP_LEVEL_COMMANDS,
    invoke_without_command=True,
    epilog=f"Exit codes: {EXIT_CODES_HELP}",
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
)
@click.option(
    "--project", metavar="DIR", default=None, help="The repository (default: the one around this directory)."
)
@click.version_option(__version__, message="steersman %(version)s")
@click.pass_context
def steersman_group(ctx: click.Context, project: str | None) -> int | None:
    """Drive AI coding agents through guarded state machines: the machine decides, agents propose, people approve, and everything is on tape.

    Without a command, steersman shows what waits for you, which runs can be resumed, and what to do next. In a new repository start with `steersman init`. To see a whole run first, start `steersman demo`."""
    ctx.obj = (ctx.obj, project)
    if ctx.invoked_subcommand is None:
        from steersman.faces.cli.commands.home import home_command

        result: int | None = ctx.invoke(home_command, project=project, as_json=False)
        return result
    return None


def run_command_line(services: "Services", argv: Sequence[str] | None = None) -> int:
    """Runs one command and returns its exit code."""
    args = list(sys.argv[1:] if argv is None else argv)
    _make_streams_writable()
    try:
        code = _invoke_command(services, args)
        with convert_output_errors():
            sys.stdout.flush()
    except BrokenPipeError:  # the reader has closed its end
        _discard_stdout()
        return EXIT_DONE
    except OutputWriteError as error:
        _discard_stdout()
        return _print_command_failure(services, [], str(error), error.exit_code)
    return code


def _invoke_command(services: "Services", args: list[str]) -> int:
    try:
        code = steersman_group.main(args=args, prog_name="steersman", standalone_mode=False, obj=services)
    except OutputWriteError:
        raise
    except SteersmanError as error:
        return _print_command_failure(
            services, args, str(error), error.exit_code, getattr(error, "details", {})
        )
    except click.ClickException as error:
        return _print_usage_failure(services, args, error)
    except (click.Abort, KeyboardInterrupt):
        return EXIT_INTERRUPTED
    except SystemExit:  # click exits like this when the pipe is closed
        _discard_stdout()
        return EXIT_DONE
    except BrokenPipeError:
        raise
    except Exception:
        return _print_defect(services, args)
    return code if isinstance(code, int) else 0


def _discard_stdout() -> None:
    """Redirects standard output to nowhere, so that the interpreter does not fail when it exits."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _make_streams_writable() -> None:
    """Replaces closed streams and escapes characters that an encoding does not have, so that printing never fails."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115  for as long as we live
        elif hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")


def _print_command_failure(
    services: "Services", args: list[str], message: str, code: int, details: Mapping[str, str] | None = None
) -> int:
    redacted = _redact_failure_text(services, message)
    click.secho(indent_stderr_text(f"steersman: {redacted}"), file=sys.stderr, fg="red")
    if "--json" in args:
        with convert_output_errors():
            click.echo(
                encode_json_line({"error": redacted, "exit_code": code, **(details or {})}), file=sys.stdout
            )
    return code


def _redact_failure_text(services: "Services", text: str) -> str:
    """Removes secrets from an error: its text often comes from outside, and standard error is often a file."""
    from contextlib import suppress

    from steersman.judges.redaction.redact import redact_text

    secrets: tuple[str, ...] = ()
    with suppress(OSError, SteersmanError):  # the directory may be gone
        secrets = services.list_known_secrets(services.find_repository_root(os.getcwd()))
    return redact_text(text, secrets, os.urandom(16))


def _print_usage_failure(services: "Services", args: list[str], error: click.ClickException) -> int:
    ctx = getattr(error, "ctx", None)
    message = printable_line(error.format_message())
    end = "" if message.endswith((".", "?")) else "."
    help_hint = f"{end} See `{ctx.command_path} --help`" if ctx is not None else ""
    return _print_command_failure(services, args, f"{message}{help_hint}", EXIT_USAGE)


def _print_defect(services: "Services", args: list[str]) -> int:
    import traceback

    click.echo(
        indent_stderr_text(_redact_failure_text(services, traceback.format_exc().rstrip())), file=sys.stderr
    )
    return _print_command_failure(
        services, args, "this is a defect of steersman; please report it with the lines above", EXIT_DEFECT
    )
