"""`init` on small projects: what it proposes, asks, proves and writes. No network: setup makes files by itself."""

import json
import os
import pty
import select
import shlex
import sys
import time
import tomllib

import pytest
from tests.support.sample_project import STEERSMAN_COMMAND, Project

PASSES = "import unittest\n\n\nclass T(unittest.TestCase):\n    def test_a(self):\n        pass\n"
NODE_TEST = "const { test } = require('node:test');\ntest('adds', () => {});\n"
# A package manager of ours: it writes what its project needs, or fails as it is told.
FAKE_NPM = f"""#!{sys.executable}
import os, pathlib, sys
words = sys.argv[1:]
if words[:1] in (["ci"], ["install"]):
    if pathlib.Path("fails-" + ("scripts" if "--ignore-scripts" in words else words[0])).exists():
        print("looking for packages")
        print("npm ERR! nothing is there", file=sys.stderr)
        sys.exit(7)
    pathlib.Path("node_modules").mkdir(exist_ok=True)
    pathlib.Path("node_modules", "ready").write_text("x")
elif words == ["run", "build"]:
    pathlib.Path("dist").mkdir() if not pathlib.Path("fails-build").exists() else sys.exit("no compiler")
elif words[:1] == ["test"]:
    assert pathlib.Path("node_modules", "ready").exists(), "setup has not run"
    assert os.environ["CI"] == "true"
    if pathlib.Path("needs-build").exists() and not pathlib.Path("dist").exists():
        print("  Total:     3\\n  Passed:    2\\n  Skipped:   0")
        sys.exit(1)
    if pathlib.Path("fails-test").exists():
        sys.exit("the build fails before a test")
    if pathlib.Path("tells-little").exists():
        sys.exit(print("Tests: 5, Assertions: 7, Failures: 1.") or 1)
    print("  Total:     3\\n  Passed:    3\\n  Skipped:   0" if "--workspaces" not in words else "fine")
"""


def commit(project: Project, files: dict[str, str]) -> None:
    for path in project.repo.glob("*.py"):
        path.unlink()
    for name, text in files.items():
        (project.repo / name).parent.mkdir(parents=True, exist_ok=True)
        (project.repo / name).write_text(text)
    project.git("add", "-A")
    project.git("commit", "-qm", "files")


def programs(project: Project) -> str:
    """A PATH whose npm is ours."""
    folder = project.repo.parent / "bin"
    folder.mkdir(exist_ok=True)
    (folder / "npm").write_text(FAKE_NPM)
    (folder / "npm").chmod(0o755)
    return f"{folder}:{os.environ['PATH']}"


def written(project: Project) -> dict:
    return tomllib.loads((project.repo / "steersman.toml").read_text())


PACKAGE = {
    "package.json": '{"scripts": {"test": "uvu"}, "devDependencies": {"uvu": "1"}}',
    "package-lock.json": "{}",
}


def test_setup_is_proposed_proven_and_written(project: Project) -> None:
    """A lock file leads to its setup step; the check runs after it, in a fresh tree, and leaves nothing behind."""
    commit(project, PACKAGE)
    (project.repo / "node_modules").mkdir()  # what the developer happens to have is not used
    result = project.call("init", "--yes", "--json", PATH=programs(project))
    assert result.code == 0, result
    assert result.json()["setup"] == [{"run": ["npm", "ci"], "cwd": ""}]
    assert result.json()["checks"]["npm"]["tests"] == 3
    config = written(project)
    assert (config["worktree"]["setup"], config["env"]) == ([["npm", "ci"]], {"CI": "true"})
    assert config["checks"] == {"npm": ["npm", "test"]}
    assert not list(project.state.glob("trees/init-*/*"))
    assert project.git("status", "--porcelain").split() == ["??", "steersman.toml"]


