"""Rows as values: what the columns of a store hold when they are whole.

**Invariant:** a row that does not fit is a StoreBroken that names its run and its table; nothing in it is guessed.
"""

from collections.abc import Mapping
from types import NoneType
from typing import Any

import msgspec
from msgspec.structs import replace

from steersman.errors import StoreBroken
from steersman.ports.journal import UNFINISHED, BudgetRow, Gate, Head, Posted

Columns = Mapping[str, tuple[type, ...]]
Row = tuple[Any, ...]

_TEXT, _NUMBER, _BYTES, _MAYBE, _DOCUMENT = (str,), (int,), (bytes,), (int, NoneType), (bytes, str)
HEAD: Columns = dict.fromkeys(
    ("run", "root", "parent", "machine", "definition", "title", "state", "status", "outcome"), _TEXT
) | {"seq": _NUMBER, "hash": _BYTES, "epoch": _NUMBER, "created": _NUMBER, "at": _NUMBER, "due": _MAYBE}
GATE: Columns = {
    "run": _TEXT,
    "id": _TEXT,
    "body": _DOCUMENT,
    "digest": _TEXT,
    "answer": _TEXT,
    "person": _TEXT,
}
INBOX: Columns = {"run": _TEXT, "id": _NUMBER, "kind": _TEXT, "body": _DOCUMENT, "at": _NUMBER}
BUDGET: Columns = {"run": _TEXT, "name": _TEXT, "spent": _NUMBER, "reserved": _NUMBER, "bound": _MAYBE}
STATUSES = (*UNFINISHED, "done", "stopped")
BROKEN = "broken"

_DUE = tuple(types[0] for types in HEAD.values())
_WHOLE = ((*_DUE[:-1], NoneType), _DUE)
_gate = msgspec.json.Decoder(Gate).decode
_body = msgspec.json.Decoder(dict[str, Any]).decode


class RowBroken(StoreBroken):
    """One run's row does not hold what it should."""

    def __init__(self, table: str, run: Any, why: str) -> None:
        self.run, self.why = _name(run), f"its row in {table} cannot be read: {why}"
        super().__init__(
            f"run {self.run}: {self.why}; the other runs go on: see `steersman audit verify {self.run}`"
        )


def names(columns: Columns) -> str:
    """The columns, for a query."""
    return ", ".join(columns)


def undecoded(columns: Columns) -> str:
    """The same with every text as the bytes it is: some may not be UTF-8."""
    return ", ".join(f"CAST({c} AS BLOB) AS {c}" if kind == _TEXT else c for c, kind in columns.items())


def decoded(columns: Columns, row: Row) -> Row:
    """A row of those: bytes stay where no text can be read."""
    return tuple(_text(v) if kind == _TEXT else v for v, kind in zip(row, columns.values(), strict=True))


def _text(value: bytes) -> str | bytes:
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value


def head(row: Row) -> Head:
    """One run's row."""
    if tuple(map(type, row)) not in _WHOLE:
        _refuse("head", HEAD, row)
    if row[7] not in STATUSES:
        raise RowBroken("head", row[0], f"no run is {row[7]!r}")
    return Head(*row[:10], row[10].hex(), *row[11:])


def listed(row: Row) -> Head:
    """The same for a list: a row that does not fit is called broken, and the others go on."""
    try:
        return head(row)
    except StoreBroken:
        kept = [v if type(v) in kind else kind[0]() for v, kind in zip(row, HEAD.values(), strict=True)]
        kept[0], kept[7], kept[10], kept[14] = _name(row[0]), BROKEN, "", None
        return Head(*kept)


def gate(row: Row) -> Gate:
    """An open question; its columns count: an answer is held against them."""
    _refuse("gate", GATE, row)
    run, _, body, digest, answer, person = row
    try:
        found = _gate(body)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise RowBroken("gate", run, str(error)) from error
    if found.run != run:
        raise RowBroken("gate", run, f"it says that run {found.run} asks")
    return replace(found, digest=digest, answer=answer, person=person)


def posted(row: Row) -> Posted:
    """An external event."""
    _refuse("inbox", INBOX, row)
    run, number, kind, body, at = row
    try:
        return Posted(number, run, kind, _body(body), at)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise RowBroken("inbox", run, str(error)) from error


def budget(row: Row) -> BudgetRow:
    """One figure of a run's budget."""
    _refuse("budget", BUDGET, row)
    return BudgetRow(*row[1:])


def verdict(number: int, body: Any) -> dict[str, Any]:
    """What became of an external event."""
    try:
        return _body(binary("inbox", str(number), body))
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise _unreadable(f"inbox {number}", str(error)) from error


def document(table: str, of: str, body: Any) -> bytes:
    """A JSON object as it was kept."""
    try:
        _body(binary(table, of, body))
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise _unreadable(f"{table} {of}", str(error)) from error
    return bytes(body)


def binary(table: str, of: str, value: Any) -> bytes:
    """Bytes as they were kept."""
    if not isinstance(value, bytes):
        raise _unreadable(f"{table} {of}", f"it is {_kind(value)}")
    return value


def _refuse(table: str, columns: Columns, row: Row) -> None:
    """StoreBroken for the first column that holds something else than it should."""
    for value, (column, kind) in zip(row, columns.items(), strict=True):
        if type(value) not in kind:
            raise RowBroken(table, row[0], f"{column} is {_kind(value)}")


def _unreadable(what: str, why: str) -> StoreBroken:
    return StoreBroken(
        f"{what} cannot be read ({why}): restore the store from a backup; `steersman audit verify` says which runs still fit"
    )


def _name(run: Any) -> str:
    return run if isinstance(run, str) else repr(run)


def _kind(value: Any) -> str:
    kinds = {str: "text", bytes: "bytes", int: "a number", float: "a fraction"}
    return kinds.get(type(value), "nothing")
