"""Every way to tamper with a run that the proof tries, as cases in a fixed order."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any, NamedTuple

import msgspec
from finished_run import FinishedRun
from msgspec import structs

from steersman.kernel.replay import apply_entry
from steersman.kernel.snapshot import Snapshot, state_hash
from steersman.kernel.tape import GENESIS_HASH, Entry, seal_entry
from steersman.ports.journal import Gate

PATTERNS = (0x01, 0x80)
ENTRY, HEAD, PAYLOAD = "run=? AND seq=?", "run=?", "root=? AND ref=?"
WIDTHS = (1, 2, 3, 4, 6, 8)  # the sizes in which SQLite stores an integer
NOBODY = range(0)  # no entry is to blame

Do = Callable[[], Any]  # may give back what undoes it where the transaction does not


class Case(NamedTuple):
    """One thing done to the store, and where the first bad entry must then be named."""

    kind: str
    do: Do
    expect: range
    asking: bool = False  # done to the run that waits for an answer


def cases(target: FinishedRun) -> Iterator[Case]:
    """All of them."""
    yield from _entry_flips(target)
    yield from _text_flips(target)
    yield from _rest_flips(target)
    yield from _anchor_flips(target)
    yield from _deletions(target)
    yield from _swaps(target)
    yield from _insertions(target)
    yield from _cuts(target)
    yield from _gone(target)
    yield from _types(target)
    yield from _gate_cases(target)


def at(seq: int) -> range:
    return range(seq, seq + 1)


# ── single bytes ────────────────────────────────────────────────────────────────────────────────────────────────────


def flips(data: bytes, patterns: tuple[int, ...] = PATTERNS) -> Iterator[bytes]:
    """The data with one byte changed: every position, every pattern."""
    for pattern in patterns:
        for n, byte in enumerate(data):
            yield data[:n] + bytes((byte ^ pattern,)) + data[n + 1 :]


def cell_flips(
    target: FinishedRun,
    kind: str,
    table: str,
    column: str,
    where: str,
    keys: tuple[Any, ...],
    value: Any,
    expect: range,
    patterns: tuple[int, ...] = PATTERNS,
) -> Iterator[Case]:
    """Flips of one column of one row, in the bytes that SQLite keeps for it."""
    match value:
        case bytes():
            changed: Iterator[Any] = flips(value, patterns)
            cast = "?"
        case str():
            changed, cast = flips(value.encode()), "CAST(? AS TEXT)"  # may be no UTF-8 any more
        case int():
            changed, cast = map(_number, flips(_as_stored(value))), "?"
        case _:
            changed, cast = iter((0, 1, "", b"")), "?"  # NULL has no byte: something in its place
    sql = f"UPDATE OR FAIL {table} SET {column}={cast} WHERE {where}"  # noqa: S608  constants of this file
    for new in changed:
        yield Case(kind, lambda new=new: target.db.execute(sql, (new, *keys)), expect)


def _as_stored(value: int) -> bytes:
    width = next(w for w in WIDTHS if -(2 ** (8 * w - 1)) <= value < 2 ** (8 * w - 1))
    return value.to_bytes(width, "big", signed=True)


def _number(data: bytes) -> int:
    return int.from_bytes(data, "big", signed=True)


def _entry_flips(target: FinishedRun) -> Iterator[Case]:
    for seq, body, hash_ in target.rows:
        keys = (target.run, seq)
        stored = (("body", body), ("hash", bytes.fromhex(hash_)), ("seq", seq), ("run", target.run))
        for column, value in stored:
            yield from cell_flips(
                target, f"flip entry.{column}", "entry", column, ENTRY, keys, value, at(seq)
            )


def _text_flips(target: FinishedRun) -> Iterator[Case]:
    for ref, data in target.texts.items():
        expect, keys = at(target.naming[ref]), (target.run, ref)
        if target.file_of(ref).exists():
            yield from _file_flips(target, ref, data, expect)
            stored: tuple[tuple[str, Any], ...] = ()
        else:
            stored = (("body", data),)
        for column, value in (*stored, ("ref", ref), ("root", target.run), ("size", len(data))):
            yield from cell_flips(
                target, f"flip payload.{column}", "payload", column, PAYLOAD, keys, value, expect
            )
    key = target.journal.key(target.run)
    for column, value in (("key", key), ("root", target.run)):
        yield from cell_flips(
            target, f"flip key.{column}", "payload_key", column, "root=?", (target.run,), value, at(1)
        )


def _file_flips(target: FinishedRun, ref: str, data: bytes, expect: range) -> Iterator[Case]:
    path = target.file_of(ref)

    def write(new: bytes) -> Do:
        path.write_bytes(new)
        return lambda: path.write_bytes(data)

    for new in flips(data, PATTERNS[:1]):
        yield Case("flip payload file", lambda new=new: write(new), expect)


def _rest_flips(target: FinishedRun) -> Iterator[Case]:
    seq, body = target.marked
    for column, value in (("body", body), ("seq", seq)):
        yield from cell_flips(
            target, f"flip snapshot.{column}", "snapshot", column, HEAD, (target.run,), value, NOBODY
        )
    for column in target.head.__struct_fields__:
        value = getattr(target.head, column)
        value = bytes.fromhex(value) if column == "hash" else value
        yield from cell_flips(
            target, f"flip head.{column}", "head", column, HEAD, (target.run,), value, NOBODY
        )
    yield from _budget_flips(target)
    name = target.head.definition
    stored = (("body", target.journal.definition(name)), ("digest", name))
    for column, value in stored:
        kind = f"flip definition.{column}"
        yield from cell_flips(
            target, kind, "definition", column, "digest=?", (name,), value, at(1), PATTERNS[:1]
        )


def _budget_flips(target: FinishedRun) -> Iterator[Case]:
    """What the run has spent of each figure; it had no limit, and nothing is reserved any more."""
    for row in target.journal.budget(target.run):
        stored = (("name", row.name), ("spent", row.spent), ("reserved", row.reserved), ("bound", row.limit))
        for column, value in stored:
            keys = (target.run, row.name)
            yield from cell_flips(
                target, f"flip budget.{column}", "budget", column, "run=? AND name=?", keys, value, NOBODY
            )


def _anchor_flips(target: FinishedRun) -> Iterator[Case]:
    """The newest anchor's line and the public key: noticed as a finding, or as an anchor that is no longer there."""
    lines = target.anchors.path.read_bytes()
    start = lines.rindex(b"\n", 0, -1) + 1
    public = target.anchors.path.with_name("anchor.pub")
    for path, kept, part in (
        (target.anchors.path, lines[:start], lines[start:]),
        (public, b"", public.read_bytes()),
    ):
        for new in flips(part):
            yield Case("flip anchor", lambda p=path, k=kept, o=part, n=new: _anchor(p, k + n, k + o), NOBODY)