def test_it_asks_once_and_without_an_answer_does_nothing(project: Project) -> None:
    """Everything that may run is shown first; nobody there to answer is wrong usage, and nothing is written."""
    commit(project, PACKAGE)
    result = project.call("init", PATH=programs(project))
    assert result.code == 2
    assert "init --yes" in result.err
    for part in (
        "in a fresh copy of commit",
        "npm ci",
        "npm: npm test",
        "only if that fails",
        "--ignore-scripts",
    ):
        assert part in result.out, part
    assert not (project.repo / "steersman.toml").exists()


def test_the_next_plan_is_tried(project: Project) -> None:
    """A setup that fails is followed by the next best one, and the file has the one that worked."""
    commit(project, {**PACKAGE, "fails-ci": ""})
    result = project.call("init", "--yes", PATH=programs(project))
    assert result.code == 0, result
    assert "`npm ci` failed (" in result.out
    assert written(project)["worktree"]["setup"] == [["npm", "ci", "--ignore-scripts"]]


BUILT = {
    **PACKAGE,
    "package.json": '{"scripts": {"test": "uvu", "build": "x"}, "devDependencies": {"uvu": "1"}}',
    "needs-build": "",
}


def test_tests_that_need_a_build_get_one(project: Project) -> None:
    """Where tests fail a plan with more setup steps is tried; it is kept because it is green."""
    commit(project, BUILT)
    result = project.call("init", "--yes", PATH=programs(project))
    assert result.code == 0, result
    assert "given up: setup without `npm run build`" in result.out
    assert "npm: passed · 3 tests" in result.out
    assert written(project)["worktree"]["setup"] == [["npm", "ci"], ["npm", "run", "build"]]


@pytest.mark.parametrize("more", [{"fails-build": ""}, {"fails-test": ""}])
def test_a_build_that_does_not_help_is_left_out(project: Project, more: dict[str, str]) -> None:
    """Where the longer plan fails too the first one is kept, and the attempt is named."""
    commit(project, {**BUILT, **more})
    result = project.call("init", "--yes", PATH=programs(project))
    assert "given up: `npm run build` in setup: no better" in result.out, result
    assert written(project)["worktree"]["setup"] == [["npm", "ci"]]


def test_a_setup_that_fails_says_why(project: Project) -> None:
    """Where no plan works the file has what is known, the end of the output is shown, and the next step."""
    commit(project, {**PACKAGE, "fails-ci": "", "fails-scripts": "", "fails-install": ""})
    result = project.call("init", "--yes", PATH=programs(project))
    assert result.code == 1, result
    for part in ("exit code 7", "looking for packages", "npm ERR! nothing is there", "init --check"):
        assert part in result.out, part
    assert written(project)["checks"] == {"npm": ["npm", "test"]}


def test_a_check_that_counts_nothing_says_how_to_count(project: Project) -> None:
    """Nothing is made up: the check is written, the exit code is 1, and both ways to say it are shown as lines."""
    packages = {f"packages/{name}/package.json": '{"scripts": {"test": "x"}}' for name in "ab"}
    commit(project, {"package.json": '{"workspaces": ["packages/*"]}', "package-lock.json": "{}", **packages})
    result = project.call("init", "--yes", PATH=programs(project))
    assert result.code in (0, 1), result
    assert "given up: npm counted no test" in result.out


def test_checks_of_packages_have_their_folder(project: Project) -> None:
    """Two Go-like folders of tests without a manifest above: each package is checked where it is."""
    commit(
        project,
        {
            "one/package.json": "{}", "one/a.test.js": NODE_TEST,
            "two/package.json": '{"scripts": {"test": "node --test"}}', "two/a.test.js": NODE_TEST,
        },
    )  # fmt: skip
    result = project.call("init", "--yes", "--json")
    checks = result.json()["checks"]
    assert {name: (check["cwd"], check["argv"]) for name, check in checks.items()} == {
        "node-one": ("one", ["node", "--test"]),
        "npm-two": ("two", ["node", "--test"]),
    }


