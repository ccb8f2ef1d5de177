"""Payloads as an audit sees them: which ones an entry names, and whether each is what its name says.

**Invariant:** memory does not grow with the tape: what was judged is remembered for a bounded number of names.
"""

import re
from typing import Any

from steersman.kernel.canonical import canonical
from steersman.kernel.snapshot import Snapshot
from steersman.kernel.tape import Entry
from steersman.ports.journal import Journal
from steersman.runtime.audit.verdict import Findings
from steersman.runtime.live import payload_ref

REMEMBERED = 50_000
GONE = "is not in the store"
_NAME = re.compile(rb'"(p-[0-9a-f]{32})"')
# People's and providers' own words: what looks like a payload's name there is none.
_WORDS = frozenset({"why", "title", "actor", "reason", "person", "session", "provider", "model", "cause"})


class Texts:
    """The payloads of one run tree."""

    def __init__(self, journal: Journal, root: str, found: Findings) -> None:
        self._journal, self._root, self._found = journal, root, found
        self._key = found.read("the key of the texts", lambda: journal.key(root))
        self._judged: dict[bytes, str] = {}
        self.gone: dict[
            int | None, str
        ] = {}  # entry -> a payload it names that is not there; the first of them
        self.missing = 0
        self.named = False

    def see(self, body: bytes, entry: Entry) -> None:
        """Judges every payload that an entry names."""
        if b'"p-' not in body:
            return
        for ref in _NAME.findall(body):
            self.named = True
            wrong = self.judge(ref)
            if wrong and _means(ref.decode(), entry):
                self._tell(ref.decode(), wrong, entry.seq)
                # Once each: a person accepts a problem by its words, and the next entry may name the same payload.
                self._judged[ref] = ""

    def see_state(self, last: Snapshot) -> None:
        """Judges every payload that the run can still reach."""
        for ref in dict.fromkeys(_NAME.findall(canonical(last))):
            self.named = True
            wrong = self.judge(ref)
            if wrong and _means(ref.decode(), last):
                self._tell(ref.decode(), wrong)

    def _tell(self, ref: str, wrong: str, seq: int | None = None) -> None:
        if wrong is GONE:
            self.missing += 1
            if not self.gone:
                self.gone[seq] = ref
        else:
            self._found.add(f"{_who(seq)} names payload {ref}, which {wrong}", seq)

    def judge(self, ref: bytes) -> str:
        """What is wrong with a payload, or nothing."""
        known = self._judged.get(ref)
        if known is None:
            if len(self._judged) >= REMEMBERED:
                self._judged.clear()
            known = self._judged[ref] = self._look(ref.decode())
        return known

    def _look(self, ref: str) -> str:
        try:
            data: Any = self._journal.payload(self._root, ref)
        except Exception as error:
            self._found.unreadable(f"payload {ref}", error)
            return "cannot be read"
        if data is None:
            return GONE
        if not isinstance(self._key, bytes) or not isinstance(data, bytes):
            return "cannot be judged: the key of the texts is gone or no key"
        return "" if payload_ref(self._key, data) == ref else "does not have the digest in its name"

    def rest(self) -> None:
        """Judges every payload of the tree that no entry of this run has named."""
        for ref in self._refs():
            wrong = self._unnamed(ref)
            if wrong:
                self._found.add(f"payload {ref!r} {wrong}")

    def _refs(self) -> Any:
        try:
            yield from self._journal.payload_refs(self._root)
        except Exception as error:
            self._found.unreadable("the list of payloads", error)

    def _unnamed(self, ref: Any) -> str:
        if not isinstance(ref, str):
            return "has a name that is no text"
        name = ref.encode("utf-8", "backslashreplace")
        return "" if name in self._judged else self.judge(name)

    def settle(self, pruned: bool) -> None:
        """What is not there is a finding, unless the tape says that it was pruned."""
        if pruned:
            self._found.unseen.append(
                "what the texts of this run said, its settings among them: they were pruned, their digests are left"
            )
            return
        for seq, ref in self.gone.items():
            more = f", and {self.missing - 1} more are gone" if self.missing > 1 else ""
            self._found.add(f"{_who(seq)} names payload {ref}, which {GONE}{more}", seq)
        if self._key is None and self.named:
            self._found.add("the key of the texts is gone, and no entry says that they were pruned")


def _who(seq: int | None) -> str:
    return "the run's state" if seq is None else f"entry {seq}"


def _means(ref: str, told: Entry | Snapshot) -> bool:
    """Whether an entry or a state names a payload somewhere else than in people's own words."""
    import msgspec

    return _holds(ref, msgspec.to_builtins(told))


def _holds(ref: str, value: Any) -> bool:
    match value:
        case str():
            return value == ref
        case dict():
            return any(_holds(ref, item) for key, item in value.items() if key not in _WORDS)
        case list() | tuple():
            return any(_holds(ref, item) for item in value)
        case _:
            return False
