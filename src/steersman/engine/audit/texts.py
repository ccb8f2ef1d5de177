"""Checks the payloads that entries name against their names.

**Invariant:** memory does not grow with the tape: results are cached for a bounded number of names.
"""

import re
from typing import Any

from steersman.engine.active_run import payload_ref
from steersman.engine.audit.verdict import AuditFindings
from steersman.kernel.canonical import canonical_bytes
from steersman.kernel.snapshot import Snapshot
from steersman.kernel.tape import Entry
from steersman.ports.journal import Journal

MAX_REMEMBERED_PAYLOADS = 50_000
NOT_IN_STORE = "is not in the store"
_PAYLOAD_NAME = re.compile(rb'"(p-[0-9a-f]{32})"')
# Words of people and providers: a text there that looks like a payload's name is none.
_FREE_TEXT_FIELDS = frozenset(
    {"why", "title", "actor", "reason", "person", "session", "provider", "model", "cause"}
)


class PayloadAudit:
    """The payloads of one run tree."""

    def __init__(self, journal: Journal, root: str, findings: AuditFindings) -> None:
        self._journal, self._root, self._found = journal, root, findings
        self._key = findings.read("the key of the texts", lambda: journal.key(root))
        self._judged: dict[bytes, str] = {}
        self.gone: dict[int | None, str] = {}  # the first missing payload, and the entry that names it
        self.missing = 0
        self.named = False

    def judge_entry(self, body: bytes, entry: Entry) -> None:
        """Judges every payload that an entry names."""
        if b'"p-' not in body:
            return
        for ref in _PAYLOAD_NAME.findall(body):
            self.named = True
            problem = self.judge_payload(ref)
            if problem and _names_payload(ref.decode(), entry):
                self._report_problem(ref.decode(), problem, entry.seq)
                # Reported once, because a person accepts a problem by its words and later entries may name the same payload.
                self._judged[ref] = ""

    def see_state(self, snapshot: Snapshot) -> None:
        """Judges every payload that the run can still reach."""
        for ref in dict.fromkeys(_PAYLOAD_NAME.findall(canonical_bytes(snapshot))):
            self.named = True
            problem = self.judge_payload(ref)
            if problem and _names_payload(ref.decode(), snapshot):
                self._report_problem(ref.decode(), problem)

    def _report_problem(self, ref: str, problem: str, seq: int | None = None) -> None:
        if problem is NOT_IN_STORE:
            self.missing += 1
            if not self.gone:
                self.gone[seq] = ref
        else:
            self._found.add(f"{_naming_place(seq)} names payload {ref}, which {problem}", seq)

    def judge_payload(self, ref: bytes) -> str:
        """Returns what is wrong with a payload, or nothing."""
        problem = self._judged.get(ref)
        if problem is None:
            if len(self._judged) >= MAX_REMEMBERED_PAYLOADS:
                self._judged.clear()
            problem = self._judged[ref] = self._read_payload(ref.decode())
        return problem

    def _read_payload(self, ref: str) -> str:
        try:
            data: Any = self._journal.payload(self._root, ref)
        except Exception as error:
            self._found.add_read_error(f"payload {ref}", error)
            return "cannot be read"
        if data is None:
            return NOT_IN_STORE
        if not isinstance(self._key, bytes) or not isinstance(data, bytes):
            return "cannot be judged: the key of the texts is gone or no key"
        return "" if payload_ref(self._key, data) == ref else "does not have the digest in its name"

    def judge_remaining(self) -> None:
        """Judges every payload of the tree that no entry of this run has named."""
        for ref in self._refs():
            problem = self._unnamed(ref)
            if problem:
                self._found.add(f"payload {ref!r} {problem}")

    def _refs(self) -> Any:
        try:
            yield from self._journal.payload_refs(self._root)
        except Exception as error:
            self._found.add_read_error("the list of payloads", error)

    def _unnamed(self, ref: Any) -> str:
        if not isinstance(ref, str):
            return "has a name that is no text"
        name = ref.encode("utf-8", "backslashreplace")
        return "" if name in self._judged else self.judge_payload(name)

    def report_missing(self, pruned: bool) -> None:
        """Adds a finding for missing payloads, unless the tape says that they were pruned."""
        if pruned:
            self._found.unseen.append(
                "changes to the texts and settings of this run: they were pruned, and only their digests are left"
            )
            return
        for seq, ref in self.gone.items():
            more_note = f", and {self.missing - 1} more are gone" if self.missing > 1 else ""
            self._found.add(f"{_naming_place(seq)} names payload {ref}, which {NOT_IN_STORE}{more_note}", seq)
        if self._key is None and self.named:
            self._found.add("the key of the texts is gone, and no entry says that they were pruned")


def _naming_place(seq: int | None) -> str:
    return "the run's state" if seq is None else f"entry {seq}"


def _names_payload(ref: str, record: Entry | Snapshot) -> bool:
    """Whether an entry or a state names a payload outside people's words."""
    import msgspec

    return _contains_ref(ref, msgspec.to_builtins(record))


def _contains_ref(ref: str, value: Any) -> bool:
    match value:
        case str():
            return value == ref
        case dict():
            return any(
                _contains_ref(ref, item) for key, item in value.items() if key not in _FREE_TEXT_FIELDS
            )
        case list() | tuple():
            return any(_contains_ref(ref, item) for item in value)
        case _:
            return False
