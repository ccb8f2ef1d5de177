"""People's words and agents' names on their way to a tape."""

from steersman.engine.inbox import (
    MAX_REASON_CHARS,
    sanitize_agent_name,
    sanitize_event_data,
    sanitize_reason,
)
from steersman.judges.redaction.redact import redaction_marker
from steersman.testing import fake_ports
from steersman.testing.journal_samples import SAMPLE_RUN, full_sample_batch

TOKEN = "ghp_" + "C" * 36


def _world(tmp_path):
    ports = fake_ports(tmp_path, [])
    ports.journal.append(full_sample_batch())
    return ports


def test_a_reason_is_hidden_under_the_key_of_its_tree(tmp_path):
    """Markers in a reason are those of the run's texts; what a terminal would obey is written out."""
    told = sanitize_reason(_world(tmp_path), SAMPLE_RUN, f" use {TOKEN}\x1b[2J ")
    assert told == f"use {redaction_marker('github', TOKEN, b'k' * 32)}\\x1b[2J"


def test_a_reason_is_bounded(tmp_path):
    """A secret at the edge is hidden before anything is cut off."""
    told = sanitize_reason(_world(tmp_path), SAMPLE_RUN, "a" * (MAX_REASON_CHARS - 10) + " " + TOKEN)
    assert len(told) == MAX_REASON_CHARS
    assert "CCC" not in told


def test_a_reason_that_nobody_can_see(tmp_path):
    """Is none: it would stand on the tape as if somebody had said something."""
    ports = _world(tmp_path)
    assert [sanitize_reason(ports, SAMPLE_RUN, words) for words in ("", " \n", "\u200b", "\u2800\u3164")] == [
        "",
        "",
        "",
        "",
    ]
    assert sanitize_reason(ports, SAMPLE_RUN, "\u200bwhy") == "\\u200bwhy"


def test_a_run_without_a_key(tmp_path):
    """A pruned run gets markers that fit nothing: nobody can compare them."""
    ports = fake_ports(tmp_path, [])
    assert "[redacted:github:" in sanitize_reason(ports, "nowhere", TOKEN)


def test_what_an_event_carries(tmp_path):
    """Every text in it, however deep, and every name of a field."""
    given = {"a": [TOKEN, 1, None], TOKEN: {"b": f"x\u202e{TOKEN}"}}
    hidden = redaction_marker("github", TOKEN, b"k" * 32)
    assert sanitize_event_data(_world(tmp_path), SAMPLE_RUN, given) == {
        "a": [hidden, 1, None],
        hidden: {"b": f"x\\u202e{hidden}"},
    }


def test_names(tmp_path):
    """A name stays; one that is too long, holds a secret or a line break is made fit."""
    ports = fake_ports(tmp_path, [])
    assert sanitize_agent_name(ports, "claude-sonnet-4.5 [x]"[:17]) == "claude-sonnet-4.5"
    assert sanitize_agent_name(ports, "a\nb\udcff") == "a\\nb\\udcff"
    assert TOKEN not in sanitize_agent_name(ports, f"model {TOKEN}" * 20)
    assert len(sanitize_agent_name(ports, "é" * 500)) == 200
