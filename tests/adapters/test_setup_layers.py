"""Setup that is made once and fits every tree; checks that cannot write what they judge."""

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest

from steersman.adapters.checks.local_commands import LocalCommands
from steersman.adapters.git.workspace import GitWorkspace
from steersman.adapters.sandbox.bubblewrap import probe_sandbox
from steersman.contracts.commands import Command

PY = sys.executable
INSTALL = "import os; os.makedirs('.venv', exist_ok=True); open('.venv/where', 'w').write(os.getcwd()); print('installed')"


class Bench:
    """A repository, its workspace, and commands in its trees."""

    def __init__(self, tmp_path, mode):
        self.sandbox = probe_sandbox(mode)
        self.repo = tmp_path / "repo"
        for name, text in {
            "requirements.txt": "a==1\n",
            "calc.py": "x = 1\n",
            "tests/test_calc.py": "one\n",
        }.items():
            path = self.repo / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        (self.repo / ".gitignore").write_text(".venv\n")
        self.git("init", "-q", "-b", "main")
        self.commit("First")
        self.state = tmp_path / "state" / "steersman" / "shop-1234567890"
        self.state.mkdir(parents=True)
        self.workspace = GitWorkspace(self.repo, self.state)
        self.number = 0

    def git(self, *args):
        who = ("-c", "user.name=a", "-c", "user.email=a@b")
        subprocess.run(("git", *who, *args), cwd=self.repo, check=True, capture_output=True)

    def commit(self, message):
        self.git("add", "-A")
        self.git("commit", "-qm", message)

    def tree(self, commit=None):
        self.number += 1
        base = commit or self.workspace.base("main").commit
        run = f"r{self.number}"  # trees of one run are removed when the next one is made
        return self.workspace.checkout(run, base, f"{run}:1:1", untouched=True)

    def change(self, **files):
        """A change that an agent made, recorded."""
        base = self.workspace.base("main")
        tree = self.workspace.checkout("coder", base.commit, f"coder:{self.number}:1")
        for name, text in files.items():
            Path(tree.path, name.replace("__", "/").replace("_py", ".py").replace("_txt", ".txt")).write_text(
                text
            )
        return self.workspace.capture("coder", tree.path, base.commit, f"made-{self.number}").commit

    def set_up(self, tree, code=INSTALL):
        commands = LocalCommands((), self.sandbox)
        return asyncio.run(commands.set_up([Command("setup 1", (PY, "-c", code))], tree, "r1:9:1", 60))

    def run(self, tree, code, **more):
        commands = LocalCommands((), self.sandbox, **more)
        command = Command("unit", (PY, "-c", code), tests=False)
        return asyncio.run(commands.run(command, tree.path, "r1:9:1", 60))


