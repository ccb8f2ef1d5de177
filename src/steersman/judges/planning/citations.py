"""Names under which memories, facts and their evidence can be cited.

**Invariant:** a name is made from what it names and nothing else; what cannot stand in a reference is written as %XX.
"""

import re

from steersman.contracts.planning.context import ContextBundle, Fact, FactPack, MemoryPack
from steersman.contracts.planning.policy import ExecutionPolicy

_UNFIT = re.compile(r"[\s\x00-\x1f\x7f%]")
_LONGEST = 440  # of a name, behind its kind; a reference has 480


def fact_ref(fact: Fact) -> str:
    """The name of a fact: its kind and its name."""
    return f"fact://{fact.kind}/{_UNFIT.sub(_escaped, fact.name)[:_LONGEST]}"


def _escaped(found: re.Match[str]) -> str:
    return "".join(f"%{byte:02X}" for byte in found[0].encode())


def bundled(memory: MemoryPack, facts: FactPack, policy: ExecutionPolicy) -> ContextBundle:
    """All that the planner goes by, with every name of it."""
    names = {
        *(fact_ref(fact) for fact in facts.facts),
        *(f"scan://{seen.id}" for seen in facts.evidence),
        *(f"memory://{kept.id}" for kept in memory.memories),
    }
    return ContextBundle(memory=memory, facts=facts, policy=policy, evidence_refs=tuple(sorted(names)))
