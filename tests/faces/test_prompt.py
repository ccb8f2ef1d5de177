"""The line editor: several lines, completion, a history without secrets; and what is said where it is missing."""

import os
import pty
import select
import stat
import sys
import termios
from pathlib import Path
from types import SimpleNamespace

import pytest
from prompt_toolkit.application import create_app_session
from prompt_toolkit.document import Document
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.output import DummyOutput
from tests.support.cases import for_each_case

from steersman.errors import UserError
from steersman.faces.cli.context import CommandContext
from steersman.faces.cli.typeahead import discard_typeahead, read_typeahead, split_typeahead
from steersman.faces.repl.line_editor import (
    HistoryFile,
    build_prompt_reader,
    build_word_completer,
    render_prompt_text,
)

SECRET = "correct-horse-battery-staple"
TOKEN = "ghp_" + "a1B2" * 9


@pytest.fixture
def deck(tmp_path: Path) -> CommandContext:
    helm = SimpleNamespace(
        find_repository_root=lambda start: start,
        project_state_directory=lambda _: tmp_path / "state",
        list_known_secrets=lambda _: (SECRET,),
    )
    return CommandContext(helm, str(tmp_path), as_json=False)


def typed(deck: CommandContext, *keys: str) -> list[str | None]:
    """What is read while these keys are pressed, one entry for each."""
    with create_pipe_input() as pipe, create_app_session(input=pipe, output=DummyOutput()):
        read = build_prompt_reader(deck, lambda _: [])
        said = []
        for key in keys:
            pipe.send_text(key)
            said.append(read("where\n"))
        return said


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ("/next\r", "/next"),
        ("first\\\rsecond\r", "first\nsecond"),
        ("first\x1b\rsecond\r", "first\nsecond"),
        ("\x04", None),
    ],
    ids=["enter sends", "a backslash goes on", "alt-enter goes on", "ctrl-d ends"],
)
def test_keys(deck, keys, said):
    """Enter sends an entry unless it goes on in the next line; Ctrl-D is the end."""
    assert typed(deck, keys) == [said]


def test_ctrl_c_at_the_prompt_is_told_to_whoever_reads(deck):
    """The sitting goes on: it is up to the loop."""
    with pytest.raises(KeyboardInterrupt):
        typed(deck, "half\x03")


def test_the_history_is_there_next_time(deck):
    """Arrow up brings an entry of an earlier sitting back, all of its lines."""
    assert typed(deck, "one\\\rtwo\r", "three\r") == ["one\ntwo", "three"]
    assert typed(deck, "\x1b[A\x1b[A\r") == ["one\ntwo"]


def test_the_history_keeps_no_secrets(deck, tmp_path):
    """Readable by its owner alone; neither a known secret nor one by its shape is in it; what was typed is said whole."""
    assert typed(deck, f"use {SECRET} and {TOKEN}\r") == [f"use {SECRET} and {TOKEN}"]
    kept = tmp_path / "state" / "repl-history"
    text = kept.read_text()
    assert "use [redacted:" in text
    assert SECRET not in text
    assert TOKEN not in text
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600


def test_a_history_that_cannot_be_kept_is_no_reason_to_stop(deck, tmp_path):
    """A link in its place is not followed, damaged lines are left out."""
    log = HistoryFile(deck)
    log.write("good")
    kept = tmp_path / "state" / "repl-history"
    kept.write_bytes(kept.read_bytes() + b"garbage\n\xff\n")
    assert log.read() == ["good"]
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_text("mine\n")
    kept.unlink()
    kept.symlink_to(elsewhere)
    log.write("lost")
    assert (log.read(), elsewhere.read_text()) == ([], "mine\n")


@pytest.mark.parametrize("place", ["pipe", "folder", "closed"])
def test_a_history_that_is_no_file_is_none(deck, tmp_path, place):
    """Nothing is waited for, nothing is told: the prompt is there."""
    kept = tmp_path / "state" / "repl-history"
    kept.parent.mkdir()
    match place:
        case "pipe":
            os.mkfifo(kept)
        case "folder":
            kept.mkdir()
        case "closed":
            kept.write_text('"old"\n')
            kept.parent.chmod(0o500)
    assert typed(deck, "/next\r") == ["/next"]
    kept.parent.chmod(0o700)


def test_of_a_huge_history_the_end_is_read(deck, tmp_path):
    """However long it is, a prompt is there at once; the last entries are known."""
    log = HistoryFile(deck)
    log.write("first")
    kept = tmp_path / "state" / "repl-history"
    with kept.open("ab") as file:
        file.truncate(1 << 40)  # sparse
    with kept.open("ab") as file:
        file.write(b"\n")
    log.write("last")
    assert log.read() == ["last"]


