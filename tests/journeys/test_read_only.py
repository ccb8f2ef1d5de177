"""A state directory on a disk that cannot be written: what is there can be looked at, and every refusal names the fix."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import apsw
import pytest
from tests.support.sample_project import STEERSMAN_COMMAND, CommandResult, Project, roundtable_story

FREEZE = 'mount --bind "$0" "$0" && mount -o remount,ro,bind "$0" && exec "$@"'
FILL = 'mount -t tmpfs -o size=16m tmpfs "$0" && cp -a "$1"/. "$0" && { cat /dev/zero > "$0"/filler 2>/dev/null; shift; exec "$@"; }'
LOOKS = ("runs", "gates", "show", "why", "report", "audit verify", "audit replay", "audit tape")


def _allowed() -> bool:
    probe = ["unshare", "-rm", "sh", "-c", "mount -t tmpfs tmpfs /mnt"]
    try:
        return subprocess.run(probe, capture_output=True, check=False, timeout=30).returncode == 0
    except OSError:
        return False


pytestmark = pytest.mark.skipif(
    not _allowed(), reason="no mount can be made here: that takes a namespace of one's own"
)


def call(project: Project, script: str, *words: str) -> CommandResult:
    """One command in a namespace in which the state directory is as the script makes it; root is refused, too."""
    done = subprocess.run(
        ["unshare", "-rm", "sh", "-c", script, *words], cwd=project.repo, env=project.env,
        stdin=subprocess.DEVNULL, capture_output=True, check=False, timeout=120,
    )  # fmt: skip
    return CommandResult(done.returncode, done.stdout.decode(), done.stderr.decode())


def test_a_read_only_disk(project: Project) -> None:
    """Everything can be looked at; what would write says that it cannot and why; the doctor finds it."""
    run = project.run(roundtable_story(mode="proposal")).json()["run"]
    state = str(project.state)
    for words in LOOKS:
        of = () if words in ("runs", "gates") else (run,)
        result = call(project, FREEZE, state, *STEERSMAN_COMMAND, *words.split(), *of)
        assert result.code == 0, (words, result)
    for words in ("approve", "abort", "resume"):
        result = call(project, FREEZE, state, *STEERSMAN_COMMAND, words, run)
        assert result.code == 5, (words, result)
        assert "is read-only: nothing can be written here" in result.err
        assert "make its disk writable" in result.err
    result = call(project, FREEZE, state, *STEERSMAN_COMMAND, "doctor")
    assert result.code == 5, result
    assert "FIX  state directory" in result.out
    assert "ok   store: no damage found" in result.out
    assert project.call("approve", run).code == 0


def test_what_a_killed_writer_left_is_read(project: Project) -> None:
    """What was committed and is not written back yet is there on a read-only disk, without the shared file, too."""
    project.run(roundtable_story(mode="proposal"))
    code = (
        "import apsw, os, sys; db = apsw.Connection(sys.argv[1]);"
        "db.execute(\"UPDATE head SET title='only in the WAL'\").fetchall(); os._exit(0)"
    )
    store = project.state / "store.db"
    subprocess.run([sys.executable, "-c", code, str(store)], check=True, timeout=60)
    Path(f"{store}-shm").unlink()
    result = call(project, FREEZE, str(project.state), *STEERSMAN_COMMAND, "runs")
    assert result.code == 0, result
    assert "only in the WAL" in result.out


def test_a_full_disk(project: Project, tmp_path: Path) -> None:
    """A disk without room is called full, whatever SQLite calls it; looking needs no room, and no backup is asked for."""
    run = project.run(roundtable_story(mode="proposal")).json()["run"]
    state = project.state
    kept = tmp_path / "kept"
    shutil.copytree(state, kept, symlinks=True)
    result = call(project, FILL, str(state), str(kept), *STEERSMAN_COMMAND, "show", run)
    assert result.code == 0, result
    result = call(project, FILL, str(state), str(kept), *STEERSMAN_COMMAND, "doctor")
    assert result.code == 1, result
    assert "FIX  disk" in result.out
    assert "ok   store: no damage found" in result.out
    assert "backup" not in result.out
    (kept / "store.db-wal").unlink()  # written back when it was closed: the next writer has to make it anew
    result = call(project, FILL, str(state), str(kept), *STEERSMAN_COMMAND, "abort", run)
    assert result.code == 5, result
    assert "the disk is full; free some room" in result.err


def test_a_look_waits_for_no_writer(project: Project) -> None:
    """Somebody holds the store for writing all the time: show answers all the same."""
    run = project.run(roundtable_story(mode="proposal")).json()["run"]
    os.truncate(f"{project.state / 'store.db'}-wal", 0)
    holder = apsw.Connection(str(project.state / "store.db"))
    holder.execute("BEGIN EXCLUSIVE")
    try:
        result = project.call("show", run, timeout=60)
    finally:
        holder.execute("ROLLBACK")
        holder.close()
    assert result.code == 0, result
