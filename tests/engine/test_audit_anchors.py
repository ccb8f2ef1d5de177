"""Anchors at their three places: a file, a git ref, a command; and anchors that are none."""

import json
import os
import subprocess
import sys

import pytest

from steersman import wiring
from steersman.adapters.storage.anchors import AnchorKey, CommandAnchors, FileAnchors, GitAnchors
from steersman.contracts.limits import TrustedSettings
from steersman.errors import UserError
from steersman.ports.anchors import RunAnchors

HASH = "ab" * 32


@pytest.fixture
def file(tmp_path):
    return FileAnchors(tmp_path / "state")


@pytest.fixture
def repo(tmp_path):
    folder = tmp_path / "repo"
    subprocess.run(["git", "init", "-q", str(folder)], check=True)
    return folder


def test_file(file):
    """What was kept comes back, oldest first, for its own run alone."""
    made = [file.store_anchor("r", n, HASH, n) for n in (1, 2)]
    file.anchor("other", 9, HASH, 3)
    assert file.list_anchors("r") == RunAnchors(tuple(made))


def test_nothing_kept(file, tmp_path):
    """Where nothing was anchored nothing is kept, and looking makes neither key nor file."""
    assert file.list_anchors("r") == RunAnchors()
    assert not (tmp_path / "state").exists()


def test_private(file, tmp_path):
    """The private key can be read by its owner alone, and there is one key for ever."""
    file.store_anchor("r", 1, HASH, 1)
    key = (tmp_path / "state" / "anchor.key").read_bytes()
    assert os.stat(tmp_path / "state" / "anchor.key").st_mode & 0o777 == 0o600
    assert os.stat(file.path).st_mode & 0o777 == 0o600
    FileAnchors(tmp_path / "state").store_anchor("r", 2, HASH, 2)
    assert (tmp_path / "state" / "anchor.key").read_bytes() == key
    assert len(file.list_anchors("r").genuine) == 2


def test_public_again(file, tmp_path):
    """A lost public key is written again from the private one; looking alone does not do it."""
    made = file.store_anchor("r", 1, HASH, 1)
    public = tmp_path / "state" / "anchor.pub"
    public.unlink()
    assert file.list_anchors("r").genuine == ()
    file.store_anchor("r", 2, HASH, 2)
    assert file.list_anchors("r").genuine[0] == made


def test_broken_key(file, tmp_path):
    """A private key that is none any more is told with what to do, and no new one takes its place."""
    file.store_anchor("r", 1, HASH, 1)
    (tmp_path / "state" / "anchor.key").write_bytes(b"short")
    with pytest.raises(UserError, match="restore it from a backup"):
        file.store_anchor("r", 2, HASH, 2)


@pytest.mark.parametrize(
    "field", [{"seq": 7}, {"hash": "cd" * 32}, {"at": 5}, {"signature": ""}, {"signature": "%"}, {"key": "x"}]
)
def test_not_genuine(file, field):
    """An anchor in which anything differs from what was signed is a doubt, in words that name the line."""
    file.store_anchor("r", 1, HASH, 1)
    line = json.loads(file.path.read_text())
    file.path.write_text(json.dumps({**line, **field}, sort_keys=True, separators=(",", ":")) + "\n")
    kept = file.list_anchors("r")
    assert kept.genuine == ()
    assert len(kept.doubts) == 1
    assert "line 1" in kept.doubts[0]


def test_another_key(file, tmp_path):
    """An anchor signed by another key is a doubt, however well it is signed."""
    file.store_anchor("r", 1, HASH, 1)
    other = FileAnchors(tmp_path / "elsewhere", file.path)
    other.store_anchor("r", 2, HASH, 2)
    kept = file.list_anchors("r")
    assert [a.seq for a in kept.genuine] == [1]
    assert len(kept.doubts) == 1


@pytest.mark.parametrize(
    "line", [b"garbage\n", b"{}\n", b"[1]\n", b'{"run":1}\n', b"\xff\xfe\n", b'{"run":"r","se']
)
def test_unreadable(file, line):
    """A line that cannot be read is counted; the anchors around it count as before."""
    first = file.store_anchor("r", 1, HASH, 1)
    with file.path.open("ab") as out:
        out.write(line)
    second = file.store_anchor("r", 2, HASH, 2)
    assert file.list_anchors("r") == RunAnchors((first, second), (), 1)


