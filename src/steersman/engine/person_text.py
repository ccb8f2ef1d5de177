"""Makes people's words safe for a tape: redacted, printable, bounded.

**Invariant:** every person's words in an entry have passed through this module.
"""

import re
from typing import Any

from steersman.engine.ports import Ports
from steersman.judges.redaction.redact import redact_text
from steersman.judges.text import (
    clip_text,
    escape_surrogates,
    has_visible_text,
    printable_line,
    printable_text,
)

MAX_REASON_CHARS = 500  # characters of a person's reason that stay in the entry
MAX_NAME_CHARS = 200
_PLAIN_AGENT_NAME = re.compile(r"[A-Za-z0-9_.:/@+ -]{0,60}")


def sanitize_reason(ports: Ports, run: str, text: str) -> str:
    """Returns a reason as an entry of this run keeps it; empty for text without a visible character."""
    if not has_visible_text(text):
        return ""
    return clip_text(_sanitize_words(ports, _redaction_key(ports, run), text).strip(), MAX_REASON_CHARS)


def sanitize_event_data(ports: Ports, run: str, value: Any) -> Any:
    """Returns the data of a person's event with every text in it made safe."""
    key = _redaction_key(ports, run)

    def walk(part: Any) -> Any:
        match part:
            case str():
                return _sanitize_words(ports, key, part)
            case dict():
                return {_sanitize_words(ports, key, str(name)): walk(item) for name, item in part.items()}
            case list() | tuple():
                return [walk(item) for item in part]
            case _:
                return part

    return walk(value)


def sanitize_agent_name(ports: Ports, text: str) -> str:
    """Returns a name that an agent gives (a model, a session) as an entry keeps it: one line, bounded, redacted."""
    if _PLAIN_AGENT_NAME.fullmatch(text):
        return text
    return clip_text(
        printable_line(escape_surrogates(redact_text(text, ports.secrets(()), ports.chance.key()))),
        MAX_NAME_CHARS,
    )


def _sanitize_words(ports: Ports, key: bytes, text: str) -> str:
    return printable_text(escape_surrogates(redact_text(text, ports.secrets(()), key)))


def _redaction_key(ports: Ports, run: str) -> bytes:
    """Returns the key of the run tree, so that markers equal those of its texts; a new key where it was pruned."""
    head = ports.journal.head(run)
    return (ports.journal.key(head.root) if head is not None else None) or ports.chance.key()
