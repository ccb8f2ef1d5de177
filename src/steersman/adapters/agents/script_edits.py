"""The edits of a script, made to real files below one directory.

**Invariant:** never outside the directory and never through a link: every part of a path is opened by itself,
without following.
"""

import contextlib
import errno
import os
import stat
from collections.abc import Iterator, Sequence

from steersman.contracts.agent import ProviderClass
from steersman.contracts.script import ScriptEdit

_OPEN_EDIT_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_OPEN_EDIT_FILE = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC  # without O_NONBLOCK a pipe would make us wait


class EditRefused(Exception):  # noqa: N818  an answer to the caller, not a fault of ours
    """An edit that cannot be made, with the provider class that says so."""

    def __init__(self, error_class: ProviderClass, message: str) -> None:
        super().__init__(message)
        self.error_class: ProviderClass = error_class


def edit_target(edit: ScriptEdit) -> tuple[str, str]:
    """What an edit does and to which path."""
    for verb in ("write", "append", "delete", "replace"):
        path = getattr(edit, verb)
        if path is not None:
            return verb, path
    raise EditRefused("provider_invalid_request", "an edit without write, append, delete or replace")


def edit_path_problem(path: str) -> str | None:
    """Why a path may not be edited, or None."""
    parts = path.split("/")
    if any(part in ("", ".", "..") for part in parts):
        return "is not a plain relative path below the working directory"
    if any(part.casefold() == ".git" for part in parts):
        return "is part of git's own files"
    if any(ord(c) < 32 or ord(c) == 127 for c in path) or any(len(p.encode()) > 255 for p in parts):
        return "is not a usable file name"
    return None


def apply_script_edits(root: str, edits: Sequence[ScriptEdit]) -> None:
    """Makes the edits in order; the first that cannot be made raises EditRefused, the ones before it stay."""
    with _closing_descriptor(os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)) as top:
        for edit in edits:
            verb, path = edit_target(edit)
            if (reason := edit_path_problem(path)) is not None:
                raise EditRefused("provider_permission_denied", f"{path!r} {reason}")
            try:
                _apply_script_edit(top, verb, path, edit)
            except OSError as error:
                raise _edit_refusal(path, error) from None


def _apply_script_edit(top: int, verb: str, path: str, edit: ScriptEdit) -> None:
    *directories, name = path.split("/")
    with _open_edit_directory(top, directories, make=verb in ("write", "append")) as directory:
        match verb:
            case "delete":
                os.unlink(name, dir_fd=directory)
            case "write":
                _overwrite_edited_file(directory, name, os.O_WRONLY | os.O_CREAT, edit.text or "")
            case "append":
                _append_edit_text(directory, name, edit.text or "")
            case _:
                _replace_edit_text(directory, name, path, edit)


def _overwrite_edited_file(directory: int, name: str, flags: int, text: str) -> None:
    with _open_edited_file(directory, name, flags) as file:
        os.ftruncate(file, 0)  # only now that it is known to be a file
        _write_edit_text(file, text)


def _append_edit_text(directory: int, name: str, text: str) -> None:
    with _open_edited_file(directory, name, os.O_WRONLY | os.O_CREAT | os.O_APPEND) as file:
        _write_edit_text(file, text)


def _replace_edit_text(directory: int, name: str, path: str, edit: ScriptEdit) -> None:
    with _open_edited_file(directory, name, os.O_RDONLY) as file, os.fdopen(os.dup(file), "rb") as reader:
        old = reader.read().decode("utf-8", "surrogateescape")
    find = edit.find or ""
    if old.count(find) != 1 or not find:
        raise EditRefused(
            "provider_invalid_request", f"{path!r}: the text to replace is there {old.count(find)} times"
        )
    _overwrite_edited_file(directory, name, os.O_WRONLY, old.replace(find, edit.with_ or ""))


def _write_edit_text(file: int, text: str) -> None:
    with os.fdopen(os.dup(file), "wb") as writer:
        writer.write(text.encode("utf-8", "surrogateescape"))


@contextlib.contextmanager
def _open_edit_directory(top: int, names: Sequence[str], *, make: bool) -> Iterator[int]:
    with contextlib.ExitStack() as stack:
        current = top
        for name in names:
            if make:
                with contextlib.suppress(FileExistsError):
                    os.mkdir(name, dir_fd=current)
            current = stack.enter_context(
                _closing_descriptor(os.open(name, _OPEN_EDIT_DIRECTORY, dir_fd=current))
            )
        yield current


@contextlib.contextmanager
def _open_edited_file(directory: int, name: str, flags: int) -> Iterator[int]:
    with _closing_descriptor(os.open(name, flags | _OPEN_EDIT_FILE, 0o644, dir_fd=directory)) as file:
        if not stat.S_ISREG(os.fstat(file).st_mode):
            raise OSError(errno.ENXIO, "not a regular file")
        yield file


@contextlib.contextmanager
def _closing_descriptor(descriptor: int) -> Iterator[int]:
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _edit_refusal(path: str, error: OSError) -> EditRefused:
    """A missing file is a mistake of the script; links, devices and rights are a denial."""
    is_missing = error.errno in (errno.ENOENT, errno.EISDIR)
    error_class: ProviderClass = "provider_invalid_request" if is_missing else "provider_permission_denied"
    return EditRefused(error_class, f"{path!r}: {error.strerror}; links are not followed")
