"""What every command owes a person: help with examples, exit codes, --json, one-line errors, a fast start."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from tests.support.cases import for_each_case

from steersman.errors import StoreBroken
from steersman.faces.cli.context import DocumentedCommand
from steersman.faces.cli.main import TOP_LEVEL_COMMANDS, LazyGroup, run_command_line, steersman_group
from steersman.wiring import SERVICES

README = Path(__file__).resolve().parents[2] / "README.md"
HEAVY = ("asyncio", "rich", "yaml", "cryptography", "psutil", "jsonschema_rs", "pathlib", "hashlib", "ctypes")


def _verbs(group: LazyGroup, name: str = "steersman") -> Iterator[tuple[str, DocumentedCommand]]:
    ctx = click.Context(group)
    for known in group.list_commands(ctx):
        found = group.get_command(ctx, known)
        if isinstance(found, LazyGroup):
            yield from _verbs(found, f"{name} {known}")
        else:
            assert isinstance(found, DocumentedCommand)
            yield f"{name} {known}", found


VERBS = dict(_verbs(steersman_group))


@for_each_case("name", VERBS)
def test_every_command_has_examples_exit_codes_and_json(name: str) -> None:
    """Help ends with examples of the command itself and its exit codes; --json and --project are options of each."""
    verb = VERBS[name]
    words = verb.get_help(click.Context(verb, info_name=name))
    assert "Examples:" in words
    assert "Exit codes:" in words
    assert any(line.startswith(name.removesuffix(" make")) for line in verb.examples)  # which may be left out
    options = {o for p in verb.params for o in p.opts}
    assert {"--json", "--project"} <= options
    assert verb.help


@for_each_case("name", VERBS)
def test_every_example_can_be_parsed(name: str) -> None:
    """Examples are real: their options and arguments are those of the commands."""
    import shlex

    for line in VERBS[name].examples:
        words = shlex.split(line.partition("   #")[0].partition(" < ")[0].partition(" > ")[0])[1:]
        ctx, command = click.Context(steersman_group), steersman_group
        while isinstance(command, LazyGroup) and words:
            if words[0] not in command.known and hasattr(command, "default"):
                words.insert(0, command.default)
            found = command.get_command(ctx, words.pop(0))
            assert found is not None, f"no such command: {line}"
            command = found  # type: ignore[assignment]  a group or a verb
        if isinstance(command, DocumentedCommand):
            assert command.make_context(name, words).command is command
        else:
            assert words == [], f"only a group: {line}"


def test_the_commands_are_the_listed_ones() -> None:
    """The top-level commands and those of the groups are exactly these, and README.md describes each top-level one."""
    listed = "init trust run acknowledge runs show watch gates approve accept-evidence rework reject answer send followup abort resume fork why report audit machine doctor demo check chat revert plan intent registry memory facts tasks repl"
    assert set(listed.split()) == set(TOP_LEVEL_COMMANDS), (
        "the list above and TOP_LEVEL_COMMANDS in faces/cli/main.py differ; see CONTRIBUTING.md, Add a command"
    )
    described = set(re.findall(r"^\| `steersman ([a-z-]+)", README.read_text(encoding="utf-8"), re.MULTILINE))
    assert described == set(TOP_LEVEL_COMMANDS), "the table of commands in README.md differs from --help"
    assert {n.split()[2] for n in VERBS if n.startswith("steersman plan")} == {
        "make", "answer", "explain", "verify", "diff",
    }  # fmt: skip
    assert {n.split()[2] for n in VERBS if n.startswith("steersman audit")} == {
        "tape", "verify", "replay", "anchor", "prune", "export",
    }  # fmt: skip
    assert {n.split()[2] for n in VERBS if n.startswith("steersman machine")} == {
        "list", "show", "check", "migrate", "lock",
    }  # fmt: skip


def test_nothing_approves_but_the_answers() -> None:
    """No option of any command approves: only approve, accept-evidence, answer and followup --confirm do, for a person."""
    for name, verb in VERBS.items():
        options = {o for p in verb.params for o in p.opts}
        assert not options & {"--approve", "--auto-approve", "--no-confirm", "--force-approve"}, name


def test_listing_imports_little(tmp_path: object) -> None:
    """`steersman runs` needs click, apsw and msgspec, and nothing that is slow to load."""
    code = (
        "import sys; from steersman.wiring import run_steersman as main; main(['runs']);"
        f"print([m for m in {HEAVY!r} if m in sys.modules]);"
        "print([m for m in sys.modules if m.startswith('steersman.') and m.split('.')[1] in"
        " ('kernel', 'machines', 'engine', 'contracts')])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=str(tmp_path), env={"XDG_STATE_HOME": str(tmp_path), "PATH": "/usr/bin:/bin"}, capture_output=True, check=True,
    )  # fmt: skip
    assert done.stdout.decode().splitlines()[-2:] == ["[]", "[]"]


def test_an_expected_error_is_one_line_with_its_exit_code(
    capsys: pytest.CaptureFixture[str], tmp_path: object
) -> None:
    """Store trouble is exit 5 and a line; what it says cannot move the cursor."""

    def broken(_project: object) -> bool:
        raise StoreBroken("the \x1b[2Jstore is broken: mend it")

    services = SERVICES._replace(has_store=broken)
    assert run_command_line(services, ["runs", "--project", str(tmp_path)]) == 5
    assert capsys.readouterr().err == "steersman: the \\x1b[2Jstore is broken: mend it\n"


@pytest.mark.parametrize(
    "words",
    [
        "runs", "runs --json", "machine show roundtable --format json", "nope --json", "--version",
        "runs --help",
    ],
)  # fmt: skip
@pytest.mark.parametrize("buffered", ["", "1"])
def test_an_answer_that_cannot_be_written_is_one_line_and_exit_5(
    words: str, buffered: str, tmp_path: Path
) -> None:
    """A full disk behind standard output is trouble that is told, with no traceback, by the interpreter either."""
    env = {"XDG_STATE_HOME": str(tmp_path), "PATH": os.environ["PATH"], "PYTHONUNBUFFERED": buffered}
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "steersman", *words.split()],
            cwd=tmp_path, env=env, stdout=full, stderr=subprocess.PIPE, check=False,
        )  # fmt: skip
    *before, last = done.stderr.decode().splitlines()
    assert (done.returncode, len(before)) == (5, words.count("nope")), done.stderr.decode()
    assert "the answer cannot be written (No space left on device)" in last


def test_what_a_command_says_at_its_end_is_one_document(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """A disk that fails at the look at due timers takes nothing back and adds nothing; a defect of ours is told."""
    from steersman.faces.cli.context import CommandContext

    def broken(_deck: object) -> None:
        raise ZeroDivisionError

    def troubled(_deck: object) -> None:
        raise OSError("the disk went away")

    monkeypatch.setattr(CommandContext, "_warn_overdue_runs", troubled)
    words = ["machine", "list", "--json", "--project", str(tmp_path)]
    assert run_command_line(SERVICES, words) == 0
    (line,) = capsys.readouterr().out.splitlines()
    assert json.loads(line)[0]["name"] == "roundtable"
    monkeypatch.setattr(CommandContext, "_warn_overdue_runs", broken)
    assert run_command_line(SERVICES, words) == 70
    (line,) = capsys.readouterr().out.splitlines()
    assert json.loads(line)["exit_code"] == 70


def test_a_missing_argument_is_one_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    """What is missing and where to look, with one mark between them."""
    assert run_command_line(SERVICES, ["show"]) == 2
    assert "Missing argument 'RUN'. See `steersman show --help`" in capsys.readouterr().err


def test_an_unknown_command_is_told_once(capsys: pytest.CaptureFixture[str]) -> None:
    """One hint where to look, and what was nearly meant."""
    assert run_command_line(SERVICES, ["nope"]) == 2
    assert capsys.readouterr().err == "steersman: there is no command 'nope'. See `steersman --help`\n"
    assert run_command_line(SERVICES, ["rnus"]) == 2
    assert "Did you mean `runs`?" in capsys.readouterr().err


@pytest.mark.parametrize("library", ["steersman.wiring", "steersman.adapters", "click"])
def test_an_interrupt_while_libraries_are_read_is_quiet(library: str, tmp_path: Path) -> None:
    """Ctrl-C just after the start ends with 130 and without a traceback."""
    code = (
        "import signal, sys, os\n"
        "from steersman.__main__ import main\n"
        "class Late:\n"
        "    def find_spec(self, name, *_):\n"
        "        if name == LIBRARY: os.kill(os.getpid(), signal.SIGINT)\n"
        "sys.meta_path.insert(0, Late())\n"
        "sys.exit(main())\n"
    )
    code = code.replace("LIBRARY", repr(library))
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (130, b"")


def test_a_defect_is_said_to_be_one(capsys: pytest.CaptureFixture[str], tmp_path: object) -> None:
    """What nobody expected keeps its traceback, and has an exit code that no outcome has."""

    def broken(_project: object) -> bool:
        raise ZeroDivisionError

    services = SERVICES._replace(has_store=broken)
    assert run_command_line(services, ["runs", "--project", str(tmp_path)]) == 70
    errors = capsys.readouterr().err
    assert "ZeroDivisionError" in errors
    assert "defect of steersman" in errors


@pytest.mark.parametrize(
    "how",
    [
        "exec >&- 2>&-", "exec <&-", "export LC_ALL=C PYTHONUTF8=0 PYTHONCOERCECLOCALE=0",
        "export PYTHONIOENCODING=latin-1",
    ],
    ids=["closed", "no input", "ascii", "latin-1"],
)  # fmt: skip
def test_any_surroundings_will_do(how: str, tmp_path: object) -> None:
    """A closed stream, no input or a narrow encoding is no reason to break."""
    for words in ("runs", "--help", "machine show roundtable", "nonsense"):
        line = f"{how}; exec {sys.executable} -m steersman {words}"
        done = subprocess.run(["sh", "-c", line], cwd=str(tmp_path), capture_output=True, check=False)
        assert done.returncode == (2 if words == "nonsense" else 0), done
        assert b"Traceback" not in done.stderr
