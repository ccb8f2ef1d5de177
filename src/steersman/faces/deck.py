"""What every command stands on: the project, who speaks, the store when it is needed, and how things are said.

**Invariant:** everything from outside passes `printable` before a terminal sees it.
"""

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cached_property, wraps
from typing import TYPE_CHECKING, Any

import click

from steersman.errors import SteersmanError, StoreFull, UserError
from steersman.judges.text import printable, printable_json, well_formed

if TYPE_CHECKING:
    from pathlib import Path

    from steersman.faces.helm import Helm
    from steersman.ports.journal import Journal
    from steersman.runtime.bridge import Bridge

DONE, ENDED, USAGE, WAITING, REFUSED, STORE = range(6)
EXITS = (
    "0 done · 1 ended without approval · 2 wrong usage · 3 waiting for someone · 4 refused · 5 store trouble"
)


class _InsideError(UserError):
    """A program in a box looks for a store: none is in its reach."""

    exit_code = 4


class UnheardError(SteersmanError):
    """Standard output cannot be written: whatever a command has to say, nobody hears it."""

    exit_code = 5

    def __init__(self, error: OSError) -> None:
        super().__init__(
            f"the answer cannot be written ({error.strerror}): make room, or send standard output elsewhere"
        )


@contextmanager
def speaking() -> Iterator[None]:
    """Tells trouble of standard output from any other."""
    try:
        yield
    except BrokenPipeError:
        raise  # whoever read has enough
    except OSError as error:
        raise UnheardError(error) from None


