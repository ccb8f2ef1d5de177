"""Red line I1: no key of an intent, at any depth and in any spelling, can carry something to execute.

Keys are compared after case, separators and compatibility forms such as fullwidth letters are folded. The schema is
closed, so it refuses a key in any other spelling as unknown.
**Invariant:** only keys are inspected, never the words of a value. A document that is too deep or too large to inspect
counts as a finding.
"""

import re
import unicodedata
from collections.abc import Iterator
from typing import Any

from steersman.contracts.planning.decisions import DocumentProblem
from steersman.judges.planning.places import NO_FIELD_LINES, FieldLines, FieldPath, document_problem
from steersman.judges.replies.strict_json import MAX_JSON_DEPTH
from steersman.judges.text import clip_text

MAX_PAYLOAD_PARTS = 50_000
MAX_PAYLOAD_PROBLEMS = 100  # that are listed

# A key of exactly this name, in singular or plural.
_EXECUTION_KEYS = frozenset((
    "execute", "exec", "executable", "execfile", "run", "runner", "runcommand", "runscript", "shell", "sh",
    "bash", "zsh", "ksh", "csh", "pwsh", "powershell", "cmd", "cmdline", "commandline", "command", "argv",
    "script", "python", "perl", "ruby", "php", "subprocess", "spawn", "popen", "system", "ossystem", "eval",
    "invoke", "invocation", "entrypoint", "inlinecode", "sourcecode", "bytecode", "hook", "prehook",
    "posthook",
))  # fmt: skip
# A key that has one of these among its words, such as `shell_command` or `postExec`.
_EXECUTION_WORDS = frozenset((
    "execute", "exec", "shell", "bash", "powershell", "pwsh", "subprocess", "popen", "eval", "cmd", "cmdline",
))  # fmt: skip

_CAMEL_CASE_BREAK = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_WORD_BREAK = re.compile(r"[\W_]+")


def find_execution_payload(raw: Any, lines: FieldLines = NO_FIELD_LINES) -> tuple[DocumentProblem, ...]:
    """Every key that could carry an execution, with its place; nothing when the whole value was looked through."""
    problems: list[DocumentProblem] = []
    for path, key in _walk_keys(raw):
        if key is None:
            problems.append(_uninspectable_problem(path, lines))
        elif is_execution_key(key):
            problems.append(_execution_key_problem(path, key, lines))
        if len(problems) == MAX_PAYLOAD_PROBLEMS:
            break
    return tuple(problems)


def is_inspectable(raw: Any) -> bool:
    """Whether a value is small and shallow enough to be looked through."""
    return all(key is not None for _, key in _walk_keys(raw))


def is_execution_key(key: str) -> bool:
    """Whether a key of this name could carry an execution."""
    words = _fold_key_words(key)
    joined = "".join(words)
    return (
        joined in _EXECUTION_KEYS
        or joined.removesuffix("s") in _EXECUTION_KEYS
        or not _EXECUTION_WORDS.isdisjoint(words)
    )


def _fold_key_words(key: str) -> list[str]:
    """The words of a key in small letters."""
    separated = _CAMEL_CASE_BREAK.sub(" ", unicodedata.normalize("NFKC", key))
    return [word for word in _WORD_BREAK.split(separated.casefold()) if word]


def _walk_keys(raw: Any) -> Iterator[tuple[FieldPath, str | None]]:
    """Every key with its path, in the order of the document; None for a place that is too deep or too far to inspect."""
    pending: list[tuple[FieldPath, Any]] = [((), raw)]
    visited = 0
    while pending:
        path, value = pending.pop()
        visited += 1
        if not isinstance(value, dict | list):
            continue
        if len(path) >= MAX_JSON_DEPTH or visited > MAX_PAYLOAD_PARTS:
            yield path, None
            return
        if isinstance(value, dict):
            yield from (((*path, str(key)), str(key)) for key in value)
            children = [((*path, str(key)), item) for key, item in value.items()]
        else:
            children = [((*path, n), item) for n, item in enumerate(value)]
        pending.extend(reversed(children))


def _execution_key_problem(path: FieldPath, key: str, lines: FieldLines) -> DocumentProblem:
    return document_problem(
        path,
        f"{clip_text(ascii(key), 80)} names something to execute, and an intent must not carry that (I1)",
        "remove the field, and name a command of the registry under planned_commands instead",
        lines,
    )


def _uninspectable_problem(path: FieldPath, lines: FieldLines) -> DocumentProblem:
    return document_problem(
        path,
        f"nested deeper than {MAX_JSON_DEPTH} levels, or has more than {MAX_PAYLOAD_PARTS} parts, so its keys cannot be inspected",
        "make the intent smaller",
        lines,
    )
