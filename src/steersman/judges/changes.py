"""Which changed files a person has to look at before what the checks say counts.

A file opens the gate where it decides which tests run and how, which packages they run with, what CI executes or what
agents are told. A changed test does not: the base's own tests judge the new code (`variants`). Only tests that stand in
the product's files cannot be put back, so a change to those is shown.
**Invariant:** pure; no change is harmless because of what it says of itself.
"""

from collections.abc import Mapping, Sequence
from typing import Literal

import msgspec

from steersman.contracts.commands import Argv
from steersman.contracts.workspace import Text, Touched
from steersman.judges import infrastructure, manifests
from steersman.judges.check_files import argv_words, find_check_files
from steersman.judges.detects_tests import find_test_detection
from steersman.judges.infrastructure import instructs_agents, is_test_file, is_test_support
from steersman.judges.inside import changed_inside
from steersman.judges.text import printable

Rule = Literal["gate", "show"]
Kind = Literal["tests", "dependencies", "ci", "agents", "inside", "link", "detects"]

_INSIDE = "tests in it that were there before were changed"
_MIXED = "tests ran from it on the base, but its name does not say so: they cannot be told from product code"
_SETTINGS = "it decides which tests run and how"
_PACKAGES = "it decides which packages the tests run with"
_MANIFESTS = ("go.mod", "composer.json", "gemfile", "Gemfile")  # beside them `vendor` is what is installed
_RECIPES = ("makefile", "justfile")  # they decide where a check uses them
_EXEMPT = (".md", ".txt")  # in a folder of a forge: prose, and no workflow
_PROGRAMS = (".py", ".js", ".mjs", ".cjs", ".ts", ".tsx", ".jsx", ".go", ".rs", ".rb", ".php", ".java", ".kt", ".sh", ".c", ".cpp", ".cs")  # fmt: skip

_MOST_LINKS = 40  # Linux follows no more


class Suspect(msgspec.Struct, frozen=True):
    """One changed file, and why it is shown."""

    path: str
    why: str
    old: str
    new: str
    mild: bool = False  # a project may say that it only wants to see such a change
    kind: Kind = "tests"


class Scene(msgspec.Struct, frozen=True):
    """What is known of a change beside its names: the base tree, the checks' own files, and the texts."""

    base: frozenset[str] = frozenset()
    own: Mapping[str, str] = {}  # files that the checks are made of, each with the manifest that names it
    words: frozenset[str] = frozenset()  # of the recipes and scripts that the checks use
    old: Mapping[str, Text] = {}
    new: Mapping[str, Text] = {}
    ran: frozenset[str] = frozenset()  # files from which tests ran on the base tree
    examples: frozenset[str] = frozenset()  # files whose examples were tried on the base tree
    links: Mapping[str, str] = {}  # every link of the new tree, with what it leads to
    base_links: Mapping[str, str] = {}  # the same of the base tree
    programs: Mapping[str, str] = {}  # that play roles: the roles, by path; a folder ends with "/"


def suspects(
    touched: Sequence[Touched], commands: Sequence[Argv], scene: Scene | None = None
) -> tuple[Suspect, ...]:
    """The changed files that decide what the checks prove or what agents are told, in the order they came."""
    seen = scene or Scene()
    words = seen.words | argv_words(commands)
    own = {**find_check_files(commands, {t.path for t in touched}, {}), **seen.own}
    bent = _bent_link(seen, {t.path for t in touched})
    return tuple(
        _suspect(t, why, kind) for t in touched for kind, why in _reasons(t, seen, words, own, bent)[:1]
    )


def _suspect(t: Touched, why: str, kind: Kind) -> Suspect:
    return Suspect(t.path, why, t.old, t.new, mild=kind == "inside", kind=kind)


def gating(found: Sequence[Suspect], rule: Rule) -> tuple[Suspect, ...]:
    """Those for which a person is asked."""
    return tuple(s for s in found if rule == "gate" or not s.mild)


def _reasons(
    t: Touched, seen: Scene, words: frozenset[str], own: Mapping[str, str], bent: str
) -> list[tuple[Kind, str]]:
    """Why a changed file is shown, the strongest reason first."""
    if t.kind == "link" and t.new and (where := find_way_out(t.path, seen.links)):
        return [("link", f"it is a link that leads {where}")]
    if bent and (t.path in seen.links or t.path in seen.base_links):
        return [("link", bent)]
    if roles := _roles_played(t.path, seen.programs):
        return [("agents", f"the change edits the program that plays {roles}")]
    if agents := instructs_agents(t.path):
        return [("agents", agents)]
    if _is_mixed(t, seen):
        return [("tests", _MIXED)]
    if _is_test(t.path, seen):
        return [("link", "a test is a link")] if t.kind == "link" and t.new else []
    if manifests.is_manifest(t.path):
        return _of_manifest(t, seen, words, own)
    if seen.old.get(t.path) and seen.new.get(t.path) and _is_version_bump(t.path, seen):
        return []
    reasons = (
        _by_name(t.path, words),
        _own_file(t, seen, own),
        _link(t),
        _inside(t, seen),
        _detects(t, seen),
    )
    return [r for r in reasons if r]


