"""Decides whether a citation of an intent leads somewhere and whether it justifies a command; names facts for citation.

A reference leads somewhere if its target exists: a fact, a place of the scan, a memory, content of the registry, lines of
a file that the scan showed, or words of the intent. It justifies a command if the target is about the project or about
what the author wants. Content of the registry and rules describe a command and justify none.
**Invariant:** intent, registry and context alone decide. A reference without a target is not evidence, whatever its name.
The name of a fact depends only on the fact; characters that a reference cannot hold are written as %XX.
"""

import re
from collections.abc import Iterable
from functools import cached_property
from typing import Any

from steersman.contracts.planning.context import ContextBundle, FactPack, MemoryPack, ProjectFact
from steersman.contracts.planning.intent import ExecutionIntent
from steersman.contracts.planning.policy import ExecutionPolicy
from steersman.contracts.planning.words import EvidenceRef
from steersman.judges.planning.registry import Registry, parse_cited_content
from steersman.kernel.canonical import plain_value as builtins
from steersman.kernel.canonical import sha256_hex

JUSTIFYING_SCHEMES = ("scan", "fact", "memory", "doc")
WISH_FIELDS = ("description", "objective")  # the parts of an intent that say what the author wants

_CONTEXT_SCHEMES = ("scan", "fact", "memory")  # the bundle lists every name
_EMPTY_FILE_DIGEST = sha256_hex(b"")  # of a file that was not opened, or has nothing in it
_MEMBER_ID_FIELDS = ("workflow_id", "agent_id", "command_id")
_LINE_RANGE_PATTERN = re.compile(r"L([1-9][0-9]{0,8})(?:-L([1-9][0-9]{0,8}))?")
_LIST_INDEX_PATTERN = re.compile(r"0|[1-9][0-9]{0,3}")


class CitableEvidence:
    """Everything that one intent can cite."""

    def __init__(self, intent: ExecutionIntent, registry: Registry, bundle: ContextBundle) -> None:
        self._intent, self._registry = intent, registry
        self._named = frozenset(bundle.evidence_refs)
        self._files: dict[str, list[tuple[int, int]]] = {}
        for evidence in bundle.facts.evidence:
            if evidence.digest != _EMPTY_FILE_DIGEST:
                self._files.setdefault(evidence.source_file, []).append(
                    (evidence.first_line, evidence.last_line)
                )
        self._known: dict[str, bool] = {}

    def leads(self, ref: str) -> bool:
        """Whether a reference ends at something."""
        if ref not in self._known:
            self._known[ref] = self._looked_up(*ref.partition("://")[::2], ref)
        return self._known[ref]

    def speaks(self, ref: str) -> bool:
        """Whether a reference ends at something that can be a reason for a command."""
        scheme, _, target = ref.partition("://")
        is_wish = scheme == "intent" and target.partition("/")[2].partition("/")[0] in WISH_FIELDS
        return (is_wish or scheme in JUSTIFYING_SCHEMES) and self.leads(ref)

    def leading(self, refs: Iterable[EvidenceRef]) -> tuple[EvidenceRef, ...]:
        """Those of some references that lead, in their order."""
        return tuple(ref for ref in refs if self.leads(ref))

    def missing(self, refs: Iterable[EvidenceRef]) -> tuple[EvidenceRef, ...]:
        """Those that lead nowhere, sorted."""
        return tuple(sorted({ref for ref in refs if not self.leads(ref)}))

    def _looked_up(self, scheme: str, target: str, ref: str) -> bool:
        if scheme in _CONTEXT_SCHEMES:
            return ref in self._named
        if content := parse_cited_content(ref):
            return self._registry.citation(*content).found == "usable"
        if scheme == "doc":
            return self._shown(*target.partition("#"))
        # An intent is written before any answer exists, so answer:// leads nowhere.
        return scheme == "intent" and self._said(target.split("/"))

    def _shown(self, file: str, mark: str, line_range: str) -> bool:
        """Whether the scan read a file and showed these lines of it. How many lines the file has is not known here."""
        if not mark:
            return file in self._files
        lines = _LINE_RANGE_PATTERN.fullmatch(line_range)
        if lines is None:
            return False
        first_line, last_line = int(lines[1]), int(lines[2] or lines[1])
        return any(1 <= begin <= first_line <= last_line <= end for begin, end in self._files.get(file, ()))

    def _said(self, parts: list[str]) -> bool:
        """Whether this intent has something at a path; members of lists go by their id or their number."""
        value: Any = self._document if parts[0] == self._intent.id else None
        for part in parts[1:]:
            value = _get_intent_member(value, part)
        return value is not None and value not in ("", [], {})

    @cached_property
    def _document(self) -> Any:
        return builtins(self._intent)


def _get_intent_member(value: Any, name: str) -> Any:
    if isinstance(value, dict):
        return value.get(name)
    if not isinstance(value, list):
        return None
    if _LIST_INDEX_PATTERN.fullmatch(name):
        return value[int(name)] if int(name) < len(value) else None
    return next(
        (v for v in value if isinstance(v, dict) and name in (v.get(n) for n in _MEMBER_ID_FIELDS)), None
    )


_UNCITABLE_CHARACTERS = re.compile(r"[\s\x00-\x1f\x7f%]")
_MAX_FACT_REF_LENGTH = 440  # of a name, behind its kind; a reference has 480


def format_fact_ref(fact: ProjectFact) -> str:
    """The name of a fact: its kind and its name."""
    return f"fact://{fact.kind}/{_UNCITABLE_CHARACTERS.sub(_percent_encode_match, fact.name)[:_MAX_FACT_REF_LENGTH]}"


def _percent_encode_match(match: re.Match[str]) -> str:
    return "".join(f"%{byte:02X}" for byte in match[0].encode())


def build_context_bundle(memory: MemoryPack, facts: FactPack, policy: ExecutionPolicy) -> ContextBundle:
    """All that the planner goes by, with every name of it."""
    refs = {
        *(format_fact_ref(fact) for fact in facts.facts),
        *(f"scan://{evidence.id}" for evidence in facts.evidence),
        *(f"memory://{record.id}" for record in memory.memories),
    }
    return ContextBundle(memory=memory, facts=facts, policy=policy, evidence_refs=tuple(sorted(refs)))
