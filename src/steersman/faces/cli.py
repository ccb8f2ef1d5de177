"""The command line: finds a command, runs it, and turns what it says into an exit code.

Commands are imported when they are asked for, so that `steersman runs` starts in the time its libraries take.
**Invariant:** an expected error is one line with the next step, never a traceback.
"""

import os
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from steersman import __version__
from steersman.errors import SteersmanError
from steersman.faces.deck import DONE, EXITS, USAGE, UnheardError, aside, json_line, speaking
from steersman.judges.text import one_line

if TYPE_CHECKING:
    from steersman.faces.helm import Helm

DEFECT, INTERRUPTED = 70, 130  # sysexits.h; 128 + SIGINT
HERE = "steersman.faces.commands"

# name: (module and attribute, what it does); in the order in which a person meets them
COMMANDS = {
    "demo": ("demo:demo", "A whole run on a throw-away repository, in seconds."),
    "init": ("init:init", "Find the project's checks, prove them, write steersman.toml."),
    "trust": ("trust:trust", "Read and trust what this repository's settings can do."),
    "run": ("run:run", "Give a task to the crew and watch it work."),
    "plan": ("plan:plan", "Plan an intent, or a goal in words; nothing is executed."),
    "tasks": ("tasks:tasks", "A task's life: plan, review, code, test, accept, revert."),
    "repl": ("repl:repl", "Work on a task at a prompt."),
    "runs": ("runs:runs", "List runs."),
    "show": ("show:show", "Everything about one run."),
    "watch": ("watch:watch", "Follow a run that another process drives."),
    "why": ("why:why", "What a run waits for and what would move it."),
    "acknowledge": ("acknowledge:acknowledge", "Write failing tests of a base into known_failures."),
    "gates": ("gates:gates", "What waits for a person's answer."),
    "approve": ("answers:approve", "Answer a gate: yes."),
    "accept-evidence": ("answers:accept_evidence", "Accept the results of an evidence gate, after a look."),
    "rework": ("answers:rework", "Answer a gate: again, and this is what to change."),
    "reject": ("answers:reject", "Answer a gate: no."),
    "answer": ("answers:answer", "Answer a gate with one of its own choices, such as a raised budget."),
    "followup": ("speak:followup", "Ask a run that has its outcome for more."),
    "send": ("speak:send", "Send a run an event that a person may cause."),
    "abort": ("speak:abort", "Stop a run for good."),
    "revert": ("revert:revert", "Take back what a run has delivered."),
    "resume": ("resume:resume", "Drive a run on from where its tape ends."),
    "fork": ("resume:fork", "Start a new run from any entry of another."),
    "report": ("report:report", "A run as a Markdown report."),
    "chat": ("chat:chat", "Talk with agents beside the machines."),
    "intent": ("intent:intent", "What is to be planned: draft it, check it, seal it."),
    "audit": ("audit:audit", "The tape: read, verify, replay, anchor, prune, export."),
    "check": ("check:check", "Would it be accepted? A command, a verdict, a name."),
    "facts": ("facts:facts", "What the project's own files say about it, line by line."),
    "registry": ("registry:registry", "What can be planned with: list, show, check, diff, variables."),
    "memory": ("memory:memory", "What was learnt before: add, search, list, forget."),
    "machine": ("machine:machine", "The state machines: list, show, check, migrate, lock."),
    "doctor": ("doctor:doctor", "Check the surroundings; say how to mend them."),
}


class Lazy(click.Group):
    """A group whose commands are imported when they are asked for."""

    def __init__(self, *args: Any, known: dict[str, tuple[str, str]], **more: Any) -> None:
        super().__init__(*args, **more)
        self.known = known

    def make_context(self, *args: Any, **more: Any) -> click.Context:
        with speaking():  # --help and --version are answered here
            return super().make_context(*args, **more)

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002  click's
        return list(self.known)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002  click's
        if cmd_name not in self.known:
            return None
        import importlib

        module, _, attribute = self.known[cmd_name][0].partition(":")
        found: click.Command = getattr(importlib.import_module(f"{HERE}.{module}"), attribute)
        return found

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002  click's
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in self.known.items()])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in self.known and not args[0].startswith("-"):
            import difflib

            near = difflib.get_close_matches(args[0], self.known, 1, 0.6)
            hint = f": did you mean `{near[0]}`?" if near else ""
            ctx.fail(f"there is no command {args[0]!r}{hint}")
        return super().resolve_command(ctx, args)