def _anchor(path: Any, new: bytes, old: bytes) -> Do:
    path.write_bytes(new)
    return lambda: path.write_bytes(old)


# ── whole entries ───────────────────────────────────────────────────────────────────────────────────────────────────


def _deletions(target: FinishedRun) -> Iterator[Case]:
    for k, *_ in target.rows:
        yield Case("entry deleted", lambda k=k: _drop(target, k), at(k))
        yield Case(
            "entry deleted, rest moved up", lambda k=k: (_drop(target, k), _move(target, k, -1)), at(k)
        )
        yield Case(
            "entry deleted, rest and head forged",
            lambda k=k: forge(target, [*target.entries[: k - 1], *target.entries[k:]], k),
            range(k, target.anchored_after(k) + 1),
        )


def _swaps(target: FinishedRun) -> Iterator[Case]:
    for (k, body, hash_), (_, next_body, next_hash) in zip(target.rows, target.rows[1:], strict=False):
        pair = ((k, next_body, next_hash), (k + 1, body, hash_))
        yield Case("neighbours swapped", lambda p=pair: [_overwrite(target, *row) for row in p], at(k))
        order = [*target.entries[: k - 1], target.entries[k], target.entries[k - 1], *target.entries[k + 1 :]]
        yield Case(
            "neighbours swapped, rest and head forged",
            lambda o=order, k=k: forge(target, o, k),
            range(k, target.anchored_after(k) + 1),
        )


