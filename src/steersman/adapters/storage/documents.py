"""Intents, policies and answers in files: JSON or YAML by content, read strictly and within bounds.

Sealing an intent changes the lines of its YAML that hold the checksum and the references, where they stand alone.

**Invariant:** no link is followed, nothing is read in part, and every refusal names file, line, field and fix.
"""

import errno
import os
import re
import stat
from collections.abc import Iterator
from typing import Any

from steersman.adapters.storage.durable_files import create_file, replace_file
from steersman.contracts.planning.documents import planning_document_schema
from steersman.errors import ContractError, UserError
from steersman.judges.planning.schema_errors import convert_unquoted_scalars
from steersman.judges.replies.strict_json import read_strict_json
from steersman.judges.text import printable_text
from steersman.ports.documents import MAX_DOCUMENT_BYTES, DocumentFormat, ParsedDocument

MAX_DOCUMENT_MEMBERS = 20_000

_OPEN_DOCUMENT = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC  # a pipe would make us wait
_UTF8_BOM = b"\xef\xbb\xbf"
_DOCUMENT_ERROR_POSITION = re.compile(r": line (\d+) column (\d+) \(char \d+\)$")
_NUMBER_IN_PROBLEM = re.compile(r"number (\S+)")
_DUPLICATE_KEY_PROBLEM = re.compile(r"(.*): duplicate key")
_CHECKSUM_LINE = re.compile(r"""(\s*["']?checksum["']?\s*:)\s*[^\s#]*(\s+#.*|\s*)""")
_LIST_ITEM_LINE = re.compile(r"(\s*-\s+)\S.*")
_LEADING_SPACE = re.compile(r"\s*")
LineEdit = tuple[int, int, list[str]]  # from which line, how many of them, what instead


class FileDocuments:
    """Implements ports.documents.Documents."""

    def read(self, path: str, name: str) -> ParsedDocument:
        return self.parse(_read_document_bytes(path), path, name)

    def parse(self, data: bytes, file: str, name: str) -> ParsedDocument:
        text = _decode_document(data, file)
        if text.lstrip()[:1] in ("{", "["):
            return _parse_json_document(text, file)
        return _parse_yaml_document(data, text, file, name)

    def replace_seal(self, was: ParsedDocument, value: Any, name: str) -> tuple[ParsedDocument, bool]:
        edited = (
            self._parse_again(reseal_intent_text(was, value), was, value, name)
            if was.form == "yaml"
            else None
        )
        document = edited or self._parse_again(self.render(value, was.form), was, value, name)
        if document is None:
            raise UserError(f"{was.file} cannot be written so that it reads the same; write it as JSON")
        return document, edited is not None or was.form == "json"

    def _parse_again(
        self, text: str, original: ParsedDocument, value: Any, name: str
    ) -> ParsedDocument | None:
        """The text read again, where it says what it should."""
        try:
            document = self.parse(text.encode(), original.file, name)
        except ContractError:
            return None
        return document if document.value == value else None

    def render(self, value: Any, form: DocumentFormat) -> str:
        if form == "json":
            import json

            return json.dumps(value, indent=2, ensure_ascii=False) + "\n"
        return _dump_plain_yaml(value)

    def write(self, path: str, text: str, *, new: bool) -> None:
        try:
            if new:
                create_file(path, text.encode(), 0o644)
            else:
                replace_file(path, text.encode(), stat.S_IMODE(os.lstat(path).st_mode))
        except FileExistsError:
            raise UserError(f"{path} is there already: name another file, or remove it") from None
        except OSError as error:
            raise UserError(f"cannot write {path}: {error.strerror}") from None


def _dump_plain_yaml(value: Any) -> str:
    import yaml  # not needed for JSON

    class Dumper(yaml.SafeDumper):
        def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002  PyYAML's
            return True

    text: str = yaml.dump(value, Dumper=Dumper, sort_keys=False, allow_unicode=True, width=10_000)
    return text


# ── bytes ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def _read_document_bytes(path: str) -> bytes:
    try:
        fd = os.open(path, _OPEN_DOCUMENT)
    except OSError as error:
        reason = "is a link; name the file itself" if error.errno == errno.ELOOP else error.strerror
        raise UserError(f"cannot read {path}: {reason}") from None
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise UserError(f"cannot read {path}: it is no file")
    with os.fdopen(fd, "rb") as file:
        return file.read(MAX_DOCUMENT_BYTES + 1)


