"""Names that an agent may give to a file of its run: short, relative, plain, and not reserved.

Below `code/files` a copy has the name that its file has in the repository, so that more is plain there: `.gitignore`,
`src/[id]/page.tsx`, `my file.txt`.
**Invariant:** a name that is accepted is the same file on every file system: nothing in it is normalised, folded,
decoded or followed. The code that opens the file checks where the name leads on a disk.
"""

import re
import unicodedata
from collections.abc import Iterable

from steersman.judges.text import clip_text, printable_text

MAX_ARTIFACT_NAME_BYTES = 1024  # bytes of a whole name
# Bytes of one part of it: room for a suffix that steersman adds, below the 255 of most file systems.
MAX_NAME_PART_BYTES = 200
MAX_ARTIFACT_DEPTH = 16
# Below it: copies of the files that a run changes, under their own names.
COPIES_PATH_PARTS = ("code", "files")

_ARTIFACT_NAME_PART = re.compile(r"_*+[^\W_][\w.@+-]*")
# What file systems and frameworks have in names; not what a file system reads as something else (a stream, a short name,
# a wildcard) or what would be expanded wherever it is pasted.
_COPY_NAME_PART = re.compile(
    r"(?![ ~-])(?:[\w.@+,=#!&()\[\] -]|~(?![0-9])|\$(?=\w)|\{\{|\}\}|[^\x00-\x7f])+(?<! )"
)
# Letters and signs that show nothing.
_SHAPELESS_CHARACTER = re.compile("[\u034f\u2800\ufe00-\ufe0f\ufffc\U0001d159]")
_RELATIVE_PARTS = ("", ".", "..")
_FORBIDDEN_COPY_DIRECTORIES = frozenset({".git", ".steersman"})
# Windows opens a device for these, whatever the ending.
_WINDOWS_DEVICE = re.compile(r"(?i:con|prn|aux|nul|com[0-9]|lpt[0-9])(?: *\..*)?")
# Written by steersman alone: what a run is, what was answered, what was recorded.
STEERSMAN_OWNED_FILES = frozenset(
    {
        "state.json", "tape.jsonl", "journal.jsonl", "anchors.jsonl", "anchor.json", "steersman.toml",
        "steersman.db",
    }
)  # fmt: skip
_DATABASE_FILE = re.compile(r"steersman\.db[.-].*")  # its log, its index
# Files that a run has or may have under these names: none of them is a folder.
RUN_FILE_NAMES = frozenset(
    {
        "active_context.md", "acceptance_criteria.json", "changed_files.json", "claims.json", "code/diff.patch",
        "delivery.md", "detail_design.md", "evidence.json", "master_task.json", "plan.files.json",
        "planning/planning.ai.json", "review/plan-review.json", "review_decision.json", "transcript.jsonl",
    }
)  # fmt: skip
STEERSMAN_OWNED_DIRECTORIES = frozenset({"accept", "tape", "journal", "anchors", "keys", "steersman"})


def find_artifact_name_problem(name: object) -> str | None:
    """Why an agent's file may not have this name in a run's folder, or None."""
    if (problem := find_file_name_problem(name)) is not None:
        return problem
    assert isinstance(name, str)  # noqa: S101  just judged
    parts = fold_file_name(name).split("/")
    if (
        parts[0] in STEERSMAN_OWNED_DIRECTORIES
        or parts[0] in STEERSMAN_OWNED_FILES
        or _DATABASE_FILE.fullmatch(parts[0])
    ):
        return "is written by steersman alone"
    if any("/".join(parts[:n]) in RUN_FILE_NAMES for n in range(1, len(parts))):
        return "has a file of a run for a folder"
    if tuple(parts[: len(COPIES_PATH_PARTS)]) == COPIES_PATH_PARTS and len(parts) > len(COPIES_PATH_PARTS):
        return None
    reason = _find_tool_reason(name)
    return f"would be obeyed by a tool: {reason}" if reason else None


def find_copy_gate_reason(name: str) -> str | None:
    """Why an accepted name stands for a change that a person has to look at, or None."""
    parts = name.split("/")
    if tuple(parts[: len(COPIES_PATH_PARTS)]) != COPIES_PATH_PARTS:
        return None
    inner = "/".join(parts[len(COPIES_PATH_PARTS) :])
    return _find_tool_reason(inner)


