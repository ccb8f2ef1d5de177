"""A model server that follows a script: what a real agent CLI talks to when no model is there.

**Invariant:** loopback only, standard library only; it never calls out, and it answers nothing that no script says.
"""

from steersman.testing.models.script import (
    Answer,
    Drop,
    Fail,
    Hang,
    HangMidway,
    Say,
    Script,
    Shell,
    Structured,
    Tokens,
    Turn,
    Use,
    Write,
)
from steersman.testing.models.server import KEY, ModelServer, Seen, nobody

__all__ = [
    "KEY",
    "Answer",
    "Drop",
    "Fail",
    "Hang",
    "HangMidway",
    "ModelServer",
    "Say",
    "Script",
    "Seen",
    "Shell",
    "Structured",
    "Tokens",
    "Turn",
    "Use",
    "Write",
    "nobody",
]
