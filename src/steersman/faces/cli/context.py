"""Gives every command the project, the person, the store when it is first needed, and ways to print.

**Invariant:** everything from outside passes `printable` before a terminal sees it.
"""

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cached_property, update_wrapper
from typing import TYPE_CHECKING, Any, TextIO

import click

from steersman.errors import SteersmanError, StoreFull, UserError
from steersman.judges.text import (
    clip_text,
    escape_surrogates,
    has_visible_text,
    printable_json,
    printable_text,
)

if TYPE_CHECKING:
    from pathlib import Path

    from steersman.app.principal import Principal
    from steersman.app.runs import Ports, RunService
    from steersman.contracts.limits import LoadedConfig
    from steersman.faces.services import Services
    from steersman.ports.journal import Journal


EXIT_DONE, EXIT_ENDED, EXIT_USAGE, EXIT_WAITING, EXIT_REFUSED, EXIT_STORE = range(6)
EXIT_CODES_HELP = (
    "0 done · 1 ended without approval · 2 wrong usage · 3 waiting for someone · 4 refused · 5 store trouble"
)


class _AgentNeedsStoreError(UserError):
    """A program in a sandbox asks for a store, which it cannot reach."""

    exit_code = 4


class OutputWriteError(SteersmanError):
    """Standard output cannot be written, so a command cannot answer."""

    exit_code = 5

    def __init__(self, error: OSError) -> None:
        super().__init__(
            f"the answer cannot be written ({error.strerror}): make room, or send standard output elsewhere"
        )


@contextmanager
def convert_output_errors() -> Iterator[None]:
    """Converts errors of standard output into OutputWriteError."""
    try:
        yield
    except BrokenPipeError:
        raise  # the reader closed the pipe
    except OSError as error:
        raise OutputWriteError(error) from None


