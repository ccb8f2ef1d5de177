"""The lock over everything that decides: reads the source texts, writes the committed file, says what changed unsaid.

A part whose hash changed while its version did not is a problem; so is a version that went down, a part that is gone or
new, a lock that is behind. Writing refuses the first two: a change without a new version cannot be locked.
"""

import importlib
import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import steersman
from steersman import machines
from steersman.adapters.installed_machines import BUILT_IN_MACHINES
from steersman.errors import DefinitionError
from steersman.kernel.fingerprint import machine_fingerprint
from steersman.kernel.machine import Machine

LOCKED_PACKAGES = ("machines", "judges", "contracts")
# What a machine's folder holds beside what decides: what it does, shows and writes.
UNLOCKED_PARTS = frozenset({"effects", "views", "package", "files", "start", "documents", "words"})
SOURCE_DIRECTORY = Path(steersman.__file__).resolve().parent
LOCK_PATH = SOURCE_DIRECTORY.parents[1] / "machines.lock"
LOCK_FORMAT = 2  # 1 hashed what things are called, too
MachineLock = dict[str, Any]


def load_installed_machines() -> dict[str, Machine]:
    """The built-in machines, by name."""
    modules = [importlib.import_module(f"{machines.__name__}.{name}.table") for name in BUILT_IN_MACHINES]
    return {module.MACHINE.name: module.MACHINE for module in modules}


def read_source_texts() -> dict[str, str]:
    """The source text of every module in the rooms that decide, by module name."""
    files = (
        file for package in LOCKED_PACKAGES for file in sorted((SOURCE_DIRECTORY / package).rglob("*.py"))
    )
    names = {_module_name(file): file for file in files}
    return {
        name: file.read_text(encoding="utf-8")
        for name, file in names.items()
        if not (name.startswith(f"{machines.__name__}.") and UNLOCKED_PARTS & set(name.split(".")))
    }


def _module_name(file: Path) -> str:
    parts = file.relative_to(SOURCE_DIRECTORY.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def build_machine_lock(
    machines_by_name: Mapping[str, Machine] | None = None, sources: Mapping[str, str] | None = None
) -> MachineLock:
    """The lock as it would be now."""
    sources = read_source_texts() if sources is None else sources
    machines_by_name = load_installed_machines() if machines_by_name is None else machines_by_name
    return {
        "format": LOCK_FORMAT,
        "machines": {name: machine_fingerprint(m, sources) for name, m in sorted(machines_by_name.items())},
    }


def write_machine_lock(
    path: str | os.PathLike[str] = LOCK_PATH,
    which: Mapping[str, Machine] | None = None,
    sources: Mapping[str, str] | None = None,
) -> None:
    """Writes the lock; a DefinitionError when something changed without its version."""
    target, lock = Path(path), build_machine_lock(which, sources)
    problems = list(_find_unversioned_changes(_read_machine_lock(target), lock)) if target.exists() else []
    if problems:
        raise DefinitionError("; ".join(problems))
    part = target.with_name(f"{target.name}.part")
    part.write_text(json.dumps(lock, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    part.replace(target)


def check_machine_lock(
    path: str | os.PathLike[str] = LOCK_PATH,
    which: Mapping[str, Machine] | None = None,
    sources: Mapping[str, str] | None = None,
) -> list[str]:
    """Every problem between the lock and the machines as they are; empty: none."""
    target = Path(path)
    if not target.exists():
        return [f"{target} is not there: write it with `steersman machine lock`"]
    try:
        recorded, new_lock = _read_machine_lock(target), build_machine_lock(which, sources)
    except DefinitionError as error:
        return [str(error)]
    return [*_find_unversioned_changes(recorded, new_lock), *_find_outdated_parts(recorded, new_lock)]


def _read_machine_lock(path: Path) -> MachineLock:
    try:
        lock: MachineLock = json.loads(path.read_text(encoding="utf-8"))
        if lock["format"] == LOCK_FORMAT and isinstance(lock["machines"], dict):
            return lock
    except (ValueError, KeyError, TypeError):
        pass
    raise DefinitionError(
        f"{path} is no lock of this steersman: restore it from version control, or delete it and write it again"
    )


def _find_unversioned_changes(old: MachineLock, now: MachineLock) -> Iterator[str]:
    """What changed without a version, or took one back."""
    for machine, name, before, after in _iterate_common_parts(old, now):
        if after["version"] < before["version"]:
            yield f"{machine}: {name} is version {after['version']}, was {before['version']}: a version never goes down"
        elif after["version"] == before["version"]:
            yield from (
                f"{machine}: {name} {change}, but its version is still {after['version']}: raise it"
                for change in _describe_part_changes(before, after)
            )


def _describe_part_changes(before: dict[str, Any], after: dict[str, Any]) -> Iterator[str]:
    if before["hash"] != after["hash"]:
        yield "changed"
    old_fields, new_fields = before.get("fields", {}), after.get("fields", {})
    for field in sorted(old_fields.keys() | new_fields.keys()):
        if field not in new_fields:
            yield f"carries {field} no more"
        elif field in old_fields and old_fields[field] != new_fields[field]:
            yield f"carries another {field}"
        elif field not in old_fields and new_fields[field].endswith(" = "):
            yield f"must carry {field} now"


def _find_outdated_parts(old: MachineLock, now: MachineLock) -> Iterator[str]:
    """Where the lock only has to be written again."""
    advice = "write the lock again with `steersman machine lock`"
    for name in sorted(old["machines"].keys() ^ now["machines"].keys()):
        yield f"{name}: {'not in the lock' if name in now['machines'] else 'in the lock, but there is no such machine'}: {advice}"
    for machine, name, before, after in _iterate_common_parts(old, now):
        if after["version"] > before["version"]:
            yield f"{machine}: {name} is version {after['version']} now, the lock has {before['version']}: {advice}"
    for machine in sorted(old["machines"].keys() & now["machines"].keys()):
        old_machine, new_machine = old["machines"][machine], now["machines"][machine]
        for name in sorted(old_machine["parts"].keys() ^ new_machine["parts"].keys()):
            yield f"{machine}: {name} is {'new' if name in new_machine['parts'] else 'gone'}: {advice}"
        for key in ("definition", "kernel"):
            if old_machine[key] != new_machine[key]:
                yield f"{machine}: its {key} is {new_machine[key]} now, the lock has {old_machine[key]}: {advice}"


def _iterate_common_parts(
    old: MachineLock, now: MachineLock
) -> Iterator[tuple[str, str, dict[str, Any], dict[str, Any]]]:
    for machine in sorted(old["machines"].keys() & now["machines"].keys()):
        old_parts, new_parts = old["machines"][machine]["parts"], now["machines"][machine]["parts"]
        for name in sorted(old_parts.keys() & new_parts.keys()):
            yield machine, name, old_parts[name], new_parts[name]
