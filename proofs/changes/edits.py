"""Edits of a change: what they are, how they are made to a folder, and how a scripted coder is told to make them.

**Invariant:** this module needs the standard library alone. Its own source is the program of the coder that makes
links and sets modes, which the scripted agent cannot do. Making the same edits twice changes nothing more.
"""

import os
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Edit:
    """One change to one path; `text` is what its verb needs: contents, what replaces `find`, a link's target, a mode."""

    verb: str
    path: str
    text: str = ""
    find: str = ""


def write(path: str, text: str) -> Edit:
    """Writes a whole file."""
    return Edit("write", path, text)


def append(path: str, text: str) -> Edit:
    """Adds to the end of a file."""
    return Edit("append", path, text)


def replace(path: str, find: str, text: str) -> Edit:
    """Replaces a text that is in the file exactly once."""
    return Edit("replace", path, text, find)


def delete(path: str) -> Edit:
    """Removes a file."""
    return Edit("delete", path)


def rename(path: str, to: str) -> Edit:
    """Gives a file another path."""
    return Edit("rename", path, to)


def symlink(path: str, target: str) -> Edit:
    """Puts a link at the path, in place of the file that may be there."""
    return Edit("symlink", path, target)


def set_mode(path: str, mode: str) -> Edit:
    """Sets the permissions, in octal."""
    return Edit("mode", path, mode)


def apply_edits(root: Path, edits: tuple[Edit, ...]) -> None:
    """Makes the edits, in order, to the files below a folder."""
    for edit in edits:
        _apply_edit(root, edit)


def _apply_edit(root: Path, edit: Edit) -> None:
    path = root / edit.path
    path.parent.mkdir(parents=True, exist_ok=True)
    match edit.verb:
        case "write":
            path.write_text(edit.text)
        case "append":
            old = path.read_text()
            path.write_text(old if old.endswith(edit.text) else old + edit.text)
        case "replace":
            _replace_text(path, edit)
        case "delete":
            path.unlink(missing_ok=True)
        case "rename" if path.exists():
            (root / edit.text).parent.mkdir(parents=True, exist_ok=True)
            path.rename(root / edit.text)
        case "symlink":
            path.unlink(missing_ok=True)
            os.symlink(edit.text, path)
        case "mode":
            path.chmod(int(edit.text, 8))


def _replace_text(path: Path, edit: Edit) -> None:
    old = path.read_text()
    count = old.count(edit.find)
    if count > 1 or (count == 0 and edit.text not in old):
        raise ValueError(f"{edit.path} has {count} times: {edit.find}")
    path.write_text(old.replace(edit.find, edit.text))


def script_edits(root: Path, edits: tuple[Edit, ...]) -> list[dict[str, str]] | None:
    """The edits as a script file says them, for the project below `root`; None if a script cannot say them."""
    entries: list[dict[str, str]] = []
    for edit in edits:
        match edit.verb:
            case "write" | "append":
                entries.append({edit.verb: edit.path, "text": edit.text})
            case "replace":
                entries.append({"replace": edit.path, "find": edit.find, "with": edit.text})
            case "delete":
                entries.append({"delete": edit.path})
            case "rename":
                contents = (root / edit.path).read_text()
                entries += [{"delete": edit.path}, {"write": edit.text, "text": contents}]
            case _:
                return None
    return entries


def coder_program(edits: tuple[Edit, ...]) -> str:
    """A program that makes the edits in its working directory and says that it is done."""
    calls = ",\n".join(f"    {edit!r}" for edit in edits)
    source = Path(__file__).read_text()
    return f'#!/usr/bin/env python3\n{source}\n\napply_edits(Path.cwd(), (\n{calls},\n))\nprint("Done.")\n'
