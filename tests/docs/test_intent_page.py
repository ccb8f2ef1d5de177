"""The page on the checksum of an intent: its example is worked out again, by our code and by its own snippet."""

import hashlib
import json
import re
import subprocess
import sys
from pathlib import Path

import rfc8785

from steersman.judges.planning.intent import has_matching_checksum, intent_checksum_bytes
from steersman.judges.planning.schema_errors import find_schema_problems

PAGE = (Path(__file__).resolve().parents[2] / "docs/reference/intent-checksum.md").read_text(encoding="utf-8")
WORDS = (Path(__file__).resolve().parents[2] / "docs/explanation/words-of-the-planner.md").read_text(
    encoding="utf-8"
)


def block(kind):
    (found,) = re.findall(rf"^```{kind}\n(.*?)\n```$", PAGE, re.MULTILINE | re.DOTALL)
    return found


def test_the_example():
    """The document, its bytes, their number and the checksum belong together."""
    intent, shown = json.loads(block("json")), block("text").encode()
    assert find_schema_problems(intent) == ()
    assert intent_checksum_bytes(intent) == shown
    assert has_matching_checksum(intent)
    assert f"its {len(shown)} bytes" in PAGE
    assert f"`{hashlib.sha256(shown).hexdigest()}`" in PAGE
    checksum = intent["audit"].pop("checksum")
    assert hashlib.sha256(rfc8785.dumps(intent)).hexdigest() == checksum


def test_the_snippet():
    """The few lines of Python give the same, also for text of other scripts."""
    intent = json.loads(block("json"))
    for title in (intent["title"], '价格 "ü"\n\u007f\u2028🚀'):
        document = {**intent, "title": title}
        done = subprocess.run([sys.executable, "-c", block("python")], input=json.dumps(document).encode(), capture_output=True, check=True)  # fmt: skip
        assert done.stdout.decode().strip() == hashlib.sha256(intent_checksum_bytes(document)).hexdigest()


def test_every_former_word_is_on_the_page():
    """The map in the code is the map on the page."""
    from steersman.contracts.planning.words import EVIDENCE_SCHEMES, FORMER_WORDS

    rows = [line for line in WORDS.splitlines() if line.startswith("| ")]
    for former, chosen in FORMER_WORDS.items():
        assert any(former in row.split("|")[3] and f"`{chosen}`" in row.split("|")[4] for row in rows), former
    assert all(f"`{scheme}://" in WORDS for scheme in EVIDENCE_SCHEMES)
