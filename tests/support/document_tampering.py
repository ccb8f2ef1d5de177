"""What hands do to the files of a task, in bytes and on a disk, and what has to hold afterwards."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

from steersman.contracts.artifacts import STATE_FILE
from steersman.engine import projections
from steersman.engine.ports import Ports
from steersman.machines.task.documents.schemas import TASK_DOCUMENTS
from steersman.machines.task.documents.words import PATCH_FILE
from steersman.machines.task.effects.document_digests import DOCUMENT_DIRECTORIES
from steersman.machines.task.effects.document_restore import ASIDE_DIRECTORY
from tests.support.task_effects import TaskEffects


def alter_document(name: str, data: bytes) -> bytes:
    """The same file, whole and readable, with something else in it."""
    if name not in TASK_DOCUMENTS:
        return data + b"# by hand\n"
    body = json.loads(data)
    for key, value in body.items():
        if isinstance(value, bool):
            return json.dumps({**body, key: not value}).encode()
    body[next(k for k in ("title", "reason", "decided_by", "task_id") if k in body)] = "by hand"
    return json.dumps(body).encode()


BYTE_TAMPERINGS: dict[str, Callable[[str, bytes], bytes]] = {
    "emptied": lambda _name, _data: b"",
    "truncated": lambda _name, data: data[: len(data) // 2],
    "garbage": lambda _name, _data: b"\x00\xff\xfe not at all",
    "changed": alter_document,
}
PATH_TAMPERINGS = ("link", "folder", "unreadable")
TAMPERINGS = ("deleted", *BYTE_TAMPERINGS, *PATH_TAMPERINGS)
FORGED_DECISION = b'{"decision": "accepted", "decided_by": "ann"}'
DERIVED_FILES = ("state.json", "transcript.jsonl")  # made from the tape
UNRECORDED_FILES = (
    *(n for n in (*TASK_DOCUMENTS, PATCH_FILE) if n != STATE_FILE),
    *(f"{folder}/extra.json" for folder in DOCUMENT_DIRECTORIES),
)


def tamper_file(folder: Path, name: str, hand: str) -> None:
    """What a hand does to a file; a link leads to the right bytes in the wrong place."""
    path = folder / name
    if hand == "planted":
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(FORGED_DECISION)
        return
    data = path.read_bytes()
    if hand in BYTE_TAMPERINGS:
        path.write_bytes(BYTE_TAMPERINGS[hand](name, data))
    elif hand == "unreadable":
        path.chmod(0)
    else:
        path.unlink()
    if hand == "link":
        theirs = folder.with_name(f"{folder.name}-theirs")
        theirs.write_bytes(data)
        path.symlink_to(theirs)
    if hand == "folder":
        path.mkdir()
        (path / "theirs").write_bytes(data)


def move_planted_folder_away(folder: Path, name: str) -> None:
    """A person moves a folder away that stands in the place of a file, and what they had in it with it."""
    if (folder / name).is_dir():
        shutil.rmtree(folder / name)


def read_files_below(folder: Path) -> dict[str, bytes]:
    """All plain files below a folder, with what is in them; but for those that were moved aside."""
    return {
        str(p.relative_to(folder)): p.read_bytes()
        for p in sorted(folder.rglob("*"))
        if p.is_file() and not p.is_symlink() and p.relative_to(folder).parts[0] != ASIDE_DIRECTORY
    }


def find_tamper_failures(effects: TaskEffects, phase: str, name: str, hand: str) -> list[str]:
    """A hand in one file of a task on a disk: noticed, named, not trusted, put back; what of that does not hold."""
    folder = Path(effects.artifacts.folder(effects.run))
    before, theirs = read_files_below(folder), folder.with_name(f"{folder.name}-theirs")
    tamper_file(folder, name, hand)
    facts = effects.inspect(phase)
    lines = effects.said(facts.told_ref).splitlines()
    wrong = {
        "it goes on": effects.event(phase) != "documents_damaged",
        "it is not named first": not lines[0].startswith(f"{name} "),
        "nobody says what to do": "`restore`" not in lines[1],
        "it may be taken over": facts.adoptable != (phase == "planning" and hand == "changed"),
    }
    refused = effects.restore().error_ref
    if refused:
        wrong["it is refused without its name"] = name not in effects.said(refused)
        wrong["what was theirs is gone"] = not (folder / name / "theirs").exists()
        move_planted_folder_away(folder, name)
        wrong["it cannot be put back"] = bool(effects.restore().error_ref)
    wrong["it is not what it was"] = read_files_below(folder) != before
    wrong["it is still damaged"] = effects.inspect(phase).damaged != 0
    if hand == "link":
        wrong["what the link leads to is changed"] = theirs.read_bytes() != before[name]
    return [f"{phase}: {name} {hand}: {what}" for what, holds in wrong.items() if holds]


def find_planted_file_failures(effects: TaskEffects, phase: str, name: str) -> list[str]:
    """A file under a document's name, or beside one, that steersman did not write: named, not trusted, moved aside."""
    folder = Path(effects.artifacts.folder(effects.run))
    before, kept = read_files_below(folder), len(list((folder / ASIDE_DIRECTORY).rglob(Path(name).name)))
    tamper_file(folder, name, "planted")
    told = effects.said(effects.inspect(phase).told_ref)
    wrong = {
        "it goes on": effects.event(phase) != "documents_damaged",
        "it is not named": not told.startswith(f"{name} is not on record"),
        "it cannot be moved": bool(effects.restore().error_ref),
        "it is still there": read_files_below(folder) != before,
        "nobody keeps it": len(list((folder / ASIDE_DIRECTORY).rglob(Path(name).name))) != kept + 1,
        "it is still damaged": effects.inspect(phase).damaged != 0,
    }
    return [f"{phase}: {name} planted: {what}" for what, holds in wrong.items() if holds]


def find_derived_file_failures(ports: Ports, run: str, name: str, hand: str) -> list[str]:
    """Tampers with a file that is made from the tape: it is written again as it was, and an unreadable state is
    reported in one sentence; returns what does not hold."""
    folder = Path(ports.artifacts.folder(run))
    before = read_files_below(folder)
    tamper_file(folder, name, hand)
    messages = projections.write_projections(ports, run)
    message = messages[0] if len(messages) == 1 else ""
    wrong = {}
    if hand == "folder":
        wrong["it does not say what to do"] = not message.endswith(
            "is a folder; put that right and try again"
        )
        wrong["what was theirs is gone"] = not (folder / name / "theirs").exists()
        move_planted_folder_away(folder, name)
        projections.write_projections(ports, run)
    elif name == STATE_FILE and hand != "changed":
        wrong["it is not reported once"] = not message.startswith(f"{name} ")
        wrong["it does not say what was done"] = not message.endswith("steersman wrote it again")
    else:
        wrong["it is reported"] = bool(messages)
    wrong["it is not what it was"] = read_files_below(folder) != before
    return [f"{name} {hand}: {what}: {messages}" for what, holds in wrong.items() if holds]