class CommandContext:
    """What one command works with; created before it runs and closed after it."""

    def __init__(
        self, services: "Services", project_option: str | None, *, as_json: bool, mute: bool = False
    ) -> None:
        self.services, self.project_option, self.as_json, self.mute = services, project_option, as_json, mute
        self.quiet = False  # skips the warning about due timers
        self.prompting = False  # a prompt follows, which lists its own words
        self.answers_gates = False  # the command itself answers: commands that answer are not shown
        self.signal = 0  # the signal that ended driving
        self._journal: Journal | None = None
        self._runs: RunService | None = None
        self._read_only_runs: RunService | None = None
        self._quarantined_runs: dict[str, str] = {}  # the runs that were put aside when the store was opened
        self._result: Any = None

    @cached_property
    def start_directory(self) -> str:
        """Returns where the search for steersman.toml begins: --project or the current directory."""
        try:
            directory = self.project_option if self.project_option is not None else os.getcwd()
        except FileNotFoundError:
            raise UserError(
                "the current directory does not exist any more. Go to your repository and try again"
            ) from None
        if not os.path.isdir(directory):
            raise UserError(
                f"{directory!r} is not a directory: give --project a directory of your repository"
            )
        return directory

    @cached_property
    def project_root(self) -> str:
        """Returns the repository around the start directory."""
        return self.services.find_repository_root(self.start_directory)

    def load_config(self, *, ask: bool = True) -> "LoadedConfig":
        """Loads steersman.toml to act upon it. A person has to trust it, and is asked now if `ask` is set."""
        from steersman.faces.cli.trust_prompt import require_trust

        loaded = self.read_config()
        require_trust(self, loaded, ask=ask)
        return loaded

    def read_config(self, *, only_look: bool = False) -> "LoadedConfig":
        """Reads steersman.toml as data: nothing in it may be started, and no file that it names may be read.

        With `only_look`, also a file that exceeds the limits of this machine."""
        from pathlib import Path

        return self.services.load_limited_config(Path(self.start_directory), only_look=only_look)

    @cached_property
    def project(self) -> "Path":
        """The repository as a path."""
        from pathlib import Path  # slow to import, and a listing does not need it

        return Path(self.project_root)

    @cached_property
    def command_prefix(self) -> str:
        """How a person calls this program from the current directory."""
        if self.project_option is None:
            return "steersman"
        import shlex

        return f"steersman --project {shlex.quote(self.project_root)}"

    @cached_property
    def person(self) -> str:
        """The person's name: $STEERSMAN_PERSON, else git's user.name, else the login name."""

        return find_person_name(self.project)

    @property
    def principal(self) -> "Principal":
        """The person, the face, and the effect of a run that the caller works for, if any."""
        from steersman.app.principal import Principal

        return Principal(
            self.person,
            "repl" if self.prompting else "cli",
            self.services.find_calling_effect(self.project_root),
            self.command_prefix,
        )

    @cached_property
    def ports(self) -> "Ports":
        """Every port but the store; `runs` and `read_only_runs` have the store too."""
        return self.services.open_ports(self.project, journal=None)

    @property
    def journal(self) -> "Journal":
        """The store, for reading."""
        if self._journal is None:
            self._need_store()
            self._journal = self.services.open_journal(self.project_root, create=False, reading=True)
        return self._journal

    @property
    def runs(self) -> "RunService":
        """The run service of a project that has a store."""
        if self._runs is None:
            self._need_store()
            self._open(create=False)
        assert self._runs is not None  # noqa: S101  just opened
        return self._runs

    @property
    def read_only_runs(self) -> "RunService":
        """The run service for reading: it waits for no writer and works on a read-only disk."""
        if self._runs is None and self._read_only_runs is None and self.journal.quarantined():
            with suppress(StoreFull):  # reading releases intact runs, if the disk is writable
                return self.runs
        if self._runs is None and self._read_only_runs is None:
            from steersman.app.runs import RunService

            self._read_only_runs = RunService(_ports_with_journal(self.ports, self.journal))
        read_only_runs = self._runs or self._read_only_runs
        assert read_only_runs is not None  # noqa: S101  just opened
        return read_only_runs

    def create_runs(self) -> "RunService":
        """The run service; creates the store if there is none."""
        if self._runs is None:
            self._open(create=True)
        assert self._runs is not None  # noqa: S101  just opened
        return self._runs

    def _open(self, *, create: bool) -> None:
        from steersman.app.runs import RunService

        store = self.services.open_journal(self.project_root, create=create)
        self._runs = RunService(_ports_with_journal(self.ports, store))
        if (
            self._journal is not None and self._read_only_runs is None
        ):  # texts that were read earlier still use it
            self._journal.close()
        self._journal = self._runs.ports.journal
        with suppress(SteersmanError):  # the listing says why they cannot be read
            self._quarantined_runs = self._journal.quarantined()

    def _need_store(self) -> None:
        if self.has_store():
            return
        message = (
            f'nothing has been run in {self.project_root} yet: start with `{self.command_prefix} run "…"`'
        )
        effects = self.services.list_calling_effects()
        if effects:
            raise _AgentNeedsStoreError(
                f"{message}. This works for {effects[0]}: an agent never speaks for a person"
            )
        raise UserError(message)

    def has_store(self) -> bool:
        """Whether the project has a store."""
        return self.services.has_store(self.project_root)

    # ── printing ──────────────────────────────────────────────────────────────────────────────────────────────────────

    def print(self, text: str = "", **style: Any) -> None:
        """Prints text for people; does nothing with --json."""
        if not self.as_json and not self.mute:
            with convert_output_errors():
                for line in self._screen_lines(printable_text(text)):
                    click.secho(line, file=sys.stdout, **style)

    def _screen_lines(self, text: str) -> list[str]:
        """Wraps the text between words on a terminal."""
        columns = terminal_columns()
        if not columns or max(map(len, text.split("\n"))) <= columns:
            return [text]
        from steersman.views.wrapping import wrap_screen_text

        return wrap_screen_text(text, columns, self.command_prefix)

    def warn(self, text: str, **style: Any) -> None:
        """Prints a message on standard error."""
        click.secho(indent_stderr_text(text), file=sys.stderr, **style)

    def set_result(self, value: Any) -> None:
        """Sets the result for programs, printed at the end with --json."""
        self._result = value

    def print_json_line(self, value: Any) -> None:
        """Prints one of several result lines with --json; else nothing."""
        if self.as_json:
            line = encode_json_line(value)
            with convert_output_errors():
                sys.stdout.write(line + "\n")
                sys.stdout.flush()

    def flush_result(self, code: int) -> None:
        """Prints the result once; an object gets the exit code as a field."""
        result, self._result = self._result, None
        if self.as_json and result is not None:
            self.print_json_line(_add_exit_code(result, code))

    def confirm(self, question: str, otherwise: str | None) -> bool:
        """Asks a yes-or-no question on standard error and returns the answer.

        At the end of input it raises UserError with `otherwise`, which says what to type; without `otherwise` it is a no.
        """
        click.echo(f"{indent_stderr_text(question)} [y/N]: ", nl=False, file=sys.stderr)
        line = sys.stdin.readline() if sys.stdin is not None else ""
        if not line:
            click.echo(file=sys.stderr)
            if otherwise is None:
                self.warn("no answer, so steersman takes it as no")
                return False
            raise UserError(f"nothing was done, because standard input has no answer. {otherwise}")
        return line.strip().lower() in ("y", "yes")

    # ── the end of every command ────────────────────────────────────────────────────────────────────────────────────

    def close(self) -> None:
        """Warns about due timers of runs without a driver, then closes the store."""
        if not self.quiet and not self.mute:
            with suppress(SteersmanError, OSError):  # the command itself reports a broken store
                self._warn_overdue_runs()
        if self._quarantined_runs:
            with suppress(SteersmanError, OSError):
                self._report_lifted_quarantine()
        journal, self._journal = self._journal, None
        if journal is not None:
            journal.close()

    def _report_lifted_quarantine(self) -> None:
        """Reports once which runs this command has released."""
        quarantined = self.journal.quarantined()
        for run, reason in self._quarantined_runs.items():
            if run not in quarantined:
                self.warn(f"run {run} was put aside ({reason}). Its tape is intact, so it is released")

    def _warn_overdue_runs(self) -> None:
        overdue_heads = self.journal.due(time.time_ns() // 1_000_000) if self.has_store() else []
        if not overdue_heads:
            return
        from steersman.views.time_format import format_duration

        now = time.time_ns() // 1_000_000
        for head in overdue_heads:
            if head.due is not None and not self.services.find_run_owner(self.project_root, head.run):
                lateness = format_duration(now - head.due)
                self.warn(
                    f"run {head.run} is {lateness} overdue, and no process drives it: {self.command_prefix} resume {head.run}",
                    fg="red",
                )


def _ports_with_journal(ports: "Ports", journal: "Journal") -> "Ports":
    from msgspec.structs import replace

    return replace(ports, journal=journal)


def _add_exit_code(result: Any, code: int) -> Any:
    if isinstance(result, list):
        return result
    import msgspec

    fields = msgspec.to_builtins(result)
    return {**fields, "exit_code": fields.get("exit_code", code)}


def encode_json_line(value: Any) -> str:
    """Encodes a value as one line of JSON that is harmless to a terminal."""
    import msgspec

    try:
        document = msgspec.json.encode(value).decode()
    except UnicodeEncodeError:  # not UTF-8, such as a word of the command line
        document = msgspec.json.encode(_repair_json_text(msgspec.to_builtins(value))).decode()
    return printable_json(document)


def _repair_json_text(value: Any) -> Any:
    match value:
        case str():
            return escape_surrogates(value)
        case dict():
            return {escape_surrogates(key): _repair_json_text(item) for key, item in value.items()}
        case list() | tuple():
            return [_repair_json_text(item) for item in value]
        case _:
            return value


def indent_stderr_text(text: str) -> str:
    """Indents every line but the first, so that no text looks like another message; wraps them on a terminal."""
    lines = printable_text(text).split("\n")
    if columns := terminal_columns(sys.stderr):
        from steersman.views.wrapping import wrap_screen_text

        lines = [part for line in lines for part in wrap_screen_text(line, columns - 2, "steersman")]
    return "\n  ".join(lines)


class DocumentedCommand(click.Command):
    """A command whose help ends with examples and exit codes."""

    def __init__(
        self, *args: Any, examples: tuple[str, ...] = (), exits: str = EXIT_CODES_HELP, **more: Any
    ) -> None:
        super().__init__(*args, **more)
        self.examples, self.exits = examples, exits

    def make_context(self, *args: Any, **more: Any) -> click.Context:
        with convert_output_errors():  # --help is answered here
            return super().make_context(*args, **more)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002  click's
        if self.examples:
            with formatter.section("Examples"):
                formatter.write("".join(f"  {line}\n" for line in self.examples))
        with formatter.section("Exit codes"):
            formatter.write(f"  {self.exits}\n")


CommandFunction = Callable[..., int | None]


def define_command(
    name: str, *examples: str, exits: str = EXIT_CODES_HELP, **more: Any
) -> Callable[[CommandFunction], DocumentedCommand]:
    """Declares a command: its function gets a CommandContext and its own parameters, and returns an exit code or nothing."""

    def declare(action: CommandFunction) -> DocumentedCommand:
        def run(ctx: click.Context, /, project: str | None, as_json: bool, **options: Any) -> int:
            services, group_project = ctx.obj
            context = CommandContext(
                services, project if project is not None else group_project, as_json=as_json
            )
            try:
                code = action(context, **options) or EXIT_DONE
            finally:
                context.close()
            context.flush_result(code)
            return code

        update_wrapper(run, action)
        decorate = click.command(name, cls=DocumentedCommand, examples=examples, exits=exits, **more)
        return decorate(_project_option(_json_option(click.pass_context(run))))

    return declare


_json_option = click.option("--json", "as_json", is_flag=True, help="Answer in JSON, for programs.")
_project_option = click.option(
    "--project", metavar="DIR", default=None, help="The repository (default: the one around this directory)."
)


def terminal_columns(stream: TextIO | None = None) -> int:
    """Returns the width of the terminal behind a stream, by default standard output; 0 if it is no terminal."""
    stream = stream or sys.stdout
    try:
        return os.get_terminal_size(stream.fileno()).columns if is_output_terminal(stream) else 0
    except (OSError, ValueError):  # a stream without a file
        return 0


def is_output_terminal(stream: TextIO | None = None) -> bool:
    """Returns whether a stream, by default standard output, is a terminal that can be drawn on."""
    return (stream or sys.stdout).isatty() and os.environ.get("TERM", "") != "dumb"


# ── person ──────────────────────────────────────────────────────────────────────────────────────────────────────────────

# Who speaks at the command line. **Invariant:** a name, never a right: what it may do is decided elsewhere.


MAX_PERSON_LENGTH = 80


def find_person_name(project: "Path") -> str:
    """$STEERSMAN_PERSON, else git's user.name, else the login name."""
    env_name = os.environ.get("STEERSMAN_PERSON", "")
    name = env_name if has_visible_text(env_name) else _read_git_user_name(project) or _read_login_name()
    return clip_text(printable_text(" ".join(name.split())), MAX_PERSON_LENGTH)


def _read_git_user_name(project: "Path") -> str:
    import subprocess  # slow to import, and help does not need it

    argv = ["git", "config", "--get", "user.name"]
    env = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    try:
        completed = subprocess.run(argv, cwd=project, env=env, capture_output=True, check=False, timeout=10)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    name = completed.stdout.decode("utf-8", "replace")
    return name if has_visible_text(name) else ""


def _read_login_name() -> str:
    import getpass

    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "somebody"
