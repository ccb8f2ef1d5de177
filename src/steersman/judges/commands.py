"""What a tester may ask to run, and what a finished run of it proves.

A proposed argv is compared with the project's own checks, then with a small table of test runners in which every
flag has its place. There is no prefix rule and no denylist: what is not in the table may not run.
**Invariant:** nothing is started, found or read here; zero tests is never a pass, nor are skipped ones tests.
"""

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import Literal, NamedTuple

from steersman.contracts.commands import Argv

Outcome = Literal["passed", "failed", "no_tests"]


class Runner(NamedTuple):
    """One line of the table: the words it starts with, then flags (each once), then words of one form."""

    start: Argv
    flags: frozenset[str]
    word: re.Pattern[str]


# A leading "@" would make pytest read more arguments from a file, so a word starts with a letter, "_" or ".".
_PATH = re.compile(r"[\w.][\w.\-/]*")
_NODE = re.compile(r"[\w.][\w.\-/]*(?:::\w+)*(?:\[[\w.\- ,=+]*\])?")
_LOUD = frozenset({"-v", "-q"})
_LOUD_OR_STOP = frozenset({"-v", "-q", "-x"})

# Longer starts first: `discover` is a word of the table, not a name to load.
RUNNERS: tuple[Runner, ...] = (
    *(Runner((py, "-m", "unittest", "discover"), _LOUD, _PATH) for py in ("python", "python3")),
    *(Runner((py, "-m", "unittest"), _LOUD, _PATH) for py in ("python", "python3")),
    *(Runner((py, "-m", "pytest"), _LOUD_OR_STOP, _NODE) for py in ("python", "python3")),
    Runner(("pytest",), _LOUD_OR_STOP, _NODE),
)

_LAUNCHERS = frozenset({"uv", "poetry", "hatch", "pdm", "pipenv", "rye", "coverage", "xvfb-run", "env"})
_TEST_MODULES = frozenset({"pytest", "unittest"})
_NO_TESTS_EXIT = 5  # pytest's, and unittest's since Python 3.12


def command_problem(argv: Sequence[object], allowed: Sequence[Argv]) -> str | None:
    """Why this proposed argv may not run, with the next step; or None when exactly it may."""
    words = tuple(word for word in argv if isinstance(word, str) and "\0" not in word)
    if not words or len(words) != len(argv) or not words[0]:
        return "not a command: an argv is a list of texts that starts with a program; propose such a list"
    if words in allowed:
        return None
    for number, word in enumerate(words, 1):
        if (trouble := _word_problem(word)) is not None:
            return f"not on the allow-list: word {number} {trouble}; propose relative paths inside the tree"
    if any(_fits(words, runner) for runner in RUNNERS):
        return None
    return f"not on the allow-list: {_shown(words)}; add it under [checks] in steersman.toml"


def is_test_runner(argv: Argv) -> bool:
    """Does this argv start pytest or unittest, directly or through a usual launcher?"""
    names = [word.rpartition("/")[2] for word in argv]
    by_module = any(flag == "-m" and name in _TEST_MODULES for flag, name in pairwise(names))
    return by_module or names[:1] == ["pytest"] or ("pytest" in names and names[0] in _LAUNCHERS)


def outcome(argv: Argv, exit_code: int, tests: int | None) -> Outcome:
    """The verdict on a command that ended by itself: passing needs exit 0 and, of a test runner, a counted test."""
    runner = is_test_runner(argv)
    if runner and exit_code == _NO_TESTS_EXIT:
        return "no_tests"
    if exit_code != 0:
        return "failed"
    return "no_tests" if tests == 0 or (runner and tests is None) else "passed"


def tests_counted(output: str) -> int | None:
    """How many tests the runners in this output say they ran, skipped ones left out; None where none says.

    A summary that says zero decides: a test module may print any summary it likes, and none outweighs the empty one.
    """
    plain = _COLOUR.sub("", output)
    counts = [_unittest_count(match) for match in _UNITTEST.finditer(plain)]
    counts += [_pytest_count(match["parts"]) for match in _PYTEST.finditer(plain)]
    if not counts:  # with -qq pytest draws its dots and leaves the summary out
        counts = [sum(map(match["dots"].count, ".FxX")) for match in _PROGRESS.finditer(plain)]
        return sum(counts) if counts else None
    return 0 if 0 in counts else sum(counts)


_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_UNITTEST = re.compile(
    r"^Ran (?P<ran>\d{1,9}) tests? in [\d.]+s(?:\s+(?:OK|FAILED|NO TESTS RAN)(?: \((?P<notes>[^)\n]*)\))?)?$",
    re.MULTILINE,
)
_PYTEST = re.compile(
    r"^(?:=+ )?(?P<parts>no tests ran|\d{1,9} [a-z]+(?: [a-z]+)?(?:, \d{1,9} [a-z]+(?: [a-z]+)?)*)"
    r" in [\d.]+s(?: \([^)\n]*\))?(?: =+)?$",
    re.MULTILINE,
)
_PROGRESS = re.compile(r"^(?P<dots>[.FEsxXR]+) +\[ *\d{1,3}%\]$", re.MULTILINE)
_RAN_WORDS = frozenset({"passed", "failed", "xfailed", "xpassed"})


def _unittest_count(match: re.Match[str]) -> int:
    skipped = re.search(r"\bskipped=(\d{1,9})", match["notes"] or "")
    return max(0, int(match["ran"]) - (int(skipped[1]) if skipped else 0))


def _pytest_count(parts: str) -> int:
    numbers = (part.split(" ", 1) for part in parts.split(", "))
    return sum(int(number) for number, word in numbers if word in _RAN_WORDS)


def _word_problem(word: str) -> str | None:
    if not word.isprintable():
        return "has a control or invisible character"
    if word.startswith(("/", "\\", "~")) or re.match(r"[A-Za-z]:[/\\]", word):
        return "is an absolute path"
    return "has a '..' segment" if ".." in re.split(r"[/\\:=]", word) else None


def _fits(words: Argv, runner: Runner) -> bool:
    size = len(runner.start)
    rest = words[size:]
    flags = tuple(word for word in rest if word in runner.flags)
    names = rest[len(flags) :]
    in_place = rest[: len(flags)] == flags and len(set(flags)) == len(flags)
    return words[:size] == runner.start and in_place and all(runner.word.fullmatch(name) for name in names)


def _shown(words: Argv) -> str:
    text = " ".join(words)
    return text if len(text) <= 200 else f"{text[:200]}…"
