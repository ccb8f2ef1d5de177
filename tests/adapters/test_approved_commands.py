"""What is executed is what was approved, word for word; and where a name leads on a real disk."""

import asyncio
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from steersman.adapters.checks.local_commands import LocalCommands
from steersman.adapters.checks.tree_paths import (
    MAX_SEARCHED_NAMES,
    find_reach_problem,
    load_command_grammars,
    new_file_problem,
    path_escape_problem,
)
from steersman.adapters.sandbox.bubblewrap import probe_sandbox
from steersman.contracts.commands import Command
from steersman.contracts.grammars import CommandGrammar, Commands
from steersman.judges.commands.tester_commands import ApprovedCommand, CommandRules

ECHO = f"#!{sys.executable} -IS\nimport json, sys\nprint(json.dumps(sys.argv[1:]))\n"
EVERYTHING = Commands(
    sets=("tests", "read"),
    grammars={
        "echo": CommandGrammar(
            start=("echo-argv",), flags=("-q", "--all"),
            values={"-k": "expression", "--text": "text", "--choice": ("a b", "c'd")}, operands="test",
        ),
    },
)  # fmt: skip


@pytest.fixture(scope="module")
def programs():
    """A folder with programs that print their argv, under the names of the table."""
    with tempfile.TemporaryDirectory() as folder:
        for name in ("echo-argv", "pytest", "go", "grep", "sed"):
            path = Path(folder, name)
            path.write_text(ECHO)
            path.chmod(0o755)
        yield folder


@pytest.fixture(params=["off", "auto"])
def sandbox(request):
    """Without a box, and in one where this machine has one."""
    found = probe_sandbox(request.param)
    if request.param == "auto" and not found.isolated:
        pytest.skip(f"NOT SHOWN, no box on this machine: {found.why}")
    return found


WORD = st.text(st.characters(min_codepoint=33, max_codepoint=0x2FF), min_size=1, max_size=12)
NASTY = st.sampled_from(
    [
        "$(touch x)", "`id`", "a;b", "a b", "'", '"', "*", "~", "$HOME", "&&", "|", ">x", "\\", "{a,b}", "!",
        "#",
    ],
)  # fmt: skip
ARGVS = st.one_of(
    st.tuples(st.just("pytest"), st.just("-k"), st.from_regex(r"[a-z]+( (and|or) (not )?[a-z]+)?", fullmatch=True)),
    st.tuples(st.just("pytest"), st.sampled_from(["-q", "-xvs", "--tb=short"]), st.from_regex(r"[a-z]+(/[a-z_]+){0,2}::[a-z]+\[[a-z0-9 ,=]*\]", fullmatch=True)),
    st.tuples(st.just("grep"), st.just("-rn"), WORD | NASTY, st.just(".")),
    st.tuples(st.just("go"), st.just("test"), st.just("-run"), WORD | NASTY, st.just("./...")),
    st.tuples(st.just("sed"), st.just("-n"), st.from_regex(r"/[a-zA-Z $`;&|*]+/p", fullmatch=True), st.just("seed.txt")),
    st.tuples(st.just("echo-argv"), st.just("--text"), WORD | NASTY, st.just("--choice=a b"), st.just("-q")),
    st.lists(WORD | NASTY, min_size=1, max_size=4).map(lambda w: ("echo-argv", *w)),
)  # fmt: skip


@given(ARGVS)
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_executed_is_approved(programs, argv):
    """An approved argv arrives at its program word for word, whatever is in it; one that is not starts nothing."""
    with tempfile.TemporaryDirectory() as tree:
        Path(tree, "seed.txt").write_text("x\n")
        before = os.environ["PATH"]
        os.environ["PATH"] = f"{programs}:{before}"
        try:
            commands = LocalCommands((), grammars=EVERYTHING)
            done = asyncio.run(commands.run(Command("t", argv, "tester"), tree, "none:0:0", 30))
        finally:
            os.environ["PATH"] = before
        verdict = CommandRules((), EVERYTHING, load_command_grammars()).approve(list(argv))
        if isinstance(verdict, ApprovedCommand):
            assert verdict.argv == argv == done.argv
            assert json.loads(done.output.splitlines()[0]) == list(argv[1:])
        else:
            assert (done.verdict, done.output, done.reason) == ("blocked", "", verdict.reason)
        assert os.listdir(tree) == ["seed.txt"]


