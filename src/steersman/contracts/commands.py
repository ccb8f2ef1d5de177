"""What is run in a working tree and what steersman recorded of it."""

from typing import Literal

import msgspec

Argv = tuple[str, ...]


class Command(msgspec.Struct, frozen=True):
    """One check: a name a person knows and the exact argv."""

    name: str
    argv: Argv
    source: Literal["project", "tester"] = "project"


class CommandResult(msgspec.Struct, frozen=True, kw_only=True):
    """What happened when steersman ran it: the only evidence there is."""

    name: str
    argv: Argv
    source: Literal["project", "tester"]
    verdict: Literal["passed", "failed", "blocked", "timeout", "no_tests"]
    exit_code: int | None = None
    tests: int | None = None  # how many the runner says it ran; None where it does not say
    reason: str = ""  # why blocked, or how it died
    output: str = ""  # outside text: stored as a payload, never in an entry
    micros: int = 0
