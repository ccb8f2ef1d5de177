"""Whether what somebody has written is what a reader sees: in a goal, an intent, an answer.

**Invariant:** a text that this passes looks on every screen as it is kept.
"""

from steersman.judges.text import printable, visible

_JOINERS = str.maketrans("", "", "\r\u200c\u200d")  # that scripts and emoji need


def why_unseen(said: str) -> str:
    """Why a reader would not see what is written; empty where it is plain."""
    if said.strip() and not visible(said):
        return "has nothing in it that anybody could see"
    plain = said.translate(_JOINERS)
    return "holds characters that nobody sees or that reorder text" if printable(plain) != plain else ""