class Deck:
    """One command's place to stand."""

    def __init__(self, helm: "Helm", project: str | None, *, as_json: bool, mute: bool = False) -> None:
        self.helm, self.given, self.as_json, self.mute = helm, project, as_json, mute
        self.quiet = False  # leaves out the look at due timers
        self.prompting = False  # a prompt follows that says what can be typed
        self.signal = 0  # by which a run was let go of
        self._journal: Journal | None = None
        self._bridge: Bridge | None = None
        self._sight: Bridge | None = None
        self._aside: dict[str, str] = {}  # the runs that were put aside when the store was opened
        self._told: Any = None

    @cached_property
    def start(self) -> str:
        """The given directory, or this one: where the search for steersman.toml begins."""
        try:
            start = self.given if self.given is not None else os.getcwd()
        except FileNotFoundError:
            raise UserError("this directory is gone: go to your repository and try again") from None
        if not os.path.isdir(start):
            raise UserError(f"{start!r} is not a directory: give --project a directory of your repository")
        return start

    @cached_property
    def top(self) -> str:
        """The repository around it."""
        return self.helm.top_of(self.start)

    def load_config(self, *, ask: bool = True) -> Any:
        """The steersman.toml that holds here, to act upon: trusted by a person, who is asked now where `ask` says so."""
        from steersman.faces.trust import require_trust

        loaded = self.read_config()
        require_trust(self, loaded, ask=ask)
        return loaded

    def read_config(self, *, only_look: bool = False) -> Any:
        """The same as data, for looking at: nothing in it may be started, and nothing that it names may be read.

        With `only_look` also where it is beyond the machine's limits."""
        from pathlib import Path

        return self.helm.load_config(Path(self.start), only_look=only_look)

    @cached_property
    def project(self) -> "Path":
        """The same as a path."""
        from pathlib import Path  # slow to import: who only lists has no need of it

        return Path(self.top)

    @cached_property
    def me(self) -> str:
        """How this program is called from where the person is."""
        if self.given is None:
            return "steersman"
        import shlex

        return f"steersman --project {shlex.quote(self.top)}"

    @cached_property
    def person(self) -> str:
        """Who speaks: $STEERSMAN_PERSON, else git's user.name, else the login name."""
        from steersman.faces.person import who

        return who(self.project)

    @property
    def journal(self) -> "Journal":
        """The store, for reading."""
        if self._journal is None:
            self._need_store()
            self._journal = self.helm.open_journal(self.top, create=False, reading=True)
        return self._journal

    @property
    def bridge(self) -> "Bridge":
        """The bridge of a project in which something has been run."""
        if self._bridge is None:
            self._need_store()
            self._open(create=False)
        assert self._bridge is not None  # noqa: S101  just opened
        return self._bridge

    @property
    def sight(self) -> "Bridge":
        """The same for who only looks: it waits for no writer, and a disk that cannot be written is no obstacle."""
        if self._bridge is None and self._sight is None and self.journal.quarantined():
            with suppress(StoreFull):  # a look lifts what is whole again, where it can
                return self.bridge
        if self._bridge is None and self._sight is None:
            from steersman.runtime.bridge import Bridge

            self._sight = Bridge(self.helm.open_world(self.project, journal=self.journal))
        sight = self._bridge or self._sight
        assert sight is not None  # noqa: S101  just opened
        return sight

    def new_bridge(self) -> "Bridge":
        """The bridge, with a store made where there is none."""
        if self._bridge is None:
            self._open(create=True)
        assert self._bridge is not None  # noqa: S101  just opened
        return self._bridge

    def _open(self, *, create: bool) -> None:
        self._bridge = self.helm.open_bridge(self.project, create=create)
        if (
            self._journal is not None and self._sight is None
        ):  # texts that were looked up still read through it
            self._journal.close()
        self._journal = self._bridge.world.journal
        with suppress(SteersmanError):  # whoever lists them says why they cannot be read
            self._aside = self._journal.quarantined()

    def _need_store(self) -> None:
        if self.has_store():
            return
        told = f'nothing has been run in {self.top} yet: start with `{self.me} run "…"`'
        effects = self.helm.working_for()
        if effects:
            raise _InsideError(f"{told}. This works for {effects[0]}: an agent never speaks for a person")
        raise UserError(told)

    def has_store(self) -> bool:
        """Whether anything has been run here."""
        return self.helm.has_store(self.top)

    # ── saying ──────────────────────────────────────────────────────────────────────────────────────────────────────

    def say(self, text: str = "", **style: Any) -> None:
        """A line for people; silent with --json."""
        if not self.as_json and not self.mute:
            with speaking():
                click.secho(printable(text), file=sys.stdout, **style)

    def warn(self, text: str, **style: Any) -> None:
        """A line beside the answer: on standard error."""
        click.secho(aside(text), file=sys.stderr, **style)

    def tell(self, value: Any) -> None:
        """The answer for programs, said when the command is over; silent without --json."""
        self._told = value

    def stream(self, value: Any) -> None:
        """One line of an answer that is many; silent without --json."""
        if self.as_json:
            line = json_line(value)
            with speaking():
                sys.stdout.write(line + "\n")
                sys.stdout.flush()

    def answer(self, code: int) -> None:
        """Says what was told, once: an object has the exit code in it."""
        told, self._told = self._told, None
        if self.as_json and told is not None:
            self.stream(_with_code(told, code))

    def agreed(self, question: str, otherwise: str | None) -> bool:
        """A person's yes, asked beside the answer; where nobody can answer, `otherwise` says what to type, or it is a no."""
        click.echo(f"{aside(question)} [y/N]: ", nl=False, file=sys.stderr)
        line = sys.stdin.readline() if sys.stdin is not None else ""
        if not line:
            click.echo(file=sys.stderr)
            if otherwise is None:
                self.warn("no answer: taken as no")
                return False
            raise UserError(f"nobody is here to answer, and nothing was done: {otherwise}")
        return line.strip().lower() in ("y", "yes")

    # ── the end of every command ────────────────────────────────────────────────────────────────────────────────────

    def close(self) -> None:
        """Shows timers that are due and that nobody drives, then lets go of the store."""
        if not self.quiet and not self.mute:
            with suppress(SteersmanError, OSError):  # a store in trouble is the command's to tell
                self._due()
        if self._aside:
            with suppress(SteersmanError, OSError):
                self._lifted()
        journal, self._journal = self._journal, None
        if journal is not None:
            journal.close()

    def _lifted(self) -> None:
        """Says once which runs this command has found whole again."""
        still = self.journal.quarantined()
        for run, why in self._aside.items():
            if run not in still:
                self.warn(f"run {run} was put aside ({why}); its tape is whole, so it is no longer")

    def _due(self) -> None:
        due = self.journal.due(time.time_ns() // 1_000_000) if self.has_store() else []
        if not due:
            return
        from steersman.views.moments import span

        now = time.time_ns() // 1_000_000
        for head in due:
            if head.due is not None and not self.helm.owner(self.top, head.run):
                late = span(now - head.due)
                self.warn(
                    f"run {head.run} is {late} overdue and nobody drives it: {self.me} resume {head.run}",
                    fg="red",
                )


def _with_code(told: Any, code: int) -> Any:
    if isinstance(told, list):
        return told
    import msgspec

    plain = msgspec.to_builtins(told)
    return {**plain, "exit_code": plain.get("exit_code", code)}


def json_line(value: Any) -> str:
    """A value as one line of JSON: the same value to a program, harmless to a terminal."""
    import msgspec

    try:
        document = msgspec.json.encode(value).decode()
    except UnicodeEncodeError:  # a name that is not UTF-8, such as a word of the command line
        document = msgspec.json.encode(_well_formed(msgspec.to_builtins(value))).decode()
    return printable_json(document)


def _well_formed(value: Any) -> Any:
    match value:
        case str():
            return well_formed(value)
        case dict():
            return {well_formed(key): _well_formed(item) for key, item in value.items()}
        case list() | tuple():
            return [_well_formed(item) for item in value]
        case _:
            return value


def aside(text: str) -> str:
    """Words for standard error: only the first line begins at its margin, so that no text poses as another message."""
    return printable(text).replace("\n", "\n  ")


class Verb(click.Command):
    """A command whose help ends with examples and exit codes."""

    def __init__(self, *args: Any, examples: tuple[str, ...] = (), exits: str = EXITS, **more: Any) -> None:
        super().__init__(*args, **more)
        self.examples, self.exits = examples, exits

    def make_context(self, *args: Any, **more: Any) -> click.Context:
        with speaking():  # --help is answered here
            return super().make_context(*args, **more)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002  click's
        if self.examples:
            with formatter.section("Examples"):
                formatter.write("".join(f"  {line}\n" for line in self.examples))
        with formatter.section("Exit codes"):
            formatter.write(f"  {self.exits}\n")


Action = Callable[..., int | None]


def verb(name: str, *examples: str, exits: str = EXITS, **more: Any) -> Callable[[Action], Verb]:
    """Declares a command: its function gets a Deck and its own parameters, and returns an exit code or nothing."""

    def declare(action: Action) -> Verb:
        @click.pass_context
        @wraps(action)
        def run(ctx: click.Context, project: str | None, as_json: bool, **given: Any) -> int:
            helm, outer = ctx.obj
            deck = Deck(helm, project if project is not None else outer, as_json=as_json)
            try:
                code = action(deck, **given) or DONE
            finally:
                deck.close()
            deck.answer(code)
            return code

        make = click.command(name, cls=Verb, examples=examples, exits=exits, **more)
        return make(_project(_json(run)))

    return declare


_json = click.option("--json", "as_json", is_flag=True, help="Answer in JSON, for programs.")
_project = click.option(
    "--project", metavar="DIR", default=None, help="The repository (default: the one around this directory)."
)


def is_terminal() -> bool:
    """Whether a person watches standard output."""
    return sys.stdout.isatty() and os.environ.get("TERM", "") != "dumb"