def _find_tool_reason(name: str) -> str | None:
    from steersman.judges.changes.infrastructure import find_agent_instruction_reason, find_execution_reason

    return find_execution_reason(name) or find_agent_instruction_reason(name)


def find_file_name_problem(name: object) -> str | None:
    """What is wrong with the form of a name, whatever its origin; or None."""
    if not isinstance(name, str):
        return "is not a text"
    if not name:
        return "is empty"
    if len(name) > MAX_ARTIFACT_NAME_BYTES:
        return f"is longer than {MAX_ARTIFACT_NAME_BYTES} bytes"
    if not name.isprintable() or printable_text(name) != name:
        return "has a control or invisible character"
    if unicodedata.normalize("NFKC", name) != name:
        return "is written with look-alike or composed characters"
    parts = name.split("/")
    if len(parts) > MAX_ARTIFACT_DEPTH:
        return f"is deeper than {MAX_ARTIFACT_DEPTH} folders"
    own_count = (
        len(COPIES_PATH_PARTS) if tuple(parts[: len(COPIES_PATH_PARTS)]) == COPIES_PATH_PARTS else len(parts)
    )
    problems = (
        *map(_find_name_part_problem, parts[:own_count]),
        *map(_find_copy_part_problem, parts[own_count:]),
    )
    return next((problem for problem in problems if problem is not None), None) or _find_name_length_problem(
        name
    )


def fold_file_name(name: str) -> str:
    """The same for two names that a file system may take for one."""
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", name).casefold())


def find_name_collision(name: str, others: Iterable[str]) -> str | None:
    """Another name among these that some file system takes for this one, or None."""
    key = fold_file_name(name)
    return next((other for other in others if other != name and fold_file_name(other) == key), None)


def _find_name_part_problem(part: str) -> str | None:
    quoted_part = clip_text(part, 40)
    if part not in _RELATIVE_PARTS and not _ARTIFACT_NAME_PART.fullmatch(part):
        return f"has a part {quoted_part!r}: a part is made of letters, digits and _ . - + @, and begins with a letter or digit"
    return _find_portability_problem(part, quoted_part)


def _find_copy_part_problem(part: str) -> str | None:
    quoted_part = clip_text(part, 40)
    if part not in _RELATIVE_PARTS and not (
        _COPY_NAME_PART.fullmatch(part) and all(map(_is_plain_character, part)) and _has_safe_beginning(part)
    ):
        return (
            f"has a part {quoted_part!r}: below {'/'.join(COPIES_PATH_PARTS)} a part is made of letters, digits, spaces and"
            " _ . - + @ , = ~ # ! & ( ) [ ] $name {{name}}, without a space at its ends, a dash or ~ in front"
        )
    if fold_file_name(part) in _FORBIDDEN_COPY_DIRECTORIES:
        return f"has a part {quoted_part!r}: that folder is not the repository's"
    return _find_portability_problem(part, quoted_part)


def _is_plain_character(char: str) -> bool:
    """A letter, a digit, a mark on one or a sign such as an emoji; what else ASCII may have is in `_COPY`."""
    kind = unicodedata.category(char)
    return char.isascii() or ((kind[0] in "LMN" or kind == "So") and not _SHAPELESS_CHARACTER.match(char))


def _has_safe_beginning(part: str) -> bool:
    """No mark that would sit on the slash before it; and no letter that looks like one of `.git`."""
    return part.isascii() or (part[0] != "." and unicodedata.category(part[0])[0] != "M")


def _find_portability_problem(part: str, quoted_part: str) -> str | None:
    """Why no file system, or not every one, has a file of this name."""
    if part in _RELATIVE_PARTS:
        return f"has a part {quoted_part!r}: it is relative, without empty parts and dots"
    if part.endswith("."):
        return f"has a part {quoted_part!r} that ends with a dot"
    if _WINDOWS_DEVICE.fullmatch(part):
        return f"has a part {quoted_part!r} that is a device on Windows"
    return None


def _find_name_length_problem(name: str) -> str | None:
    if len(name.encode()) > MAX_ARTIFACT_NAME_BYTES:
        return f"is longer than {MAX_ARTIFACT_NAME_BYTES} bytes"
    if any(len(part.encode()) > MAX_NAME_PART_BYTES for part in name.split("/")):
        return f"has a part of more than {MAX_NAME_PART_BYTES} bytes"
    return None
