"""What a reader sees of names and sentences (001 §7): everything that they are kept with."""

import pytest
from tests.support.cases import for_each_case

from steersman.judges.planning.visible_text import invisible_name_reason, invisible_sentence_reason

HIDDEN = (
    0x00AD, 0x061C, 0x115F, 0x200B, 0x200C, 0x200D, 0x2028, 0x202E, 0x2065, 0x3164, 0xFEFF, 0xE0041, 0xD800,
    0x07, 0x85,
)  # fmt: skip
UNSEEN_IN_NAMES = (*HIDDEN, 0x0A, 0x09, 0xA0, 0x2003, 0x3000, 0xE000)


@for_each_case("code", UNSEEN_IN_NAMES)
def test_a_name_has_nothing_that_nobody_sees(code):
    """001 §7: what is not printed as it stands is in no name, and the refusal says which it is."""
    assert f"(U+{code:04X})" in invisible_name_reason(f"src/pri{chr(code)}ces.py")


@for_each_case("code", HIDDEN)
def test_a_sentence_has_nothing_that_nobody_sees(code):
    """001 §7: nor in a sentence, behind a plain letter."""
    assert f"(U+{code:04X})" in invisible_sentence_reason(f"Fix pri{chr(code)}ces.py")


@for_each_case(
    "name",
    [
        "src/prices.py", "src/a b.py", "docs/größe.md", "docs/価格.md", "docs/цены.md", "docs/e\u0301.md",
        "src/**", "",
    ],
)  # fmt: skip
def test_a_name_in_any_script_is_taken(name):
    """Letters of every script, marks and the plain space are what they look like."""
    assert invisible_name_reason(name) == ""


@for_each_case(
    "said",
    [
        "Prix\u00a0: 10\u202f€\r\n\tet plus", "می\u200cخواهم", "👩\u200d💻 and ❤\ufe0f", "press 1\ufe0f\u20e3",
        "क\u094d\u200dष", "価格\u3000表", "new: \U0001fae8",
    ],
)  # fmt: skip
def test_a_sentence_has_what_its_script_needs(said):
    """Joiners behind letters that join, selectors behind signs, spaces of typesetters, signs newer than our tables."""
    assert invisible_sentence_reason(said) == ""


@pytest.mark.parametrize("look", [invisible_name_reason, invisible_sentence_reason])
def test_what_says_nothing_or_paints_over_lines_is_refused(look):
    """Blanks and unseen characters alone, and more marks than a letter has."""
    assert "no visible character" in look("\u2800\u200b")
    assert look("a" + "\u0301" * 9).endswith("reorder text")