@pytest.fixture
def bench(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    made = Bench(tmp_path, "auto")
    if not made.sandbox.isolated:
        pytest.skip(f"NOT SHOWN, no sandbox on this machine: {made.sandbox.why}")
    return made


@pytest.fixture
def open_bench(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return Bench(tmp_path, "off")


def test_setup_is_made_once_and_found_at_one_path(bench):
    """A second tree with the same lock files runs no step, and both see what was installed at the same path."""
    first = bench.tree()
    (done,) = bench.set_up(first)
    assert done.exit_code == 0, done
    second = bench.tree(bench.change(calc_py="x = 2\n"))
    assert second.changed
    assert not first.changed
    assert bench.set_up(second) == ()
    for tree in (first, second):
        result = bench.run(tree, "import os; print(os.getcwd(), open('.venv/where').read())")
        assert result.output == "/steersman/shop /steersman/shop\n", result
    assert list(Path(second.path, ".venv").iterdir()) == []


def test_another_lock_file_is_another_setup(bench):
    """What an agent's change of the dependencies installs is for its own tree alone."""
    bench.set_up(bench.tree())
    changed = bench.tree(bench.change(requirements_txt="a==2\n"))
    assert len(bench.set_up(changed)) == 1
    assert len(list((bench.state / "setups").glob("[0-9a-f]*"))) == 1
    again = bench.tree()
    assert bench.set_up(again) == ()


def test_what_was_built_from_sources_fits_one_tree(bench):
    """Setup that leaves build output runs again for other sources."""
    build = (
        "import os; os.makedirs('dist', exist_ok=True); open('dist/out', 'w').write(open('calc.py').read())"
    )
    assert len(bench.set_up(bench.tree(), build)) == 1
    assert bench.set_up(bench.tree(), build) == ()
    changed = bench.tree(bench.change(calc_py="x = 2\n"))
    assert len(bench.set_up(changed, build)) == 1
    assert bench.run(changed, "print(open('dist/out').read())").output == "x = 2\n\n"


def test_setup_is_no_part_of_a_change(bench):
    """Neither files that setup creates nor lock files that it rewrites are recorded."""
    code = (
        "open('package-lock.json', 'w').write('{}'); open('requirements.txt', 'a').write('# touched'); "
        + INSTALL
    )
    tree = bench.tree()
    bench.set_up(tree, code)
    made = bench.workspace.capture("r1", tree.path, tree.commit, "made")
    assert (made.files, made.tree) == ((), tree.tree)


def test_without_a_sandbox_setup_is_no_part_of_a_change_either(open_bench):
    """There it is in the tree itself, and left out by name."""
    code = (
        "open('package-lock.json', 'w').write('{}'); open('requirements.txt', 'a').write('# touched'); "
        + INSTALL
    )
    tree = open_bench.tree()
    open_bench.set_up(tree, code)
    assert Path(tree.path, ".venv", "where").exists()
    made = open_bench.workspace.capture("r1", tree.path, tree.commit, "made")
    assert (made.files, made.tree) == ((), tree.tree)


REWRITE = "open('tests/test_calc.py', 'w').write('two')"


def test_a_check_of_a_change_cannot_write_tracked_files(bench):
    """They are read-only; new files can be made where the base run made some, and are gone afterwards."""
    tree = bench.tree(bench.change(calc_py="x = 2\n"))
    bench.set_up(tree)
    for code in (
        REWRITE,
        "import os; os.remove('calc.py')",
        "import os; os.rename('tests', 'other')",
        "import os; os.replace('requirements.txt', 'calc.py')",
        "open('tests/new.txt', 'w')",
        "open('.venv/where', 'w')",
    ):
        result = bench.run(tree, code)
        assert result.exit_code != 0, (code, result)
    assert bench.run(tree, "open('report.xml', 'w').write('x')").exit_code == 0
    assert not Path(tree.path, "report.xml").exists()


def test_checks_write_where_the_base_run_wrote(bench):
    """A directory in which a check on the base made or removed entries takes new ones, and its files stay read-only."""
    base = bench.tree()
    bench.set_up(base)
    passing = "import os; open('tests/tmp.txt', 'w').write('x'); os.remove('tests/tmp.txt')"
    assert bench.run(base, passing).exit_code == 0
    tree = bench.tree(bench.change(calc_py="x = 2\n"))
    bench.set_up(tree)
    assert bench.run(tree, passing).exit_code == 0
    assert bench.run(tree, REWRITE).exit_code != 0


def test_a_named_directory_is_writable(bench):
    """`[worktree] writable` adds directories; what setup made is copied for each command."""
    tree = bench.tree(bench.change(calc_py="x = 2\n"))
    bench.set_up(tree)
    assert bench.run(tree, "open('.venv/where', 'a').write('!')", writable=(".venv",)).exit_code == 0
    assert bench.run(tree, "print(open('.venv/where').read())").output == "/steersman/shop\n"
    assert bench.run(tree, "open('tests/new.txt', 'w')", writable=("tests/",)).exit_code == 0


def test_without_a_sandbox_a_rewritten_file_fails_the_check(open_bench):
    """Also where its content and date are put back."""
    code = (
        "import os; old = os.stat('calc.py'); text = open('calc.py').read(); open('calc.py', 'w').write('y'); "
        "open('calc.py', 'w').write(text); os.utime('calc.py', ns=(old.st_atime_ns, old.st_mtime_ns))"
    )
    tree = open_bench.tree(open_bench.change(calc_py="x = 2\n"))
    open_bench.set_up(tree)
    result = open_bench.run(tree, code)
    assert (result.verdict, result.exit_code) == ("failed", 0)
    assert result.reason == "it changed files of the tree while it ran: calc.py"


def test_on_the_base_only_other_content_counts(bench):
    """A check of the project's own that writes the same bytes again is fine; one that changes a file is not."""
    tree = bench.tree()
    bench.set_up(tree)
    same = "text = open('calc.py').read(); open('calc.py', 'w').write(text)"
    assert bench.run(tree, same).verdict == "passed"
    assert "calc.py" in bench.run(tree, "open('calc.py', 'w').write('other')").reason


def test_caches_are_published_by_the_base_alone(bench):
    """What a check of a change writes into its home is gone; what one on the base wrote is there."""
    write = "import os; open(os.path.expanduser('~/{}'), 'w').write('x')"
    look = "import os; print(sorted(os.listdir(os.path.expanduser('~'))))"
    base = bench.tree()
    bench.set_up(base)
    changed = bench.tree(bench.change(calc_py="x = 2\n"))
    bench.set_up(changed)
    assert bench.run(base, write.format("cached")).exit_code == 0
    assert bench.run(changed, write.format("planted")).exit_code == 0
    assert bench.run(changed, write.format("cached")).exit_code == 0
    assert bench.run(changed, look).output == "['cached']\n"


def test_build_output_of_the_base_is_copied_for_a_change(bench):
    """Unchanged files are older than it, changed ones are newer: a build tool builds what is needed."""
    base = bench.tree()
    bench.set_up(base)
    build = "import os; os.makedirs('target', exist_ok=True); open('target/out', 'w').write('built')"
    assert bench.run(base, build).exit_code == 0
    changed = bench.tree(bench.change(calc_py="x = 2\n"))
    bench.set_up(changed)
    stale = "import os; print(*(f for f in ('calc.py', 'requirements.txt') if os.stat(f).st_mtime > os.stat('target/out').st_mtime))"
    assert bench.run(changed, stale).output == "calc.py\n"
    assert bench.run(changed, "open('target/out', 'w').write('planted')").exit_code == 0
    assert bench.run(changed, "print(open('target/out').read())").output == "built\n"
    made = bench.workspace.capture("r2", changed.path, changed.commit, "made")
    assert made.files == ()


def test_a_tree_takes_everything_with_it(bench):
    """Layers of its own and notes beside a tree are removed with it."""
    changed = bench.tree(bench.change(requirements_txt="a==3\n"))
    bench.set_up(changed)
    bench.workspace.remove("r1")
    assert not (bench.state / "worktrees" / "r1").exists()
    assert not os.path.lexists(changed.path)


def test_what_checks_leave_behind_is_not_judged(open_bench):
    """Without a sandbox a check finds what the one before left in the tree, and may write it."""
    tree = open_bench.tree(open_bench.change(calc_py="x = 2\n"))
    open_bench.set_up(tree)
    for text in ("one", "two"):
        assert open_bench.run(tree, f"open('.cache.txt', 'w').write('{text}')").verdict == "passed"
    assert open_bench.run(tree, REWRITE).verdict == "failed"


def test_build_output_of_setup_is_kept_apart(bench):
    """What setup builds in `target` can be written by checks, each in its own copy."""
    build = "import os; os.makedirs('target'); open('target/out', 'w').write('built')"
    tree = bench.tree()
    assert len(bench.set_up(tree, build)) == 1
    changed = bench.tree(bench.change(calc_py="x = 2\n"))
    assert bench.set_up(changed, build) == ()
    assert bench.run(changed, "open('target/out', 'a').write('!')").exit_code == 0
    assert bench.run(changed, "print(open('target/out').read())").output == "built\n"


def test_build_output_of_another_base_is_never_fresh(bench):
    """A base that was built in between makes every file that differs from it newer than its build output."""
    build = "import os; os.makedirs('target', exist_ok=True); open('target/out', 'w').write(open('calc.py').read())"
    stale = "import os; print(os.stat('calc.py').st_mtime > os.stat('target/out').st_mtime)"
    first = bench.tree()
    bench.set_up(first)
    bench.run(first, build)
    changed = bench.tree(bench.change(requirements_txt="a==1\n"))
    bench.set_up(changed)
    assert bench.run(changed, stale).output == "False\n"
    (bench.repo / "calc.py").write_text("x = 3\n")
    bench.commit("Second")
    second = bench.tree()
    bench.set_up(second)
    bench.run(second, build)
    assert bench.run(changed, stale).output == "True\n"


def test_a_tree_whose_files_cannot_be_listed_passes_nothing(open_bench):
    """Without a sandbox a check may damage what the next one is compared with: that one has not passed."""
    tree = open_bench.tree(open_bench.change(calc_py="x = 2\n"))
    open_bench.set_up(tree)
    Path(f"{tree.path}.index").write_text("planted")
    result = open_bench.run(tree, "print('fine')")
    assert (result.verdict, result.exit_code) == ("failed", None)
    assert "cannot list the files" in result.reason


def test_a_setup_that_does_not_work_any_more_is_made_again(bench):
    """A check on the base that cannot start drops the layer: the next tree is set up from scratch."""
    tree = bench.tree()
    bench.set_up(tree)
    assert bench.run(tree, "import sys; sys.exit(127)").exit_code == 127
    assert len(bench.set_up(bench.tree())) == 1


def test_a_variable_of_the_project_is_an_input_of_setup(bench):
    """Another `[env]` is another setup."""
    steps = [Command("setup 1", (PY, "-c", INSTALL))]
    for env, ran in (({"A": "1"}, 1), ({"A": "1"}, 0), ({"A": "2"}, 1)):
        commands = LocalCommands((), bench.sandbox, env=env)
        assert len(asyncio.run(commands.set_up(steps, bench.tree(), "r1:9:1", 60))) == ran


LOCK = "open('Cargo.lock', 'a').write('locked\\n')"


def test_a_lock_file_that_setup_makes_does_not_count_as_an_input(bench):
    """A tree that is set up twice finds its first setup, though the place of the lock file is in the tree now."""
    tree = bench.tree()
    assert len(bench.set_up(tree, LOCK)) == 1
    assert bench.set_up(tree, LOCK) == ()
    assert bench.run(tree, "print(open('Cargo.lock').read())").output == "locked\n\n"


def test_a_tree_whose_setup_is_gone_is_set_up_from_scratch(bench):
    """The places at which the old setup was mounted are removed before its steps run again."""
    tree = bench.tree()
    bench.set_up(tree, LOCK)
    for record in (bench.state / "setups").glob("*/record.json"):
        record.unlink()
    assert len(bench.set_up(tree, LOCK)) == 1
    assert bench.run(tree, "print(open('Cargo.lock').read())").output == "locked\n\n"


def test_setup_that_runs_twice_without_a_sandbox_is_no_part_of_a_change(open_bench):
    """What the first setup left in the tree is still known as setup after the second."""
    tree = open_bench.tree()
    for _ in range(2):
        open_bench.set_up(tree, LOCK)
    made = open_bench.workspace.capture("r1", tree.path, tree.commit, "made")
    assert (made.files, made.tree) == ((), tree.tree)


VENV = (
    "import os; os.makedirs('.venv/bin', exist_ok=True); open('.venv/pyvenv.cfg', 'w').close();"
    "open('.venv/bin/tool', 'w').write('#!/bin/sh\\necho made by setup'); os.chmod('.venv/bin/tool', 0o755);"
    "open('.venv/bin/check', 'w').write('#!/bin/sh\\ntool; echo $VIRTUAL_ENV'); os.chmod('.venv/bin/check', 0o755)"
)


def check_in_venv(bench, tree, cwd="", program=".venv/bin/check"):
    command = Command("unit", (program,), tests=False, cwd=cwd)
    return asyncio.run(LocalCommands((), bench.sandbox).run(command, tree.path, "r1:9:1", 60))


def test_programs_of_the_trees_own_environment_are_found(bench):
    """A check that starts in an environment of setup finds its other programs too, on the base and for a change."""
    base = bench.tree()
    change = bench.tree(bench.change(calc_py="x = 2\n"))
    for tree in (base, change):
        bench.set_up(tree, VENV)
        for cwd, program in (("", ".venv/bin/check"), ("tests", "../.venv/bin/check")):
            result = check_in_venv(bench, tree, cwd, program)
            assert result.output == "made by setup\n/steersman/shop/.venv\n", result


def test_a_setup_step_finds_programs_of_the_steps_before_it(bench):
    """A step whose program an earlier step has installed runs as with that environment activated."""
    steps = [Command("setup 1", (PY, "-c", VENV)), Command("setup 2", (".venv/bin/check",))]
    done = asyncio.run(LocalCommands((), bench.sandbox).set_up(steps, bench.tree(), "r1:9:1", 60))
    assert [r.output for r in done] == ["", "made by setup\n/steersman/shop/.venv\n"], done


def test_without_a_sandbox_they_are_found_too(open_bench):
    """The path is the one of the tree itself there."""
    tree = open_bench.tree()
    open_bench.set_up(tree, VENV)
    assert check_in_venv(open_bench, tree).output == f"made by setup\n{tree.path}/.venv\n"


@pytest.mark.parametrize("kind", ["sandbox", "open"])
def test_programs_that_a_commit_brings_are_not_preferred(kind, request):
    """A tracked file in the environment keeps its directory out of PATH, in setup steps and in checks."""
    bench = request.getfixturevalue("bench" if kind == "sandbox" else "open_bench")
    brought = bench.repo / ".venv" / "bin" / "git"
    brought.parent.mkdir(parents=True)
    brought.write_text("#!/bin/sh\necho brought\n")
    bench.git("add", "-f", ".venv/bin/git")
    bench.commit("Bring a program")
    tree = bench.tree()
    steps = [Command("setup 1", (PY, "-c", VENV)), Command("setup 2", (".venv/bin/check",))]
    commands = LocalCommands((), bench.sandbox)
    outputs = [r.output for r in asyncio.run(commands.set_up(steps, tree, "r1:9:1", 60))]
    assert outputs == ["", "\n"]
    assert check_in_venv(bench, tree).output == "\n"


def test_an_environment_that_is_a_link_is_not_preferred(bench):
    """Setup that links the environment to files of the tree makes none of its own."""
    brought = bench.repo / "tools" / "bin" / "check"
    brought.parent.mkdir(parents=True)
    brought.write_text("#!/bin/sh\necho $PATH\n")
    brought.chmod(0o755)
    bench.commit("Bring a folder")
    tree = bench.tree()
    bench.set_up(tree, "import os; os.symlink('tools', '.venv')")
    result = check_in_venv(bench, tree)
    assert result.exit_code == 0
    assert ".venv" not in result.output
