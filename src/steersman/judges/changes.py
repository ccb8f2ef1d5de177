"""Which changed files a person has to look at before what the checks say counts.

A file opens the gate where it decides which tests run and how, which packages they run with, what CI executes or what
agents are told. A changed test does not: the base's own tests judge the new code (`variants`). Only tests that stand in
the product's files cannot be put back, so a change to those is shown.
**Invariant:** pure; no change is harmless because of what it says of itself.
"""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Literal

import msgspec

from steersman.contracts.commands import Argv
from steersman.contracts.workspace import Text, Touched
from steersman.judges import infrastructure, manifests
from steersman.judges.detects_tests import find_test_detection
from steersman.judges.infrastructure import instructs_agents, is_named_as_test, is_test_file, is_test_support
from steersman.judges.inside import changed_inside
from steersman.judges.text import printable
from steersman.judges.trails import Trail

Rule = Literal["gate", "show"]
Kind = Literal["tests", "dependencies", "ci", "agents", "inside", "link", "detects"]

_INSIDE = "tests in it that were there before were changed"
_SETTINGS = "it decides which tests run and how"
_PACKAGES = "it decides which packages the tests run with"
_MANIFESTS = ("go.mod", "composer.json", "gemfile", "Gemfile")  # beside them `vendor` is what is installed
_EXEMPT = (".md", ".txt")  # in a folder of a forge: prose, and no workflow
_RECIPES = (".sh", ".bash", ".mk", "makefile", "justfile")
_PROGRAMS = (".py", ".js", ".mjs", ".cjs", ".ts", ".tsx", ".jsx", ".go", ".rs", ".rb", ".php", ".java", ".kt", ".sh", ".c", ".cpp", ".cs")  # fmt: skip


class Suspect(msgspec.Struct, frozen=True):
    """One changed file, and why it is shown."""

    path: str
    why: str
    old: str
    new: str
    mild: bool = False  # a project may say that it only wants to see such a change
    kind: Kind = "tests"


class Scene(msgspec.Struct, frozen=True):
    """What is known of a change beside its names: the base tree, what its checks lead to, and the texts."""

    base: frozenset[str] = frozenset()
    trail: Trail = msgspec.field(default_factory=lambda: Trail({}))
    old: Mapping[str, Text] = {}
    new: Mapping[str, Text] = {}
    ran: frozenset[str] = frozenset()  # files from which tests ran on the base tree
    examples: frozenset[str] = frozenset()  # files whose examples were tried on the base tree


def suspects(
    touched: Sequence[Touched], commands: Sequence[Argv], scene: Scene | None = None
) -> tuple[Suspect, ...]:
    """The changed files that decide what the checks prove or what agents are told, in the order they came."""
    seen = scene or Scene()
    words = seen.trail.words | {word for argv in commands for word in argv}
    named = {file for argv in commands for file in (*argv, *_modules(argv))}
    found = [_suspect(t, why, kind) for t in touched for kind, why in _reasons(t, seen, words, named)[:1]]
    if seen.trail.cut and touched:
        found.append(Suspect("", f"the checks could not be followed: {seen.trail.cut}", "", ""))
    return tuple(found)


def _suspect(t: Touched, why: str, kind: Kind) -> Suspect:
    return Suspect(t.path, why, t.old, t.new, mild=kind == "inside", kind=kind)


def gating(found: Sequence[Suspect], rule: Rule) -> tuple[Suspect, ...]:
    """Those for which a person is asked."""
    return tuple(s for s in found if rule == "gate" or not s.mild)


def _reasons(t: Touched, seen: Scene, words: frozenset[str], named: set[str]) -> list[tuple[Kind, str]]:
    """Why a changed file is shown, the strongest reason first."""
    if agents := instructs_agents(t.path):
        return [("agents", agents)]
    if _is_test(t.path, seen):
        return [("link", "a test is a link")] if t.kind == "link" and t.new else []
    if manifests.is_manifest(t.path):
        return _of_manifest(t, seen, words)
    if seen.old.get(t.path) and seen.new.get(t.path) and _is_version_bump(t.path, seen):
        return []
    reasons = (
        _by_name(t.path, words),
        _led_to(t, seen, named),
        _link(t),
        _inside(t, seen),
        _detects(t, seen),
    )
    return [r for r in reasons if r]


