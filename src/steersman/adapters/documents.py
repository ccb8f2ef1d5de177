"""Intents, policies and answers in files: JSON or YAML by content, read strictly and within bounds.

**Invariant:** no link is followed, nothing is read in part, and every refusal names file, line, field and fix.
"""

import contextlib
import errno
import os
import re
import stat
from typing import Any

from steersman.adapters.sealing import resealed
from steersman.contracts.planning.documents import document_schema
from steersman.errors import ContractError, UserError
from steersman.judges.json_lines import json_lines
from steersman.judges.planning.schema import typed
from steersman.judges.strict_json import TOO_DEEP, read
from steersman.judges.text import printable
from steersman.ports.documents import MAX_BYTES, Form, Written

MAX_MEMBERS = 20_000

_OPEN = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC  # a pipe would make us wait
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_BOM = b"\xef\xbb\xbf"
_AT_LINE = re.compile(r": line (\d+) column (\d+) \(char \d+\)$")
_NUMBER = re.compile(r"number (\S+)")


class FileDocuments:
    """Implements ports.documents.Documents."""

    def read(self, path: str, name: str) -> Written:
        return self.parse(_bytes(path), path, name)

    def parse(self, data: bytes, file: str, name: str) -> Written:
        text = _text(data, file)
        if text.lstrip()[:1] in ("{", "["):
            return _json(text, file, name)
        return _yaml(data, text, file, name)

    def sealed(self, was: Written, value: Any, name: str) -> tuple[Written, bool]:
        kept = self._again(resealed(was, value), was, value, name) if was.form == "yaml" else None
        now = kept or self._again(self.render(value, was.form), was, value, name)
        if now is None:
            raise UserError(f"{was.file} cannot be written so that it reads the same; write it as JSON")
        return now, kept is not None or was.form == "json"

    def _again(self, text: str, was: Written, value: Any, name: str) -> Written | None:
        """The text read again, where it says what it should."""
        try:
            now = self.parse(text.encode(), was.file, name)
        except ContractError:
            return None
        return now if now.value == value else None

    def render(self, value: Any, form: Form) -> str:
        if form == "json":
            import json

            return json.dumps(value, indent=2, ensure_ascii=False) + "\n"
        return _as_yaml(value)

    def write(self, path: str, text: str, *, new: bool) -> None:
        try:
            _replace(path, text.encode(), new=new)
        except FileExistsError:
            raise UserError(f"{path} is there already: name another file, or remove it") from None
        except OSError as error:
            raise UserError(f"cannot write {path}: {error.strerror}") from None


def _as_yaml(value: Any) -> str:
    import yaml  # whoever has JSON needs none of it

    class Dumper(yaml.SafeDumper):
        def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002  PyYAML's
            return True

    told: str = yaml.dump(value, Dumper=Dumper, sort_keys=False, allow_unicode=True, width=10_000)
    return told


# ── bytes ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def _bytes(path: str) -> bytes:
    try:
        opened = os.open(path, _OPEN)
    except OSError as error:
        told = "is a link; name the file itself" if error.errno == errno.ELOOP else error.strerror
        raise UserError(f"cannot read {path}: {told}") from None
    if not stat.S_ISREG(os.fstat(opened).st_mode):
        os.close(opened)
        raise UserError(f"cannot read {path}: it is no file")
    with os.fdopen(opened, "rb") as file:
        return file.read(MAX_BYTES + 1)


def _text(data: bytes, file: str) -> str:
    if len(data) > MAX_BYTES:
        raise _refused(file, [(1, f"longer than {MAX_BYTES} bytes; make it smaller")])
    if data.startswith(_BOM):
        raise _refused(file, [(1, "begins with a byte order mark; save the file as UTF-8 without one")])
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise _refused(file, [(line, "not UTF-8; save the file as UTF-8")]) from None


def _replace(path: str, data: bytes, *, new: bool) -> None:
    mode = 0o644 if new else stat.S_IMODE(os.lstat(path).st_mode)
    part = os.path.join(os.path.dirname(path) or ".", f".{os.path.basename(path)}.{os.getpid()}.part")
    with contextlib.suppress(FileNotFoundError):
        os.unlink(part)
    with os.fdopen(os.open(part, _NEW, mode), "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    try:
        if new:
            os.link(part, path)  # unlike a rename, it never takes the place of another file
        else:
            os.replace(part, path)
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(part)


# ── forms ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def _yaml(data: bytes, text: str, file: str, name: str) -> Written:
    from steersman.adapters.plain_yaml import TooDeepError, read_yaml

    try:
        found = read_yaml(data, file)
    except TooDeepError as deep:
        raise _deep(file, text, name, (deep.levels, deep.line)) from None
    except UserError as error:
        raise ContractError(f"{error}; write plain YAML, or JSON", (str(error),)) from None
    value = typed(found.value, document_schema(name), found.bare)
    return Written(value, {(): 1, **found.lines}, "yaml", file, text)


def _json(text: str, file: str, name: str) -> Written:
    reading = read(text, MAX_BYTES, MAX_MEMBERS)
    if TOO_DEEP in reading.problems:
        from steersman.judges.planning.depth import json_depth

        raise _deep(file, text, name, json_depth(text))
    lines = json_lines(text)
    found = [(line, f"{path[-1]}: is given twice; keep one of them") for path, line in lines.repeated]
    found += [_told(text, p) for p in reading.problems if not p.endswith(": duplicate key")]
    if found or reading.value is None:
        raise _refused(file, found or [(1, "a document is a group of fields")])
    return Written(reading.value, {(): 1, **lines.lines}, "json", file, text)


def _deep(file: str, text: str, name: str, depth: tuple[int, int]) -> ContractError:
    """Nobody reads it, and yet what it seems to carry is not passed over in silence."""
    from steersman.judges.planning.depth import executing, too_deep

    levels, line = depth
    carried = executing(text) if name == "execution_intent" else ()
    return _refused(file, [(line, too_deep(levels)), *carried])


def _told(text: str, problem: str) -> tuple[int, str]:
    """A reader's sentence about a text, with the line in front instead of behind."""
    said = problem.removeprefix("reply: ")
    where = _AT_LINE.search(said)
    if where is not None:
        skipped = text[: len(text) - len(text.lstrip())].count("\n")
        return int(where[1]) + skipped, f"{_AT_LINE.sub('', said)} (column {where[2]})"
    number = _NUMBER.match(said)
    at = text.find(number[1].rstrip("…:")) if number else -1
    return text.count("\n", 0, max(at, 0)) + 1, said


def _refused(file: str, found: list[tuple[int, str]]) -> ContractError:
    told = tuple(f"{file}, line {line}: {printable(what)}" for line, what in sorted(found))
    return ContractError("\n".join(told), told)