def _insertions(target: FinishedRun) -> Iterator[Case]:
    for (k, body, hash_), entry in zip(target.rows, target.entries, strict=True):
        made = seal_entry(_invented(entry, k + 1, hash_))
        yield Case("entry doubled", lambda k=k, b=body, h=hash_: _insert(target, k + 1, b, h), at(k + 1))
        yield Case("entry put in", lambda k=k, m=made: _insert(target, k + 1, m.body, m.hash), at(k + 1))
        if k < target.last:  # after the newest anchor anybody with the store may add: `unseen` says so
            order = [*target.entries[:k], made.entry, *target.entries[k:]]
            yield Case(
                "entry put in, rest and head forged",
                lambda o=order, k=k: forge(target, o, k + 1),
                range(k + 1, target.anchored_after(k + 1) + 1),
            )


def _cuts(target: FinishedRun) -> Iterator[Case]:
    for n in range(1, target.last):
        yield Case("tail cut", lambda n=n: _cut(target, n), at(n + 1))
        yield Case("tail cut, head forged", lambda n=n: cut_and_forge(target, n), at(n + 1))
    yield Case("tail cut, head forged", lambda: (_cut(target, 0), _no_head(target)), at(1))


def _gone(target: FinishedRun) -> Iterator[Case]:
    yield Case("head row deleted", lambda: _no_head(target), NOBODY)
    sql = "DELETE FROM payload WHERE root=? AND ref=?"
    for ref in target.texts:
        yield Case(
            "payload deleted", lambda r=ref: target.db.execute(sql, (target.run, r)), at(target.naming[ref])
        )
    yield Case("key deleted", lambda: target.db.execute("DELETE FROM payload_key"), at(1))
    yield Case("definition deleted", lambda: target.db.execute("DELETE FROM definition"), at(1))


def _types(target: FinishedRun) -> Iterator[Case]:
    """The same bytes as text: SQLite takes anything anywhere."""
    for seq, *_ in target.rows:
        sql = "UPDATE entry SET body=CAST(body AS TEXT) WHERE run=? AND seq=?"
        yield Case("blob made text", lambda s=seq, q=sql: target.db.execute(q, (target.run, s)), at(seq))


def _gate_cases(target: FinishedRun) -> Iterator[Case]:
    """The row of an open gate: every byte that anybody reads, the row itself, an answer that nobody has sent."""
    sql = "SELECT id, run, digest, body FROM gate WHERE run=?"
    [(id_, run, asked, body)] = target.db.execute(sql, (target.asking,)).fetchall()
    for column, value in (("id", id_), ("run", run), ("digest", asked)):
        for case in cell_flips(target, f"flip gate.{column}", "gate", column, "id=?", (id_,), value, NOBODY):
            yield case._replace(asking=True)
    for new in flips(body):
        if _gate(new) != _gate(body):
            sql = "UPDATE gate SET body=? WHERE id=?"
            yield Case(
                "flip gate.body", lambda n=new, q=sql: target.db.execute(q, (n, id_)), NOBODY, asking=True
            )
    for kind, sql in (
        ("gate deleted", "DELETE FROM gate WHERE id=?"),
        ("gate answered by hand", "UPDATE gate SET answer='approve', person='Ann' WHERE id=?"),
        ("gate signed by hand", "UPDATE gate SET person='Ann' WHERE id=?"),
    ):
        yield Case(kind, lambda q=sql: target.db.execute(q, (id_,)), NOBODY, asking=True)


def _gate(body: bytes) -> Any:
    """What is read of a row's body: three of its fields are columns, too, and those count."""
    try:
        return structs.replace(msgspec.json.decode(body, type=Gate), digest="", answer="", person="")
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return None


# ── how ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _drop(target: FinishedRun, seq: int) -> None:
    target.db.execute("DELETE FROM entry WHERE run=? AND seq=?", (target.run, seq))


def _move(target: FinishedRun, after: int, by: int) -> None:
    target.db.execute("UPDATE entry SET seq=-(seq+?) WHERE run=? AND seq>?", (by, target.run, after))
    target.db.execute("UPDATE entry SET seq=-seq WHERE run=? AND seq<0", (target.run,))