def test_failures_on_the_base_are_acknowledged_only_by_name(project: Project) -> None:
    """A red check is kept, its failing tests are listed with the command that acknowledges them; --yes alone acknowledges nothing."""
    result = project.call("init", "--yes")
    assert result.code == 0, result
    (name,) = json.loads(project.call("init", "--yes", "--force", "--json").out)["checks"]["unittest"][
        "failed"
    ]
    assert f"1 test failed: {name}" in result.out
    assert "  acknowledge it by name:\n    steersman init --check --acknowledge-failures" in result.out
    assert "  let a run repair it:\n    steersman run" in result.out
    assert "known_failures" not in written(project)
    result = project.call("init", "--check", "--yes")
    assert (result.code, "init --check --acknowledge-failures" in result.out) == (1, True)
    result = project.call("init", "--yes", "--force", "--acknowledge-failures")
    assert (result.code, written(project)["known_failures"]) == (0, [name])
    assert f"1 failure acknowledged in steersman.toml; any other still counts:\n  {name}\n" in result.out
    project.git("add", "-A")
    project.git("commit", "-qm", "configured")
    before = (project.repo / "steersman.toml").read_text()
    result = project.call("init", "--check", "--yes")
    assert result.code == 0, result
    assert "  unittest: passed but for 1 known failure · " in result.out
    assert "failed" not in result.out
    assert "every check is proven" in result.out
    assert (project.repo / "steersman.toml").read_text() == before


def test_failures_without_names_and_numbers_are_not_acknowledged(project: Project) -> None:
    """Where nobody says how many tests pass the check could never be judged: init says so and writes no name."""
    commit(project, {**PACKAGE, "tells-little": ""})
    result = project.call("init", "--yes", "--acknowledge-failures", PATH=programs(project))
    assert "npm cannot be acknowledged: its failures have no names" in result.err
    assert "known_failures" not in written(project)


def test_a_check_that_does_not_come_to_its_tests_is_not_proven(project: Project) -> None:
    """Where one package is green and another fails before a test, init ends with 1 and says what to do next."""
    packages = {f"{folder}/{name}": text for folder in ("one", "two") for name, text in PACKAGE.items()}
    commit(project, {**packages, "two/fails-test": ""})
    result = project.call("init", "--yes", PATH=programs(project))
    assert result.code == 1, result
    assert "npm-one: passed · 3 tests" in result.out
    assert "npm-two: failed · exit code 1" in result.out
    assert "next: edit steersman.toml, then `steersman init --check`" in result.out


def test_check_proves_an_edited_file_again(project: Project) -> None:
    """After an edit `--check` runs what the file says, in its folder and with its variables, and writes nothing."""
    commit(project, {"app/tests/test_a.py": PASSES, "app/data.txt": "x"})
    (project.repo / "steersman.toml").write_text(
        "version = 1\n"
        '[env]\nWORD = "hello"\n'
        '[worktree]\nsetup = [{ run = ["sh", "-c", "echo $WORD > made.txt"], cwd = "app" }]\n'
        "[checks]\n"
        'unit = { run = ["sh", "-c", "grep -q hello made.txt && echo Passed: 4"], cwd = "app",'
        " summary = 'Passed: (?P<passed>\\d+)' }\n"
        'e2e = { run = ["test", "-f", "app/data.txt"], exit_code_is_enough = true }\n'
    )
    result = project.call("init", "--check", "--yes", "--json")
    assert result.code == 0, result
    checks = result.json()["checks"]
    assert (checks["unit"]["verdict"], checks["unit"]["tests"]) == ("passed", 4)
    assert checks["e2e"]["reason"] == "exit code only (chosen in steersman.toml)"
    shown = project.call("init", "--check", "--yes").out
    assert "e2e: passed · exit code only (chosen in steersman.toml)" in shown
    text = (project.repo / "steersman.toml").read_text()
    (project.repo / "steersman.toml").write_text(text.replace("app/data.txt", "app/gone.txt"))
    result = project.call("init", "--check", "--yes")
    assert result.code == 1
    assert "e2e: failed · exit code 1" in result.out


@pytest.mark.parametrize("file", ["", "version = 1\n"])
def test_check_needs_a_check(project: Project, file: str) -> None:
    """Without a file, or without a check in it, there is nothing to prove."""
    if file:
        (project.repo / "steersman.toml").write_text(file)
    result = project.call("init", "--check", "--yes")
    assert (result.code, "there is no check to prove" in result.err) == (2, True)


