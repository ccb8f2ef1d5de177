"""Every way to tamper with a run that the proof tries, as cases in a fixed order."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any, NamedTuple

import msgspec
from msgspec import structs
from ship import Ship

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


def cases(ship: Ship) -> Iterator[Case]:
    """All of them."""
    yield from _entry_flips(ship)
    yield from _text_flips(ship)
    yield from _rest_flips(ship)
    yield from _anchor_flips(ship)
    yield from _deletions(ship)
    yield from _swaps(ship)
    yield from _insertions(ship)
    yield from _cuts(ship)
    yield from _gone(ship)
    yield from _types(ship)
    yield from _gate_cases(ship)


def at(seq: int) -> range:
    return range(seq, seq + 1)


# ── single bytes ────────────────────────────────────────────────────────────────────────────────────────────────────


def flips(data: bytes, patterns: tuple[int, ...] = PATTERNS) -> Iterator[bytes]:
    """The data with one byte changed: every position, every pattern."""
    for pattern in patterns:
        for n, byte in enumerate(data):
            yield data[:n] + bytes((byte ^ pattern,)) + data[n + 1 :]


def cell_flips(
    ship: Ship,
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
        yield Case(kind, lambda new=new: ship.db.execute(sql, (new, *keys)), expect)


def _as_stored(value: int) -> bytes:
    width = next(w for w in WIDTHS if -(2 ** (8 * w - 1)) <= value < 2 ** (8 * w - 1))
    return value.to_bytes(width, "big", signed=True)


def _number(data: bytes) -> int:
    return int.from_bytes(data, "big", signed=True)


def _entry_flips(ship: Ship) -> Iterator[Case]:
    for seq, body, hash_ in ship.rows:
        keys = (ship.run, seq)
        stored = (("body", body), ("hash", bytes.fromhex(hash_)), ("seq", seq), ("run", ship.run))
        for column, value in stored:
            yield from cell_flips(ship, f"flip entry.{column}", "entry", column, ENTRY, keys, value, at(seq))


def _text_flips(ship: Ship) -> Iterator[Case]:
    for ref, data in ship.texts.items():
        expect, keys = at(ship.naming[ref]), (ship.run, ref)
        if ship.file_of(ref).exists():
            yield from _file_flips(ship, ref, data, expect)
            stored: tuple[tuple[str, Any], ...] = ()
        else:
            stored = (("body", data),)
        for column, value in (*stored, ("ref", ref), ("root", ship.run), ("size", len(data))):
            yield from cell_flips(
                ship, f"flip payload.{column}", "payload", column, PAYLOAD, keys, value, expect
            )
    key = ship.journal.key(ship.run)
    for column, value in (("key", key), ("root", ship.run)):
        yield from cell_flips(
            ship, f"flip key.{column}", "payload_key", column, "root=?", (ship.run,), value, at(1)
        )


def _file_flips(ship: Ship, ref: str, data: bytes, expect: range) -> Iterator[Case]:
    path = ship.file_of(ref)

    def write(new: bytes) -> Do:
        path.write_bytes(new)
        return lambda: path.write_bytes(data)

    for new in flips(data, PATTERNS[:1]):
        yield Case("flip payload file", lambda new=new: write(new), expect)


def _rest_flips(ship: Ship) -> Iterator[Case]:
    seq, body = ship.marked
    for column, value in (("body", body), ("seq", seq)):
        yield from cell_flips(
            ship, f"flip snapshot.{column}", "snapshot", column, HEAD, (ship.run,), value, NOBODY
        )
    for column in ship.head.__struct_fields__:
        value = getattr(ship.head, column)
        value = bytes.fromhex(value) if column == "hash" else value
        yield from cell_flips(ship, f"flip head.{column}", "head", column, HEAD, (ship.run,), value, NOBODY)
    yield from _budget_flips(ship)
    name = ship.head.definition
    stored = (("body", ship.journal.definition(name)), ("digest", name))
    for column, value in stored:
        kind = f"flip definition.{column}"
        yield from cell_flips(
            ship, kind, "definition", column, "digest=?", (name,), value, at(1), PATTERNS[:1]
        )


def _budget_flips(ship: Ship) -> Iterator[Case]:
    """What the run has spent of each figure; it had no limit, and nothing is reserved any more."""
    for row in ship.journal.budget(ship.run):
        stored = (("name", row.name), ("spent", row.spent), ("reserved", row.reserved), ("bound", row.limit))
        for column, value in stored:
            keys = (ship.run, row.name)
            yield from cell_flips(
                ship, f"flip budget.{column}", "budget", column, "run=? AND name=?", keys, value, NOBODY
            )


def _anchor_flips(ship: Ship) -> Iterator[Case]:
    """The newest anchor's line and the public key: noticed as a finding, or as an anchor that is no longer there."""
    lines = ship.anchors.path.read_bytes()
    start = lines.rindex(b"\n", 0, -1) + 1
    public = ship.anchors.path.with_name("anchor.pub")
    for path, kept, part in (
        (ship.anchors.path, lines[:start], lines[start:]),
        (public, b"", public.read_bytes()),
    ):
        for new in flips(part):
            yield Case("flip anchor", lambda p=path, k=kept, o=part, n=new: _anchor(p, k + n, k + o), NOBODY)


