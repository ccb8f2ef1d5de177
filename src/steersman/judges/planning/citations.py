"""Names under which memories, facts and their evidence can be cited.

**Invariant:** a name is made from what it names and nothing else; what cannot stand in a reference is written as %XX.
"""

from steersman.contracts.planning.context import ContextBundle, Fact, FactPack, MemoryPack
from steersman.contracts.planning.policy import ExecutionPolicy

_PLAIN = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~@+:/")
_LONGEST = 440  # bytes of a name; a reference has 512


def fact_ref(fact: Fact) -> str:
    """The name of a fact: its kind and its name."""
    said = "".join(chr(b) if b in _PLAIN else f"%{b:02X}" for b in fact.name.encode())
    return f"fact://{fact.kind}/{said[:_LONGEST]}"


def bundled(memory: MemoryPack, facts: FactPack, policy: ExecutionPolicy) -> ContextBundle:
    """All that the planner goes by, with every name of it."""
    names = {
        *(fact_ref(fact) for fact in facts.facts),
        *(f"scan://{seen.id}" for seen in facts.evidence),
        *(f"memory://{kept.id}" for kept in memory.memories),
    }
    return ContextBundle(memory=memory, facts=facts, policy=policy, evidence_refs=tuple(sorted(names)))
