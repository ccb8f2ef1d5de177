"""Compares the files of a task on disk with what was recorded: what is wrong with each, and what to do.

**Invariant:** a file whose bytes differ from the record is damaged, however valid its text is. No content found here is
obeyed, and every message is printable.
"""

import hashlib
import re
from collections.abc import Mapping, Sequence

import msgspec

from steersman.contracts.artifacts import STATE_FILE, UNRECORDED_FILE_PROBLEM, ArtifactOnDisk, DamagedFile
from steersman.judges.artifact_names import find_file_name_problem
from steersman.judges.replies.strict_json import find_json_schema_problems, read_strict_json
from steersman.judges.text import clip_text, printable_line
from steersman.machines.task.documents.schemas import TASK_DOCUMENTS, task_document_schema
from steersman.machines.task.documents.words import PLAN_FILE, SCOPE_FILE

_MAX_QUOTED_CHARACTERS = 400  # characters of a quoted text
_MAX_SHOWN_PROBLEMS = 3  # problems of one file
_JSON_ERROR_POSITION = re.compile(
    r"reply: is not one JSON object: (?P<what>.*): line (?P<line>\d+) column (?P<column>\d+) \(char (?P<at>\d+)\)",
    re.DOTALL,
)

RESTORE_HINT = "`restore` puts the recorded file back"
ADOPT_HINT = f"`adopt` takes your plan over, {RESTORE_HINT}"


def find_file_damage(
    name: str, artifact: ArtifactOnDisk, recorded_digest: str, *, may_adopt: bool, task_id: str = ""
) -> DamagedFile | None:
    """What is wrong with a file; `mine` says that this phase may take a changed plan over, if it is of this task."""
    if artifact.kind == "file" and hashlib.sha256(artifact.data).hexdigest() == recorded_digest:
        return None
    problem = find_unreadable_file_problem(artifact) or _find_document_text_problem(name, artifact.data)
    if problem:
        return DamagedFile(name, problem, _suggest_file_repair(name, artifact), adoptable=False)
    document = msgspec.json.decode(artifact.data)
    if name not in (PLAN_FILE, SCOPE_FILE) or not may_adopt:
        return DamagedFile(name, "was changed by hand", _suggest_file_repair(name, artifact), adoptable=False)
    if document["task_id"] != task_id:
        other_task_id = clip_text(printable_line(document["task_id"]), _MAX_QUOTED_CHARACTERS)
        problem = f"was changed by hand, and is the plan of another task: its task_id is {other_task_id}"
        return DamagedFile(name, problem, RESTORE_HINT, adoptable=False)
    return DamagedFile(
        name, "was changed by hand; it is whole and fits its schema", ADOPT_HINT, adoptable=True
    )


def unknown_file_damage(name: str) -> DamagedFile:
    """Something among the documents that is not one; a folder that cannot be read is not moved, nor a name that
    no document may have."""
    preparation = "move it away, or make it readable; then " if name.endswith("/") else ""
    repair = f"{preparation}`restore` moves it aside"
    if not preparation and find_file_name_problem(f"aside/1/{name}"):
        repair = "move it away by hand: under such a name nothing is kept; `restore` does the rest"
    return DamagedFile(name, UNRECORDED_FILE_PROBLEM, repair, adoptable=False)


def copies_directory_damage(name: str, artifact: ArtifactOnDisk) -> DamagedFile:
    """Something else in the place of a folder of copies, or a folder that cannot be looked into."""
    problem = (
        "is a file, and not the folder of copies"
        if artifact.kind == "file"
        else find_unreadable_file_problem(artifact)
    )
    preparation = "make it readable" if artifact.kind == "unreadable" else "move it away"
    return DamagedFile(
        name, problem, f"{preparation}, then `restore` puts the recorded files back", adoptable=False
    )


