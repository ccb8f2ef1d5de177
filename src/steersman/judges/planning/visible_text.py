"""Checks that a reader sees what a text says: in a goal, an intent or an answer.

**Invariant:** a text without a problem prints exactly as it is.
"""

import re

from steersman.judges.text import has_visible_text, printable_text

# Joiners behind a letter of a script or an emoji that needs them, carriage returns, spaces of typesetters.
_WRITTEN_IN_SENTENCES = re.compile("(?<=[^\x00-\x7f])[\u200c\u200d]|[\r\u00a0\u202f\u3000]")


def invisible_sentence_reason(sentence: str) -> str:
    """Why a reader would not see what a sentence says; empty where it is plain."""
    if sentence.strip() and not has_visible_text(sentence):
        return "contains no visible character"
    return _describe_first_hidden(_WRITTEN_IN_SENTENCES.sub("", sentence))


def invisible_name_reason(name: str) -> str:
    """Why a reader would not see which file, directory or module a name is of; empty where it is plain."""
    if name.strip() and not has_visible_text(name):
        return "contains no visible character"
    unprintable = "".join(char for char in name if not char.isprintable())
    return _describe_first_hidden(name, unprintable)


def _describe_first_hidden(text: str, unprintable: str = "") -> str:
    if not unprintable and printable_text(text) == text:
        return ""
    hidden = unprintable or "".join(char for char in text if printable_text(char) != char)
    code_point = f" (U+{ord(hidden[0]):04X})" if hidden else ""
    return f"contains characters that are invisible or reorder text{code_point}"