def _anchor(path: Any, new: bytes, old: bytes) -> Do:
    path.write_bytes(new)
    return lambda: path.write_bytes(old)


# ── whole entries ───────────────────────────────────────────────────────────────────────────────────────────────────


def _deletions(ship: Ship) -> Iterator[Case]:
    for k, *_ in ship.rows:
        yield Case("entry deleted", lambda k=k: _drop(ship, k), at(k))
        yield Case("entry deleted, rest moved up", lambda k=k: (_drop(ship, k), _move(ship, k, -1)), at(k))
        yield Case(
            "entry deleted, rest and head forged",
            lambda k=k: forge(ship, [*ship.entries[: k - 1], *ship.entries[k:]], k),
            range(k, ship.anchored_after(k) + 1),
        )


def _swaps(ship: Ship) -> Iterator[Case]:
    for (k, body, hash_), (_, next_body, next_hash) in zip(ship.rows, ship.rows[1:], strict=False):
        pair = ((k, next_body, next_hash), (k + 1, body, hash_))
        yield Case("neighbours swapped", lambda p=pair: [_overwrite(ship, *row) for row in p], at(k))
        order = [*ship.entries[: k - 1], ship.entries[k], ship.entries[k - 1], *ship.entries[k + 1 :]]
        yield Case(
            "neighbours swapped, rest and head forged",
            lambda o=order, k=k: forge(ship, o, k),
            range(k, ship.anchored_after(k) + 1),
        )


def _insertions(ship: Ship) -> Iterator[Case]:
    for (k, body, hash_), entry in zip(ship.rows, ship.entries, strict=True):
        made = seal_entry(_invented(entry, k + 1, hash_))
        yield Case("entry doubled", lambda k=k, b=body, h=hash_: _insert(ship, k + 1, b, h), at(k + 1))
        yield Case("entry put in", lambda k=k, m=made: _insert(ship, k + 1, m.body, m.hash), at(k + 1))
        if k < ship.last:  # after the newest anchor anybody with the store may add: `unseen` says so
            order = [*ship.entries[:k], made.entry, *ship.entries[k:]]
            yield Case(
                "entry put in, rest and head forged",
                lambda o=order, k=k: forge(ship, o, k + 1),
                range(k + 1, ship.anchored_after(k + 1) + 1),
            )


def _cuts(ship: Ship) -> Iterator[Case]:
    for n in range(1, ship.last):
        yield Case("tail cut", lambda n=n: _cut(ship, n), at(n + 1))
        yield Case("tail cut, head forged", lambda n=n: cut_and_forge(ship, n), at(n + 1))
    yield Case("tail cut, head forged", lambda: (_cut(ship, 0), _no_head(ship)), at(1))


def _gone(ship: Ship) -> Iterator[Case]:
    yield Case("head row deleted", lambda: _no_head(ship), NOBODY)
    sql = "DELETE FROM payload WHERE root=? AND ref=?"
    for ref in ship.texts:
        yield Case("payload deleted", lambda r=ref: ship.db.execute(sql, (ship.run, r)), at(ship.naming[ref]))
    yield Case("key deleted", lambda: ship.db.execute("DELETE FROM payload_key"), at(1))
    yield Case("definition deleted", lambda: ship.db.execute("DELETE FROM definition"), at(1))


def _types(ship: Ship) -> Iterator[Case]:
    """The same bytes as text: SQLite takes anything anywhere."""
    for seq, *_ in ship.rows:
        sql = "UPDATE entry SET body=CAST(body AS TEXT) WHERE run=? AND seq=?"
        yield Case("blob made text", lambda s=seq, q=sql: ship.db.execute(q, (ship.run, s)), at(seq))


def _gate_cases(ship: Ship) -> Iterator[Case]:
    """The row of an open gate: every byte that anybody reads, the row itself, an answer that nobody has sent."""
    sql = "SELECT id, run, digest, body FROM gate WHERE run=?"
    [(id_, run, asked, body)] = ship.db.execute(sql, (ship.asking,)).fetchall()
    for column, value in (("id", id_), ("run", run), ("digest", asked)):
        for case in cell_flips(ship, f"flip gate.{column}", "gate", column, "id=?", (id_,), value, NOBODY):
            yield case._replace(asking=True)
    for new in flips(body):
        if _gate(new) != _gate(body):
            sql = "UPDATE gate SET body=? WHERE id=?"
            yield Case(
                "flip gate.body", lambda n=new, q=sql: ship.db.execute(q, (n, id_)), NOBODY, asking=True
            )
    for kind, sql in (
        ("gate deleted", "DELETE FROM gate WHERE id=?"),
        ("gate answered by hand", "UPDATE gate SET answer='approve', person='Ann' WHERE id=?"),
        ("gate signed by hand", "UPDATE gate SET person='Ann' WHERE id=?"),
    ):
        yield Case(kind, lambda q=sql: ship.db.execute(q, (id_,)), NOBODY, asking=True)


