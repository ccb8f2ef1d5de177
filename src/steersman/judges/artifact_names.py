"""Names that an agent may give to a file of its run: short, relative, plain, and nobody else's.

**Invariant:** a name that is accepted is the same file on every file system: nothing in it is normalised, folded,
decoded or followed. Where it leads on a disk is looked at by whoever opens it.
"""

import re
import unicodedata
from collections.abc import Iterable

from steersman.judges.infrastructure import instructs_agents, runs_as_code
from steersman.judges.text import clip, printable

LONGEST = 1024  # bytes of a whole name
LONGEST_PART = 200  # bytes of one part of it: room for a suffix of ours below the 255 of most file systems
DEEPEST = 16
COPIES = ("code", "files")  # below it: copies of the files that a run changes, under their own names

_PART = re.compile(r"_*+[^\W_][\w.@+-]*")
# Windows opens a device for these, whatever the ending.
_DEVICE = re.compile(r"(?i:con|prn|aux|nul|com[0-9]|lpt[0-9])(?:\..*)?")
# Written by steersman alone: what a run is, what was answered, what was recorded.
OWNED = frozenset(
    {
        "state.json",
        "tape.jsonl",
        "journal.jsonl",
        "anchors.jsonl",
        "anchor.json",
        "steersman.toml",
        "steersman.db",
    }
)
_OF_THE_STORE = re.compile(r"steersman\.db[.-].*")  # its log, its index
# Files that a run has or may have under these names: none of them is a folder.
FILES = frozenset(
    {
        "active_context.md",
        "acceptance_criteria.json",
        "changed_files.json",
        "claims.json",
        "code/diff.patch",
        "delivery.md",
        "detail_design.md",
        "evidence.json",
        "master_task.json",
        "plan.files.json",
        "planning/planning.ai.json",
        "review/plan-review.json",
        "review_decision.json",
        "transcript.jsonl",
    }
)
OWNED_FOLDERS = frozenset({"accept", "tape", "journal", "anchors", "keys", "steersman"})


def artifact_problem(name: object) -> str | None:
    """Why an agent's file may not have this name in a run's folder, or None."""
    if (trouble := name_problem(name)) is not None:
        return trouble
    assert isinstance(name, str)  # noqa: S101  just judged
    parts = folded(name).split("/")
    if parts[0] in OWNED_FOLDERS or parts[0] in OWNED or _OF_THE_STORE.fullmatch(parts[0]):
        return "is written by steersman alone"
    if any("/".join(parts[:n]) in FILES for n in range(1, len(parts))):
        return "has a file of a run for a folder"
    if tuple(parts[: len(COPIES)]) == COPIES and len(parts) > len(COPIES):
        return None
    why = runs_as_code(name) or instructs_agents(name)
    return f"would be obeyed by a tool: {why}" if why else None


def opens_a_gate(name: str) -> str | None:
    """Why an accepted name stands for a change that a person has to look at, or None."""
    parts = name.split("/")
    if tuple(parts[: len(COPIES)]) != COPIES:
        return None
    inner = "/".join(parts[len(COPIES) :])
    return runs_as_code(inner) or instructs_agents(inner)


def name_problem(name: object) -> str | None:
    """What is wrong with the form of a name, whoever gives it; or None."""
    if not isinstance(name, str):
        return "is not a text"
    if not name:
        return "is empty"
    if len(name) > LONGEST:
        return f"is longer than {LONGEST} bytes"
    if not name.isprintable() or printable(name) != name:
        return "has a control or invisible character"
    if unicodedata.normalize("NFKC", name) != name:
        return "is written with look-alike or composed characters"
    parts = name.split("/")
    if len(parts) > DEEPEST:
        return f"is deeper than {DEEPEST} folders"
    return next((t for part in parts if (t := _part_problem(part)) is not None), None) or _length(name)


def folded(name: str) -> str:
    """The same for two names that a file system may take for one."""
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", name).casefold())


def collision(name: str, others: Iterable[str]) -> str | None:
    """Another name among these that some file system takes for this one, or None."""
    key = folded(name)
    return next((other for other in others if other != name and folded(other) == key), None)


def _part_problem(part: str) -> str | None:
    said = clip(part, 40)
    if part in ("", ".", ".."):
        return f"has a part {said!r}: it is relative, without empty parts and dots"
    if not _PART.fullmatch(part):
        return f"has a part {said!r}: a part is made of letters, digits and _ . - + @, and begins with a letter or digit"
    if part.endswith("."):
        return f"has a part {said!r} that ends with a dot"
    if _DEVICE.fullmatch(part):
        return f"has a part {said!r} that is a device on Windows"
    return None


def _length(name: str) -> str | None:
    if len(name.encode()) > LONGEST:
        return f"is longer than {LONGEST} bytes"
    if any(len(part.encode()) > LONGEST_PART for part in name.split("/")):
        return f"has a part of more than {LONGEST_PART} bytes"
    return None
