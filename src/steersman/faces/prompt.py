"""The line editor of `steersman repl`: completion, several lines, a history that keeps no secrets.

**Invariant:** what is typed is kept only in the state directory, readable by its owner alone, redacted first; nothing
that was typed before the prompt was there is an entry.
"""

import os
import stat
from collections.abc import Callable, Iterable
from textwrap import wrap
from typing import TYPE_CHECKING, Any

from steersman.errors import UserError
from steersman.faces.deck import Deck
from steersman.faces.haste import typed_lines, unread
from steersman.judges.redaction import redact
from steersman.judges.text import clip, one_line, well_formed

if TYPE_CHECKING:
    from steersman.faces.entries import Reader

INSTALL = 'the prompt needs prompt_toolkit: pip install "steersman[repl]"; lines from a pipe need nothing'
KEPT, LONGEST = 1_000, 1 << 20  # entries of the history, and bytes of it that are read


def prompt_for(deck: Deck, completions: Callable[[str], list[str]]) -> "Reader":
    """Asks at the terminal; None is the end."""
    try:
        from prompt_toolkit import PromptSession
    except ImportError:
        raise UserError(INSTALL) from None
    session: Any = PromptSession(
        history=_history(deck),
        completer=completer(completions),
        complete_while_typing=False,
        multiline=True,
        key_bindings=_keys(),
        prompt_continuation="… ",
    )

    def read(message: str) -> str | None:
        begun = _meanwhile(deck, session)
        try:
            return str(session.prompt(asking(message, session.output.get_size().columns), default=begun))
        except EOFError:
            return None

    return read


def _meanwhile(deck: Deck, session: Any) -> str:
    """What was typed before the prompt is there is not carried out; whole lines are in the history, and the beginning
    of one is given back."""
    from prompt_toolkit.input.typeahead import get_typeahead

    keys = "".join(press.data for press in get_typeahead(session.input))
    lines, begun = typed_lines(keys + unread())
    for line in lines:
        session.history.append_string(line)
    if lines:
        told = f"what you typed meanwhile was not carried out: {', '.join(clip(line, 60) for line in lines)}"
        deck.say(f"{told} (arrow up brings it back)", fg="yellow")
    return begun


def asking(message: str, columns: int) -> str:
    """What stands before the cursor: where the run is and what is legal, in one line or, where that is too short for
    both, in one for each; then the place to type."""
    told = one_line(message)
    if len(told) < columns or " · " not in told:
        return f"{clip(told, columns - 1)}\n> "
    where, _, legal = told.partition(" · ")
    words = wrap(legal, columns - 1, initial_indent="  ", subsequent_indent="  ", break_on_hyphens=False)
    return "\n".join([clip(where, columns - 1), *words, "> "])


def completer(completions: Callable[[str], list[str]]) -> Any:
    """Puts whole words in place of the last one."""
    from prompt_toolkit.completion import Completer, Completion

    class Words(Completer):
        def get_completions(self, document: Any, _event: Any) -> Iterable[Completion]:
            text = document.text_before_cursor
            start = -len(text.rpartition(" ")[2])
            return [Completion(word, start_position=start) for word in completions(text)]

    return Words()


def _keys() -> Any:
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


def _history(deck: Deck) -> Any:
    from prompt_toolkit.history import History

    log = EntryLog(deck)

    class Kept(History):
        def load_history_strings(self) -> Iterable[str]:
            return reversed(log.read())

        def append_string(self, string: str) -> None:
            super().append_string(log.hide(string))

        def store_string(self, string: str) -> None:
            log.write(string)

    return Kept()


class EntryLog:
    """The history on disk: one JSON text a line."""

    def __init__(self, deck: Deck) -> None:
        self._path = deck.helm.state_dir(deck.project) / "repl-history"
        self._secrets, self._salt = deck.helm.known_secrets(deck.top), os.urandom(16)

    def hide(self, text: str) -> str:
        """The entry without what nobody should find there."""
        return redact(text, self._secrets, self._salt)

    def read(self) -> list[str]:
        """The last entries, the oldest first; a damaged line is left out."""
        import msgspec

        try:
            with os.fdopen(self._opened(os.O_RDONLY), "rb") as file:
                file.seek(max(0, os.fstat(file.fileno()).st_size - LONGEST))
                lines = file.read(LONGEST).splitlines()[-KEPT:]
        except OSError:
            return []
        found = []
        for line in lines:
            try:
                found.append(msgspec.json.decode(line, type=str))
            except msgspec.MsgspecError:
                continue
        return found

    def write(self, text: str) -> None:
        """Adds an entry; a history that cannot be kept is no reason to stop."""
        import contextlib

        import msgspec

        with contextlib.suppress(OSError):
            self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            with os.fdopen(self._opened(os.O_WRONLY | os.O_APPEND | os.O_CREAT), "ab") as file:
                os.fchmod(file.fileno(), 0o600)
                file.write(msgspec.json.encode(self.hide(well_formed(text))) + b"\n")

    def _opened(self, flags: int) -> int:
        """A plain file, or an error: no link is followed, no pipe is waited for."""
        found = os.open(self._path, flags | os.O_NOFOLLOW | os.O_NONBLOCK, 0o600)
        if not stat.S_ISREG(os.fstat(found).st_mode):
            os.close(found)
            raise OSError(f"{self._path} is no plain file")
        return found