def _gate(body: bytes) -> Any:
    """What is read of a row's body: three of its fields are columns, too, and those count."""
    try:
        return structs.replace(msgspec.json.decode(body, type=Gate), digest="", answer="", person="")
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return None


# ── how ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _drop(ship: Ship, seq: int) -> None:
    ship.db.execute("DELETE FROM entry WHERE run=? AND seq=?", (ship.run, seq))


def _move(ship: Ship, after: int, by: int) -> None:
    ship.db.execute("UPDATE entry SET seq=-(seq+?) WHERE run=? AND seq>?", (by, ship.run, after))
    ship.db.execute("UPDATE entry SET seq=-seq WHERE run=? AND seq<0", (ship.run,))


def _overwrite(ship: Ship, seq: int, body: bytes, hash_: str) -> None:
    ship.db.execute("DELETE FROM entry WHERE run=? AND seq=?", (ship.run, seq))
    sql = "INSERT INTO entry(run, seq, hash, body) VALUES(?, ?, ?, ?)"
    ship.db.execute(sql, (ship.run, seq, bytes.fromhex(hash_), body))


def _insert(ship: Ship, seq: int, body: bytes, hash_: str) -> None:
    _move(ship, seq - 1, 1)
    _overwrite(ship, seq, body, hash_)


def _cut(ship: Ship, n: int) -> None:
    ship.db.execute("DELETE FROM entry WHERE run=? AND seq>?", (ship.run, n))


def _no_head(ship: Ship) -> None:
    ship.db.execute("DELETE FROM head WHERE run=?", (ship.run,))
    ship.db.execute("DELETE FROM snapshot WHERE run=?", (ship.run,))


def cut_and_forge(ship: Ship, n: int) -> None:
    """The last entries gone, and head, snapshot, gates and budget as if they had never been."""
    _cut(ship, n)
    _rewrite_head(ship, ship.states[n - 1])


def _rewrite_head(ship: Ship, snapshot: Snapshot) -> None:
    head = ship.head_at(snapshot)
    ship.db.execute("DELETE FROM snapshot WHERE run=?", (ship.run,))
    values = [bytes.fromhex(head.hash) if f == "hash" else getattr(head, f) for f in head.__struct_fields__]
    ship.db.execute(f"REPLACE INTO head VALUES({', '.join('?' * len(values))})", values)
    _rewrite_beside(ship, snapshot)


def _rewrite_beside(ship: Ship, snapshot: Snapshot) -> None:
    """The rows of gates and budget as the snapshot gives them."""
    ship.db.execute("DELETE FROM gate WHERE run=?", (ship.run,))
    for item in (i for i in snapshot.items.values() if i.kind == "gate"):
        given = {
            name: item.input[name] for name in ("digest", "choices", "shown", "default") if name in item.input
        }
        opened = next(e.at for e in ship.entries if any(i.id == item.id for i in e.planned))
        gate = {"id": item.id, "run": ship.run, "job": item.job, "opened": opened, "due": item.due, **given}
        row = (item.id, ship.run, given["digest"], msgspec.json.encode(gate))
        ship.db.execute("INSERT INTO gate VALUES(?, ?, ?, ?, '', '')", row)
    ship.db.execute("DELETE FROM budget WHERE run=?", (ship.run,))
    for name, spent in snapshot.budget.items():
        ship.db.execute("INSERT INTO budget VALUES(?, ?, ?, 0, NULL)", (ship.run, name, spent))


def _invented(like: Entry, seq: int, prev: str) -> Entry:
    return Entry(run=like.run, seq=seq, at=like.at, kind="note", prev=prev, why="all is well")


def forge(ship: Ship, entries: list[Entry], start: int) -> None:
    """Writes another tape from an entry on, with every number, hash and seal computed anew, and the head to fit."""
    snapshot = ship.states[start - 2] if start > 1 else None
    prev = ship.rows[start - 2][2] if start > 1 else GENESIS_HASH
    _cut(ship, start - 1)
    for seq, entry in enumerate(entries[start - 1 :], start):
        entry = _renewed(entry, seq, prev, snapshot)  # noqa: PLW2901  the same entry in its new place
        stored = seal_entry(entry)
        _overwrite(ship, seq, stored.body, stored.hash)
        prev = stored.hash
        with suppress(Exception):  # a tape that cannot even be applied: verify has to say so
            snapshot = apply_entry(snapshot, entry, prev)
    if _whole(snapshot):
        _rewrite_head(ship, structs.replace(snapshot, seq=len(entries), hash=prev))


def _renewed(entry: Entry, seq: int, prev: str, snapshot: Snapshot | None) -> Entry:
    new = structs.replace(entry, seq=seq, prev=prev, at=max(entry.at, snapshot.at if snapshot else 0))
    seal = entry.kind == "sealed" and _whole(snapshot)
    return structs.replace(new, state_hash=state_hash(snapshot)) if seal else new


def _whole(snapshot: Snapshot | None) -> bool:
    return snapshot is not None and isinstance(snapshot.context, dict)
