"""A machine that only its own folder knows: everything that a person sees of its runs is made from what it declares."""

import json
from pathlib import Path

import pytest
from tests.support.command_launcher import CommandCall
from tests.support.letter_package import install_letter_machine
from tests.support.sample_project import CommandResult, Project

FIRST_DRAFT, SHORT_DRAFT = "Dear Ann, how about Friday at noon?", "Ann: Friday?"
WRITER_SCRIPT = {
    "version": "1",
    "writer": [{"mode": "draft", "say": FIRST_DRAFT}, {"mode": "redraft", "say": SHORT_DRAFT}],
}


@pytest.fixture
def letters(project: Project, tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A project on a computer where the machine of the page is installed."""
    project.env["PYTHONPATH"] = str(install_letter_machine(tmp_path_factory.mktemp("site")))
    role = '[roles.writer]\nagent = "scripted"\nscript = "../crew.yaml"\nretries = 0\n'
    (project.repo / "steersman.toml").write_text(f"version = 1\n{role}", encoding="utf-8")
    (project.place / "crew.yaml").write_text(json.dumps(WRITER_SCRIPT), encoding="utf-8")
    project.git("add", "-A")
    project.git("commit", "-q", "-m", "settings")
    project.trusted = False  # this process does not have the machine: the command itself records the trust
    digest = project.call("trust", "--show", "--json").json()["digest"]
    assert project.call("trust", "--digest", digest).code == 0
    return project


def start_letter(project: Project) -> str:
    """A letter that waits for its reader."""
    started = project.call("run", "--as", "letter", "Ask Ann for lunch", "--json")
    assert started.code == 3, started
    return str(started.json()["run"])


def type_lines(project: Project, run: str, *lines: str) -> CommandResult:
    """A sitting over these lines."""
    fed = "\n".join(lines).encode()
    done = project.launch(CommandCall(("repl", run), project.repo, project.env, fed))
    return CommandResult(done.returncode, done.stdout.decode(), done.stderr.decode())


def test_the_machine_is_listed_shown_and_checked(letters: Project):
    """`machine list`, `show` and `check` know it as they know the built-in ones."""
    listed = {machine["name"]: machine for machine in letters.call("machine", "list", "--json").json()}
    assert listed["letter"]["states"] == 4
    shown = letters.call("machine", "show", "letter")
    assert "no rewrite is left" in shown.out
    assert (
        "postscript_wanted (at most 2)"
        in letters.call("machine", "show", "letter", "--format", "mermaid").out
    )
    checked = letters.call("machine", "check", "letter")
    assert (checked.code, checked.out.endswith("no findings\n")) == (0, True), checked


def test_a_letter_from_its_first_command_to_its_last(letters: Project):
    """`run`, `gates`, `why`, `show`, `rework`, `approve` and `report` speak of it in the words of its table."""
    run = start_letter(letters)
    gates = letters.call("gates", run)
    for words in (
        "Shall this letter be sent?",
        FIRST_DRAFT,
        f"approve {run}",
        f'rework {run} "what to change"',
    ):
        assert words in gates.out, words
    (gate,) = letters.call("gates", run, "--json").json()
    assert (gate["job"], gate["choices"]) == ("read", ["approve", "rework"])
    why = letters.call("why", run)
    assert "run" in why.out
    assert "is waiting for you, in state waiting: A person reads the draft." in why.out
    assert "Shall this letter be sent?" in why.out
    assert "A person reads the draft." in letters.call("show", run).out
    assert letters.call("show", run, "--json").json()["machine"] == "letter"
    assert letters.call("rework", run, "").code != 0
    assert letters.call("rework", run, "shorter").code == 3
    assert SHORT_DRAFT in letters.call("gates", run).out
    done = letters.call("approve", run, "--json")
    assert (done.code, done.json()["outcome"]) == (0, "sent")
    assert "## The letter" in letters.call("report", run).out
    written = letters.repo / ".steersman" / "runs" / run / "letter.md"
    assert written.read_text(encoding="utf-8") == SHORT_DRAFT
    assert letters.call("audit", "replay", run).code == 0
    assert letters.call("audit", "verify", run).code == 0


def test_a_letter_at_the_prompt(letters: Project):
    """Its choices and its events are words of the prompt, with its own help; words of other machines are refused."""
    run = start_letter(letters)
    said = type_lines(
        letters, run, "/help", "/status", "/postscript", "/postscript love to Bob", "/approve fine"
    )
    for words in (
        "/approve [reason]: send exactly this letter",
        "/rework words: have another draft written",
        "/postscript words: have a postscript added",
        "Shall this letter be sent?",
        SHORT_DRAFT,
    ):
        assert words in said.out, words
    assert "/codegen" not in said.out
    assert "a postscript needs words" in said.err
    assert letters.call("show", run, "--json").json()["outcome"] == "sent"
    other = start_letter(letters)
    refused = type_lines(letters, other, "/rework", "/rework shorter", "/codegen", "/abort")
    assert "rework needs words: say what to change in the letter" in refused.err
    assert "a letter has no /codegen: it has /approve, /rework, /postscript" in refused.err
    assert letters.rows(other)[-1] == ("waiting", "called_off", "dropped")
    assert SHORT_DRAFT in refused.out


def test_a_word_of_another_machine_is_refused_on_the_command_line(letters: Project):
    """What only a task has, a letter has not; `run` names the options that it does not take."""
    run = start_letter(letters)
    assert f"run {run} is a letter, not a task" in letters.call("tasks", "next", run).err
    assert (
        "letter does not take --mode" in letters.call("run", "--as", "letter", "x", "--mode", "proposal").err
    )


def test_the_page_has_every_file(tmp_path: Path):
    """The page shows each file of the folder, and the entry point leads to its package."""
    place = install_letter_machine(tmp_path)
    files = {str(path.relative_to(place)) for path in place.rglob("*") if path.is_file()}
    assert {f"letter/{name}.py" for name in ("__init__", "context", "work", "table", "package")} <= files
    assert "letter/prompts/draft.md" in files