def test_acknowledging_leaves_the_rest_of_the_file_alone(project: Project) -> None:
    """The command that init names adds to known_failures; settings and comments stay, and nothing is left to add."""
    project.call("init", "--yes")
    path = project.repo / "steersman.toml"
    path.write_text(path.read_text() + "\n[budget]\nusd = 5   # mine\n")
    before = path.read_text()
    result = project.call("init", "--check", "--acknowledge-failures", "--yes")
    assert result.code == 0, result
    (name,) = written(project)["known_failures"]
    assert "1 failure acknowledged in steersman.toml" in result.out
    assert f"  {name}\n" in result.out
    assert "every check is proven" in result.out
    assert path.read_text().replace(f'known_failures = [\n    "{name}",\n]\n', "") == before
    after = path.read_text()
    result = project.call("init", "--check", "--acknowledge-failures", "--yes", "--json")
    assert (result.code, result.json()["added"], path.read_text()) == (0, [], after)


def test_force_keeps_a_copy(project: Project) -> None:
    """A file that is written over is kept beside it, each under a name of its own; the same file again is not."""
    path = project.repo / "steersman.toml"
    for number, name in enumerate(("steersman.toml.bak", "steersman.toml.bak1")):
        path.write_text(f"version = 1\n# mine {number}\n")
        result = project.call("init", "--force", "--yes")
        assert f"the file that was there is kept in {name}" in result.out
        assert (project.repo / name).read_text() == f"version = 1\n# mine {number}\n"
    result = project.call("init", "--force", "--yes")
    assert "is kept in" not in result.out
    assert len(list(project.repo.glob("steersman.toml*"))) == 3


@pytest.mark.parametrize(
    "words",
    [
        ("init", "--force", "--acknowledge-failures"),
        ("init", "--check"),
        ("init", "--force", "--script", "a b.yaml", "--seconds", "30"),
    ],
)
def test_the_advice_is_the_typed_command(project: Project, words: tuple[str, ...]) -> None:
    """Without an answer the same command is named, with --yes."""
    project.call("init", "--yes")
    result = project.call(*words)
    assert (result.code, f"`steersman {shlex.join(words)} --yes`" in result.err) == (2, True), result


def test_settings_are_not_an_uncommitted_change(project: Project) -> None:
    """steersman.toml and its copies are read from the checkout: only other files are said to be left out."""
    project.call("init", "--yes")
    (project.repo / "steersman.toml.bak").write_text("")
    assert "uncommitted" not in project.call("init", "--check", "--yes").err
    (project.repo / "notes.txt").write_text("x")
    assert "uncommitted" in project.call("init", "--check", "--yes").err


def test_no_answer_to_the_second_question_is_a_no(project: Project) -> None:
    """What was proven is written; nothing is acknowledged, and the command that does it is named."""
    pid, fd = pty.fork()
    if pid == 0:
        os.chdir(project.repo)
        os.execve(STEERSMAN_COMMAND[0], [*STEERSMAN_COMMAND, "init"], {**project.env, "TERM": "dumb"})  # noqa: S606  the child of a pty
    shown = read_until(fd, "run them? [y/N]:")
    os.write(fd, b"y\n")
    shown += read_until(fd, "still count [y/N]:")
    os.write(fd, b"\x04")
    shown += read_until(fd, "--fix-base")
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    os.close(fd)
    assert "no answer, so steersman takes it as no" in shown
    assert "init --check --acknowledge-failures" in shown
    assert "known_failures" not in written(project)


def read_until(fd: int, words: str, seconds: float = 60) -> str:
    shown, end = "", time.monotonic() + seconds
    while words not in shown and time.monotonic() < end:
        if select.select([fd], [], [], 1)[0]:
            shown += os.read(fd, 65536).decode(errors="replace").replace("\r\n", "\n")
    assert words in shown, shown
    return shown
