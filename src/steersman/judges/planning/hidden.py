"""Secrets taken out of a text for good: what stands in their place lets nobody try out what they were."""

import re

from steersman.judges.redaction.redact import redact_text

_REDACTION_MARK = re.compile(r"\[redacted:([\w-]{1,40}):[0-9a-f]{8}\]")


def mask_secrets(text: str, known: tuple[str, ...] = ()) -> str:
    """The text with the kind of each secret in its place; `known` are values to hide too."""
    return _REDACTION_MARK.sub(r"[redacted:\1]", redact_text(text, known))