def _roles_played(path: str, programs: Mapping[str, str]) -> str:
    return next(
        (roles for at, roles in programs.items() if path == at or (at[-1:] == "/" and path.startswith(at))),
        "",
    )


def _is_mixed(t: Touched, seen: Scene) -> bool:
    """Whether tests ran from a file that may hold product code too: then nothing of the base can judge it apart."""
    return bool(t.old and t.new) and t.path in seen.ran - seen.examples and not _is_named_test(t.path)


def _is_test(path: str, seen: Scene) -> bool:
    """Whether the base's version of this file can be put back to judge the change."""
    return path in seen.ran or _is_named_test(path)


def _is_named_test(path: str) -> bool:
    return (is_test_support(path) or is_test_file(path)) and not manifests.is_manifest(path)


def _is_version_bump(path: str, seen: Scene) -> bool:
    old, new = seen.old[path], seen.new[path]
    return old.whole and new.whole and manifests.only_version_changed(old.content, new.content)


def _of_manifest(
    t: Touched, seen: Scene, words: frozenset[str], own: Mapping[str, str]
) -> list[tuple[Kind, str]]:
    old, new = (texts.get(t.path, Text(t.path, "")) for texts in (seen.old, seen.new))
    if not (old.whole and new.whole):
        return [("tests", _SETTINGS)]
    found: list[tuple[Kind, str]] = []
    used = t.path in own or not t.path.casefold().endswith(_RECIPES)
    if used and manifests.test_settings_differ(t.path, old.content, new.content, words):
        found.append(("tests", _SETTINGS))
    if manifests.dependencies_differ(t.path, old.content, new.content):
        found.append(("dependencies", _PACKAGES))
    return found


def _by_name(path: str, words: frozenset[str]) -> tuple[Kind, str] | None:
    why = infrastructure.decides_by_name(path, words)
    if why is None or ("/.github/" in f"/{path}" and path.casefold().endswith(_EXEMPT)):
        return None
    return why


def _own_file(t: Touched, seen: Scene, own: Mapping[str, str]) -> tuple[Kind, str] | None:
    if (by := own.get(t.path)) is not None:
        why = f"a check runs it by way of {printable(by)}" if by else "a check of the project names it"
        return "tests", why
    if _is_installed(t.path, seen.base):
        return "dependencies", "installed packages are what the tests run with"
    return None


def _is_installed(path: str, base: frozenset[str]) -> bool:
    above, vendor, _ = f"/{path}".partition("/vendor/")
    return bool(vendor) and any(f"{above}/{name}"[1:] in base for name in _MANIFESTS)


def _bent_link(seen: Scene, touched: set[str]) -> str:
    """What becomes of a link that the change does not touch and that leads out with it, and did not before."""
    for path in sorted(seen.links.keys() - touched):
        where = find_way_out(path, seen.links)
        if where and not find_way_out(path, seen.base_links):
            return f"with it the link {printable(path)} leads {where}"
    return ""


def find_way_out(path: str, links: Mapping[str, str]) -> str:
    """Where a path leads that leaves its tree, by a link or by links that lead to each other; a circle leads nowhere."""
    at: list[str] = []
    rest = path.split("/")[::-1]
    followed = 0
    while rest and followed <= _MOST_LINKS:
        part = rest.pop()
        if part == ".." and not at:
            return "out of the tree"
        if part.casefold() == ".git":
            return "into .git"
        if part == "..":
            at.pop()
        elif part not in ("", "."):
            at.append(part)
            target = links.get("/".join(at))
            if target is not None:
                if target.startswith("/"):
                    return "out of the tree"
                at.pop()
                rest += target.split("/")[::-1]
                followed += 1
    return ""


def _link(t: Touched) -> tuple[Kind, str] | None:
    """What a link leads to is looked at by nobody here."""
    is_program = t.kind == "link" and bool(t.new) and t.path.casefold().endswith(_PROGRAMS)
    return ("link", "a program is a link") if is_program else None


def _inside(t: Touched, seen: Scene) -> tuple[Kind, str] | None:
    old, new = seen.old.get(t.path), seen.new.get(t.path)
    if old is None or new is None:
        return None
    tried = t.path in seen.examples
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
    return "\n".join(f"{printable(s.path)}: {s.why} ({_digests(s)})" for s in found)


def _digests(s: Suspect) -> str:
    match bool(s.old), bool(s.new):
        case True, True:
            return f"{s.old} → {s.new}"
        case False, _:
            return f"new, {s.new}"
        case _:
            return f"deleted, was {s.old}"
