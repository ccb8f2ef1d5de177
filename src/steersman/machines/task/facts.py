"""What the effects of a task bring back: counts, digests and names of payloads."""

from typing import Literal

import msgspec


class RecordFacts(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """Written documents, each with the digest of its bytes and the payload that holds them."""

    written: dict[str, str] = {}
    refs: dict[str, str] = {}
    told_ref: str = ""  # in words, for people: what was inferred, what is outside, what was found
    error_ref: str = ""  # why nothing was written
    # of a change alone
    beyond: int | None = None  # files and commands outside the frozen plan that bounds the task
    beyond_ref: str = ""  # which, and which plan
    infrastructure: int | None = None  # of a crew's: what of it decides about tests or agents
    infrastructure_ref: str = ""
    instructions_ref: str = ""


class InspectFacts(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """The files of a task as they are on disk now; `seen` is looked at again when this is put on tape."""

    seen: dict[str, str] = {}  # by name: the digest of the bytes, or nothing where there is no plain file
    damaged: int = 0  # files that are not what was recorded
    adoptable: int = 0  # of these: whole documents of this phase that a person may have meant
    told_ref: str = ""  # which, what is wrong with each, and what to do
    # what the documents of the phase say, read from the disk
    blocking: int = 0  # questions that have to be answered first
    files: int = 0  # that may be touched
    flaws: int = 0  # errors that steersman itself finds in the plan
    ok: bool = False
    blocked: bool = False
    decision: str = ""
    patch: int = 0  # bytes
    copies: int = 0  # changed files that are written, tombstones included
    outside: int = 0  # changed files outside the scope
    tree: str = ""  # that the phase's document is about
    overall_pass: bool = False
    status: str = ""  # of a revert


class PrerequisiteFacts(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """The tasks that come first, and the branch that this one would begin on."""

    error: str = ""  # why they could not be looked at; told_ref has the words
    missing: int = 1  # of them: whose change is not in that branch, or not known to be
    base: str = ""  # commit
    base_tree: str = ""
    told_ref: str = ""  # each of them, what it lacks, and what to do


class RevertFacts(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """A delivered change that was reverted, or why not."""

    status: Literal["reverted", "conflicted", "not_merged", "blocked"] = "blocked"
    commit: str = ""  # by which it is undone
    base: str = ""  # what all that was delivered was made on
    base_tree: str = ""
    detail_ref: str = ""
