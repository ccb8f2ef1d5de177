"""Which changed files a person has to look at before what the checks say counts.

Four questions about each: does its name say that it decides, does a check lead to it (`trails`, `shadows`), does its
text reach for the runner (`meddling`), is it a test that was there before or something that only tests use (`suites`)?
**Invariant:** pure; no change is harmless because of what it says of itself.
"""

import re
from collections.abc import Mapping, Sequence
from fnmatch import translate
from functools import cache
from itertools import pairwise
from typing import Literal

import msgspec

from steersman.contracts.commands import Argv
from steersman.contracts.workspace import Text, Touched
from steersman.judges.infrastructure import (
    changes_test_infrastructure,
    instructs_agents,
    is_test_file,
    runs_as_code,
)
from steersman.judges.inside import changed_inside
from steersman.judges.meddling import Known, meddling, readable
from steersman.judges.shadows import stand_ins
from steersman.judges.suites import holds_none, holds_tests
from steersman.judges.text import printable
from steersman.judges.trails import Trail

Rule = Literal["gate", "show"]

_CHANGED = "a test that was there before was changed"
_INSIDE = "tests in it that were there before were changed"
_MANIFESTS = ("go.mod", "composer.json", "gemfile", "Gemfile")  # beside them `vendor` is what is installed


class Suspect(msgspec.Struct, frozen=True):
    """One changed file, and why it is shown."""

    path: str
    why: str
    old: str
    new: str
    mild: bool = False  # a project may say that it only wants to see such a change


class Scene(msgspec.Struct, frozen=True):
    """What is known of a change beside its names: the base tree, what its checks lead to, and the texts."""

    base: frozenset[str] = frozenset()
    trail: Trail = msgspec.field(default_factory=lambda: Trail({}))
    old: Mapping[str, Text] = {}
    new: Mapping[str, Text] = {}
    ran: frozenset[str] = frozenset()  # files that held the tests which ran on the base tree
    tests_use: Mapping[str, str] = {}  # files that tests alone use, each with a test
    product: frozenset[str] = frozenset()  # files that the product uses, whatever they are called


def suspects(
    touched: Sequence[Touched],
    commands: Sequence[Argv],
    scene: Scene | None = None,
    checks: Sequence[Argv] | None = None,
) -> tuple[Suspect, ...]:
    """The changed files that decide what the checks prove or what agents are told, in the order they came.

    `checks` are those of the commands whose results count; all of them where nobody says.
    """
    seen = scene or Scene()
    named = (*commands, *(_modules(argv) for argv in commands))
    hidden = stand_ins(touched, seen.base, seen.trail.named, seen.trail.roots)
    meddled = meddling(touched, seen.old, seen.new, Known(commands if checks is None else checks, seen.base))
    found: list[Suspect] = []
    for t in touched:
        why = _by_name(t, named) or _led_to(t, seen) or hidden.get(t.path) or meddled.get(t.path) or _link(t)
        weak = why or _test(t, seen) or _of_tests(t, seen)
        if weak:
            mild = not why and (weak in (_CHANGED, _INSIDE) or t.path in seen.tests_use)
            found.append(Suspect(t.path, weak, t.old, t.new, mild=mild))
    if seen.trail.cut and touched:
        found.append(Suspect("", f"the checks could not be followed: {seen.trail.cut}", "", ""))
    return tuple(found)


def gating(found: Sequence[Suspect], rule: Rule) -> tuple[Suspect, ...]:
    """Those for which a person is asked."""
    return tuple(s for s in found if rule == "gate" or not s.mild)


def _by_name(t: Touched, commands: Sequence[Argv]) -> str | None:
    return changes_test_infrastructure(t.path, commands) or instructs_agents(t.path) or runs_as_code(t.path)


def _modules(argv: Argv) -> Argv:
    """The files behind `-m name`: a check's own script by its module name."""
    names = [name.replace(".", "/") for flag, name in pairwise(argv) if flag == "-m"]
    return tuple(
        file for name in names for file in (f"{name}.py", f"{name}/__main__.py", f"{name}/__init__.py")
    )


def _led_to(t: Touched, seen: Scene) -> str | None:
    by = seen.trail.named.get(t.path)
    if by is None:
        return _installed(t.path, seen.base) or _ignoring(t.path, seen.trail)
    return f"a check runs it by way of {printable(by)}" if by else "a check of the project names it"


def _installed(path: str, base: frozenset[str]) -> str | None:
    above, vendor, _ = f"/{path}".partition("/vendor/")
    there = vendor and any(f"{above}/{name}"[1:] in base for name in _MANIFESTS)
    return "installed packages are what the tests run with" if there else None


def _ignoring(path: str, trail: Trail) -> str | None:
    """What git ignores some checkers leave out."""
    if path.rpartition("/")[2] != ".gitignore" or not trail.ignoring:
        return None
    return f"{printable(trail.ignoring)} looks at nothing that it names"


def _link(t: Touched) -> str | None:
    """What a link leads to is looked at by nobody here."""
    if t.kind != "link" or not t.new or (t.old and is_test_file(t.path)):
        return None
    return "a program is a link" if "." in t.path.rpartition("/")[2] and readable(t.path) else None


def _test(t: Touched, seen: Scene) -> str | None:
    """A new test is welcome; one that was there before is evidence, and evidence that changed is looked at."""
    if not t.old:
        return None
    if not _was_test(t.path, seen):
        old, new = seen.old.get(t.path), seen.new.get(t.path)
        tried = seen.trail.examples
        return _INSIDE if old and new and changed_inside(t.path, old, new, examples=tried) else None
    if not t.new:
        return "a test was deleted"
    if t.empty:
        return "a test was emptied"
    return _CHANGED if t.kind == "file" else f"a test became a {t.kind}"


def _was_test(path: str, seen: Scene) -> bool:
    """What ran as a test is one, and so is what holds one; a name alone is not believed against the product's use."""
    text = seen.old.get(path)
    if path in seen.ran or _is_called(path, seen.trail.patterns):
        return True
    if text is not None and holds_tests(path, text.content):
        return True
    if path in seen.product or not is_test_file(path):
        return False
    in_folder = is_test_file(f"{path.rpartition('/')[0]}/x")
    return in_folder or path in seen.tests_use or text is None or not holds_none(path, text.content)


def _of_tests(t: Touched, seen: Scene) -> str | None:
    by = seen.tests_use.get(t.path)
    return f"only tests use it, such as {printable(by)}" if by and t.old else None


def _is_called(path: str, patterns: tuple[str, ...]) -> bool:
    """Whether the project's own settings say that this is a test."""
    return any(_pattern(p).match(name) for p in patterns for name in (path, path.rpartition("/")[2]))


@cache
def _pattern(pattern: str) -> re.Pattern[str]:
    return re.compile(translate(pattern))


def instructions(touched: Sequence[Touched]) -> tuple[str, ...]:
    """The changed files that agents would obey: they are shown to agents as they were on the base commit."""
    return tuple(t.path for t in touched if instructs_agents(t.path))


def told(found: Sequence[Suspect]) -> str:
    """The suspects in words, with the digests of their content."""
    return "\n".join(f"{printable(s.path)}: {s.why} ({_digests(s)})" if s.path else s.why for s in found)


def _digests(s: Suspect) -> str:
    match bool(s.old), bool(s.new):
        case True, True:
            return f"{s.old} → {s.new}"
        case False, _:
            return f"new, {s.new}"
        case _:
            return f"deleted, was {s.old}"
