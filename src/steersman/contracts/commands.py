"""What is run in a working tree and what steersman recorded of it."""

from typing import Literal

import msgspec

Argv = tuple[str, ...]
CommandOutcome = Literal["passed", "failed", "no_tests"]  # of one that ended by itself


class Command(msgspec.Struct, frozen=True):
    """One check: a name a person knows and the exact argv."""

    name: str
    argv: Argv
    source: Literal["project", "tester"] = "project"
    tests: bool = True  # False: it runs none, and nothing that it prints is counted as one
    cwd: str = ""  # relative to the top of the tree; "" is the top
    summary: str = ""  # a pattern of the project that counts tests in the output
    exit_code_is_enough: bool = False  # the project's choice: exit code 0 is evidence without a counted test


class RunnerReport(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a runner's own report says, test by test; names are outside text."""

    form: Literal["junit", "go", "pytest", "unittest"]
    ran: int = 0  # passed and failed ones; skipped tests did not run
    failures: int = 0  # of those that ran
    # What proves nothing, but is counted in a summary: tests marked as failing, files without one.
    expected: int = 0
    passed: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()
    skipped: tuple[str, ...] = ()
    broken: tuple[str, ...] = ()  # of the failed: what is no test but holds some, such as a module
    empty: tuple[str, ...] = ()  # what could hold tests and, by the runner's word, holds none
    cut: bool = False  # there were more names than are kept
    files: dict[str, tuple[str, ...]] = {}  # files of the tree, each with the tests that ran from it
    examples: tuple[str, ...] = ()  # files of the tree whose examples were tried as tests
    # Loaded modules by name: their file in the tree; nothing where it is elsewhere.
    modules: dict[str, str] = {}
    # Modules of the project that were loaded from outside the tree, with their files.
    outside: tuple[str, ...] = ()
    replaced: tuple[str, ...] = ()  # functions of the runner that were replaced while tests ran


class VariantFinding(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a variant of the tree says about a change, in one sentence; names of tests are outside text."""

    # It fails the check, a person is asked, it is only reported.
    weight: Literal["failure", "question", "note"]
    sentence: str
    tests: tuple[str, ...] = ()


class CommandResult(msgspec.Struct, frozen=True, kw_only=True):
    """What happened when steersman ran it: the only evidence there is."""

    name: str
    argv: Argv
    source: Literal["project", "tester"]
    verdict: Literal["passed", "failed", "blocked", "timeout", "no_tests"]
    exit_code: int | None = None
    tests: int | None = None  # how many the runner says it ran; None where it does not say
    passed: int | None = None  # how many of them passed; None where the runner does not tell them apart
    report: RunnerReport | None = None  # the runner's own report, where it has one and it could be read
    asked: dict[str, str] = {}  # what was put into its environment to get the report
    reason: str = ""  # why blocked, or how it died
    # Standard output (older records: both streams); outside text: a payload, never in an entry.
    output: str = ""
    micros: int = 0
    errors: str = ""  # standard error
    cwd: str = ""  # relative to the top of the tree; "" is the top
    exit_code_only: bool = False  # the exit code alone decided, by the project's choice
    # It ran on a variant, which is not what would be delivered.
    variant: Literal["", "old tests", "new tests"] = ""
    tree: str = ""  # of a variant: the tree it ran on
    findings: tuple[VariantFinding, ...] = ()  # what a variant says, judged when it ran


def full_output(result: CommandResult) -> str:
    """Everything that a command printed: standard output, then standard error."""
    return "\n".join(filter(None, (result.output.removesuffix("\n"), result.errors)))
