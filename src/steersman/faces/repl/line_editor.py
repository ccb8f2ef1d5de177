"""The line editor of `steersman repl`: completion, several lines, a history that keeps no secrets.

**Invariant:** the history is redacted, kept only in the state directory, and readable by its owner alone. Keys that were
pressed before the prompt appeared are no entry.
"""

import os
import stat
from collections.abc import Callable, Iterable
from textwrap import wrap
from typing import TYPE_CHECKING, Any

from steersman.errors import UserError
from steersman.faces.cli.context import CommandContext
from steersman.faces.cli.typeahead import read_typeahead, split_typeahead
from steersman.judges.redaction.redact import redact_text
from steersman.judges.text import clip_text, escape_surrogates, printable_line

if TYPE_CHECKING:
    from steersman.faces.repl.entry_source import EntryReader

INSTALL_REPL_HINT = (
    'the prompt needs prompt_toolkit: pip install "steersman[repl]"; lines from a pipe need nothing'
)
MAX_HISTORY_ENTRIES, MAX_HISTORY_BYTES = (
    1_000,
    1 << 20,
)  # entries of the history, and bytes of it that are read


def build_prompt_reader(context: CommandContext, completions: Callable[[str], list[str]]) -> "EntryReader":
    """Asks at the terminal; None is the end."""
    try:
        from prompt_toolkit import PromptSession
    except ImportError:
        raise UserError(INSTALL_REPL_HINT) from None
    session: Any = PromptSession(
        history=_build_prompt_history(context),
        completer=build_word_completer(completions),
        complete_while_typing=False,
        multiline=True,
        key_bindings=_build_key_bindings(),
        prompt_continuation="… ",
    )

    def read_entry(message: str) -> str | None:
        unfinished_line = _restore_typeahead(context, session)
        try:
            return str(
                session.prompt(
                    render_prompt_text(message, session.output.get_size().columns), default=unfinished_line
                )
            )
        except EOFError:
            return None

    return read_entry


def _restore_typeahead(context: CommandContext, session: Any) -> str:
    """What was typed before the prompt is there is not carried out; whole lines are in the history, and the beginning
    of one is given back."""
    from prompt_toolkit.input.typeahead import get_typeahead

    keys = "".join(press.data for press in get_typeahead(session.input))
    lines, unfinished_line = split_typeahead(keys + read_typeahead())
    for line in lines:
        session.history.append_string(line)
    if lines:
        message = f"these lines were typed too early and not carried out: {', '.join(clip_text(line, 60) for line in lines)}"
        context.print(f"{message} (arrow up brings it back)", fg="yellow")
    return unfinished_line


def render_prompt_text(message: str, columns: int) -> str:
    """The prompt: where the run is and what is legal, in one line, or in two where one is too short."""
    banner_text = printable_line(message)
    if len(banner_text) < columns or " · " not in banner_text:
        return f"{clip_text(banner_text, columns - 1)}\n> "
    place_text, _, legal_text = banner_text.partition(" · ")
    legal_lines = wrap(
        legal_text, columns - 1, initial_indent="  ", subsequent_indent="  ", break_on_hyphens=False
    )
    return "\n".join([clip_text(place_text, columns - 1), *legal_lines, "> "])


def build_word_completer(completions: Callable[[str], list[str]]) -> Any:
    """Puts whole words in place of the last one."""
    from prompt_toolkit.completion import Completer, Completion

    class WordCompleter(Completer):
        def get_completions(self, document: Any, _event: Any) -> Iterable[Completion]:
            text = document.text_before_cursor
            start = -len(text.rpartition(" ")[2])
            return [Completion(word, start_position=start) for word in completions(text)]

    return WordCompleter()


def _build_key_bindings() -> Any:
    """Enter sends, unless the line ends with a backslash; Alt-Enter begins a new line."""
    from prompt_toolkit.key_binding import KeyBindings

    keys = KeyBindings()

    @keys.add("enter")
    def _(event: Any) -> None:
        buffer = event.current_buffer
        if buffer.document.text_before_cursor.endswith("\\"):
            buffer.delete_before_cursor()
            buffer.insert_text("\n")
        else:
            buffer.validate_and_handle()

    @keys.add("escape", "enter")
    def _(event: Any) -> None:
        event.current_buffer.insert_text("\n")

    return keys


def _build_prompt_history(context: CommandContext) -> Any:
    from prompt_toolkit.history import History

    history_file = HistoryFile(context)

    class RedactedHistory(History):
        def load_history_strings(self) -> Iterable[str]:
            return reversed(history_file.read())

        def append_string(self, string: str) -> None:
            super().append_string(history_file.redact_entry(string))

        def store_string(self, string: str) -> None:
            history_file.write(string)

    return RedactedHistory()


class HistoryFile:
    """The history on disk: one JSON text a line."""

    def __init__(self, context: CommandContext) -> None:
        self._path = context.services.project_state_directory(context.project) / "repl-history"
        self._secrets, self._salt = context.services.list_known_secrets(context.project_root), os.urandom(16)

    def redact_entry(self, text: str) -> str:
        """The entry without secrets."""
        return redact_text(text, self._secrets, self._salt)

    def read(self) -> list[str]:
        """The last entries, the oldest first; a damaged line is left out."""
        import msgspec

        try:
            with os.fdopen(self._opened(os.O_RDONLY), "rb") as file:
                file.seek(max(0, os.fstat(file.fileno()).st_size - MAX_HISTORY_BYTES))
                lines = file.read(MAX_HISTORY_BYTES).splitlines()[-MAX_HISTORY_ENTRIES:]
        except OSError:
            return []
        entries = []
        for line in lines:
            try:
                entries.append(msgspec.json.decode(line, type=str))
            except msgspec.MsgspecError:
                continue
        return entries

    def write(self, text: str) -> None:
        """Adds an entry; a history that cannot be kept is no reason to stop."""
        import contextlib

        import msgspec

        with contextlib.suppress(OSError):
            self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            with os.fdopen(self._opened(os.O_WRONLY | os.O_APPEND | os.O_CREAT), "ab") as file:
                os.fchmod(file.fileno(), 0o600)
                file.write(msgspec.json.encode(self.redact_entry(escape_surrogates(text))) + b"\n")

    def _opened(self, flags: int) -> int:
        """A plain file, or an error: no link is followed, no pipe is waited for."""
        descriptor = os.open(self._path, flags | os.O_NOFOLLOW | os.O_NONBLOCK, 0o600)
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            os.close(descriptor)
            raise OSError(f"{self._path} is no plain file")
        return descriptor
