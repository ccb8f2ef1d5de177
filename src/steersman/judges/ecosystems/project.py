"""Files of a project and what an ecosystem proposes for them.

**Invariant:** pure; a file that cannot be parsed is an empty one.
"""

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from steersman.contracts.config import Check, SetupStep
from steersman.judges.facts.reading import parse_manifest_json, parse_manifest_toml

# Folders whose manifests and tests are material, not parts of the project.
_MATERIAL_WORDS = (
    ".git .venv benchmark benchmarks bench build dist doc docs demo demos example examples external fixture fixtures fuzz "
    "node_modules playground sample samples site-packages template templates testdata third_party vendor venv"
)
_MATERIAL_DIRECTORIES = frozenset(_MATERIAL_WORDS.split())


class ProjectFiles(msgspec.Struct, frozen=True, eq=False):
    """The files of a commit below one folder, by their path there, with the texts that were read."""

    paths: frozenset[str]
    texts: Mapping[str, str] = {}
    folder: str = ""

    def below(self, folder: str) -> "ProjectFiles":
        """The same project seen from one of its folders."""
        start = f"{folder}/"
        return ProjectFiles(
            frozenset(path.removeprefix(start) for path in self.paths if path.startswith(start)),
            {path.removeprefix(start): text for path, text in self.texts.items() if path.startswith(start)},
            f"{self.folder}/{folder}".lstrip("/"),
        )

    def text(self, name: str) -> str:
        """The text of a file; "" where it was not read."""
        return self.texts.get(name, "")

    def toml(self, name: str) -> dict[str, Any]:
        """A TOML file as a table."""
        return parse_manifest_toml(self.text(name))

    def json(self, name: str) -> dict[str, Any]:
        """A JSON file as an object."""
        return parse_manifest_json(self.text(name))

    def folders_with(self, *names: str) -> list[str]:
        """The folders below this one that hold such a file and are no material, those near the top first."""
        directories = {
            folder
            for path in self.paths
            if (folder := path.rpartition("/")[0]) and path.rpartition("/")[2] in names
        }
        return sorted(
            (each for each in directories if not is_material_path(each)),
            key=lambda each: (each.count("/"), each),
        )


class SetupPlan(msgspec.Struct, frozen=True):
    """One way to set a project up and check it."""

    setup: tuple[SetupStep, ...] = ()
    checks: Mapping[str, Check] = {}
    env: Mapping[str, str] = {}


class SetupProposal(msgspec.Struct, frozen=True):
    """What one ecosystem proposes for one folder: the best plan first, the next for when it fails."""

    ecosystem: str
    folder: str
    plans: tuple[SetupPlan, ...]


def is_material_path(path: str) -> bool:
    """Whether a path lies in a folder of examples, fixtures, vendored or built files."""
    return any(part.lower() in _MATERIAL_DIRECTORIES for part in path.split("/"))


def proposed_check_name(runner: str, folder: str) -> str:
    """A name for a check of a folder: the runner alone at the top."""
    words = "".join(char if char.isascii() and (char.isalnum() or char in "_.") else "-" for char in folder)
    return f"{runner}-{words}"[:64] if folder else runner


def list_distinct_plans(plans: Iterable[SetupPlan]) -> tuple[SetupPlan, ...]:
    """The plans in order, each once."""
    distinct: list[SetupPlan] = []
    for plan in plans:
        if plan not in distinct:
            distinct.append(plan)
    return tuple(distinct)
