"""The working trees of the workspace without git: one folder each, with a note beside it that says whose it is.

**Invariant:** text files only; what is recorded is known elsewhere.
"""

import json
import os
from pathlib import Path

CommitFiles = dict[str, str]
GIT_MARKER = ".git"  # as in a real working tree, and never part of what is recorded


def working_tree_paths(folder: Path) -> list[Path]:
    """The trees of a run, the oldest first."""
    return sorted((p for p in folder.glob("*") if p.name.isdecimal()), key=lambda p: int(p.name))


def read_tree_note(path: Path) -> dict[str, str] | None:
    """Whose a tree is; None for one that is gone or was never finished."""
    note = path.with_suffix(".json")
    if not path.name.isdecimal() or not path.is_dir() or not note.exists():
        return None
    note_data: dict[str, str] = json.loads(note.read_text())
    return note_data


def is_tree_in_use(path: Path, effect: str) -> bool:
    """Does another effect of the same step work there, or another process that is alive?"""
    note = read_tree_note(path) or {}
    holder, owner = int(note.get("holder", "0")), note.get("owner", "")
    if holder not in (0, os.getpid()) and _is_process_alive(holder):
        return True
    return owner not in ("", effect) and owner.rpartition(":")[0] == effect.rpartition(":")[0]


def _is_process_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def scan_tree_files(path: Path) -> CommitFiles:
    """Every file of a tree but the marker, by name."""
    file_paths = (p for p in path.rglob("*") if p.is_file() and p.name != GIT_MARKER)
    return {str(p.relative_to(path)): p.read_bytes().decode("utf-8", "backslashreplace") for p in file_paths}


def fill_working_tree(path: Path, files: CommitFiles) -> None:
    """Makes a tree that holds exactly these files, and the marker."""
    path.mkdir(parents=True)
    (path / GIT_MARKER).touch()
    for name, text in files.items():
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_text(text, encoding="utf-8", newline="")


def write_file_atomically(path: Path, text: str) -> None:
    """Writes the file beside its place and renames it there."""
    path.parent.mkdir(parents=True, exist_ok=True)
    young = path.with_name(f"{path.name}.{os.getpid()}.new")
    young.write_text(text)
    young.replace(path)
