"""The scanner of a tree: which files it sees, what it never opens, where it stops, and that it always says the same."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from steersman.adapters.scan import TreeScanner, listing
from steersman.adapters.scan.scanner import ScanLimits
from steersman.kernel.canonical import canonical_bytes


def put(top, files):
    for name, text in files.items():
        (top / name).parent.mkdir(parents=True, exist_ok=True)
        (top / name).write_text(text)


def git(top, *args):
    env = {"PATH": os.environ["PATH"], "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_NOSYSTEM": "1"}
    subprocess.run(["git", *args], cwd=top, check=True, capture_output=True, env=env)


def scan(top, hulls, **limits):
    return TreeScanner(top, hulls, ScanLimits(**limits)).scan("shop")


def seen(pack):
    return sorted({e.source_file for e in pack.evidence})


@pytest.fixture
def hulls(tmp_path_factory):
    return tmp_path_factory.mktemp("hulls")


SHOP = {
    "pyproject.toml": "[project]\nname = 'shop'\n", "src/shop.py": "x = 1\n",
    "node_modules/x/package.json": '{"name": "x"}', "README.md": "# Shop\n",
}  # fmt: skip


def test_the_same_files_give_the_same_bytes(tmp_path, hulls):
    """In two directories, with git and without, in other processes with other seeds and languages."""
    for name in ("one", "two"):
        put(tmp_path / name, SHOP)
    git(tmp_path / "two", "init", "-q")
    wanted = canonical_bytes(scan(tmp_path / "one", hulls))
    assert canonical_bytes(scan(tmp_path / "two", hulls)) == wanted
    code = (
        "import sys; from pathlib import Path; from steersman.adapters.scan import TreeScanner\n"
        "from steersman.kernel.canonical import canonical_bytes\n"
        "sys.stdout.buffer.write(canonical_bytes(TreeScanner(Path(sys.argv[1]), Path(sys.argv[2])).scan('shop')))"
    )
    for seed, words in (("1", "C"), ("2", "C.UTF-8")):
        env = {"PYTHONHASHSEED": seed, "LC_ALL": words, "PATH": os.environ["PATH"], "TZ": f"UTC{seed}"}
        done = subprocess.run(
            [sys.executable, "-c", code, tmp_path / "two", hulls], env=env, check=True, capture_output=True
        )
        assert done.stdout == wanted
    (tmp_path / "one" / "README.md").write_text("# Shup\n")
    assert canonical_bytes(scan(tmp_path / "one", hulls)) != wanted


def test_git_says_what_is_the_projects_own(tmp_path, hulls):
    """Tracked files and new ones, neither ignored nor removed ones, nor those of a repository inside."""
    put(tmp_path, SHOP | {".gitignore": "*.sh\n", "gone.go": "", "new.rs": "", "made.sh": "", "kept.sh": ""})
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", "-f", ".gitignore", "gone.go", "kept.sh", "src")
    (tmp_path / "gone.go").unlink()
    pack = scan(tmp_path, hulls)
    assert [f.name for f in pack.facts if f.kind == "language"] == ["python", "rust", "shell"]
    assert next(f.value for f in pack.facts if f.name == "shell") == "1 file"
    assert (pack.bounds.skipped, pack.bounds.complete) == (2, True)  # node_modules, and the one that is gone


@pytest.mark.parametrize("known", [True, False], ids=["git", "walk"])
def test_what_steersman_laid_there_is_not_of_the_project(tmp_path, hulls, known):
    """A frozen plan in the tree, artifacts and a registry of the project's own change no fact and no figure."""
    put(tmp_path, SHOP)
    if known:
        git(tmp_path, "init", "-q")
    before = canonical_bytes(scan(tmp_path, hulls))
    put(
        tmp_path,
        {
            ".steersman/registry/rules/r.yaml": "id: r\n",
            "plan/plan.dsse.json": "{}",
            "plan/plan.md": "# Plan\n",
        },
    )
    assert canonical_bytes(scan(tmp_path, hulls)) == before
    put(tmp_path, {"plans/plan.md": "# Plan\n"})
    assert canonical_bytes(scan(tmp_path, hulls)) != before


def test_a_relative_folder_is_refused(tmp_path):
    """A git directory of ours is never made in the current directory."""
    git(tmp_path, "init", "-q")
    with pytest.raises(ValueError, match="absolute path, not hulls"):
        scan(tmp_path, Path("hulls"))


