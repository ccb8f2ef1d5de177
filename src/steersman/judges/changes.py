"""Which changed files a person has to look at before what the checks say counts.

**Invariant:** names, digests and nothing else: no file is read, and no change is harmless because of what it says.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import Literal

import msgspec

from steersman.contracts.commands import Argv
from steersman.contracts.workspace import Touched
from steersman.judges.infrastructure import (
    changes_test_infrastructure,
    instructs_agents,
    is_test_file,
    runs_as_code,
)
from steersman.judges.text import printable

Rule = Literal["gate", "show"]


class Suspect(msgspec.Struct, frozen=True):
    """One changed file, and why it is shown."""

    path: str
    why: str
    old: str
    new: str


def suspects(
    touched: Sequence[Touched], commands: Sequence[Argv], rule: Rule = "gate"
) -> tuple[Suspect, ...]:
    """The changed files that decide what the checks prove or what agents are told, in the order they came."""
    named = (*commands, *(_modules(argv) for argv in commands))
    found = ((t, _why(t, named, rule)) for t in touched)
    return tuple(Suspect(t.path, why, t.old, t.new) for t, why in found if why)


def _why(t: Touched, commands: Sequence[Argv], rule: Rule) -> str | None:
    by_name = (
        changes_test_infrastructure(t.path, commands) or instructs_agents(t.path) or runs_as_code(t.path)
    )
    return by_name or (_test(t, rule) if is_test_file(t.path) else None)


def _test(t: Touched, rule: Rule) -> str | None:
    """A new test is welcome; one that was there before is evidence, and evidence that changed is looked at."""
    if not t.old:
        return None
    if not t.new:
        return "a test was deleted"
    if t.empty:
        return "a test was emptied"
    if t.kind != "file":
        return f"a test became a {t.kind}"
    return "a test that was there before was changed" if rule == "gate" else None


def _modules(argv: Argv) -> Argv:
    """The files behind `-m name`: a check's own script by its module name."""
    names = [name.replace(".", "/") for flag, name in pairwise(argv) if flag == "-m"]
    return tuple(
        file for name in names for file in (f"{name}.py", f"{name}/__main__.py", f"{name}/__init__.py")
    )


def instructions(touched: Sequence[Touched]) -> tuple[str, ...]:
    """The changed files that agents would obey: they are shown to agents as they were on the base commit."""
    return tuple(t.path for t in touched if instructs_agents(t.path))


def told(found: Sequence[Suspect]) -> str:
    """The suspects in words, with the digests of their content."""
    return "\n".join(f"{printable(s.path)}: {s.why} ({_digests(s)})" for s in found)


def _digests(s: Suspect) -> str:
    match bool(s.old), bool(s.new):
        case True, True:
            return f"{s.old} → {s.new}"
        case False, _:
            return f"new, {s.new}"
        case _:
            return f"deleted, was {s.old}"
