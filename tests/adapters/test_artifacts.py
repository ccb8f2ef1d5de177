"""Every adapter of the Artifacts port passes the same suite; the one on disk follows nothing and leaves nothing behind."""

import os
import socket
import threading
from pathlib import Path

import pytest
from tests.support.root_permissions import enforce_file_permissions

from steersman.adapters.storage import artifacts as adapter
from steersman.adapters.storage.artifacts import DirectoryArtifacts
from steersman.contracts.artifacts import ArtifactOnDisk
from steersman.errors import WorkspaceError
from steersman.testing.conformance_artifacts import ARTIFACT_NAME, ARTIFACT_RUN, ArtifactsConformance
from steersman.testing.files import MemoryArtifacts


class TestMemory(ArtifactsConformance):
    """The fake of the tests."""

    @pytest.fixture
    def artifacts(self):
        return MemoryArtifacts()

    @pytest.fixture
    def plant(self, artifacts):
        return lambda name, what: artifacts.plant(ARTIFACT_RUN, name, what)


@pytest.fixture
def place(tmp_path):
    """A folder in which rights count."""
    with enforce_file_permissions() as counted:
        if not counted:
            pytest.skip("NOT SHOWN: nothing is unreadable to root here")
        yield tmp_path


@pytest.fixture
def artifacts(place):
    """The adapter in that folder."""
    return DirectoryArtifacts(place / ".steersman" / "runs")


@pytest.fixture
def plant(artifacts, place):
    """What hands do: whatever is there is put aside, and a link leads to it."""

    def planted(name, what):
        path = Path(artifacts.folder(ARTIFACT_RUN), name)
        aside = place / "aside"
        path.parent.mkdir(parents=True, exist_ok=True)
        if os.path.lexists(path):
            path.rename(aside)
        elif what == "link":
            aside.write_bytes(b"theirs")
        match what:
            case "link":
                path.symlink_to(aside)
            case "pipe":
                os.mkfifo(path)
            case "folder":
                path.mkdir()
            case "unreadable":
                path.write_bytes(b"secret")
                path.chmod(0)
            case "locked":
                path.mkdir()
                (path / "inside").touch()
                path.chmod(0)

    return planted


class TestFolder(ArtifactsConformance):
    """The files on disk."""

    @pytest.fixture
    def artifacts(self, artifacts):
        return artifacts

    @pytest.fixture
    def plant(self, plant):
        return plant


def tree(place):
    """Everything below a place, by its name from there, with what is in it; a link with where it leads."""
    found = {}
    for path in sorted(place.rglob("*")):
        name = str(path.relative_to(place))
        found[name] = (
            os.readlink(path) if path.is_symlink() else path.read_bytes() if path.is_file() else None
        )
    return found


@pytest.mark.parametrize(
    "part",
    ["..", "", ARTIFACT_RUN, f"{ARTIFACT_RUN}/code", f"{ARTIFACT_RUN}/{ARTIFACT_NAME}"],
    ids=["ours", "root", "run", "folder", "file"],
)
@pytest.mark.parametrize("goal", ["whole", "dangling", "itself", "outside"])
def test_no_link_is_followed_at_any_place(artifacts, place, part, goal):
    """Read, listed, written and removed: nothing happens behind a link, wherever in the name it is and leads."""
    artifacts.write(ARTIFACT_RUN, ARTIFACT_NAME, b"ours")
    root = Path(artifacts.folder(ARTIFACT_RUN)).parent
    at = root.parent if part == ".." else root / part
    aside = place / "aside"
    at.rename(aside)
    at.symlink_to({"whole": aside, "dangling": place / "nowhere", "itself": at.name, "outside": "/etc"}[goal])
    before = tree(aside) if aside.is_dir() else aside.read_bytes()
    assert artifacts.read(ARTIFACT_RUN, ARTIFACT_NAME) == ArtifactOnDisk(
        "link", detail=f"{at.name} is a link"
    )
    last = part.endswith(ARTIFACT_NAME)
    assert artifacts.names(ARTIFACT_RUN, "code") == (("diff.patch",) if last else ("",))
    if last:
        artifacts.remove(ARTIFACT_RUN, ARTIFACT_NAME)
        assert not at.is_symlink()
    else:
        for act in (
            lambda: artifacts.remove(ARTIFACT_RUN, ARTIFACT_NAME),
            lambda: artifacts.write(ARTIFACT_RUN, ARTIFACT_NAME, b"new"),
        ):
            with pytest.raises(WorkspaceError, match=f"{at.name} is a link; remove the link"):
                act()
    assert (tree(aside) if aside.is_dir() else aside.read_bytes()) == before


