"""Rows as values: what the columns of a store hold when they are whole.

**Invariant:** a row that does not fit is a StoreBroken that names its run and its table; nothing in it is guessed.
"""

from collections.abc import Mapping
from types import NoneType
from typing import Any

import msgspec
from msgspec.structs import replace

from steersman.errors import StoreBroken
from steersman.ports.journal import UNFINISHED_STATUSES, BudgetRow, Gate, Head, InboxItem

TableColumns = Mapping[str, tuple[type, ...]]
StoreRow = tuple[Any, ...]

_TEXT_TYPES = (str,)
_NUMBER_TYPES = (int,)
_BYTES_TYPES = (bytes,)
_OPTIONAL_NUMBER_TYPES = (int, NoneType)
_DOCUMENT_TYPES = (bytes, str)
HEAD_COLUMNS: TableColumns = dict.fromkeys(
    ("run", "root", "parent", "machine", "definition", "title", "state", "status", "outcome"), _TEXT_TYPES
) | {
    "seq": _NUMBER_TYPES,
    "hash": _BYTES_TYPES,
    "epoch": _NUMBER_TYPES,
    "created": _NUMBER_TYPES,
    "at": _NUMBER_TYPES,
    "due": _OPTIONAL_NUMBER_TYPES,
}
GATE_COLUMNS: TableColumns = {
    "run": _TEXT_TYPES,
    "id": _TEXT_TYPES,
    "body": _DOCUMENT_TYPES,
    "digest": _TEXT_TYPES,
    "answer": _TEXT_TYPES,
    "person": _TEXT_TYPES,
}
INBOX_COLUMNS: TableColumns = {
    "run": _TEXT_TYPES,
    "id": _NUMBER_TYPES,
    "kind": _TEXT_TYPES,
    "body": _DOCUMENT_TYPES,
    "at": _NUMBER_TYPES,
}
BUDGET_COLUMNS: TableColumns = {
    "run": _TEXT_TYPES,
    "name": _TEXT_TYPES,
    "spent": _NUMBER_TYPES,
    "reserved": _NUMBER_TYPES,
    "bound": _OPTIONAL_NUMBER_TYPES,
}
HEAD_STATUSES = (*UNFINISHED_STATUSES, "done", "stopped")
BROKEN_STATUS = "broken"

_HEAD_TYPES_WITH_DUE = tuple(types[0] for types in HEAD_COLUMNS.values())
_VALID_HEAD_TYPES = ((*_HEAD_TYPES_WITH_DUE[:-1], NoneType), _HEAD_TYPES_WITH_DUE)
_decode_gate_json = msgspec.json.Decoder(Gate).decode
_decode_body_json = msgspec.json.Decoder(dict[str, Any]).decode


class RowBroken(StoreBroken):
    """One run's row does not hold what it should."""

    def __init__(self, table: str, run: Any, why: str) -> None:
        self.run, self.why = _run_name_text(run), f"its row in {table} cannot be read: {why}"
        super().__init__(
            f"run {self.run}: {self.why}; the other runs go on: see `steersman audit verify {self.run}`"
        )


def cast_text_columns(columns: TableColumns) -> str:
    """The same with every text as the bytes it is: some may not be UTF-8."""
    return ", ".join(f"CAST({c} AS BLOB) AS {c}" if kind == _TEXT_TYPES else c for c, kind in columns.items())


def decode_cast_row(columns: TableColumns, row: StoreRow) -> StoreRow:
    """A row of those: bytes stay where no text can be read."""
    return tuple(
        _decode_text_or_bytes(v) if kind == _TEXT_TYPES else v
        for v, kind in zip(row, columns.values(), strict=True)
    )


def _decode_text_or_bytes(value: bytes) -> str | bytes:
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value


def decode_head(row: StoreRow) -> Head:
    """One run's row."""
    if tuple(map(type, row)) not in _VALID_HEAD_TYPES:
        _refuse_wrong_types("head", HEAD_COLUMNS, row)
    if row[7] not in HEAD_STATUSES:
        raise RowBroken("head", row[0], f"no run is {row[7]!r}")
    values = list(row)
    values[10] = row[10].hex()
    return Head(*values)


def decode_listed_head(row: StoreRow) -> Head:
    """The same for a list: a row that does not fit is called broken, and the others go on."""
    try:
        return decode_head(row)
    except StoreBroken:
        values = [
            v if type(v) in kind else kind[0]() for v, kind in zip(row, HEAD_COLUMNS.values(), strict=True)
        ]
        values[0], values[7], values[10], values[14] = _run_name_text(row[0]), BROKEN_STATUS, "", None
        return Head(*values)


def decode_gate(row: StoreRow) -> Gate:
    """An open question; its columns count: an answer is held against them."""
    _refuse_wrong_types("gate", GATE_COLUMNS, row)
    run, _, body, digest, answer, person = row
    try:
        stored_gate = _decode_gate_json(body)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise RowBroken("gate", run, str(error)) from error
    if stored_gate.run != run:
        raise RowBroken("gate", run, f"it says that run {stored_gate.run} asks")
    return replace(stored_gate, digest=digest, answer=answer, person=person)


def decode_posted_event(row: StoreRow) -> InboxItem:
    """An external event."""
    _refuse_wrong_types("inbox", INBOX_COLUMNS, row)
    run, number, kind, body, at = row
    try:
        return InboxItem(number, run, kind, _decode_body_json(body), at)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise RowBroken("inbox", run, str(error)) from error


def decode_budget_row(row: StoreRow) -> BudgetRow:
    """One figure of a run's budget."""
    _refuse_wrong_types("budget", BUDGET_COLUMNS, row)
    return BudgetRow(*row[1:])


def decode_verdict(number: int, body: Any) -> dict[str, Any]:
    """What became of an external event."""
    try:
        return _decode_body_json(require_stored_bytes("inbox", str(number), body))
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise _unreadable_store_error(f"inbox {number}", str(error)) from error


def require_definition(digest: str, body: Any) -> bytes:
    """The definition of a machine as it was kept."""
    try:
        _decode_body_json(require_stored_bytes("definition", digest, body))
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise _unreadable_store_error(f"definition {digest}", str(error)) from error
    return bytes(body)


def require_stored_bytes(table: str, row_key: str, value: Any) -> bytes:
    """Bytes as they were kept."""
    if not isinstance(value, bytes):
        raise _unreadable_store_error(f"{table} {row_key}", f"it is {_describe_column_value(value)}")
    return value


def _refuse_wrong_types(table: str, columns: TableColumns, row: StoreRow) -> None:
    """StoreBroken for the first column that holds something else than it should."""
    for value, (column, kind) in zip(row, columns.items(), strict=True):
        if type(value) not in kind:
            raise RowBroken(table, row[0], f"{column} is {_describe_column_value(value)}")


def _unreadable_store_error(what: str, why: str) -> StoreBroken:
    return StoreBroken(
        f"{what} cannot be read ({why}): restore the store from a backup; `steersman audit verify` says which runs still fit"
    )


def _run_name_text(run: Any) -> str:
    return run if isinstance(run, str) else repr(run)


def _describe_column_value(value: Any) -> str:
    kinds = {str: "text", bytes: "bytes", int: "a number", float: "a fraction"}
    return kinds.get(type(value), "nothing")
