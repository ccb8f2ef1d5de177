"""The store on disk: its settings, its syncs, its migrations, and files that are not what they should be."""

import os
import shutil
import subprocess
import sys
import threading
from importlib.resources import files
from pathlib import Path

import apsw
import pytest
from tests.support.faulty_disks import CountingVFS, FailingVFS

from steersman.adapters.storage.sqlite import connection
from steersman.adapters.storage.sqlite.connection import (
    GROWN_WAL_BYTES,
    STORE_APPLICATION_ID,
    STORE_SCHEMA_VERSION,
)
from steersman.adapters.storage.sqlite.reader import SqliteJournalReader
from steersman.adapters.storage.sqlite.store import SqliteJournal
from steersman.errors import JournalError, StaleError, StoreBroken, StoreFull
from steersman.ports.journal import Spend
from steersman.testing.journal_samples import SAMPLE_RUN, SAMPLE_TIME, sample_batch, sample_entry, sample_gate


@pytest.fixture
def path(tmp_path):
    return tmp_path / "state" / "store.db"


@pytest.fixture
def open_store():
    """Opens stores and closes them afterwards."""
    stores = []

    def open_store(path, **more):
        stores.append(SqliteJournal(path, **more))
        return stores[-1]

    yield open_store
    for store in stores:
        store.close()


# ── settings and syncs ────────────────────────────────────────────────────────────────────────────────────────────────


def test_both_connections_are_durable(open_store, path):
    """WAL, and FULL (macOS's own too): a commit is on the disk before it is acknowledged; no schema is trusted."""
    store = open_store(path)
    for db in (store._write, store._reader):
        assert (db.pragma("journal_mode"), db.pragma("synchronous")) == ("wal", 2)
        assert (db.pragma("fullfsync"), db.pragma("trusted_schema")) == (1, 0)
    assert store._write.pragma("application_id") == STORE_APPLICATION_ID
    assert store._write.pragma("user_version") == STORE_SCHEMA_VERSION
    assert store._write.pragma("integrity_check") == "ok"


def test_a_lone_append_is_one_sync(open_store, path):
    """Between two checkpoints every append, post and answer syncs the WAL once, and nothing else is synced."""
    disk = CountingVFS()
    store = open_store(path, vfs=disk.name)
    store.append(sample_batch(gates=(sample_gate(),)))
    disk.deeds.clear()
    for n in range(2, 102):
        store.append(
            sample_batch(
                seq=n, payloads=((f"p-{n}", b"x" * 300),), spends=(Spend(SAMPLE_RUN, "ms", spent=1),)
            )
        )
        assert disk.syncs == n - 1
    store.post(SAMPLE_RUN, "event", {}, SAMPLE_TIME)
    store.answer(sample_gate().id, "tree", {"choice": "approve"}, SAMPLE_TIME)
    assert disk.syncs == 102
    assert disk.deeds["sync", "wal"] == 102


def test_reading_syncs_nothing(open_store, path):
    """Whoever looks leaves the disk alone."""
    disk = CountingVFS()
    store = open_store(path, vfs=disk.name)
    store.append(sample_batch())
    store.pending(SAMPLE_RUN)  # opens the second connection
    disk.deeds.clear()
    assert (store.head(SAMPLE_RUN).seq, len(list(store.rows(SAMPLE_RUN))), len(store.heads())) == (1, 1, 1)
    assert disk.deeds == {}


def test_a_large_payload_costs_no_second_commit(open_store, path):
    """It is a file, complete before the commit that names it; the commit is one sync as ever."""
    disk = CountingVFS()
    store = open_store(path, vfs=disk.name)
    store.append(sample_batch())
    disk.deeds.clear()
    store.append(sample_batch(seq=2, payloads=(("p-1", b"x" * 1_000_000),)))
    assert disk.syncs == 1
    assert (path.parent / "payloads" / SAMPLE_RUN / "p-1").stat().st_size == 1_000_000