def test_git(tmp_path, repo):
    """The newest anchor of a run is a blob under its own ref, as JSON; an older one is not found by looking there."""
    place = GitAnchors(tmp_path / "state", repo)
    assert place.list_anchors("r") == RunAnchors()
    place.store_anchor("r", 1, HASH, 1)
    made = place.store_anchor("r", 2, HASH, 2)
    shown = ["git", "-C", str(repo), "cat-file", "blob", "refs/steersman/anchors/r"]
    assert json.loads(subprocess.run(shown, check=True, capture_output=True).stdout)["seq"] == 2
    assert place.list_anchors("r") == RunAnchors((made,))


def test_git_forged(tmp_path, repo):
    """A ref that somebody pointed at words of their own is a doubt or a blank, never an anchor."""
    place = GitAnchors(tmp_path / "state", repo)
    place.store_anchor("r", 1, HASH, 1)
    place._git.read(
        "update-ref", "refs/steersman/anchors/r", place._git.line("hash-object", "-w", "--stdin", feed=b"x")
    )
    assert place.list_anchors("r") == RunAnchors((), (), 1)


def test_no_git(tmp_path):
    """Without a repository nothing is kept in it."""
    assert GitAnchors(tmp_path / "state", tmp_path / "nowhere").list_anchors("r") == RunAnchors()


def test_command(tmp_path):
    """A command is handed the anchor as one line of JSON."""
    argv = [sys.executable, "-c", "import sys; open('got', 'w').write(sys.stdin.read())"]
    place = CommandAnchors(tmp_path / "state", lambda: argv, tmp_path)
    made = place.store_anchor("r", 1, HASH, 1)
    got = (tmp_path / "got").read_text()
    assert got.endswith("\n")
    assert json.loads(got)["signature"] == made.signature
    assert place.list_anchors("r") == RunAnchors()


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (None, r"add \[audit\]"),
        ((sys.executable, "-c", "import sys; sys.exit('full')"), "exit code 1: full"),
        (("no-such-program",), "no-such-program"),
    ],
)
def test_command_that_does_not_take_it(tmp_path, argv, words):
    """A command that is missing or says no is told with its own words: nothing counts as anchored."""
    with pytest.raises(UserError, match=words):
        CommandAnchors(tmp_path / "state", lambda: argv, tmp_path).store_anchor("r", 1, HASH, 1)


def test_places(tmp_path, repo, monkeypatch):
    """A project has the three places, and the command is the one its configuration names."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "xdg"))
    argv = [sys.executable, "-c", "import sys; open('got', 'w').write(sys.stdin.read())"]
    (repo / "steersman.toml").write_text(f"version = 1\n[audit]\nanchor = {json.dumps(argv)}\n")
    lines = wiring.read_written_config(repo).powerful
    wiring.open_trust_file(repo).record("steersman.toml", TrustedSettings(lines, "ann", 0))
    ports = wiring.open_ports(repo)
    for place in ("file", "git", "command"):
        ports.anchors[place].store_anchor("r", 1, HASH, 1)
    assert [len(ports.anchors[p].list_anchors("r").genuine) for p in ("file", "git", "command")] == [1, 1, 0]
    assert json.loads((repo / "got").read_text())["run"] == "r"
    ports.journal.close()


def test_two_at_once(tmp_path):
    """Whoever makes the key second takes the first one's."""
    state = tmp_path / "state"
    state.mkdir()
    one, other = AnchorKey(state), AnchorKey(state)
    assert other.is_genuine(one.sign("r", 1, HASH, 1))
    assert one.public() == other.public()
    assert sorted(p.name for p in state.iterdir()) == ["anchor.key", "anchor.pub"]


@pytest.mark.parametrize("name", ["anchor.pub", "anchors.jsonl"])
def test_every_byte_counts(file, tmp_path, name):
    """No byte of the newest anchor or of the public key can change without that anchor being in doubt or gone."""
    made = file.store_anchor("r", 1, HASH, 1)
    path = tmp_path / "state" / name
    good = path.read_bytes()
    for n, byte in enumerate(good):
        for pattern in (0x01, 0x80):
            path.write_bytes(good[:n] + bytes((byte ^ pattern,)) + good[n + 1 :])
            assert made not in file.list_anchors("r").genuine, (n, pattern)