def test_no_link_is_followed(tmp_path, hulls):
    """Neither to a file nor to a folder, not even where git still knows what was there."""
    outside = tmp_path / "outside"
    put(outside, {"go.mod": "module secret\n", "a/go.mod": "module secret\n"})
    top = tmp_path / "top"
    put(top, {"a/go.mod": "module x\n", "go.mod": "module y\n"})
    git(top, "init", "-q")
    git(top, "add", ".")
    for name in ("a/go.mod", "go.mod"):
        (top / name).unlink()
    (top / "a").rmdir()
    (top / "a").symlink_to(outside / "a")
    (top / "go.mod").symlink_to(outside / "go.mod")
    os.mkfifo(top / "Makefile")
    assert scan(top, hulls).facts == ()
    for path in (top / ".git").rglob("index"):
        path.unlink()
    (top / ".git").rename(tmp_path / "git")
    assert scan(top, hulls).facts == ()


def test_secret_files_are_not_opened(tmp_path, hulls):
    """A pipe would be waited for; a file without rights would be passed over: a name is all that is needed."""
    put(tmp_path, {".env": "PIN=1\n"})
    (tmp_path / ".env").chmod(0)
    pack = scan(tmp_path, hulls)
    assert [(f.kind, f.name) for f in pack.facts] == [("secret_file", ".env")]
    assert (pack.bounds.files_read, pack.bounds.complete) == (0, True)


@pytest.mark.parametrize(
    ("limits", "why"),
    [
        ({"each": 3}, "2 files too long or not readable"),
        ({"total": 20}, "more than 20000 files or 20 bytes to read"),
        ({"files": 1}, "more than 1 files or 67108864 bytes to read"),
    ],
)
def test_what_is_not_read_is_said(tmp_path, hulls, limits, why):
    """A bound that is reached is named, and the pack is not called complete."""
    put(tmp_path, {"go.mod": "module x # 12345\n", "Makefile": "test:\n"})
    pack = scan(tmp_path, hulls, **limits)
    assert (pack.bounds.complete, pack.bounds.stopped_by) == (False, why)


@pytest.mark.parametrize("known", [True, False], ids=["git", "walk"])
def test_too_many_and_too_deep(tmp_path, hulls, monkeypatch, known):
    """Trees without end come to one."""
    put(tmp_path, {f"{n}.py": "" for n in range(9)} | {"a/b/c/d.go": ""})
    if known:
        git(tmp_path, "init", "-q")
    monkeypatch.setattr(listing, "MAX_PATH_DEPTH", 3)
    assert "a path deeper than 3 folders" in scan(tmp_path, hulls).bounds.stopped_by
    monkeypatch.setattr(listing, "MAX_LISTED_FILES", 5)
    bounds = scan(tmp_path, hulls).bounds
    assert (bounds.files_seen, bounds.complete) == (5, False)
    assert "more than 5 files" in bounds.stopped_by


def test_a_repository_that_git_cannot_read(tmp_path, hulls):
    """The files are walked through instead, and the pack says so."""
    put(tmp_path, SHOP | {".git/HEAD": "nonsense"})
    pack = scan(tmp_path, hulls)
    assert "README.md" in seen(pack)
    assert pack.bounds.stopped_by == "git could not list the files, so that ignored ones are among them"


def test_an_index_that_git_cannot_read(tmp_path, hulls):
    """The same."""
    put(tmp_path, SHOP)
    git(tmp_path, "init", "-q")
    (tmp_path / ".git" / "index").write_bytes(b"x" * 64)
    assert not scan(tmp_path, hulls).bounds.complete


def test_names_that_are_no_text(tmp_path, hulls):
    """Bytes that are no UTF-8 are written out, and the file is found all the same."""
    name = os.fsencode(tmp_path) + b"/\xff.py"
    with open(name, "wb"):
        pass
    assert seen(scan(tmp_path, hulls)) == ["\\xff.py"]


def test_a_place_that_is_none(tmp_path, hulls):
    """It has no files, and there is nothing to say of it."""
    assert scan(tmp_path / "nowhere", hulls).facts == ()


def test_nothing_of_the_repository_runs(tmp_path, hulls):
    """Neither a monitor nor a hook nor a filter that its settings name."""
    put(tmp_path, SHOP | {".gitattributes": "* filter=evil\n"})
    git(tmp_path, "init", "-q")
    trap = tmp_path / "trap.sh"
    trap.write_text(f"#!/bin/sh\ntouch {tmp_path / 'sprung'}\n")
    trap.chmod(0o755)
    git(tmp_path, "add", "README.md")
    for name in (
        "core.fsmonitor",
        "filter.evil.clean",
        "filter.evil.process",
        "core.sshCommand",
        "core.pager",
    ):
        git(tmp_path, "config", name, str(trap))
    git(tmp_path, "config", "core.hooksPath", str(tmp_path))
    assert scan(tmp_path, hulls).bounds.complete
    assert not (tmp_path / "sprung").exists()