def test_a_group_is_one_sync(open_store, path):
    """64 batches that wait together are committed together."""
    disk = CountingVFS()
    store = open_store(path, vfs=disk.name)
    told = threading.Semaphore(0)
    store.submit(sample_batch("first"), lambda _: told.release())
    told.acquire()
    disk.deeds.clear()
    with store._lock:  # the writer waits here while the queue fills
        for n in range(64):
            store.submit(sample_batch(f"r{n:02}"), lambda _: told.release())
    for _ in range(64):
        assert told.acquire(timeout=60)
    assert disk.syncs <= 3
    assert len(store.heads()) == 65


def test_the_wal_is_recycled(open_store, path):
    """It is grown when the store is made and stays that size over 10,000 appends; so do its pages in the file."""
    disk = CountingVFS()
    store = open_store(path, vfs=disk.name)
    wal = Path(f"{path}-wal")
    size = wal.stat().st_size
    assert size >= GROWN_WAL_BYTES
    store._write.execute("PRAGMA synchronous=OFF")  # 10,000 real syncs prove nothing more about the size
    store.append(sample_batch())
    for n in range(2, 10_001):
        store.append(sample_batch(seq=n))
    assert wal.stat().st_size == size
    store.close()
    assert wal.stat().st_size == size, "closing leaves it for the next process"


# ── schema ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def old_store(path, version):
    """A store as an earlier schema wrote it."""
    path.parent.mkdir(parents=True)
    db = apsw.Connection(str(path))
    db.execute("PRAGMA journal_mode=WAL")
    for step in range(1, version + 1):
        db.execute(files("steersman.adapters.storage.sqlite").joinpath(f"sql/{step:03}.sql").read_text())
    db.execute(f"PRAGMA user_version={version}; PRAGMA application_id={STORE_APPLICATION_ID}")
    return db


@pytest.mark.parametrize("version", range(1, STORE_SCHEMA_VERSION))
def test_an_older_store_is_taken_forward(open_store, path, version):
    """A store of an earlier schema keeps every run and gets what came since."""
    db = old_store(path, version)
    seq, body, hash_ = sample_entry(SAMPLE_RUN, 1)
    row = (
        SAMPLE_RUN, SAMPLE_RUN, "", "roundtable", "d1", "t", "plan", "working", "", 1, bytes.fromhex(hash_),
        1, SAMPLE_TIME, SAMPLE_TIME, None,
    )  # fmt: skip
    db.execute(f"INSERT INTO head VALUES({','.join('?' * len(row))})", row)
    db.execute("INSERT INTO entry VALUES(?, ?, ?, ?)", (SAMPLE_RUN, seq, bytes.fromhex(hash_), body))
    db.close()
    store = open_store(path)
    assert store._write.pragma("user_version") == STORE_SCHEMA_VERSION
    assert list(store.rows(SAMPLE_RUN)) == [sample_entry(SAMPLE_RUN, 1)]
    store.append(sample_batch(seq=2))
    store.quarantine(SAMPLE_RUN, "of schema 2")
    assert (store.head(SAMPLE_RUN).seq, store.quarantined()) == (2, {SAMPLE_RUN: "of schema 2"})


def test_an_interrupted_migration_leaves_the_old_store(open_store, path):
    """A migration is one transaction: when its disk fails in the middle, the old schema is still there and whole."""
    old_store(path, 1).close()
    disk = FailingVFS()
    disk.fail("write", 4, "io")
    with pytest.raises(StoreFull):
        open_store(path, vfs=disk.name)
    db = apsw.Connection(str(path))
    assert db.pragma("user_version") == 1
    assert db.pragma("integrity_check") == "ok"
    db.close()
    assert open_store(path)._write.pragma("user_version") == STORE_SCHEMA_VERSION


def test_a_newer_store_is_refused(open_store, path):
    """It is not touched, and the way out is named."""
    open_store(path).append(sample_batch())
    open_store(path)._write.execute(f"PRAGMA user_version={STORE_SCHEMA_VERSION + 1}")
    with pytest.raises(
        StoreBroken, match=rf"newer steersman \(schema {STORE_SCHEMA_VERSION + 1}.*: upgrade steersman"
    ):
        open_store(path)


