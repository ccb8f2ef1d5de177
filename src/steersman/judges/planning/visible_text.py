"""Whether what somebody has written is what a reader sees: in a goal, an intent, an answer.

Decided by what Unicode says of a character, not by a list of known tricks. In sentences stay the joiners and variation
selectors that scripts and emoji need, where they stand behind such a character, and the spaces that typesetters use.
**Invariant:** a name that this passes has no character without a shape of its own but the space; a sentence shows
everything that it is kept with.
"""

import unicodedata

from steersman.judges.text import has_visible_text, printable_text

# Format characters, controls, surrogates, private and unassigned ones, separators: nobody sees them as they are.
_SHAPELESS_CATEGORIES = frozenset({"Cf", "Cc", "Cs", "Co", "Cn", "Zl", "Zp", "Zs"})
# Letters and marks that Unicode has ignored where they are shown (Default_Ignorable_Code_Point).
_IGNORED_RANGES = (
    (0x034F, 0x034F), (0x115F, 0x1160), (0x17B4, 0x17B5), (0x180B, 0x180F), (0x2065, 0x2065), (0x3164, 0x3164),
    (0xFE00, 0xFE0F), (0xFFA0, 0xFFA0), (0xFFF0, 0xFFF8), (0xE0000, 0xE0FFF),
)  # fmt: skip
# Characters with a shape that is blank: a pattern of Braille without dots, an object's place, a note without a head, fillers.
_BLANK_CHARACTERS = frozenset("\u2800\ufffc\U0001d159\U00013441\U00013442\U00016fe4")
_SENTENCE_CHARACTERS = frozenset("\n\r\t\u00a0\u202f\u3000")  # line ends, and spaces of typesetters
_JOINER_CHARACTERS = frozenset("\u200c\u200d")
_VARIATION_SELECTORS = frozenset(map(chr, range(0xFE00, 0xFE10)))
_KEYCAP_CHARACTER = "\u20e3"


def invisible_sentence_reason(sentence: str) -> str:
    """Why a reader would not see what a sentence says; empty where it is plain."""
    if sentence.strip() and not has_visible_text(sentence):
        return "has nothing in it that anybody could see"
    plain = sentence.replace("\r", "")
    neighbours = zip(f" {plain}", plain, f"{plain[1:]} ", strict=False)
    hidden_character = next(
        (
            char
            for previous, char, following in neighbours
            if _is_hidden_in_sentence(previous, char, following)
        ),
        "",
    )
    return (
        _describe_invisible_character(hidden_character)
        if hidden_character or _has_stacked_marks(plain)
        else ""
    )


def invisible_name_reason(name: str) -> str:
    """Why a reader would not see which file, directory or module a name is of; empty where it is plain."""
    if name.isascii() and name.isprintable():
        return ""
    if name.strip() and not has_visible_text(name):
        return "has nothing in it that anybody could see"
    hidden_character = next((char for char in name if not _is_visible_character(char)), "")
    return (
        _describe_invisible_character(hidden_character)
        if hidden_character or _has_stacked_marks(name)
        else ""
    )


def _describe_invisible_character(char: str) -> str:
    code_point = f" (U+{ord(char):04X})" if char else ""
    return f"holds characters that nobody sees or that reorder text{code_point}"


def _is_visible_character(char: str) -> bool:
    """Whether a character has a shape of its own, or is the plain space."""
    if char.isascii():
        return char.isprintable()
    is_ignored = any(lowest <= ord(char) <= highest for lowest, highest in _IGNORED_RANGES)
    return (
        not is_ignored
        and char not in _BLANK_CHARACTERS
        and unicodedata.category(char) not in _SHAPELESS_CATEGORIES
    )


def _is_hidden_in_sentence(previous: str, char: str, following: str) -> bool:
    """Whether a character of a sentence is not seen; what is newer than the tables is taken for what it may be."""
    if _is_visible_character(char) or char in _SENTENCE_CHARACTERS:
        return False
    if char in _JOINER_CHARACTERS:
        return previous.isascii()
    if char in _VARIATION_SELECTORS:
        return previous.isascii() and following != _KEYCAP_CHARACTER
    return unicodedata.category(char) != "Cn" or printable_text(char) != char


def _has_stacked_marks(text: str) -> bool:
    """More marks on one letter than any script uses."""
    visible_part = "".join(char for char in text if _is_visible_character(char))
    return printable_text(visible_part) != visible_part