def test_a_path_that_leaves_by_a_link_is_blocked(tmp_path, sandbox, monkeypatch, programs):
    """The grammar sees a plain path; the disk says that it leads out, and nothing is started."""
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    tree, out = tmp_path / "tree", tmp_path / "out"
    tree.mkdir()
    out.mkdir()
    (tree / "link").symlink_to(out)
    (tree / "inside").symlink_to("real")
    (tree / "real").mkdir()
    commands = LocalCommands((), sandbox)
    run = lambda path: asyncio.run(  # noqa: E731  a short name for a long call
        commands.run(Command("t", ("pytest", path), "tester"), str(tree), "none:0:0", 30)
    )
    assert (run("link/test_x.py").verdict, run("link").verdict) == ("blocked", "blocked")
    assert "leads out of the tree through a link" in run("link").reason
    assert commands.find_command_problem(Command("t", ("pytest", "link"), "tester")) is None
    assert run("inside").verdict != "blocked"
    assert run("nowhere").verdict != "blocked"


def test_a_proposed_git_runs_git_alone(tmp_path):
    """Settings that name programs plant no marker when a tester asks for `git status`, without a box."""
    tree, marker = tmp_path / "tree", tmp_path / "marker"
    tree.mkdir()
    evil = tmp_path / "evil"
    evil.write_text(f"#!/bin/sh\ntouch {marker}\n")
    evil.chmod(0o755)
    git = lambda *words: subprocess.run(["git", *words], cwd=tree, check=True, capture_output=True)  # noqa: E731  a word for it reads better here
    git("init", "-q")
    (tree / ".gitattributes").write_text("* diff=evil\n")
    (tree / "a.txt").write_text("a\n")
    git("-c", "user.name=t", "-c", "user.email=t@t", "add", "-A")
    git("-c", "user.name=t", "-c", "user.email=t@t", "commit", "-qm", "x")
    programs = (
        "core.fsmonitor", "core.pager", "pager.status", "diff.external", "diff.evil.command",
        "diff.evil.textconv",
    )  # fmt: skip
    for name in programs:
        git("config", name, str(evil))
    (tree / "a.txt").write_text("b\n")
    subprocess.run(["git", "status"], cwd=tree, check=False, capture_output=True)
    assert marker.exists()  # the trap is live
    marker.unlink()
    commands = LocalCommands(())
    for argv in (("git", "status"), ("git", "diff", "--stat"), ("git", "status", "--porcelain")):
        done = asyncio.run(commands.run(Command("t", argv, "tester"), str(tree), "none:0:0", 30))
        assert (done.exit_code, "a.txt" in done.output) == (0, True)
    assert not marker.exists()


def test_the_tree_cannot_stand_in_for_a_program(tmp_path, monkeypatch):
    """A relative entry of PATH, or an empty one, finds nothing in the tree."""
    (tmp_path / "pytest").write_text("#!/bin/sh\necho planted\n")
    (tmp_path / "pytest").chmod(0o755)
    monkeypatch.setenv("PATH", f".::{os.environ['PATH']}")
    done = asyncio.run(
        LocalCommands(()).run(Command("t", ("pytest", "-q"), "tester"), str(tmp_path), "none:0:0", 30)
    )
    assert "planted" not in done.output


# ── where a name leads ──────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def store(tmp_path):
    """A folder with links out of it, a loop, a pipe, a second name."""
    here, out = tmp_path / "store", tmp_path / "out"
    (here / "deep").mkdir(parents=True)
    out.mkdir()
    (out / "secret").write_text("s")
    (here / "plain.md").write_text("x")
    for name, target in {"link": out, "loop": "loop", "dev": "/dev/zero", "gone": "x/y"}.items():
        (here / name).symlink_to(target)
    os.link(out / "secret", here / "hard")
    os.mkfifo(here / "fifo")
    return here


@pytest.mark.parametrize(
    "path", ["link", "link/secret", "loop", "dev", "fifo", "link/../x", "../out", "hard/x\0"]
)
def test_what_leads_out(store, path):
    """A link that leaves, a device, a pipe, a loop: not for a command."""
    assert path_escape_problem(str(store), path)


@pytest.mark.parametrize("path", [".", "plain.md", "deep", "deep/new", "nowhere/x", "gone", "gone/x", "hard"])
def test_what_stays(store, path):
    """Files, folders and what is not there yet."""
    assert path_escape_problem(str(store), path) is None


ALL_SETS = CommandRules((), Commands(sets=tuple(load_command_grammars())), load_command_grammars())