def test_a_socket_and_a_device_are_no_files(artifacts, monkeypatch):
    """They are told by what they are, and not opened."""
    artifacts.write(ARTIFACT_RUN, "x", b"")
    folder = Path(artifacts.folder(ARTIFACT_RUN))
    monkeypatch.chdir(folder)  # a socket's path is short
    with socket.socket(socket.AF_UNIX) as end:
        end.bind("sock")
    assert artifacts.read(ARTIFACT_RUN, "sock") == ArtifactOnDisk("other", detail="sock is a socket")
    if os.geteuid() == 0:
        os.mknod(folder / "dev", 0o020666, os.makedev(1, 3))
        assert artifacts.read(ARTIFACT_RUN, "dev") == ArtifactOnDisk("other", detail="dev is a device")
        assert "dev" in artifacts.names(ARTIFACT_RUN, "")


def test_a_longer_file_than_was_asked_for_is_too_long(artifacts):
    """No more is read than was asked for."""
    artifacts.write(ARTIFACT_RUN, ARTIFACT_NAME, b"12345")
    assert artifacts.read(ARTIFACT_RUN, ARTIFACT_NAME, most=4).kind == "too_long"


def test_a_name_that_is_no_text_is_listed(artifacts):
    """Bytes that are no text are written out, and can be kept and shown."""
    artifacts.write(ARTIFACT_RUN, "code/files/a", b"")
    folder = Path(artifacts.folder(ARTIFACT_RUN), "code", "files")
    os.makedirs(os.fsencode(folder) + b"/\xff")
    Path(os.fsdecode(os.fsencode(folder) + b"/\xff/b\nc")).touch()
    names = artifacts.names(ARTIFACT_RUN, "code/files")
    assert names == ("\\xff/b\nc", "a")
    assert "".join(names).encode()


def test_a_tree_deeper_than_any_name_is_not_climbed_down(artifacts):
    """The first folder that can hold no artifact is named instead of what is in it."""
    deep = Path(artifacts.folder(ARTIFACT_RUN), "code", "files", *["d"] * 14, "e")
    deep.mkdir(parents=True)
    assert artifacts.names(ARTIFACT_RUN, "code/files") == ("/".join(["d"] * 14) + "/",)


def test_an_artifact_is_never_written_through_another_name(artifacts, place):
    """A file planted as the unfinished artifact, with a second name outside, keeps its content there."""
    artifacts.write(ARTIFACT_RUN, ARTIFACT_NAME, b"one")
    (place / "outside").write_text("mine")
    part = Path(artifacts.folder(ARTIFACT_RUN), f".{os.getpid()}-{threading.get_native_id()}.part")
    os.link(place / "outside", part)
    artifacts.write(ARTIFACT_RUN, ARTIFACT_NAME, b"two")
    assert ((place / "outside").read_text(), part.exists()) == ("mine", False)
    assert artifacts.read(ARTIFACT_RUN, ARTIFACT_NAME) == ArtifactOnDisk("file", b"two")


def test_what_was_never_finished_is_no_artifact(artifacts):
    """A file under way is not listed; any other name that begins with a dot is."""
    folder = Path(artifacts.folder(ARTIFACT_RUN))
    folder.mkdir(parents=True)
    (folder / ".12-1.part").write_bytes(b"half")
    (folder / ".mine.part").write_bytes(b"kept")
    assert artifacts.names(ARTIFACT_RUN, "") == (".mine.part",)


def test_a_write_that_fails_leaves_nothing(artifacts):
    """Neither a half file nor the unfinished one."""
    artifacts.write(ARTIFACT_RUN, f"{ARTIFACT_NAME}/inside", b"")
    with pytest.raises(WorkspaceError, match="is a folder"):
        artifacts.write(ARTIFACT_RUN, ARTIFACT_NAME, b"x")
    assert os.listdir(artifacts.folder(ARTIFACT_RUN)) == ["code"]


