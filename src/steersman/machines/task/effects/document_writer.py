"""Writes the documents of a task: the plan, the reports, and a change with a copy of every file.

What a document says is decided in `machines.task.documents`.
**Invariant:** the bytes on disk equal those of the payload, and a written document can be read back.
"""

import asyncio
import json
from collections.abc import Callable, Collection
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import msgspec

from steersman.contracts.workspace import Change, TouchedPath
from steersman.engine.effects import EffectCall
from steersman.engine.effects.change_context import (
    describe_commands_outside_bounds,
    files_outside_bounds,
    find_plan_bounds,
)
from steersman.errors import SteersmanError
from steersman.judges.artifact_names import find_file_name_problem
from steersman.judges.text import clip_text, printable_line
from steersman.kernel.canonical import canonical_bytes
from steersman.machines.task.documents.inspection import digest_directory_listing
from steersman.machines.task.documents.schemas import ChangeCopies, FileCopy, PlanFiles
from steersman.machines.task.documents.scope import (
    find_paths_outside_scope,
    find_planned_otherwise,
    find_untouched_plan_files,
)
from steersman.machines.task.documents.words import COPIES_DIRECTORY, COPIES_LIST_FILE, PATCH_FILE, SCOPE_FILE
from steersman.machines.task.facts import RecordFacts

if TYPE_CHECKING:
    from steersman.judges.planning.plan_bounds import PlanBounds

DocumentType = TypeVar("DocumentType")
MAX_COPY_BYTES = 4 * 1024 * 1024  # bytes of a copy


class DocumentWriter:
    """The documents of one effect: those that it was given, and those that it writes."""

    def __init__(self, call: EffectCall) -> None:
        self.call = call
        self.written: dict[str, str] = {}
        self.refs: dict[str, str] = {}
        self.told: list[str] = []
        self.beyond: list[str] | None = None  # of a change: what is outside the frozen plan, in words
        self.suspects: dict[str, Any] = {}  # of a child run's change

    def reply(self, ref: str, document_type: type[DocumentType]) -> DocumentType:
        """An agent's reply as it was kept."""
        body = json.loads(self.call.payloads.get(ref))
        return msgspec.convert({"nonce": "", **body}, document_type)

    def replies(self, name: str, document_type: type[DocumentType]) -> dict[str, DocumentType]:
        return {
            role: self.reply(ref, document_type) for role, ref in self.call.given(name, {}).items() if ref
        }

    def document(self, name: str, document_type: type[DocumentType]) -> DocumentType | None:
        """A document that was recorded before."""
        ref = self.call.given("documents", {}).get(name, "")
        return msgspec.json.decode(self.call.payloads.get(ref), type=document_type) if ref else None

    def lay_down(self, name: str, document: msgspec.Struct) -> None:
        """Writes a document as people read it; what is a secret is hidden in the file too, and it can be read back."""
        redacted = self.call.payloads.redact_secrets(
            msgspec.json.format(canonical_bytes(document)).decode() + "\n"
        )
        try:
            msgspec.json.decode(redacted, type=type(document))
        except msgspec.MsgspecError as error:
            raise ValueError(f"{name} cannot be written: {error}") from error
        self._keep(name, redacted)

    def lay_text(self, name: str, text: str) -> str:
        return self._keep(name, self.call.payloads.redact_secrets(text))

    def _keep(self, name: str, redacted: str) -> str:
        data = redacted.encode("utf-8", "backslashreplace")  # as a payload keeps it
        self.call.world.artifacts.write(self.call.run, name, data, durable=True)
        self.refs[name] = self.call.payloads.put_redacted(redacted)
        self.written[name] = sha256(data).hexdigest()
        return self.written[name]

    def take_away(self, name: str) -> None:
        """Takes a document off the record."""
        self.call.world.artifacts.remove(self.call.run, name)
        self.written[name] = ""

    def facts(self) -> RecordFacts:
        put = self.call.payloads.add_text
        outside_plan = self.beyond
        beyond_ref = "" if outside_plan is None else put("\n".join(outside_plan))
        return RecordFacts(
            written=self.written,
            refs=self.refs,
            told_ref=put("\n".join(self.told)),
            beyond=None if outside_plan is None else len(outside_plan),
            beyond_ref=beyond_ref,
            **self.suspects,
        )


def perform_in_thread(work: Callable[[EffectCall], Any]) -> Any:
    """Reads and writes files outside the event loop, and returns an error as facts."""

    async def perform(call: EffectCall) -> Any:
        try:
            return await asyncio.to_thread(work, call)
        except (SteersmanError, OSError, msgspec.MsgspecError, ValueError) as error:
            return RecordFacts(error_ref=call.payloads.add_text(clip_text(printable_line(str(error)), 4000)))

    return perform


