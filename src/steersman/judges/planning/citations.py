"""Names under which memories, facts and their evidence can be cited.

**Invariant:** a name is made from what it names and nothing else; what cannot stand in a reference is written as %XX.
"""

import re

from steersman.contracts.planning.context import ContextBundle, FactPack, MemoryPack, ProjectFact
from steersman.contracts.planning.policy import ExecutionPolicy

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
