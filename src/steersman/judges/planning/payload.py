"""Red line I1: no key of an intent, however deep and however spelt, is a place to put something to execute.

Names are compared after folding: case, separators, invisible characters, accents, compatibility forms such as fullwidth
letters, and letters of other scripts that look like Latin ones.
**Invariant:** only keys are looked at, never the words of a value; what cannot be looked through counts as found.
"""

import re
import unicodedata
from collections.abc import Iterator
from typing import Any

from steersman.contracts.planning.decisions import Problem
from steersman.judges.planning.places import NO_LINES, Lines, Path, problem
from steersman.judges.strict_json import MAX_DEPTH
from steersman.judges.text import clip

MAX_PARTS = 50_000
MOST = 100  # that are listed

# A key of exactly this name, in singular or plural.
_NAMES = frozenset((
    "execute", "exec", "executable", "execfile", "run", "runner", "runcommand", "runscript", "shell", "sh",
    "bash", "zsh", "ksh", "csh", "pwsh", "powershell", "cmd", "cmdline", "commandline", "command", "argv",
    "script", "python", "perl", "ruby", "php", "subprocess", "spawn", "popen", "system", "ossystem", "eval",
    "invoke", "invocation", "entrypoint", "inlinecode", "sourcecode", "bytecode", "hook", "prehook",
    "posthook",
))  # fmt: skip
# A key that has one of these among its words, such as `shell_command` or `postExec`.
_WORDS = frozenset((
    "execute", "exec", "shell", "bash", "powershell", "pwsh", "subprocess", "popen", "eval", "cmd", "cmdline",
))  # fmt: skip

_LATIN = {
    letter: latin
    for latin, letters in {
        "a": "аɑα",
        "b": "ьβ",
        "c": "сϲ",
        "d": "ԁɗ",
        "e": "еєε",
        "g": "ɡԍ",
        "h": "һհ",
        "i": "іıɩι",
        "j": "ј",
        "k": "кκ",
        "l": "ӏ\u01c0",
        "m": "м",
        "n": "пո",
        "o": "оοσօ",
        "p": "рρ",
        "q": "ԛ",
        "r": "г",
        "s": "ѕꜱ",
        "t": "тτ",
        "u": "υսц",
        "v": "ѵν",
        "w": "ԝѡω",
        "x": "хχ",
        "y": "уүγ",
        "z": "ᴢ",
    }.items()
    for letter in letters
}
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_NO_WORD = re.compile(r"[\W_]+")


def payload(raw: Any, lines: Lines = NO_LINES) -> tuple[Problem, ...]:
    """Every key that could carry an execution, with its place; nothing when the whole value was looked through."""
    found: list[Problem] = []
    for path, key in _keys(raw):
        if key is None:
            found.append(_unseen(path, lines))
        elif is_payload(key):
            found.append(_carried(path, key, lines))
        if len(found) == MOST:
            break
    return tuple(found)


def is_fathomable(raw: Any) -> bool:
    """Whether a value is small and shallow enough to be looked through."""
    return all(key is not None for _, key in _keys(raw))


def is_payload(key: str) -> bool:
    """Whether a key of this name could carry an execution."""
    words = _folded(key)
    whole = "".join(words)
    return whole in _NAMES or whole.removesuffix("s") in _NAMES or not _WORDS.isdisjoint(words)


def _folded(key: str) -> list[str]:
    """The words of a key in plain small Latin letters."""
    plain = "".join(c for c in unicodedata.normalize("NFKD", key) if unicodedata.category(c)[0] not in "MC")
    apart = _HUMP.sub(" ", plain)
    small = unicodedata.normalize("NFKD", apart.casefold())
    alike = "".join(_LATIN.get(c, c) for c in small)
    return [word for word in _NO_WORD.split(alike) if word]


def _keys(raw: Any) -> Iterator[tuple[Path, str | None]]:
    """Every key with its path, in the order of the document; None for a place beyond which nobody looks."""
    waiting: list[tuple[Path, Any]] = [((), raw)]
    seen = 0
    while waiting:
        path, value = waiting.pop()
        seen += 1
        if not isinstance(value, dict | list):
            continue
        if len(path) >= MAX_DEPTH or seen > MAX_PARTS:
            yield path, None
            return
        if isinstance(value, dict):
            yield from (((*path, str(key)), str(key)) for key in value)
            inner = [((*path, str(key)), item) for key, item in value.items()]
        else:
            inner = [((*path, n), item) for n, item in enumerate(value)]
        waiting.extend(reversed(inner))


def _carried(path: Path, key: str, lines: Lines) -> Problem:
    return problem(
        path,
        f"{clip(ascii(key), 80)} is the name of something to execute, and an intent carries none (I1)",
        "take the field out; name a command of the registry under planned_commands instead",
        lines,
    )


def _unseen(path: Path, lines: Lines) -> Problem:
    return problem(
        path,
        f"nested deeper than {MAX_DEPTH} levels, or of more than {MAX_PARTS} parts: nobody can say what it carries",
        "make the intent smaller",
        lines,
    )
