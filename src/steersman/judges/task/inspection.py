"""The files of a task as they are on disk, held against what was recorded: what is wrong with each, and what to do.

**Invariant:** a file that is not byte for byte what was recorded is damaged, however well it reads; nothing that was
found is obeyed. What is told of it can be printed.
"""

import hashlib
import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import msgspec

from steersman.contracts.task.documents import DOCUMENTS, task_schema
from steersman.contracts.task.words import FILES, PLAN, STATE
from steersman.judges.artifact_names import name_problem
from steersman.judges.problems import problems_of
from steersman.judges.strict_json import read
from steersman.judges.task.found import Found
from steersman.judges.text import clip, one_line

_SAID = 400  # characters of what somebody else has written
_SHOWN = 3  # problems of one file
_AT = re.compile(
    r"reply: is not one JSON object: (?P<what>.*): line (?P<line>\d+) column (?P<column>\d+) \(char (?P<at>\d+)\)",
    re.DOTALL,
)

RESTORE = "`restore` puts the recorded file back"
UNKNOWN = "is not on record: nobody has laid it down"
ADOPT = f"`adopt` takes your plan over, {RESTORE}"


class Damage(NamedTuple):
    """A file that is not what was recorded: what is wrong with it, and what a person can do."""

    name: str
    problem: str
    next: str
    adoptable: bool

    @property
    def recorded(self) -> bool:
        """Whether it was ever laid down."""
        return self.problem != UNKNOWN


def damage(name: str, found: Found, recorded: str, *, mine: bool, task_id: str = "") -> Damage | None:
    """What is wrong with a file; `mine` says that this phase may take a changed plan over, if it is of this task."""
    if found.kind == "file" and hashlib.sha256(found.data).hexdigest() == recorded:
        return None
    problem = no_file(found) or _unreadable_text(name, found.data)
    if problem:
        return Damage(name, problem, _next(name, found), adoptable=False)
    document = msgspec.json.decode(found.data)
    if name not in (PLAN, FILES) or not mine:
        return Damage(name, "was changed by hand", _next(name, found), adoptable=False)
    if document["task_id"] != task_id:
        theirs = clip(one_line(document["task_id"]), _SAID)
        problem = f"was changed by hand, and is the plan of another task: its task_id is {theirs}"
        return Damage(name, problem, RESTORE, adoptable=False)
    return Damage(name, "was changed by hand; it is whole and fits its schema", ADOPT, adoptable=True)


def stranger(name: str) -> Damage:
    """Something among the documents that is not one; a folder, which nobody can look into, is not moved, nor a name that
    no file of ours may have."""
    first = "move it away, or make it readable; then " if name.endswith("/") else ""
    then = f"{first}`restore` moves it aside"
    if not first and name_problem(f"aside/1/{name}"):
        then = "move it away by hand: under such a name nothing is kept; `restore` does the rest"
    return Damage(name, UNKNOWN, then, adoptable=False)


def no_folder(name: str, found: Found) -> Damage:
    """Something else in the place of a folder of copies, or a folder that cannot be looked into."""
    problem = "is a file, and not the folder of copies" if found.kind == "file" else no_file(found)
    first = "make it readable" if found.kind == "unreadable" else "move it away"
    return Damage(name, problem, f"{first}, then `restore` puts the recorded files back", adoptable=False)


def no_file(found: Found) -> str:
    """What is wrong where there is nothing to be read; nothing where there is."""
    more = f": {clip(one_line(found.detail), _SAID)}" if found.detail else ""
    match found.kind:
        case "missing":
            return "is deleted"
        case "link":
            return f"is a link, and links are not followed{more}"
        case "other":
            return f"is no plain file, but a folder or a device{more}"
        case "unreadable":
            return f"cannot be read{more}"
        case "too_long":
            return f"is longer than what is read{more}"
        case _:
            return "" if found.data.strip() else "is empty"


def _unreadable_text(name: str, data: bytes) -> str:
    """Why these bytes are no document of this name; nothing where they are one."""
    if name not in DOCUMENTS:
        return "is not what was recorded"
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        torn = error.reason == "unexpected end of data"
        return f"{'is cut short' if torn else 'is no JSON: not UTF-8'}, at byte {error.start + 1}"
    reading = read(text, len(data), len(data))
    if reading.problems:
        return _no_json(reading.problems[0], reading.body)
    wrong = [str(p) for p in problems_of(reading.value, task_schema(name))]
    return _unfit("; ".join(wrong[:_SHOWN])) if wrong else _undecoded(name, data)


def _no_json(problem: str, body: str) -> str:
    at = _AT.fullmatch(problem)
    if at is None:
        return f"is no sound JSON: {clip(one_line(problem.removeprefix('reply: ')), _SAID)}"
    rest = body[int(at["at"]) :]
    torn = at["what"].startswith("Unterminated string") or any(
        word.startswith(rest) for word in ("true", "false", "null")
    )
    where = f"line {at['line']}, column {at['column']}"
    return f"is cut short: its JSON breaks off in {where}" if torn else f"is no JSON: {at['what']} in {where}"


def _undecoded(name: str, data: bytes) -> str:
    """What only the decoder sees: a fence around the document, a blank that is none for a schema."""
    try:
        msgspec.json.decode(data, type=DOCUMENTS[name])
    except msgspec.DecodeError as error:
        return _unfit(str(error))
    return ""


def _unfit(what: str) -> str:
    return f"does not fit its schema: {clip(one_line(what), 2 * _SAID)}"


def _above(name: str, found: Found) -> bool:
    """Whether the link is not the file, but a folder on the way to it."""
    linked = found.detail.removesuffix(" is a link")
    return linked != found.detail and linked not in (name, name.rpartition("/")[2])


def _next(name: str, found: Found) -> str:
    if name == STATE:
        return "nothing to do: it is made again from the tape"
    match found.kind:
        case "link" if _above(name, found):
            return f"remove the link that stands in the place of a folder, what it leads to stays; then {RESTORE}"
        case "link":
            return f"{RESTORE}; what the link leads to is left alone"
        case "other":
            return f"move it away, then {RESTORE}"
        case "unreadable":
            return f"make it readable again, or {RESTORE}"
        case _:
            return RESTORE


def told(damages: Sequence[Damage]) -> str:
    """For people: each file, what is wrong with it, what to do."""
    return "\n".join(f"{clip(one_line(d.name), 1024)} {d.problem}\n    {d.next}" for d in damages)


def folder_data(entries: Mapping[str, str]) -> bytes:
    """A folder as bytes: every file by its name with the digest of its content."""
    return b"".join(
        f"{digest} {name}\0".encode("utf-8", "surrogatepass") for name, digest in sorted(entries.items())
    )


def folder_digest(entries: Mapping[str, str]) -> str:
    """One digest over the files of a folder: that of `folder_data`."""
    return hashlib.sha256(folder_data(entries)).hexdigest()