@pytest.mark.parametrize("version", [0, 1, STORE_SCHEMA_VERSION, STORE_SCHEMA_VERSION + 1])
def test_a_foreign_database_is_refused(open_store, path, version):
    """Somebody else's file is left as it is, whatever version it gives itself."""
    path.parent.mkdir(parents=True)
    db = apsw.Connection(str(path))
    db.execute(f"CREATE TABLE bookmarks(url); PRAGMA user_version={version}")
    db.close()
    before = path.read_bytes()[100:]
    with pytest.raises(StoreBroken, match="not one of steersman's: move it away"):
        open_store(path)
    assert path.read_bytes()[100:] == before


# ── files that are not what they should be ────────────────────────────────────────────────────────────────────────────


def filled(path, runs=40):
    """A store with many runs on many pages, closed and written back, without its WAL."""
    store = SqliteJournal(path)
    for n in range(runs):
        store.append(sample_batch(f"r{n:02}", payloads=((f"p-{n}", b"x" * 3_000),)))
    store._write.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
    store.close()
    for suffix in ("-wal", "-shm"):
        Path(f"{path}{suffix}").unlink(missing_ok=True)
    return path


def test_random_bytes_are_no_store(open_store, path):
    """The message says what to do; the file is left alone."""
    path.parent.mkdir(parents=True)
    path.write_bytes(os.urandom(50_000))
    with pytest.raises(
        StoreBroken, match=r"cannot be read .*`steersman doctor`, or restore it from a backup"
    ):
        open_store(path)
    assert path.stat().st_size == 50_000


def test_an_emptied_store_is_noticed(open_store, path):
    """A file that was cut to nothing beside its WAL is never taken for a new store."""
    open_store(path).append(sample_batch())
    os.truncate(path, 0)
    with pytest.raises(StoreBroken, match="was cut to nothing: restore it from a backup"):
        SqliteJournal(path)
    with pytest.raises(StoreBroken, match="was cut to nothing"):
        SqliteJournalReader(path).heads()


@pytest.mark.parametrize("left", [b"", b"S", b"SQLite format 3\0"])
def test_a_store_of_which_nothing_is_left_is_not_made_anew(path, left):
    """Without its WAL, too: who writes and who reads are told what to do, and the file stays as it is."""
    filled(path)
    path.write_bytes(left)
    for open_it in (lambda: SqliteJournal(path), lambda: SqliteJournalReader(path).heads()):
        with pytest.raises(StoreBroken, match="restore it from a backup"):
            open_it()
    assert path.read_bytes() == left


def test_a_new_store_is_never_seen_empty(open_store, path):
    """It has SQLite's header from its first moment, and nothing else is left of its making."""
    path.parent.mkdir(parents=True)
    connection._create_store_file(str(path))
    assert path.read_bytes().startswith(b"SQLite format 3\0")
    connection._create_store_file(str(path))  # somebody was quicker: theirs stays
    assert os.listdir(path.parent) == [path.name]
    open_store(path).append(sample_batch())


@pytest.mark.parametrize("kept", [100, 4096, 20_000, 60_000])
def test_a_truncated_store_is_noticed(path, kept):
    """Whatever cannot be read is StoreBroken with the next step, never another error and never a wrong answer."""
    filled(path)
    os.truncate(path, kept)
    assert answers(path) <= {"ok", "broken"}


