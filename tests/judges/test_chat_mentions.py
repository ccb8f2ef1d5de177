"""Who is meant by an @."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.cases import for_each_case

from steersman.judges.replies.mentions import find_mentions, fold_mention_name, remove_markdown_code

NAMES = {
    fold_mention_name(name): to
    for name, to in {
        "bob": "bob", "bob-the-builder": "builder", "猫": "猫", "猫猫": "猫猫", "小黑": "黑", "Élise": "elise", "claude.2": "claude",
    }.items()
}  # fmt: skip
MEANT = {
    "@bob hi": ("bob",), "hi @bob": ("bob",), "hi @bob.": ("bob",), "hi @bob, @猫猫": ("bob", "猫猫"),
    "(@bob)": ("bob",), "@BOB": ("bob",), "＠bob": ("bob",), "@ｂｏｂ": ("bob",), "@bob!@猫": ("bob", "猫"),
    "@bob @bob @bob": ("bob",), "@bob-the-builder": ("builder",), "@bob-": ("bob",), "@bob你好": ("bob",),
    "@猫猫": ("猫猫",), "@猫猫你好": ("猫猫",), "请@猫猫看看": ("猫猫",), "@猫，你好": ("猫",), "@小黑和@猫猫": ("黑", "猫猫"),
    "@élise": ("elise",), "@e\u0301lise": ("elise",), "@claude.2 hi": ("claude",), "a\n@bob\nb": ("bob",),
    "**@bob**": ("bob",), "`code` @bob `code`": ("bob",), "```\n@猫\n```\n@bob": ("bob",),
    "a ` b @bob": ("bob",),
}  # fmt: skip
NOBODY = [
    "", "@", "bob", "me@bob", "me@bob.example", "a.b+c@bob", "@bobby", "@bob-2", "@bob.com", "@bob_",
    "@bob/types", "@@bob", "https://h/@bob", "`@bob`", "``a ` @bob``", "```\n@bob\n```",
    "```python\n@bob\ndef f(): ...\n```", "~~~\n@bob\n~~~", "```\n@bob and no end", "    @bob",
    "see:\n\n    @bob\n    more\n", "\t@bob", "@ bob",
]  # fmt: skip


@for_each_case(("text", "names"), MEANT.items())
def test_meant(text, names):
    """The longest name that fits is meant, in order, once each."""
    assert find_mentions(text, NAMES).names == names


@for_each_case("text", NOBODY)
def test_nobody(text):
    """Addresses, longer words and code mention nobody."""
    assert find_mentions(text, NAMES).names == ()


def test_unknown():
    """A name that nobody has is told, unless it is a path, an address or a call."""
    assert find_mentions("@cladue and @nobody. hi @types/node, @a@b, @call(x)", NAMES).unknown == (
        "cladue",
        "nobody",
    )
    assert find_mentions("`@cladue` @狗", NAMES).unknown == ("狗",)


def test_code_is_left_out():
    """What is between and around it stays."""
    assert remove_markdown_code("a `b` c") == "a   c"


@given(st.text(alphabet="@bob`~ \n猫-.x"))
def test_any_text(text):
    """Any text has its answer, and only names that are known are meant."""
    found = find_mentions(text, NAMES)
    assert set(found.names) <= set(NAMES.values())


@pytest.mark.untraced
@for_each_case(
    "unit", ["@", "`", "``", "@bob", "```\n", "~~~\n@", "    @b\n", "\n", "`@bob` ", "@猫", " \n", "`a"]
)
def test_linear(unit):
    """Long texts take a moment."""
    started = time.process_time()
    find_mentions(unit * (60_000 // len(unit)), NAMES)
    assert time.process_time() - started < 3.0
