"""Names that an agent may give to a file of its run: short, relative, plain, and nobody else's.

Below `code/files` a copy has the name that its file has in the repository, so that more is plain there: `.gitignore`,
`src/[id]/page.tsx`, `my file.txt`.
**Invariant:** a name that is accepted is the same file on every file system: nothing in it is normalised, folded,
decoded or followed. Where it leads on a disk is looked at by whoever opens it.
"""

import re
import unicodedata
from collections.abc import Iterable

from steersman.judges.text import clip, printable

LONGEST = 1024  # bytes of a whole name
LONGEST_PART = 200  # bytes of one part of it: room for a suffix of ours below the 255 of most file systems
DEEPEST = 16
COPIES = ("code", "files")  # below it: copies of the files that a run changes, under their own names

_PART = re.compile(r"_*+[^\W_][\w.@+-]*")
# What file systems and frameworks have in names; not what a file system reads as something else (a stream, a short name,
# a wildcard) or what would be expanded wherever it is pasted.
_COPY = re.compile(r"(?![ ~-])(?:[\w.@+,=#!&()\[\] -]|~(?![0-9])|\$(?=\w)|\{\{|\}\}|[^\x00-\x7f])+(?<! )")
_SHAPELESS = re.compile("[\u034f\u2800\ufe00-\ufe0f\ufffc\U0001d159]")  # letters and signs that show nothing
_MOVES = ("", ".", "..")
_OWN = frozenset({".git", ".steersman"})
# Windows opens a device for these, whatever the ending.
_DEVICE = re.compile(r"(?i:con|prn|aux|nul|com[0-9]|lpt[0-9])(?: *\..*)?")
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
    why = _tells_or_runs(name)
    return f"would be obeyed by a tool: {why}" if why else None


def opens_a_gate(name: str) -> str | None:
    """Why an accepted name stands for a change that a person has to look at, or None."""
    parts = name.split("/")
    if tuple(parts[: len(COPIES)]) != COPIES:
        return None
    inner = "/".join(parts[len(COPIES) :])
    return _tells_or_runs(inner)


def _tells_or_runs(name: str) -> str | None:
    from steersman.judges.infrastructure import instructs_agents, runs_as_code  # its tables are long

    return runs_as_code(name) or instructs_agents(name)


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
    own = len(COPIES) if tuple(parts[: len(COPIES)]) == COPIES else len(parts)
    troubles = (*map(_part_problem, parts[:own]), *map(_copy_problem, parts[own:]))
    return next((t for t in troubles if t is not None), None) or _length(name)


def folded(name: str) -> str:
    """The same for two names that a file system may take for one."""
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", name).casefold())


def collision(name: str, others: Iterable[str]) -> str | None:
    """Another name among these that some file system takes for this one, or None."""
    key = folded(name)
    return next((other for other in others if other != name and folded(other) == key), None)


def _part_problem(part: str) -> str | None:
    said = clip(part, 40)
    if part not in _MOVES and not _PART.fullmatch(part):
        return f"has a part {said!r}: a part is made of letters, digits and _ . - + @, and begins with a letter or digit"
    return _no_file(part, said)


def _copy_problem(part: str) -> str | None:
    said = clip(part, 40)
    if part not in _MOVES and not (_COPY.fullmatch(part) and all(map(_is_plain, part)) and _begins(part)):
        return (
            f"has a part {said!r}: below {'/'.join(COPIES)} a part is made of letters, digits, spaces and"
            " _ . - + @ , = ~ # ! & ( ) [ ] $name {{name}}, without a space at its ends, a dash or ~ in front"
        )
    if folded(part) in _OWN:
        return f"has a part {said!r}: that folder is not the repository's"
    return _no_file(part, said)


def _is_plain(char: str) -> bool:
    """A letter, a digit, a mark on one or a sign such as an emoji; what else ASCII may have is in `_COPY`."""
    kind = unicodedata.category(char)
    return char.isascii() or ((kind[0] in "LMN" or kind == "So") and not _SHAPELESS.match(char))


def _begins(part: str) -> bool:
    """No mark that would sit on the slash before it; and no letter that looks like one of `.git`."""
    return part.isascii() or (part[0] != "." and unicodedata.category(part[0])[0] != "M")


def _no_file(part: str, said: str) -> str | None:
    """Why no file system, or not every one, has a file of this name."""
    if part in _MOVES:
        return f"has a part {said!r}: it is relative, without empty parts and dots"
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