def test_a_zeroed_page_harms_what_is_on_it(path):
    """Every single page of the file, zeroed in turn: reads either answer rightly or say StoreBroken; never else."""
    filled(path)
    whole = path.read_bytes()
    told = []
    for page in range(min(len(whole) // 4096, 80)):
        path.write_bytes(whole[: page * 4096] + bytes(4096) + whole[(page + 1) * 4096 :])
        told.append(answers(path))
    assert all(one <= {"ok", "broken"} for one in told)
    assert {"ok", "broken"} in told, "a page of one run's text does not stop the others from being read"


def answers(path):
    """How every read of a damaged store ends: ok, broken, or the name of another error."""
    for suffix in ("-wal", "-shm"):
        Path(f"{path}{suffix}").unlink(missing_ok=True)
    told = set()
    store = SqliteJournalReader(path)
    for n in range(40):
        run = f"r{n:02}"
        for read in (
            lambda run=run: store.head(run) is None or store.head(run).run == run,
            lambda run=run: list(store.rows(run)) in ([sample_entry(run, 1)], []),
            lambda run=run, n=n: store.payload(run, f"p-{n}") in (b"x" * 3_000, None),
        ):
            told.add(_outcome(read))
    told.add(_outcome(lambda: len(store.heads()) <= 40))
    store.close()
    return told


def _outcome(read):
    try:
        return "ok" if read() else "wrong"
    except StoreBroken as error:
        return "broken" if "`steersman doctor`" in str(error) or "backup" in str(error) else "no next step"
    except Exception as error:
        return repr(error)


@pytest.mark.parametrize("how", ["deleted", "replaced"])
def test_a_store_that_is_gone_is_noticed(open_store, path, how):
    """A driver whose store was deleted or replaced under it writes no more, not into the void and not into another."""
    store = open_store(path)
    store.append(sample_batch())
    assert store.head(SAMPLE_RUN).seq == 1
    os.rename(path, f"{path}.away")
    if how == "replaced":
        shutil.copy(f"{path}.away", path)
    with pytest.raises(StoreBroken, match="was deleted or replaced while in use; nothing more is written"):
        store.append(sample_batch(seq=2))
    assert store.head(SAMPLE_RUN).seq == 1


def test_a_missing_store_is_not_made_by_looking(path):
    """Reading where nothing has been run says so and makes nothing."""
    with pytest.raises(StoreBroken, match="nothing has been run here yet"):
        SqliteJournalReader(path).heads()
    assert not path.exists()
    with pytest.raises(StoreBroken, match="start with `steersman run`"):
        SqliteJournal(path, create=False)


def test_a_read_only_disk(open_store, path):
    """A write is refused with the next step, what is there can be read, and later writes work again."""
    disk = FailingVFS()
    store = open_store(path, vfs=disk.name)
    store.append(sample_batch())
    disk.fail("write", 1, "readonly")
    for _ in range(2):
        with pytest.raises(
            StoreFull, match=r"cannot be written .*check who owns it and whether the disk is read-only"
        ):
            store.append(sample_batch(seq=2))
    assert (store.head(SAMPLE_RUN).seq, len(store.heads())) == (1, 1)
    disk.mend()
    store.append(sample_batch(seq=2))


@pytest.mark.skipif(os.geteuid() == 0, reason="nothing is read-only to root")
def test_a_folder_that_may_not_be_written(open_store, path):
    """No store can be made there, and the message says why."""
    path.parent.mkdir(mode=0o500, parents=True)
    with pytest.raises(StoreFull, match="cannot be written"):
        open_store(path)


def test_a_full_disk(open_store, path):
    """A write is refused and nothing of it is kept; when there is room again the same process goes on."""
    disk = FailingVFS()
    store = open_store(path, vfs=disk.name)
    store.append(sample_batch())
    disk.fail("write", 1, "full")
    with pytest.raises(StoreFull, match="the disk is full; free some room, then `steersman resume`"):
        store.append(sample_batch(seq=2, payloads=(("p-1", b"x"),)))
    assert (store.head(SAMPLE_RUN).seq, list(store.payload_refs(SAMPLE_RUN))) == (1, [])
    disk.mend()
    store.append(sample_batch(seq=2))
    assert store.head(SAMPLE_RUN).seq == 2


@pytest.mark.parametrize("how", ["append", "submit"])
def test_after_a_failed_sync_nothing_more_is_written(open_store, path, how):
    """What a failed sync covered is unknown: this process writes no more, another one may."""
    disk = FailingVFS()
    store = open_store(path, vfs=disk.name)
    store.append(sample_batch())
    disk.fail("sync", 1, "io", once=True)
    first, second = (_written(store, how, sample_batch(seq=2)) for _ in range(2))
    assert isinstance(first, StoreFull)
    assert isinstance(second, StoreFull)
    assert "steersman writes no more: check the disk, then `steersman resume`" in str(second)
    assert disk.failed == 1
    writes = disk.deeds["write", "wal"]
    for write in (
        lambda: store.post(SAMPLE_RUN, "event", {}, SAMPLE_TIME),
        lambda: store.quarantine(SAMPLE_RUN, "x"),
    ):
        with pytest.raises(StoreFull):
            write()
    assert disk.deeds["write", "wal"] == writes
    other = open_store(path)
    _written(other, "append", sample_batch(seq=other.head(SAMPLE_RUN).seq + 1))
    assert [row[0] for row in other.rows(SAMPLE_RUN)] == list(range(1, other.head(SAMPLE_RUN).seq + 1))


def _written(store, how, one):
    if how == "append":
        try:
            store.append(one)
        except JournalError as error:
            return error
        return None
    told, ready = [], threading.Event()
    store.submit(one, lambda error: (told.append(error), ready.set()))
    assert ready.wait(10)
    return told[0]


def test_a_large_payload_that_does_not_fit(open_store, path, monkeypatch):
    """When its file cannot be written the batch is refused, and the next attempt starts from nothing."""
    store = open_store(path)
    store.append(sample_batch())
    (path.parent / "payloads").write_text("in the way")
    with pytest.raises(StoreFull):
        store.append(sample_batch(seq=2, payloads=(("p-1", b"x" * 100_000),)))
    assert store.head(SAMPLE_RUN).seq == 1
    (path.parent / "payloads").unlink()
    store.append(sample_batch(seq=2, payloads=(("p-1", b"x" * 100_000),)))
    assert store.payload(SAMPLE_RUN, "p-1") == b"x" * 100_000


def test_a_large_payload_that_was_changed_is_noticed(open_store, path):
    """A file of another length is StoreBroken; one that is gone is gone."""
    store = open_store(path)
    store.append(sample_batch(payloads=(("p-1", b"x" * 100_000),)))
    os.truncate(path.parent / "payloads" / SAMPLE_RUN / "p-1", 5)
    with pytest.raises(StoreBroken, match="restore it from a backup"):
        store.payload(SAMPLE_RUN, "p-1")
    (path.parent / "payloads" / SAMPLE_RUN / "p-1").unlink()
    assert store.payload(SAMPLE_RUN, "p-1") is None


# ── several processes at once ─────────────────────────────────────────────────────────────────────────────────────────

WRITER = """
import sys
from steersman.adapters.storage.sqlite import connection
from steersman.adapters.storage.sqlite.store import SqliteJournal
from steersman.errors import StaleError
from steersman.testing.journal_samples import sample_batch
path, me, n = sys.argv[1], sys.argv[2], int(sys.argv[3])
store = SqliteJournal(path)
stale = 0
for seq in range(1, n + 1):
    store.append(sample_batch(f"own-{me}", seq))
for seq in range(1, n + 1):
    try:
        store.append(sample_batch("shared", seq))
    except StaleError:
        stale += 1
store.close()
print(stale)
"""


@pytest.mark.parametrize("_again", range(3))
def test_several_processes_make_and_share_a_store(open_store, path, _again):
    """Four that start at once on no store: each keeps its own run; of a shared one every entry is there exactly once."""
    n = 60
    argv = [sys.executable, "-c", WRITER, str(path)]
    children = [subprocess.Popen([*argv, str(me), str(n)], stdout=subprocess.PIPE) for me in range(4)]
    told = [child.communicate(timeout=60)[0] for child in children]
    assert [child.returncode for child in children] == [0] * 4
    store = open_store(path)
    for me in range(4):
        assert [row[0] for row in store.rows(f"own-{me}")] == list(range(1, n + 1))
    shared = [row[0] for row in store.rows("shared")]
    assert shared == list(range(1, len(shared) + 1))
    assert sum(int(one) for one in told) + len(shared) == 4 * n
    assert store._write.pragma("integrity_check") == "ok"


def test_another_process_is_seen(open_store, path):
    """What one has committed the other reads at once, and is told that something changed."""
    one, two = open_store(path), open_store(path)
    before = two.changed()
    one.append(sample_batch())
    assert two.changed() != before
    assert two.head(SAMPLE_RUN).seq == 1
    with pytest.raises(StaleError):
        two.append(sample_batch())
