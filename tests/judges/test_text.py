"""Outside text is kept whole and shown harmless."""

import json
import unicodedata

from hypothesis import example, given
from hypothesis import strategies as st
from tests.support.cases import for_each_case

from steersman.judges.text import (
    clip_text,
    decode_outside_bytes,
    escape_surrogates,
    has_visible_text,
    printable_json,
    printable_line,
    printable_text,
)

# Nobody can see these, alone or together.
UNSEEN = (
    "", " ", "\t\n\r\f\v", "\xa0", "\u2003\u3000", "\u200b", "\u200b\u200c\u200d\u2060\ufeff", "\xad", "\u202e", "\u2028", "\x00\x1b",
    "\u3164", "\u115f\u1160\uffa0", "\u034f", "\u0301", "\u17b4", "\ufe0f", "\U000e0041\U000e0042", "\u2800", "\ufffc", "\ue000",
    "\U0001d159", "\ud800", "\uffff", "\u0378",
)  # fmt: skip

SHOWN = {
    "colour": ("\x1b[31mred\x1b[0m", "\\x1b[31mred\\x1b[0m"), "backspace": ("FAILED\b\b", "FAILED\\x08\\x08"),
    "return": ("FAILED\rPASSED", "FAILED\\x0dPASSED"), "title": ("\x1b]0;t\x07", "\\x1b]0;t\\x07"),
    "eight bit": ("\x9d0;t\x9c", "\\x9d0;t\\x9c"), "bidi": ("a\u202eb\u2066", "a\\u202eb\\u2066"),
    "zero width": ("\u200b\u2060\ufeff", "\\u200b\\u2060\\ufeff"), "tags": ("\U000e0041", "\\U000e0041"),
    "surrogate": ("\udcff", "\\udcff"), "separator": ("a\u2028b", "a\\u2028b"),
    "plain": ("tab\tline\nemoji 🚀 é 你好 [red]x[/]", "tab\tline\nemoji 🚀 é 你好 [red]x[/]"),
}  # fmt: skip


@for_each_case(("text", "expected"), SHOWN.values())
def test_printable(text, expected):
    """What a terminal would obey is written out; what people read stays."""
    assert printable_text(text) == expected


def test_storm():
    """A few marks on a letter are a language; more are an attack on the lines above."""
    assert printable_text("e\u0301\u0302") == "e\u0301\u0302"
    assert printable_text("e" + "\u0301" * 6) == "e" + "\u0301" * 4 + "\\u0301" * 2
    assert printable_text("ก" + "\u0e49" * 6 + "ก") == "ก" + "\u0e49" * 4 + "\\u0e49" * 2 + "ก"
    assert printable_text("你好世界你好") == "你好世界你好"


def test_one_line():
    """Nothing in it can pose as the next line."""
    assert printable_line("ok\nrefused: no\t\x1b[2K\r\u2028") == "ok\\nrefused: no\\t\\x1b[2K\\x0d\\u2028"


@given(st.text(st.characters(exclude_categories=["Cs"])))
@example("\x1b\x7f\u202e\U000e0041")
@example("e" + "\u0301" * 9)
def test_printable_json(text):
    """JSON is the same value afterwards, and harmless to look at."""
    document = json.dumps(text, ensure_ascii=False)
    shown = printable_json(document)
    assert json.loads(shown) == text
    assert printable_text(shown) == shown


@given(st.text(st.characters()))
def test_printable_is_harmless(text):
    """Nothing that controls, hides or reorders is left, and doing it twice changes nothing."""
    shown = printable_text(text)
    assert not {unicodedata.category(c) for c in shown if c not in "\t\n"} & {"Cc", "Cs", "Zl", "Zp"}
    assert not any(
        unicodedata.bidirectional(c) in ("LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI")
        for c in shown
    )
    assert printable_text(shown) == shown
    shown.encode()


def test_dangerous_characters_in_json():
    """JSON escapes of what controls, hides or reorders: the value stays the same."""
    document = '"\u202e\U000e0041"'
    shown = printable_json(document)
    assert shown == '"\\u202e\\udb40\\udc41"'
    assert json.loads(shown) == json.loads(document)


def test_every_format_character():
    """All format characters Unicode has are written out."""
    hidden = [chr(c) for c in range(0x110000) if unicodedata.category(chr(c)) == "Cf"]
    left = [f"{ord(c):x}" for c in hidden if printable_text(c) == c]
    assert left == []


@for_each_case("text", UNSEEN)
def test_what_nobody_can_see(text):
    """Blanks, controls, fillers, marks without a letter and what has no shape say nothing; a letter among them does."""
    assert not has_visible_text(text)
    assert not has_visible_text("".join(UNSEEN))
    assert has_visible_text(f"{text}x{text}")


@for_each_case("text", ["x", ".", "猫", "é", "e\u0301", "🚀", "\ufffd", "ا", "\u0915\u093f", "½"])
def test_what_can_be_seen(text):
    """Letters and signs of any script."""
    assert has_visible_text(text)
    assert has_visible_text(f" \u200b{text}")


def test_clip():
    """Never longer than asked, and a cut is visible."""
    assert clip_text("abc", 3) == "abc"
    assert clip_text("abcd", 3) == "ab…"
    assert clip_text("abcd", 1) == "…"
    assert clip_text("abcd", 0) == ""


@given(st.binary())
def test_decode(data):
    """Any bytes become text that can be encoded again; good UTF-8 is itself."""
    text = decode_outside_bytes(data)
    text.encode()
    try:
        assert text == data.decode()
    except UnicodeDecodeError:
        assert "\\x" in text


def test_decode_surrogate_bytes():
    """Surrogates written as bytes are escaped, not revived."""
    assert decode_outside_bytes(b"a\xed\xa0\x80\xff") == "a\\xed\\xa0\\x80\\xff"


@given(st.text(st.characters()))
def test_well_formed(text):
    """Lone surrogates never survive."""
    kept = escape_surrogates(text)
    assert kept.encode().decode() == kept


def test_well_formed_keeps_text():
    """Good text is itself."""
    assert escape_surrogates("né\udcff") == "né\\udcff"