@click.group(
    cls=Lazy,
    known=COMMANDS,
    invoke_without_command=True,
    epilog=f"Exit codes: {EXITS}",
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
)
@click.option("--project", metavar="DIR", default=None, help="The repository (default: the one around here).")
@click.version_option(__version__, message="steersman %(version)s")
@click.pass_context
def cli(ctx: click.Context, project: str | None) -> int | None:
    """Keeps a crew of AI coding agents on a proven course: the machine decides, agents propose, people approve, and
    everything is on tape. Without a command: what waits for you, what can be resumed, what next."""
    ctx.obj = (ctx.obj, project)
    if ctx.invoked_subcommand is None:
        from steersman.faces.commands.home import home

        result: int | None = ctx.invoke(home, project=project, as_json=False)
        return result
    return None


def main(helm: "Helm", argv: Sequence[str] | None = None) -> int:
    """Runs one command and gives its exit code."""
    args = list(sys.argv[1:] if argv is None else argv)
    _streams()
    try:
        code = _command(helm, args)
        with speaking():
            sys.stdout.flush()
    except BrokenPipeError:  # whoever read has enough
        _hush()
        return DONE
    except UnheardError as error:
        _hush()
        return _failed(helm, [], str(error), error.exit_code)
    return code


def _command(helm: "Helm", args: list[str]) -> int:
    try:
        code = cli.main(args=args, prog_name="steersman", standalone_mode=False, obj=helm)
    except UnheardError:
        raise
    except SteersmanError as error:
        return _failed(helm, args, str(error), error.exit_code, getattr(error, "details", {}))
    except click.ClickException as error:
        return _misused(helm, args, error)
    except (click.Abort, KeyboardInterrupt):
        return INTERRUPTED
    except SystemExit:  # click's own way of saying that the pipe is closed
        _hush()
        return DONE
    except BrokenPipeError:
        raise
    except Exception:
        return _defect(helm, args)
    return code if isinstance(code, int) else 0


def _hush() -> None:
    """Nothing is written any more, not by the interpreter at its end either."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _streams() -> None:
    """Speaks through whatever there is: a closed stream swallows, a narrow encoding writes out what it does not have."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115  for as long as we live
        elif hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")


def _failed(
    helm: "Helm", args: list[str], message: str, code: int, details: Mapping[str, str] | None = None
) -> int:
    told = _without_secrets(helm, message)
    click.secho(f"steersman: {aside(told)}", file=sys.stderr, fg="red")
    if "--json" in args:
        with speaking():
            click.echo(json_line({"error": told, "exit_code": code, **(details or {})}), file=sys.stdout)
    return code


def _without_secrets(helm: "Helm", text: str) -> str:
    """What fails is often said in somebody else's words, and standard error is often a file."""
    from contextlib import suppress

    from steersman.judges.redaction import redact

    known: tuple[str, ...] = ()
    with suppress(OSError, SteersmanError):  # the directory may be gone
        known = helm.known_secrets(helm.top_of(os.getcwd()))
    return redact(text, known, os.urandom(16))


def _misused(helm: "Helm", args: list[str], error: click.ClickException) -> int:
    ctx = getattr(error, "ctx", None)
    where = f"; see `{ctx.command_path} --help`" if ctx is not None else ""
    return _failed(helm, args, f"{one_line(error.format_message()).rstrip('.')}{where}", USAGE)


def _defect(helm: "Helm", args: list[str]) -> int:
    import traceback

    click.echo(aside(_without_secrets(helm, traceback.format_exc().rstrip())), file=sys.stderr)
    return _failed(helm, args, "this is a defect of steersman; please report it with the lines above", DEFECT)