def _is_test(path: str, seen: Scene) -> bool:
    """Whether the base's version of this file can be put back to judge the change; a check's own script decides."""
    if path in seen.ran:
        return True
    if not (is_test_support(path) or is_test_file(path)) or manifests.is_manifest(path):
        return False
    return not _is_script(path, seen.trail.named.get(path)) or is_named_as_test(path) or is_test_support(path)


def _is_script(path: str, by: str | None) -> bool:
    """Whether a check, or a recipe of it, starts this file; what a runner's settings name are tests."""
    if by is None or (by and is_test_file(by)):
        return False
    recipe = by.casefold().endswith(_RECIPES)
    settings = manifests.is_manifest(by) or infrastructure.decides_by_name(by, frozenset()) is not None
    return not by or recipe or not settings or path.endswith(_RECIPES)


def _is_version_bump(path: str, seen: Scene) -> bool:
    old, new = seen.old[path], seen.new[path]
    return old.whole and new.whole and manifests.only_version_changed(old.content, new.content)


def _of_manifest(t: Touched, seen: Scene, words: frozenset[str]) -> list[tuple[Kind, str]]:
    old, new = (texts.get(t.path, Text(t.path, "")) for texts in (seen.old, seen.new))
    if not (old.whole and new.whole):
        return [("tests", _SETTINGS)]
    found: list[tuple[Kind, str]] = []
    if manifests.test_settings_differ(t.path, old.content, new.content, words) and _decides(
        t.path, seen, old, new
    ):
        found.append(("tests", _SETTINGS))
    if manifests.dependencies_differ(t.path, old.content, new.content):
        found.append(("dependencies", _PACKAGES))
    return found


def _decides(path: str, seen: Scene, old: Text, new: Text) -> bool:
    """Whether a file of recipes belongs to a check: it is followed to it, or has a target for tests."""
    if not path.casefold().endswith(("makefile", "justfile")) or path in seen.trail.named:
        return True
    lines = f"{old.content}\n{new.content}".splitlines()
    return any(line.split(":")[0].strip() in ("test", "tests", "check") for line in lines if ":" in line)


def _by_name(path: str, words: frozenset[str]) -> tuple[Kind, str] | None:
    why = infrastructure.decides_by_name(path, words)
    if why is None or ("/.github/" in f"/{path}" and path.casefold().endswith(_EXEMPT)):
        return None
    return why


def _modules(argv: Argv) -> Argv:
    """The files behind `-m name`: a check's own script by its module name."""
    names = [name.replace(".", "/") for flag, name in pairwise(argv) if flag == "-m"]
    return tuple(
        file for name in names for file in (f"{name}.py", f"{name}/__main__.py", f"{name}/__init__.py")
    )


def _led_to(t: Touched, seen: Scene, named: set[str]) -> tuple[Kind, str] | None:
    by = seen.trail.named.get(t.path)
    if by is not None or t.path in named:
        return (
            "tests",
            f"a check runs it by way of {printable(by)}" if by else "a check of the project names it",
        )
    if _is_installed(t.path, seen.base):
        return "dependencies", "installed packages are what the tests run with"
    if t.path.rpartition("/")[2] == ".gitignore" and seen.trail.ignoring:
        return "tests", f"{printable(seen.trail.ignoring)} looks at nothing that it names"
    return None


def _is_installed(path: str, base: frozenset[str]) -> bool:
    above, vendor, _ = f"/{path}".partition("/vendor/")
    return bool(vendor) and any(f"{above}/{name}"[1:] in base for name in _MANIFESTS)


def _link(t: Touched) -> tuple[Kind, str] | None:
    """What a link leads to is looked at by nobody here."""
    is_program = t.kind == "link" and bool(t.new) and t.path.casefold().endswith(_PROGRAMS)
    return ("link", "a program is a link") if is_program else None


def _inside(t: Touched, seen: Scene) -> tuple[Kind, str] | None:
    old, new = seen.old.get(t.path), seen.new.get(t.path)
    if old is None or new is None:
        return None
    tried = seen.trail.examples or t.path in seen.examples
    return ("inside", _INSIDE) if changed_inside(t.path, old, new, examples=tried) else None


def _detects(t: Touched, seen: Scene) -> tuple[Kind, str] | None:
    """Product code that behaves differently under test: the base's tests cannot judge it."""
    if not t.path.casefold().endswith(_PROGRAMS) or t.path not in seen.new:
        return None
    old = seen.old.get(t.path, Text(t.path, ""))
    why = find_test_detection(old.content, seen.new[t.path].content)
    return ("detects", why) if why else None


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