def _overwrite(target: FinishedRun, seq: int, body: bytes, hash_: str) -> None:
    target.db.execute("DELETE FROM entry WHERE run=? AND seq=?", (target.run, seq))
    sql = "INSERT INTO entry(run, seq, hash, body) VALUES(?, ?, ?, ?)"
    target.db.execute(sql, (target.run, seq, bytes.fromhex(hash_), body))


def _insert(target: FinishedRun, seq: int, body: bytes, hash_: str) -> None:
    _move(target, seq - 1, 1)
    _overwrite(target, seq, body, hash_)


def _cut(target: FinishedRun, n: int) -> None:
    target.db.execute("DELETE FROM entry WHERE run=? AND seq>?", (target.run, n))


def _no_head(target: FinishedRun) -> None:
    target.db.execute("DELETE FROM head WHERE run=?", (target.run,))
    target.db.execute("DELETE FROM snapshot WHERE run=?", (target.run,))


def cut_and_forge(target: FinishedRun, n: int) -> None:
    """The last entries gone, and head, snapshot, gates and budget as if they had never been."""
    _cut(target, n)
    _rewrite_head(target, target.states[n - 1])


def _rewrite_head(target: FinishedRun, snapshot: Snapshot) -> None:
    head = target.head_at(snapshot)
    target.db.execute("DELETE FROM snapshot WHERE run=?", (target.run,))
    values = [bytes.fromhex(head.hash) if f == "hash" else getattr(head, f) for f in head.__struct_fields__]
    target.db.execute(f"REPLACE INTO head VALUES({', '.join('?' * len(values))})", values)
    _rewrite_beside(target, snapshot)


def _rewrite_beside(target: FinishedRun, snapshot: Snapshot) -> None:
    """The rows of gates and budget as the snapshot gives them."""
    target.db.execute("DELETE FROM gate WHERE run=?", (target.run,))
    for item in (i for i in snapshot.items.values() if i.kind == "gate"):
        given = {
            name: item.input[name] for name in ("digest", "choices", "shown", "default") if name in item.input
        }
        opened = next(e.at for e in target.entries if any(i.id == item.id for i in e.planned))
        gate = {"id": item.id, "run": target.run, "job": item.job, "opened": opened, "due": item.due, **given}
        row = (item.id, target.run, given["digest"], msgspec.json.encode(gate))
        target.db.execute("INSERT INTO gate VALUES(?, ?, ?, ?, '', '')", row)
    target.db.execute("DELETE FROM budget WHERE run=?", (target.run,))
    for name, spent in snapshot.budget.items():
        target.db.execute("INSERT INTO budget VALUES(?, ?, ?, 0, NULL)", (target.run, name, spent))


def _invented(like: Entry, seq: int, prev: str) -> Entry:
    return Entry(run=like.run, seq=seq, at=like.at, kind="note", prev=prev, why="all is well")


def forge(target: FinishedRun, entries: list[Entry], start: int) -> None:
    """Writes another tape from an entry on, with every number, hash and seal computed anew, and the head to fit."""
    snapshot = target.states[start - 2] if start > 1 else None
    prev = target.rows[start - 2][2] if start > 1 else GENESIS_HASH
    _cut(target, start - 1)
    for seq, entry in enumerate(entries[start - 1 :], start):
        entry = _renewed(entry, seq, prev, snapshot)  # noqa: PLW2901  the same entry in its new place
        stored = seal_entry(entry)
        _overwrite(target, seq, stored.body, stored.hash)
        prev = stored.hash
        with suppress(Exception):  # a tape that cannot even be applied: verify has to say so
            snapshot = apply_entry(snapshot, entry, prev)
    if _whole(snapshot):
        _rewrite_head(target, structs.replace(snapshot, seq=len(entries), hash=prev))


def _renewed(entry: Entry, seq: int, prev: str, snapshot: Snapshot | None) -> Entry:
    new = structs.replace(entry, seq=seq, prev=prev, at=max(entry.at, snapshot.at if snapshot else 0))
    seal = entry.kind == "sealed" and _whole(snapshot)
    return structs.replace(new, state_hash=state_hash(snapshot)) if seal else new


def _whole(snapshot: Snapshot | None) -> bool:
    return snapshot is not None and isinstance(snapshot.context, dict)
