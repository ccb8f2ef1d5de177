"""Which test runner an argv starts, how it is asked for its report, and what its end proves.

A runner is asked through its environment, so that the executed argv stays the approved one. Only one that the argv
starts itself, or through a usual launcher, is known: behind `make` or `npm` nobody knows how often one is started.
**Invariant:** pure; zero tests is never a pass, nor are skipped ones tests.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import Literal

Outcome = Literal["passed", "failed", "no_tests"]
Form = Literal["pytest", "unittest", "node", "go", "indirect"]
REPORTER, PRELOAD = "steersman_reporter.mjs", "steersman_preload.cjs"
WIRE, PIPE, BETWEEN = "wire", "report.xml", "steersman_go.sh"  # in the folder of one execution

_NO_TESTS_EXIT = 5  # pytest's, and unittest's since Python 3.12
_LAUNCHERS = frozenset({"uv", "poetry", "hatch", "pdm", "pipenv", "rye", "coverage", "env", "xvfb-run"})
_PACKAGE_LAUNCHERS = frozenset({"npx", "pnpm", "yarn", "bunx", "bundle", "npm", "bun", "env", "xvfb-run"})
_NODE_OWN = ("--test-reporter", "--test-reporter-destination")
_ALONE = frozenset(
    {"jest", "vitest", "mocha", "ava", "tap", "rspec", "phpunit", "pest", "ctest", "gotestsum", "py.test"}
)
_TEST_WORD = frozenset({"cargo", "dotnet", "swift", "mix", "flutter", "dart", "deno", "bun", "go"})
_BUILDS = frozenset({"gradle", "gradlew", "mvn", "mvnw"})


def form_of(argv: Sequence[str]) -> Form | None:
    """Which report this argv can be asked for; None where its runner has none, or tells it to somebody else."""
    names = _names(argv)
    if _module(names, "pytest") or names[:1] in (["pytest"], ["py.test"]) or _launched(names, "pytest"):
        return None if _shut(argv, "IE") else "pytest"
    if _module(names, "unittest"):
        return None if _shut(argv, "IES") else "unittest"
    if names[:1] == ["node"] and "--test" in names:
        return None if any(word.partition("=")[0] in _NODE_OWN for word in argv) else "node"
    return "go" if _go(names)[:2] == ["go", "test"] else None


def environment(argv: Sequence[str], form: Form, folder: str) -> dict[str, str]:
    """What the runner finds in its environment: where to tell its report, beside what it prints."""
    match form:
        case "pytest":
            return {"PYTEST_ADDOPTS": "-p steersman_witness", **_witness(folder)}
        case "unittest" | "indirect":
            return _witness(folder)
        case "node":
            place, reporter, preload = (_quoted(f"{folder}/{name}") for name in (PIPE, REPORTER, PRELOAD))
            shown = "--test-reporter=spec --test-reporter-destination=stdout"
            ours = f"--test-reporter={reporter} --test-reporter-destination={place} --require={preload}"
            return {"NODE_OPTIONS": f"{shown} {ours}"}
        case _:
            between = f"-exec={folder}/{BETWEEN}" if " " not in folder else f"'-exec=\"{folder}/{BETWEEN}\"'"
            return {
                "GOFLAGS": between if {"-json", "--json", "-json=true"} & set(argv) else f"-json {between}"
            }


def _quoted(place: str) -> str:
    """As node splits its options."""
    return '"' + place.replace("\\", "\\\\").replace('"', '\\"') + '"'


def is_test_runner(argv: Sequence[str]) -> bool:
    """Does this argv start a test runner, so that passing needs a counted test?"""
    names = _names(argv)
    if form_of(argv) is not None or _python(names) or (names[:1] == ["node"] and "--test" in names):
        return True
    rest = names[1:] if names and names[0] in _PACKAGE_LAUNCHERS else names
    program = next((name for name in rest if name not in ("exec", "run", "x", "dlx", "--")), "")
    if program in _ALONE:
        return True
    words = _go(names)
    if words and words[0] in _BUILDS:
        return any(word.rpartition(":")[2] in ("test", "verify") for word in words)
    return bool(words) and words[0] in _TEST_WORD and words[1:2] in (["test"], ["nextest"])


def outcome(argv: Sequence[str], exit_code: int, tests: int | None) -> Outcome:
    """The verdict on a command that ended by itself: passing needs exit 0 and, of a test runner, a counted test."""
    if exit_code == _NO_TESTS_EXIT and _python(_names(argv)):
        return "no_tests"
    if exit_code != 0:
        return "failed"
    return "no_tests" if tests == 0 or (tests is None and is_test_runner(argv)) else "passed"


def _python(names: Sequence[str]) -> bool:
    by_module = _module(names, "pytest") or _module(names, "unittest")
    return by_module or names[:1] == ["pytest"] or _launched(names, "pytest")


def _names(argv: Sequence[str]) -> list[str]:
    return [word.rpartition("/")[2] for word in argv]


def _module(names: Sequence[str], module: str) -> bool:
    return any(flag == "-m" and name == module for flag, name in pairwise(names))


def _launched(names: Sequence[str], program: str) -> bool:
    return bool(names) and names[0] in _LAUNCHERS and program in names


def _go(names: list[str]) -> list[str]:
    """`go -C folder test` and `cargo +nightly test` without what stands between."""
    if names[1:2] == ["-C"]:
        return [*names[:1], *names[3:]]
    return [name for name in names if not name.startswith("+")]


def _shut(argv: Sequence[str], flags: str) -> bool:
    """Whether the interpreter was told to leave its environment, or `sitecustomize`, alone."""
    before = argv[: argv.index("-m")] if "-m" in argv else ()
    return any(
        word.startswith("-") and not word.startswith(("--", "-W", "-X")) and set(flags) & set(word)
        for word in before
    )


def _witness(folder: str) -> dict[str, str]:
    return {"PYTHONPATH": folder, "STEERSMAN_WITNESS": f"{folder}/{WIRE}"}