def test_the_first_line_fits_the_terminal():
    """What is legal next is cut with a mark, not hidden; nothing in it is obeyed or begins a new line."""
    assert (
        render_prompt_text("ready \x1b[2J\nmore " + "and more " * 9, 40)
        == "ready \\x1b[2J\\nmore and more and more …\n> "
    )


def test_where_a_line_is_too_short_there_are_several():
    """In a narrow terminal every word that is legal can be read, each whole."""
    legal = "/next→plan_review words /redo planning /redo plan_review"
    told = render_prompt_text(f"261116-abc plan_review:ready (waiting for you) · {legal}", 60)
    assert told == (
        "261116-abc plan_review:ready (waiting for you)\n  /next→plan_review words /redo planning /redo plan_review\n> "
    )
    narrow = render_prompt_text(f"261116-abc plan_review:ready (waiting for you) · {legal}", 40).splitlines()
    assert all(len(line) < 40 for line in narrow)
    assert " ".join(line.strip() for line in narrow[1:-1]) == legal


@for_each_case(
    ("keys", "lines", "begun"),
    [
        ("/next\r/approve\r", ["/next", "/approve"], ""),
        ("/approve\r\n\n  \n/sho", ["/approve"], "/sho"),
        ("/abort\x7f\x7f\x7f\x7f\x7fnext\n", ["/next"], ""),
        ("wrong\x15right", [], "right"),
        ("\x1b[A\x1b[200~a\x04b\x1bOPc\x1b", [], "abc"),
        ("", [], ""),
    ],
)
def test_what_keys_would_have_written(keys, lines, begun):
    """Lines that were sent, and one that was not; mended where a person has mended it, and nothing but text."""
    assert split_typeahead(keys) == (lines, begun)


def test_what_was_typed_before_the_prompt_is_no_entry(deck, capsys):
    """Two lines in one go: the first is the entry, the second is told and one arrow away, what was only begun stands there."""
    with create_pipe_input() as pipe, create_app_session(input=pipe, output=DummyOutput()):
        read = build_prompt_reader(deck, lambda _: [])
        pipe.send_text("/next\r/approve\r/sta")
        assert read("where") == "/next"
        pipe.send_text("tus\r")
        assert read("there") == "/status"
        pipe.send_text("\x1b[A\x1b[A\r")
        assert read("there") == "/approve"
    assert "these lines were typed too early and not carried out: /approve" in capsys.readouterr().out


def test_what_waits_in_a_terminal_is_taken_whole(monkeypatch):
    """Also the beginning of a line, which a terminal keeps to itself; nothing is waited for, and it stays as it was."""
    master, slave = pty.openpty()
    with os.fdopen(slave, "r") as terminal:
        monkeypatch.setattr(sys, "stdin", terminal)
        before = termios.tcgetattr(terminal)
        assert read_typeahead() == ""
        os.write(master, b"/approve\n/st")
        assert select.select([terminal], [], [], 5)[0]
        assert read_typeahead() == "/approve\n/st"
        assert termios.tcgetattr(terminal) == before
    os.close(master)


def test_what_was_typed_before_the_question_answers_nothing(monkeypatch):
    """A yes that was typed ahead is dropped before anybody is asked."""
    master, slave = pty.openpty()
    with os.fdopen(slave, "r") as terminal:
        monkeypatch.setattr(sys, "stdin", terminal)
        os.write(master, b"y\n")
        assert select.select([terminal], [], [], 5)[0]
        discard_typeahead()
        assert not select.select([terminal], [], [], 0)[0]
    os.close(master)


def test_without_the_editor_it_is_said_how_to_get_it(deck, monkeypatch):
    """The extra is named, and that a pipe needs none."""
    monkeypatch.setitem(sys.modules, "prompt_toolkit", None)
    with pytest.raises(UserError, match=r'pip install "steersman\[repl\]"'):
        build_prompt_reader(deck, lambda _: [])


def test_completion_looks_at_what_stands_before_the_cursor():
    """Only the last word is replaced, by what the sitting knows."""
    words = {"/re": ["/review", "/redo"], "/redo pl": ["planning"], "": []}
    made = build_word_completer(words.__getitem__)
    told = {
        text: [(c.text, c.start_position) for c in made.get_completions(Document(text), None)]
        for text in words
    }
    assert told == {"/re": [("/review", -3), ("/redo", -3)], "/redo pl": [("planning", -2)], "": []}
