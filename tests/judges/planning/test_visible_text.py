"""What a reader sees of names and sentences (001 §7): everything that they are kept with."""

import sys
import unicodedata

import pytest
from tests.support.cases import for_each_case

from steersman.judges.planning.visible_text import invisible_name_reason, invisible_sentence_reason

HIDDEN = (
    0x00AD, 0x034F, 0x061C, 0x115F, 0x1160, 0x17B4, 0x180B, 0x180E, 0x200B, 0x200C, 0x200D, 0x200E, 0x2028, 0x202E, 0x2060,
    0x2065, 0x2066, 0x2800, 0x3164, 0xFE00, 0xFE0F, 0xFEFF, 0xFFA0, 0xFFF0, 0xFFF9, 0xFFFC, 0x13441, 0x1D159, 0x1D173,
    0xE0001, 0xE0041, 0xE0100, 0xE000, 0xD800, 0xFDD0, 0xFFFF, 0x07, 0x1B, 0x7F, 0x85,
)  # fmt: skip
SPACES = tuple(n for n in range(0x80, 0x3001) if unicodedata.category(chr(n)) == "Zs")


@for_each_case("code", [*HIDDEN, *SPACES, 0x0A, 0x09, 0x0D])
def test_a_name_has_nothing_that_nobody_sees(code):
    """001 §7: no character without a shape of its own stands in a name, and the refusal says which it is."""
    assert f"(U+{code:04X})" in invisible_name_reason(f"src/pri{chr(code)}ces.py")


@for_each_case("code", HIDDEN)
def test_a_sentence_has_nothing_that_nobody_sees(code):
    """001 §7: nor in a sentence, behind a plain letter."""
    assert f"(U+{code:04X})" in invisible_sentence_reason(f"Fix pri{chr(code)}ces.py")


@for_each_case(
    "name",
    [
        "src/prices.py",
        "src/a b.py",
        "docs/größe.md",
        "docs/価格.md",
        "docs/цены.md",
        "docs/e\u0301.md",
        "src/**",
        "",
    ],
)
def test_a_name_in_any_script_is_taken(name):
    """Letters of every script, marks and the plain space are what they look like."""
    assert invisible_name_reason(name) == ""


@for_each_case(
    "said",
    [
        "Prix\u00a0: 10\u202f€\r\n\tet plus",
        "می\u200cخواهم",
        "👩\u200d💻 and ❤\ufe0f",
        "press 1\ufe0f\u20e3",
        "क\u094d\u200dष",
        "価格\u3000表",
        "new: \U0001fae8",
    ],
)
def test_a_sentence_has_what_its_script_needs(said):
    """Joiners behind letters that join, selectors behind signs, spaces of typesetters, signs newer than our tables."""
    assert invisible_sentence_reason(said) == ""


@pytest.mark.parametrize("look", [invisible_name_reason, invisible_sentence_reason])
def test_what_says_nothing_or_paints_over_lines_is_refused(look):
    """Blanks and unseen characters alone, and more marks than a letter has."""
    assert "anybody could see" in look("\u2800\u200b")
    assert look("a" + "\u0301" * 9).endswith("reorder text")


@pytest.mark.untraced
def test_of_all_of_unicode_only_what_has_a_shape_is_in_a_name():
    """By property: no format, control, surrogate, private, unassigned or separating character but the plain space."""
    bulk = {"Lo", "Cn", "Co", "Cs"}  # nine characters of ten: every 29th of those
    tried = ((chr(n), n % 29) for n in range(sys.maxunicode + 1) if n != 0x20)
    taken = {
        unicodedata.category(c)
        for c, rest in tried
        if (not rest or unicodedata.category(c) not in bulk) and not invisible_name_reason(f"a{c}")
    }
    assert not taken & {"Cf", "Cc", "Cs", "Co", "Cn", "Zl", "Zp", "Zs"}
    assert taken >= {"Lu", "Ll", "Lo", "Mn", "Nd", "Po", "So"}
