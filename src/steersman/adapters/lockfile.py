"""The lock over everything that decides: reads the source texts, writes the committed file, says what changed unsaid.

A part whose hash changed while its version did not is a problem; so is a version that went down, a part that is gone or
new, a lock that is behind. Writing refuses the first two: a change nobody has put a version to cannot be locked away.
"""

import importlib
import json
import os
import pkgutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import steersman
from steersman import machines
from steersman.errors import DefinitionError
from steersman.kernel.build import Machine
from steersman.kernel.fingerprint import fingerprint

ROOMS = ("machines", "judges", "contracts")
SOURCE = Path(steersman.__file__).resolve().parent
PATH = SOURCE.parents[1] / "machines.lock"
FORMAT = 2  # 1 hashed what things are called, too
Lock = dict[str, Any]


def installed() -> dict[str, Machine]:
    """The machines of this steersman, by name."""
    names = sorted(m.name for m in pkgutil.iter_modules(machines.__path__) if m.ispkg)
    found = [importlib.import_module(f"{machines.__name__}.{name}").MACHINE for name in names]
    return {m.name: m for m in found}


def texts() -> dict[str, str]:
    """The source text of every module in the rooms that decide, by module name."""
    files = (f for room in ROOMS for f in sorted((SOURCE / room).rglob("*.py")))
    return {_module(f): f.read_text(encoding="utf-8") for f in files}


def _module(file: Path) -> str:
    parts = file.relative_to(SOURCE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def made(which: Mapping[str, Machine] | None = None, sources: Mapping[str, str] | None = None) -> Lock:
    """The lock as it would be now."""
    sources = texts() if sources is None else sources
    which = installed() if which is None else which
    return {
        "format": FORMAT,
        "machines": {name: fingerprint(m, sources) for name, m in sorted(which.items())},
    }


def write(
    path: str | os.PathLike[str] = PATH,
    which: Mapping[str, Machine] | None = None,
    sources: Mapping[str, str] | None = None,
) -> None:
    """Writes the lock; a DefinitionError when something changed without its version."""
    target, now = Path(path), made(which, sources)
    unsaid = list(_unsaid(_read(target), now)) if target.exists() else []
    if unsaid:
        raise DefinitionError("; ".join(unsaid))
    part = target.with_name(f"{target.name}.part")
    part.write_text(json.dumps(now, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    part.replace(target)


def check(
    path: str | os.PathLike[str] = PATH,
    which: Mapping[str, Machine] | None = None,
    sources: Mapping[str, str] | None = None,
) -> list[str]:
    """Every problem between the lock and the machines as they are; empty: none."""
    target = Path(path)
    if not target.exists():
        return [f"{target} is not there: write it with `steersman machine lock`"]
    try:
        old, now = _read(target), made(which, sources)
    except DefinitionError as error:
        return [str(error)]
    return [*_unsaid(old, now), *_behind(old, now)]


def _read(path: Path) -> Lock:
    try:
        lock: Lock = json.loads(path.read_text(encoding="utf-8"))
        if lock["format"] == FORMAT and isinstance(lock["machines"], dict):
            return lock
    except (ValueError, KeyError, TypeError):
        pass
    raise DefinitionError(
        f"{path} is no lock of this steersman: restore it from version control, or delete it and write it anew"
    )


def _unsaid(old: Lock, now: Lock) -> Iterator[str]:
    """What changed without a version, or took one back."""
    for machine, name, before, after in _both(old, now):
        if after["version"] < before["version"]:
            yield f"{machine}: {name} is version {after['version']}, was {before['version']}: a version never goes down"
        elif after["version"] == before["version"]:
            yield from (
                f"{machine}: {name} {why}, but its version is still {after['version']}: raise it"
                for why in _changes(before, after)
            )


def _changes(before: dict[str, Any], after: dict[str, Any]) -> Iterator[str]:
    if before["hash"] != after["hash"]:
        yield "changed"
    was, fields = before.get("fields", {}), after.get("fields", {})
    for field in sorted(was.keys() | fields.keys()):
        if field not in fields:
            yield f"carries {field} no more"
        elif field in was and was[field] != fields[field]:
            yield f"carries another {field}"
        elif field not in was and fields[field].endswith(" = "):
            yield f"must carry {field} now"


def _behind(old: Lock, now: Lock) -> Iterator[str]:
    """Where the lock only has to be written anew."""
    advice = "write the lock anew with `steersman machine lock`"
    for name in sorted(old["machines"].keys() ^ now["machines"].keys()):
        yield f"{name}: {'not in the lock' if name in now['machines'] else 'in the lock, but there is no such machine'}: {advice}"
    for machine, name, before, after in _both(old, now):
        if after["version"] > before["version"]:
            yield f"{machine}: {name} is version {after['version']} now, the lock has {before['version']}: {advice}"
    for machine in sorted(old["machines"].keys() & now["machines"].keys()):
        was, is_ = old["machines"][machine], now["machines"][machine]
        for name in sorted(was["parts"].keys() ^ is_["parts"].keys()):
            yield f"{machine}: {name} is {'new' if name in is_['parts'] else 'gone'}: {advice}"
        for key in ("definition", "kernel"):
            if was[key] != is_[key]:
                yield f"{machine}: its {key} is {is_[key]} now, the lock has {was[key]}: {advice}"


def _both(old: Lock, now: Lock) -> Iterator[tuple[str, str, dict[str, Any], dict[str, Any]]]:
    for machine in sorted(old["machines"].keys() & now["machines"].keys()):
        was, is_ = old["machines"][machine]["parts"], now["machines"][machine]["parts"]
        for name in sorted(was.keys() & is_.keys()):
            yield machine, name, was[name], is_[name]