def test_a_write_without_rights_says_so(artifacts):
    """The message names the file, the reason and what to do."""
    artifacts.write(ARTIFACT_RUN, ARTIFACT_NAME, b"one")
    Path(artifacts.folder(ARTIFACT_RUN)).chmod(0o500)
    with pytest.raises(
        WorkspaceError, match=r"cannot write .*diff\.patch: Permission denied; put that right"
    ):
        artifacts.write(ARTIFACT_RUN, ARTIFACT_NAME, b"two")
    with pytest.raises(WorkspaceError, match=r"cannot write .*: Permission denied; put that right"):
        artifacts.write(ARTIFACT_RUN, "new/x", b"two")
    assert artifacts.read(ARTIFACT_RUN, ARTIFACT_NAME) == ArtifactOnDisk("file", b"one")
    Path(artifacts.folder(ARTIFACT_RUN), "code").chmod(0o500)
    with pytest.raises(
        WorkspaceError, match=r"cannot remove .*diff\.patch: Permission denied; put that right"
    ):
        artifacts.remove(ARTIFACT_RUN, ARTIFACT_NAME)


@pytest.mark.parametrize("inside", [0o400, 0o600], ids=oct)
def test_a_folder_that_can_only_be_listed(artifacts, inside):
    """Names without the right to look at them: the file is unreadable, not missing."""
    artifacts.write(ARTIFACT_RUN, ARTIFACT_NAME, b"one")
    Path(artifacts.folder(ARTIFACT_RUN), "code").chmod(inside)
    assert artifacts.read(ARTIFACT_RUN, ARTIFACT_NAME) == ArtifactOnDisk(
        "unreadable", detail="diff.patch: Permission denied"
    )
    assert artifacts.names(ARTIFACT_RUN, "code") == ("diff.patch",)


def test_where_there_is_no_place_at_all(place):
    """A file or a dangling link where the folders begin is told by every call, and stays."""
    (place / "file").write_text("mine")
    (place / "link").symlink_to(place / "nowhere")
    for top in ("file", "link"):
        artifacts = DirectoryArtifacts(place / top / "runs")
        with pytest.raises(WorkspaceError, match="cannot write"):
            artifacts.write(ARTIFACT_RUN, ARTIFACT_NAME, b"")
        assert artifacts.read(ARTIFACT_RUN, ARTIFACT_NAME) == ArtifactOnDisk(
            {"file": "other"}.get(top, top), detail=f"{top} is a {top}"
        )
    assert tree(place) == {"file": b"mine", "link": str(place / "nowhere")}


def test_a_planted_ignore_file_is_not_written_through(artifacts, place):
    """A dangling link in the place of our .gitignore makes no file elsewhere."""
    (place / ".steersman").mkdir()
    (place / ".steersman" / ".gitignore").symlink_to(place / "elsewhere")
    artifacts.write(ARTIFACT_RUN, ARTIFACT_NAME, b"")
    assert not (place / "elsewhere").exists()


def test_what_is_durable_is_synced_before_it_has_its_name(artifacts, monkeypatch):
    """File, then name, then folder, with each folder that is new; what is not durable is not synced at all."""
    deeds = []
    sync, replace, mkdir = os.fsync, os.replace, os.mkdir
    monkeypatch.setattr(
        adapter.os, "fsync", lambda fd: (deeds.append("folder" if os.path.isdir(fd) else "file"), sync(fd))
    )
    monkeypatch.setattr(adapter.os, "replace", lambda *a, **k: (deeds.append("name"), replace(*a, **k)))
    monkeypatch.setattr(adapter.os, "mkdir", lambda *a, **k: (mkdir(*a, **k), deeds.append("new")))
    artifacts.write(ARTIFACT_RUN, "report.md", b"x")
    assert deeds[-1] == "name"
    assert not {"file", "folder"} & set(deeds)
    deeds.clear()
    artifacts.write(ARTIFACT_RUN, ARTIFACT_NAME, b"x", durable=True)
    assert deeds == ["new", "folder", "file", "name", "folder"]


def test_many_at_once_are_whole(artifacts):
    """Threads that write the same names never leave a mixture, nor anything else."""
    data = [bytes([n]) * 50_000 for n in range(4)]

    def write(mine):
        for _ in range(10):
            artifacts.write(ARTIFACT_RUN, ARTIFACT_NAME, mine)
            artifacts.write(ARTIFACT_RUN, "state.json", mine)

    threads = [threading.Thread(target=write, args=(mine,)) for mine in data]
    for thread in threads:
        thread.start()
    seen = {artifacts.read(ARTIFACT_RUN, ARTIFACT_NAME).data for _ in range(50)} - {b""}
    for thread in threads:
        thread.join()
    assert seen <= set(data)
    assert artifacts.read(ARTIFACT_RUN, ARTIFACT_NAME).data in data
    assert sorted(os.listdir(artifacts.folder(ARTIFACT_RUN))) == ["code", "state.json"]