def _decode_document(data: bytes, file: str) -> str:
    if len(data) > MAX_DOCUMENT_BYTES:
        raise _document_error(file, [(1, f"longer than {MAX_DOCUMENT_BYTES} bytes; make it smaller")])
    if data.startswith(_UTF8_BOM):
        raise _document_error(
            file, [(1, "begins with a byte order mark; save the file as UTF-8 without one")]
        )
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise _document_error(file, [(line, "not UTF-8; save the file as UTF-8")]) from None


# ── forms ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def _parse_yaml_document(data: bytes, text: str, file: str, name: str) -> ParsedDocument:
    from steersman.adapters.config.plain_yaml import read_plain_yaml

    try:
        document = read_plain_yaml(data, file)
    except UserError as error:
        raise ContractError(f"{error}; write plain YAML, or JSON", (str(error),)) from None
    value = convert_unquoted_scalars(document.value, planning_document_schema(name), document.unquoted_paths)
    return ParsedDocument(value, {(): 1, **document.lines}, "yaml", file, text)


def _parse_json_document(text: str, file: str) -> ParsedDocument:
    from steersman.adapters.config.plain_yaml import find_json_lines

    reading = read_strict_json(text, MAX_DOCUMENT_BYTES, MAX_DOCUMENT_MEMBERS)
    if reading.problems or reading.value is None:
        problems = [_locate_json_problem(text, problem) for problem in reading.problems]
        raise _document_error(file, problems or [(1, "a document is a group of fields")])
    return ParsedDocument(reading.value, {(): 1, **find_json_lines(text)}, "json", file, text)


def _locate_json_problem(text: str, problem: str) -> tuple[int, str]:
    """A reader's sentence about a text, with the line in front instead of behind."""
    message = problem.removeprefix("reply: ")
    position = _DOCUMENT_ERROR_POSITION.search(message)
    if position is not None:
        skipped = text[: len(text) - len(text.lstrip())].count("\n")
        return int(
            position[1]
        ) + skipped, f"{_DOCUMENT_ERROR_POSITION.sub('', message)} (column {position[2]})"
    if duplicate := _DUPLICATE_KEY_PROBLEM.fullmatch(message):
        offset = text.rfind(f'"{duplicate[1]}"')
    else:
        number = _NUMBER_IN_PROBLEM.match(message)
        offset = text.find(number[1].rstrip("…:")) if number else -1
    return text.count("\n", 0, max(offset, 0)) + 1, message


def _document_error(file: str, problems: list[tuple[int, str]]) -> ContractError:
    messages = tuple(f"{file}, line {line}: {printable_text(message)}" for line, message in sorted(problems))
    return ContractError("\n".join(messages), messages)


def reseal_intent_text(original: ParsedDocument, value: Any) -> str:
    """The YAML text with the references and the checksum of `value`, as far as both stand on lines of their own."""
    lines = original.text.split("\n")
    edits = (*_checksum_edits(lines, original, value), *_evidence_ref_edits(lines, original, value))
    # From below, so that lines keep their numbers.
    for start, count, replacement in sorted(edits, reverse=True):
        lines[start : start + count] = replacement
    return "\n".join(lines)


def _checksum_edits(lines: list[str], original: ParsedDocument, value: Any) -> Iterator[LineEdit]:
    checksum = value["audit"]["checksum"]
    line_number = original.lines.get(("audit", "checksum"))
    if line_number is not None:
        match = _CHECKSUM_LINE.fullmatch(lines[line_number - 1])
        if match:
            yield line_number - 1, 1, [f"{match[1]} {checksum}{match[2]}"]
        return
    members = [number for path, number in original.lines.items() if len(path) == 2 and path[0] == "audit"]
    if members:
        first_member = min(members) - 1
        indent = _LEADING_SPACE.match(lines[first_member])
        yield (
            first_member,
            0,
            [f"{indent[0] if indent else ''}checksum: {checksum}{_line_ending(lines[first_member])}"],
        )


def _evidence_ref_edits(lines: list[str], original: ParsedDocument, value: Any) -> Iterator[LineEdit]:
    old, new = original.value["evidence_refs"], value["evidence_refs"]
    ref_lines = [original.lines[("evidence_refs", n)] - 1 for n in range(len(old))]
    yield from ((line, 1, []) for line, ref in zip(ref_lines, old, strict=True) if ref not in new)
    item = _LIST_ITEM_LINE.fullmatch(lines[ref_lines[-1]]) if ref_lines else None
    if item:
        end = _line_ending(lines[ref_lines[-1]])
        yield ref_lines[-1] + 1, 0, [f"{item[1]}{ref}{end}" for ref in new if ref not in old]


def _line_ending(line: str) -> str:
    """What a line of this file ends with before its newline."""
    return "\r" if line.endswith("\r") else ""
