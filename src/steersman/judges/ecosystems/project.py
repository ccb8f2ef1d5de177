"""Files of a project and what an ecosystem proposes for them.

**Invariant:** pure; a file that cannot be parsed is an empty one.
"""

import json
import tomllib
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from steersman.contracts.config import Check, SetupStep

# Folders whose manifests and tests are material, not parts of the project.
_MATERIAL = frozenset(
    [
        ".git",
        ".venv",
        "benchmark",
        "benchmarks",
        "bench",
        "build",
        "dist",
        "doc",
        "docs",
        "demo",
        "demos",
        "example",
        "examples",
        "external",
        "fixture",
        "fixtures",
        "fuzz",
        "node_modules",
        "playground",
        "sample",
        "samples",
        "site-packages",
        "template",
        "templates",
        "testdata",
        "third_party",
        "vendor",
        "venv",
    ]
)


class ProjectFiles(msgspec.Struct, frozen=True, eq=False):
    """The files of a commit below one folder, by their path there, with the texts that were read."""

    paths: frozenset[str]
    texts: Mapping[str, str] = {}
    folder: str = ""

    def below(self, folder: str) -> "ProjectFiles":
        """The same project seen from one of its folders."""
        start = f"{folder}/"
        return ProjectFiles(
            frozenset(p.removeprefix(start) for p in self.paths if p.startswith(start)),
            {p.removeprefix(start): text for p, text in self.texts.items() if p.startswith(start)},
            f"{self.folder}/{folder}".lstrip("/"),
        )

    def text(self, name: str) -> str:
        """The text of a file; "" where it was not read."""
        return self.texts.get(name, "")

    def toml(self, name: str) -> dict[str, Any]:
        """A TOML file as a table."""
        try:
            return tomllib.loads(self.text(name))
        except (tomllib.TOMLDecodeError, RecursionError):
            return {}

    def json(self, name: str) -> dict[str, Any]:
        """A JSON file as an object."""
        try:
            value = json.loads(self.text(name) or "{}")
        except (ValueError, RecursionError):
            return {}
        return value if isinstance(value, dict) else {}

    def folders_with(self, *names: str) -> list[str]:
        """The folders below this one that hold such a file and are no material, those near the top first."""
        found = {folder for p in self.paths if (folder := _folder(p)) and p.rpartition("/")[2] in names}
        return sorted((f for f in found if not is_material(f)), key=lambda f: (f.count("/"), f))


class Plan(msgspec.Struct, frozen=True):
    """One way to set a project up and check it."""

    setup: tuple[SetupStep, ...] = ()
    checks: Mapping[str, Check] = {}
    env: Mapping[str, str] = {}


class Proposal(msgspec.Struct, frozen=True):
    """What one ecosystem proposes for one folder: the best plan first, the next for when it fails."""

    ecosystem: str
    folder: str
    plans: tuple[Plan, ...]


def is_material(path: str) -> bool:
    """Whether a path lies in a folder of examples, fixtures, vendored or built files."""
    return any(part.lower() in _MATERIAL for part in path.split("/"))


def check_name(runner: str, folder: str) -> str:
    """A name for a check of a folder: the runner alone at the top."""
    words = "".join(c if c.isascii() and (c.isalnum() or c in "_.") else "-" for c in folder)
    return f"{runner}-{words}"[:64] if folder else runner


def table_at(value: Any, *keys: str) -> dict[str, Any]:
    """The table below these keys; an empty one where there is none."""
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value if isinstance(value, dict) else {}


def strings_in(value: Any) -> list[str]:
    """The texts of a list, without anything else."""
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []


def distinct_plans(plans: Iterable[Plan]) -> tuple[Plan, ...]:
    """The plans in order, each once."""
    kept: list[Plan] = []
    for plan in plans:
        if plan not in kept:
            kept.append(plan)
    return tuple(kept)


def _folder(path: str) -> str:
    return path.rpartition("/")[0]
