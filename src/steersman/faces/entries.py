"""Where the entries of a sitting come from, one after the other, and with what code it ends.

A person in a terminal sees what goes wrong, so that sitting ends with 0. Whoever sends lines from a pipe learns it from
the exit code: that of the first entry that was refused or failed. **Invariant:** Ctrl-C ends a pipe, never a sitting in a terminal.
"""

import io
import os
import signal
import sys
from typing import Protocol

from steersman.errors import SteersmanError
from steersman.faces.deck import DONE, REFUSED, WAITING, Deck
from steersman.faces.sitting import Sitting

FINE = (DONE, WAITING)  # it was done; or it was, and waits for the next word


class Reader(Protocol):
    """Where a person's entries come from."""

    def __call__(self, message: str) -> str | None:
        """The next entry; None at the end."""
        ...


def sit(deck: Deck, run: str, *, strict: bool = False) -> int:
    """Reads entries until there are no more; what goes wrong is said, and the next one is read, unless it is strict."""
    effect = deck.helm.inside(deck.top)
    if effect:
        told = f"refused: this comes from inside, from effect {effect}: an agent never speaks for a person"
        deck.warn(told, fg="red")
        return REFUSED
    sitting = Sitting(deck, deck.bridge.find(run) if run else "")
    if sys.stdin is None:
        return DONE
    if deck.as_json or not sys.stdin.isatty() or not sys.stdout.isatty():
        return _piped(sitting, strict=strict)
    return _typed(sitting)


def _typed(sitting: Sitting) -> int:
    """From a terminal, with editing, completion and a history."""
    from steersman.faces.prompt import prompt_for

    deck = sitting.deck
    deck.say("free text goes to the planner; /help says what can be typed, Ctrl-D ends it", dim=True)
    read = prompt_for(deck, sitting.completions)
    while deck.signal in (0, signal.SIGINT):
        try:
            text = read(sitting.banner())
        except KeyboardInterrupt:
            deck.say("(Ctrl-D ends the sitting)")
            continue
        try:
            if text is None or _entered(sitting, text) is None:
                return DONE
        except KeyboardInterrupt:
            deck.say("\nnothing more was done")
            sitting.settle()
    return 128 + deck.signal


def _piped(sitting: Sitting, *, strict: bool) -> int:
    """From anything else: plain lines."""
    deck, result = sitting.deck, DONE
    if isinstance(sys.stdin, io.TextIOWrapper):
        sys.stdin.reconfigure(errors="backslashreplace")
    read = _lines(deck)
    while (text := read(sitting.banner())) is not None:
        code = _entered(sitting, text)
        if code is None:
            break
        if result in FINE:
            result = code
        if deck.signal:
            return 128 + deck.signal
        if strict and result not in FINE:
            break
    return DONE if result in FINE else result


def _entered(sitting: Sitting, text: str) -> int | None:
    """One entry; what goes wrong is said. None is the end."""
    deck = sitting.deck
    try:
        code = sitting.entry(text.strip()) if text.strip() else DONE
    except SteersmanError as error:
        return _failed(deck, error)
    if code is not None:
        deck.answer(code)
    return code


def _failed(deck: Deck, error: SteersmanError) -> int:
    from steersman.judges.redaction import redact

    told = redact(str(error), deck.helm.known_secrets(deck.top), os.urandom(16))
    deck.warn(told, fg="red")
    deck.stream({"error": told, "exit_code": error.exit_code})
    return error.exit_code


def _lines(deck: Deck) -> Reader:
    def read(message: str) -> str | None:
        deck.say(f"[{message}]", dim=True)
        text = sys.stdin.readline()
        while text.endswith("\\\n"):
            text = f"{text[:-2]}\n{sys.stdin.readline()}"
        return text or None

    return read