def looked_at(store, line, *, running=True):
    """What the disk says against a command that fits its grammar."""
    verdict = ALL_SETS.approve(line)
    assert isinstance(verdict, ApprovedCommand), verdict
    return find_reach_problem(str(store), verdict.reach, running=running)


@pytest.fixture
def hoard(tmp_path):
    """A tree with secrets in it, some hidden, some not, some under another name."""
    for name in (
        ".env",
        "src/app.py",
        "src/notes.txt",
        "config/.npmrc",
        "config/app.yml",
        "deploy/server.pem",
        ".git/config",
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("x")
    (tmp_path / "data.txt").symlink_to(".env")
    return tmp_path


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("grep -r SECRET .", ".env"),
        ("grep -rn x", ".env"),
        ("grep -rn x config", ".npmrc"),
        ("grep -rn x src deploy", "server.pem"),
        ("grep -rn --include='*.py' x .", ".env"),
        ("rg x", ".env"),
        ("rg x deploy", "server.pem"),
        ("rg -g '.n*' x config", ".npmrc"),
        ("eslint 'deploy/s*'", "server.pem"),
        ("cat data.txt", "data.txt"),
        ("grep x data.txt", "data.txt"),
    ],
)
def test_what_would_show_a_secret(hoard, line, said):
    """A search that would read a file that looks like a secret is blocked, and so is a link to one."""
    trouble = looked_at(hoard, line)
    assert trouble is not None
    assert said in trouble
    assert "keeps secrets" in trouble


@pytest.mark.parametrize(
    "line",
    [
        "grep -rn x src", "grep -rn --include='*.py' x src", "grep x src/app.py", "rg x src",
        "eslint 'deploy/*.js'", "cat src/notes.txt", "find . -name .env", "grep -rn x nowhere",
    ],
)  # fmt: skip
def test_what_shows_none(hoard, line):
    """A search that looks elsewhere may run; names may be listed."""
    assert looked_at(hoard, line) is None


def test_a_search_of_very_many_files(tmp_path, monkeypatch):
    """What cannot be looked at whole is not searched."""
    monkeypatch.setattr("steersman.adapters.checks.tree_paths.MAX_SEARCHED_NAMES", 10)
    assert MAX_SEARCHED_NAMES > 1000
    for n in range(11):
        (tmp_path / f"{n}.txt").touch()
    assert "name a folder with fewer" in (looked_at(tmp_path, "grep -r x .") or "")


def test_a_glob_that_reaches_through_a_link(store):
    """What a runner would find through a link out of the tree is not its tests; a link that stays is nothing special."""
    (store / "deep" / "tests").mkdir()
    (store / "deep" / "other").symlink_to("tests")
    assert looked_at(store, "node --test 'deep/**/*.test.js'") is None
    (store / "deep" / "tests" / "far").symlink_to(store.parent / "out")
    assert "leads out" in (looked_at(store, "node --test 'deep/**/*.test.js'") or "")
    assert "leads out" in (looked_at(store, "eslint 'deep/*/*.js'") or "")


def test_a_module_that_is_not_in_the_tree(tmp_path):
    """unittest would look for it elsewhere; whether it is there is asked when it is to run."""
    for name in ("tests/a.py", "src/shop_tests/b.py", "test_c.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    for good in ("tests.a", "shop_tests.b", "test_c", "test_c.py"):
        assert looked_at(tmp_path, f"python -m unittest {good}") is None
    for bad in ("numpy.tests", "tests/none.py", "discover -s test"):
        assert "not in the tree" in (looked_at(tmp_path, f"python -m unittest {bad}") or "")
        assert looked_at(tmp_path, f"python -m unittest {bad}", running=False) is None


@pytest.mark.parametrize(
    "name",
    ["link/x", "link", "loop", "dev", "fifo", "hard", "deep", "PLAIN.md", "Deep/x", "plain.md/x", "gone/x"],
)
def test_what_cannot_hold_a_file(store, name):
    """Links, pipes, second names, folders, other spellings, and files in the place of folders."""
    assert new_file_problem(str(store), name)


@pytest.mark.parametrize("name", ["plain.md", "deep/x", "new", "new/deep/x"])
def test_what_can(store, name):
    """A plain file there, or nothing yet."""
    assert new_file_problem(str(store), name) is None


def test_a_folder_that_is_none(store):
    """A store that is not there yet holds anything; a file is no store."""
    assert new_file_problem(str(store / "absent"), "x") is None
    assert new_file_problem(str(store / "plain.md"), "x")
