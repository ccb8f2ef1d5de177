"""FactPack, MemoryPack and ContextBundle: what is known before anything is planned, each fact with its place."""

from typing import Annotated, Literal

from msgspec import Meta

from steersman.contracts.planning.policy import ExecutionPolicy
from steersman.contracts.planning.words import (
    BoundedCount,
    EvidenceRef,
    HexDigest,
    LongText,
    MemoryScope,
    ShortText,
    StrictDocument,
    UtcMoment,
)

FactKind = Literal[
    "language", "framework", "package", "test_command", "build_command", "lint_command", "format_command",
    "type_command", "ci", "ownership", "container", "licence", "documentation", "secret_file", "lock_file",
    "entry_point", "database", "infrastructure",
]  # fmt: skip


class ScanEvidence(StrictDocument, frozen=True, kw_only=True):
    """A place in a file of the project: `scan://<id>` names it, by the file and the lines that stand there."""

    id: Annotated[str, Meta(pattern=r"^ev[0-9a-f]{12}$")]
    source_file: Annotated[str, Meta(min_length=1, max_length=4096)]
    first_line: Annotated[int, Meta(ge=0)]  # 0: the file as a whole
    last_line: Annotated[int, Meta(ge=0)]
    # Of the file; of its text without secrets where it has any; of no bytes where it was not opened, for its name is
    # that of a secret.
    digest: HexDigest
    snippet: Annotated[str, Meta(max_length=200)]


class ProjectFact(StrictDocument, frozen=True, kw_only=True):
    """One thing that is true of the project, and the evidence for it; `fact://<kind>/<name>` names it."""

    kind: FactKind
    name: Annotated[str, Meta(min_length=1, max_length=200)]
    value: Annotated[str, Meta(max_length=400)] = ""  # a version, a command line
    argv: Annotated[tuple[str, ...], Meta(max_length=64)] = ()
    root: Annotated[str, Meta(max_length=4096)] = "."  # the part of the project it is about
    evidence: Annotated[tuple[str, ...], Meta(min_length=1, max_length=20)]  # ids


class ScanBounds(StrictDocument, frozen=True, kw_only=True):
    """How far the scan went. Everything that was left out is reported."""

    files_seen: BoundedCount
    files_read: BoundedCount
    bytes_read: BoundedCount
    skipped: BoundedCount  # vendored, ignored, too big or unreadable
    complete: bool
    stopped_by: Annotated[str, Meta(max_length=200)] = ""
    # Manifests that are there and say nothing: the file, its line, and why.
    unread: Annotated[tuple[Annotated[str, Meta(max_length=400)], ...], Meta(max_length=50)] = ()
    unknown: tuple[FactKind, ...] = ()  # of which there may be more; empty and not complete: of every kind


class FactPack(StrictDocument, frozen=True, kw_only=True):
    """What a scan of the project's own files has found; the same files give the same bytes."""

    schema_version: Literal["1.1.0"] = "1.1.0"
    project_id: Annotated[str, Meta(min_length=1, max_length=120)]
    fingerprint: HexDigest  # over the names and digests of what was read
    facts: tuple[ProjectFact, ...]
    evidence: tuple[ScanEvidence, ...]
    bounds: ScanBounds


class MemoryRecord(StrictDocument, frozen=True, kw_only=True):
    """Something that was learnt before; `memory://<id>` names it."""

    id: Annotated[str, Meta(pattern=r"^mem_[0-9a-f]{12}$")]
    scope: MemoryScope
    subject: Annotated[str, Meta(max_length=200)] = ""  # the task or agent of that scope
    text: LongText
    tags: Annotated[tuple[ShortText, ...], Meta(max_length=20)] = ()
    source: Annotated[str, Meta(max_length=200)] = ""  # who or what said so
    created_at: UtcMoment


class RecalledMemory(StrictDocument, frozen=True, kw_only=True):
    """A memory as a plan has it: what it says, not when or by whom it was kept."""

    id: Annotated[str, Meta(pattern=r"^mem_[0-9a-f]{12}$")]
    scope: MemoryScope
    subject: Annotated[str, Meta(max_length=200)] = ""
    text: LongText
    tags: Annotated[tuple[ShortText, ...], Meta(max_length=20)] = ()


class MemoryPack(StrictDocument, frozen=True, kw_only=True):
    """The memories that fit, sorted by name: two machines that remember the same have the same pack."""

    schema_version: Literal["1.1.0"] = "1.1.0"
    project_id: Annotated[str, Meta(min_length=1, max_length=120)]
    query: Annotated[str, Meta(max_length=4000)]
    scopes: tuple[MemoryScope, ...]
    threshold: BoundedCount  # how many there have to be
    memories: tuple[RecalledMemory, ...]


class ContextBundle(StrictDocument, frozen=True, kw_only=True):
    """All that the planner goes by."""

    schema_version: Literal["1.0.0"] = "1.0.0"
    memory: MemoryPack
    facts: FactPack
    policy: ExecutionPolicy
    evidence_refs: tuple[EvidenceRef, ...]  # every name under which something of it can be cited, sorted
