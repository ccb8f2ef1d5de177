"""A command as one text: split like a shell where a shell would only split, refused everywhere else."""

import shlex
import subprocess

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.cases import for_each_case

from steersman.judges.commands.value_kinds import (
    MAX_COMMAND_CHARACTERS,
    MAX_COMMAND_WORDS,
    UnsplittableCommand,
    find_command_word_problem,
    parse_proposed_command,
    render_command_words,
    split_command_line,
)

PLAIN = {
    "pytest -q": ("pytest", "-q"), "  pytest \t -q  ": ("pytest", "-q"),
    'pytest -k "a and not b"': ("pytest", "-k", "a and not b"),
    "pytest -k 'a and not b'": ("pytest", "-k", "a and not b"),
    'pytest --tb="short"': ("pytest", "--tb=short"), "rg --glob='*.py' x": ("rg", "--glob=*.py", "x"),
    "grep 'a$b`c\\d!' x": ("grep", "a$b`c\\d!", "x"), "grep 'a\"b' x": ("grep", 'a"b', "x"),
    'grep "a\'b" x': ("grep", "a'b", "x"), "a:b,c@d%e+f=g/h.i_j-k": ("a:b,c@d%e+f=g/h.i_j-k",),
    "git diff HEAD~1 a#b": ("git", "diff", "HEAD~1", "a#b"), "größe/测试.py": ("größe/测试.py",), "": (),
    " \t ": (),
}  # fmt: skip

SPECIAL = [
    "a;b", "a; b", "a && b", "a || b", "a | b", "a & b", "a&", "a > b", "a < b", "a >> b", "a 2>b", "a <(b)", "a $(b)", "a $b",
    "a ${b}", "a `b`", "a\\ b", "\\a", "a \\", "a {b,c}", "a *", "a ?", "a [b]", "a !b", "! a", "a #b", "a ~", "a ~/b", "a x=~", "a x:~/b", "a ^b",
    "(a)", "{ a; }", 'a "$b"', 'a "`b`"', 'a "\\b"', 'a "!b"', "a 'b", 'a "b', "a'b'", "a''", "''a", "'a'b", "a'b'c",
    "a\nb", "a\rb", "a\0", "a\x1b[2K", "a\u2028b", "a\u00a0b", "a\u200bb", "a\u202eb", "a\ud800", "a\x7f", "a\u3164b",
    "A=b c", "A=b", "A+=b c", "'A=b' c", "x" * (MAX_COMMAND_CHARACTERS + 1),
]  # fmt: skip


@for_each_case(("text", "words"), PLAIN.items())
def test_words_and_quotes(text, words):
    """Blanks separate, quotes keep together, and nothing else has a meaning."""
    assert split_command_line(text) == words
    assert shlex.split(text) == list(words)


@for_each_case("text", SPECIAL)
def test_what_a_shell_would_do_more_with(text):
    """Operators, expansions, comments, escapes, assignments, half quotes and hidden characters are refused by name."""
    found = split_command_line(text)
    assert isinstance(found, UnsplittableCommand)
    assert found.reason.startswith("not a command: ")
    assert len(found.reason) < 200


def test_the_place_is_named():
    """The reason names the character and where it is."""
    assert "';' at character 7" in split_command_line("pytest; x").reason
    assert "'$' at character 5" in split_command_line("a~#b$").reason
    assert "the quote at character 8" in split_command_line("pytest 'x").reason


@for_each_case(
    "proposal",
    [
        None, True, 7, 1.5, b"pytest", {"cmd": "pytest"}, ["pytest", 7], ["pytest", None], [["pytest"]], [],
        "", " ", {}, "a;b", "a ｂ",
    ],
)  # fmt: skip
def test_what_is_no_command(proposal):
    """A command is a text or a list of words; an object with a folder, an environment or a time is none."""
    assert isinstance(parse_proposed_command(proposal), UnsplittableCommand)


@for_each_case(
    ("word", "words"),
    [
        ("", "is empty"),
        ("x" * 2001, "is longer than"),
        ("a\nb", "control or invisible"),
        ("a\tb", "control or invisible"),
        ("a\u200bb", "control or invisible"),
        ("a\u115fb", "control or invisible"),
        ("ｐytest", "look-alike"),
        ("e\u0301", "look-alike"),
        ("ﬁ", "look-alike"),
        ("fine word", None),
    ],
)
def test_words(word, words):
    """Each word is printable, in its plain form and not endless."""
    found = find_command_word_problem(word)
    assert found is None if words is None else words in found


def test_lists_are_bounded_and_never_split_again():
    """A list is taken as it is: no word is split, and there are at most 64."""
    assert parse_proposed_command(["pytest -q"]) == ("pytest -q",)
    assert parse_proposed_command(["a"] * MAX_COMMAND_WORDS) == ("a",) * MAX_COMMAND_WORDS
    assert isinstance(parse_proposed_command(["a"] * 10_000), UnsplittableCommand)
    assert isinstance(parse_proposed_command(" ".join(["a"] * (MAX_COMMAND_WORDS + 1))), UnsplittableCommand)


def test_what_is_shown_is_short_and_harmless():
    """However long and odd the words are."""
    said = render_command_words(["a\x1b[2K\u202e" + "x" * 5000] * 100)
    assert len(said) <= 160
    assert said.isprintable()


PIECES = st.sampled_from(
    [
        "pytest", "-q", " ", "  ", "'", '"', "$", "\\", "a", "=", "--x=", ";", "~", "{a,b}", "*", "é", "\t",
        "#", "!", "%", "@",
    ]
)  # fmt: skip
LINES = st.lists(PIECES, max_size=12).map("".join)


@given(LINES)
@settings(max_examples=500)
def test_where_it_splits_a_posix_splitter_splits_the_same(text):
    """Whatever is split here has the same words in Python's shlex."""
    found = split_command_line(text)
    if not isinstance(found, UnsplittableCommand):
        assert shlex.split(text) == list(found)


@given(st.lists(LINES, min_size=30, max_size=30))
@settings(max_examples=15, deadline=None)
def test_where_it_splits_a_shell_splits_the_same(texts):
    """Whatever is split here has the same words in a real shell."""
    good = [(t, w) for t in texts if not isinstance(w := split_command_line(t), UnsplittableCommand)]
    script = "".join(f"printf '%s\\0' {text}; printf '\\n'\n" for text, _ in good)
    said = subprocess.run(["bash", "-f", "-c", script], capture_output=True, check=True, timeout=30).stdout
    expected = b"".join(b"".join(w.encode() + b"\0" for w in words or ("",)) + b"\n" for _, words in good)
    assert said == expected