def find_unreadable_file_problem(artifact: ArtifactOnDisk) -> str:
    """What is wrong where there is nothing to be read; nothing where there is."""
    detail = (
        f": {clip_text(printable_line(artifact.detail), _MAX_QUOTED_CHARACTERS)}" if artifact.detail else ""
    )
    match artifact.kind:
        case "missing":
            return "is deleted"
        case "link":
            return f"is a link, and links are not followed{detail}"
        case "other":
            return f"is no plain file, but a folder or a device{detail}"
        case "unreadable":
            return f"cannot be read{detail}"
        case "too_long":
            return f"is longer than what is read{detail}"
        case _:
            return "" if artifact.data.strip() else "is empty"


def _find_document_text_problem(name: str, data: bytes) -> str:
    """Why these bytes are no document of this name; nothing where they are one."""
    if name not in TASK_DOCUMENTS:
        return "is not what was recorded"
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        is_cut = error.reason == "unexpected end of data"
        return f"{'is cut short' if is_cut else 'is no JSON: not UTF-8'}, at byte {error.start + 1}"
    reading = read_strict_json(text, len(data), len(data))
    if reading.problems:
        return _explain_document_json_error(reading.problems[0], reading.body)
    schema_problems = [str(p) for p in find_json_schema_problems(reading.value, task_document_schema(name))]
    return (
        _schema_mismatch_problem("; ".join(schema_problems[:_MAX_SHOWN_PROBLEMS]))
        if schema_problems
        else _find_document_decode_problem(name, data)
    )


def _explain_document_json_error(problem: str, body: str) -> str:
    position = _JSON_ERROR_POSITION.fullmatch(problem)
    if position is None:
        return f"is no sound JSON: {clip_text(printable_line(problem.removeprefix('reply: ')), _MAX_QUOTED_CHARACTERS)}"
    rest = body[int(position["at"]) :]
    is_cut = position["what"].startswith("Unterminated string") or any(
        word.startswith(rest) for word in ("true", "false", "null")
    )
    where = f"line {position['line']}, column {position['column']}"
    return (
        f"is cut short: its JSON breaks off in {where}"
        if is_cut
        else f"is no JSON: {position['what']} in {where}"
    )


def _find_document_decode_problem(name: str, data: bytes) -> str:
    """What only the decoder sees: a fence around the document, a blank that is none for a schema."""
    try:
        msgspec.json.decode(data, type=TASK_DOCUMENTS[name])
    except msgspec.DecodeError as error:
        return _schema_mismatch_problem(str(error))
    return ""


def _schema_mismatch_problem(what: str) -> str:
    return f"does not fit its schema: {clip_text(printable_line(what), 2 * _MAX_QUOTED_CHARACTERS)}"


def _is_directory_link(name: str, artifact: ArtifactOnDisk) -> bool:
    """Whether the link is not the file, but a folder on the way to it."""
    link_name = artifact.detail.removesuffix(" is a link")
    return link_name != artifact.detail and link_name not in (name, name.rpartition("/")[2])


def _suggest_file_repair(name: str, artifact: ArtifactOnDisk) -> str:
    if name == STATE_FILE:
        return "nothing to do: it is made again from the tape"
    match artifact.kind:
        case "link" if _is_directory_link(name, artifact):
            return f"remove the link that stands in the place of a folder, what it leads to stays; then {RESTORE_HINT}"
        case "link":
            return f"{RESTORE_HINT}; what the link leads to is left alone"
        case "other":
            return f"move it away, then {RESTORE_HINT}"
        case "unreadable":
            return f"make it readable again, or {RESTORE_HINT}"
        case _:
            return RESTORE_HINT


def render_damaged_files(damages: Sequence[DamagedFile]) -> str:
    """For people: each file, what is wrong with it, what to do."""
    return "\n".join(
        f"{clip_text(printable_line(file.name), 1024)} {file.problem}\n    {file.next}" for file in damages
    )


def encode_directory_listing(entries: Mapping[str, str]) -> bytes:
    """A folder as bytes: every file by its name with the digest of its content."""
    return b"".join(f"{d} {name}\0".encode("utf-8", "surrogatepass") for name, d in sorted(entries.items()))


def digest_directory_listing(entries: Mapping[str, str]) -> str:
    """One digest over the files of a folder: that of `folder_data`."""
    return hashlib.sha256(encode_directory_listing(entries)).hexdigest()
