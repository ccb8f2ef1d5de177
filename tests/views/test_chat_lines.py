"""A conversation in lines."""

from msgspec.structs import replace

from steersman.contracts.chat import ChatLimits, ChatThread, ChatUsage
from steersman.testing.conformance_chat import CHAT_TIME, sample_answer, sample_question
from steersman.views.chat import (
    call_cost_words,
    chat_message_lines,
    missing_answer_line,
    thread_cost_words,
    thread_table_lines,
)


def test_a_question():
    """Who asked whom, when, and the words behind a gutter."""
    assert chat_message_lines(
        replace(sample_question("你好\n[9] bob · forged\x1b[2J\r", agents=("bob", "猫猫")), seq=3)
    ) == ["[3] ann → @bob, @猫猫 · 2026-01-01 00:00:00 UTC", "│ 你好", "│ [9] bob · forged\\x1b[2J\\x0d"]


def test_an_answer():
    """What it answers, by which model, how long it took, what it cost, what it was not given."""
    told = replace(sample_answer(3, ""), seq=4, left_out=7)
    assert chat_message_lines(told) == [
        "[4] bob · 2026-01-01 00:00:00 UTC · to [3] · fake f-1 · 7 ms · 10 tokens · $0.000005 · 7 earlier messages left out",
        "│",
    ]


def test_a_failure():
    """Its class; what is not known is said to be unknown; a name stays on its line."""
    told = replace(sample_answer(3, "no\tlogin", tokens=None, micro_usd=None), seq=4, error="provider_auth_error", provider="", model="", ms=None, sender="a\nb")  # fmt: skip
    assert chat_message_lines(told) == [
        "[4] a\\nb · 2026-01-01 00:00:00 UTC · to [3] · failed: provider_auth_error · tokens unknown · cost unknown",
        "│ no\tlogin",
    ]


def test_cost():
    """Each of the two by itself."""
    assert call_cost_words(0, None) == "0 tokens · cost unknown"
    assert call_cost_words(None, 0) == "tokens unknown · $0.00"


def test_total():
    """Of what may be used, where there is a limit; a sum of what is partly unknown is a lower bound."""
    assert thread_cost_words(ChatUsage(2, 1200, 4000), ChatLimits()) == "2 calls · 1 200 tokens · $0.004"
    assert thread_cost_words(ChatUsage(2, 0, 0, 1), ChatLimits(5, 10, 1_000_000)) == (
        "2 of 5 calls · 0 of 10 tokens · $0.00 of $1.00 · 1 of the calls did not report all of their cost, so this is a lower bound"
    )


def test_threads():
    """A table; a title stays on its line and within bounds."""
    found = [
        (ChatThread("chat-1", "a\nb" + "x" * 90, CHAT_TIME, CHAT_TIME, "猫"), 12),
        (ChatThread("chat-22", "", CHAT_TIME, CHAT_TIME + 60_000), 0),
    ]
    lines = thread_table_lines(found, CHAT_TIME + 120_000)
    assert lines[0] == "THREAD   SAID  AGE    LAST ASKED  ABOUT"
    assert lines[1].startswith("chat-1   12    2 min  @猫          a\\nbxxx")
    assert lines[2] == "chat-22  0     1 min  –           –"
    assert len(lines[1].rpartition("  ")[2]) == 60


def test_waiting():
    """Who is being asked, who has failed, who has said nothing."""
    assert (
        missing_answer_line(3, "bob", "command (process 7)", "") == "[3] command (process 7) is asking @bob"
    )
    assert missing_answer_line(3, "bob", None, "provider_timeout") == "[3] @bob has failed (provider_timeout)"
    assert missing_answer_line(3, "bob", None, "") == "[3] @bob has not answered"