# ── a change ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def write_change_documents(writer: DocumentWriter, change: Change, base_tree: str) -> None:
    """Writes the patch, a copy of every changed file, and the list of both, compared with the scope."""
    call = writer.call
    patch_digest = writer.lay_text(PATCH_FILE, change.patch)
    bounds = find_plan_bounds(call)
    outside_scope, outside_bounds = find_files_outside_scope(writer, change, bounds)
    wanted_commands = call.payloads.get(call.given("commands", "")).splitlines()
    copy_records, copy_digests = write_change_copies(call, change)
    writer.written[COPIES_DIRECTORY] = digest_directory_listing(copy_digests)
    writer.lay_down(
        COPIES_LIST_FILE,
        ChangeCopies(
            task_id=call.run,
            base=base_tree,
            tree=change.tree,
            commit=change.commit,
            patch_digest=patch_digest,
            files=tuple(copy_records),
            outside=tuple(sorted(outside_scope)),
            held_to=bounds.plan_id if bounds is not None else "",
            commands=tuple(clip_text(printable_line(script), 400) for script in wanted_commands[:100]),
        ),
    )
    outside_reasons = [
        *dict.fromkeys(outside_bounds.values()),
        *describe_commands_outside_bounds(bounds, wanted_commands),
    ]
    writer.beyond = outside_reasons
    writer.told += [printable_line(outside_reason) for outside_reason in outside_reasons]
    files = writer.document(SCOPE_FILE, PlanFiles)
    planned_intents = find_planned_otherwise(files, change.touched) if files is not None else {}
    writer.told += [
        _outside_plan_line(path, planned_intents.get(path, ""))
        for path in sorted(outside_scope - outside_bounds.keys())
    ]
    writer.told += [f"{c.change}: {printable_line(c.path)}" for c in copy_records]
    left_out = find_untouched_plan_files(files, [c.path for c in copy_records]) if files is not None else []
    writer.told += [f"planned, and not in the change: {printable_line(path)}" for path in left_out]


def _outside_plan_line(path: str, planned_intent: str) -> str:
    return f"outside the plan: {printable_line(path)}" + (f" ({planned_intent})" if planned_intent else "")


def find_files_outside_scope(
    writer: DocumentWriter, change: Change, bounds: "PlanBounds | None"
) -> tuple[set[str], dict[str, str]]:
    """Every changed file outside the scope, and of these with why those outside the frozen plan."""
    files, names = writer.document(SCOPE_FILE, PlanFiles), [t.path for t in change.touched]
    is_redelivery = bool(writer.call.given("deliveries"))
    outside_scope = (
        set(find_paths_outside_scope(files, change.touched, has_delivered=is_redelivery))
        if files is not None
        else set(names)
    )
    outside_bounds = files_outside_bounds(bounds, names)
    return outside_scope | outside_bounds.keys(), outside_bounds


def write_change_copies(
    call: EffectCall, change: Change, names_to_leave: Collection[str] = ()
) -> tuple[list[FileCopy], dict[str, str]]:
    """Writes the copies below code/files. Files that are no copies are removed first, except those in `stay`, which could
    not be kept under another name."""
    artifacts, run = call.world.artifacts, call.run
    files = [t for t in change.touched if t.new]
    contents = call.world.workspace(call.config).read_contents(change.commit, [t.path for t in files])
    copy_records = [_copy_record(call, t, contents.get(t.path)) for t in change.touched]
    copy_digests = {c.path: c.digest for c in copy_records if c.digest}
    for name in artifacts.names(run, COPIES_DIRECTORY):
        if name and name not in copy_digests and f"{COPIES_DIRECTORY}/{name}" not in names_to_leave:
            artifacts.remove(run, f"{COPIES_DIRECTORY}/{name}")
    for path in copy_digests:
        artifacts.write(run, f"{COPIES_DIRECTORY}/{path}", contents[path])
    return copy_records, copy_digests


def _copy_record(call: EffectCall, touched: TouchedPath, data: bytes | None) -> FileCopy:
    if not touched.new:
        return FileCopy(path=touched.path, change="deleted")
    change_kind: Literal["created", "updated"] = "updated" if touched.old else "created"
    if data is None:
        return FileCopy(path=touched.path, change=change_kind, kept=False, why="it is no plain file")
    problem = _uncopied_reason(call, touched.path, data)
    if problem:
        return FileCopy(
            path=touched.path, change=change_kind, kept=False, why=clip_text(printable_line(problem), 400)
        )
    return FileCopy(path=touched.path, change=change_kind, digest=sha256(data).hexdigest())


def _uncopied_reason(call: EffectCall, path: str, data: bytes) -> str:
    """Why a file has no copy, or nothing."""
    if len(data) > MAX_COPY_BYTES:
        return f"it is longer than {MAX_COPY_BYTES} bytes"
    if call.payloads.redact_secrets(path) != path:
        return "its name holds a secret"
    return find_file_name_problem(f"{COPIES_DIRECTORY}/{path}") or ""
