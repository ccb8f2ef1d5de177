"""What is run in a working tree and what steersman recorded of it."""

from typing import Literal

import msgspec

Argv = tuple[str, ...]


class Command(msgspec.Struct, frozen=True):
    """One check: a name a person knows and the exact argv."""

    name: str
    argv: Argv
    source: Literal["project", "tester"] = "project"
    tests: bool = True  # False: it runs none, and nothing that it prints is counted as one
    cwd: str = ""  # relative to the top of the tree; "" is the top
    summary: str = ""  # a pattern of the project that counts tests in the output
    exit_code_is_enough: bool = False  # the project's choice: exit code 0 is evidence without a counted test


class Report(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a runner's own report says, test by test; names are outside text."""

    form: Literal["junit", "go", "pytest", "unittest"]
    ran: int = 0  # passed and failed ones; skipped tests did not run
    failures: int = 0
    expected: int = (
        0  # what proves nothing, but is counted in a summary: tests marked as failing, files without one
    )
    passed: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()
    skipped: tuple[str, ...] = ()
    broken: tuple[str, ...] = ()  # of the failed: what is no test but holds some, such as a module
    empty: tuple[str, ...] = ()  # what could hold tests and, by the runner's word, holds none
    cut: bool = False  # there were more names than are kept


class CommandResult(msgspec.Struct, frozen=True, kw_only=True):
    """What happened when steersman ran it: the only evidence there is."""

    name: str
    argv: Argv
    source: Literal["project", "tester"]
    verdict: Literal["passed", "failed", "blocked", "timeout", "no_tests"]
    exit_code: int | None = None
    tests: int | None = None  # how many the runner says it ran; None where it does not say
    report: Report | None = None  # the runner's own report, where it has one and it could be read
    asked: dict[str, str] = {}  # what was put into its environment to get the report
    reason: str = ""  # why blocked, or how it died
    output: str = (
        ""  # standard output (older records: both streams); outside text: a payload, never in an entry
    )
    micros: int = 0
    errors: str = ""  # standard error
    cwd: str = ""  # relative to the top of the tree; "" is the top
    exit_code_only: bool = False  # the exit code alone decided, by the project's choice


def full_output(result: CommandResult) -> str:
    """Everything that a command printed: standard output, then standard error."""
    return "\n".join(filter(None, (result.output.removesuffix("\n"), result.errors)))
