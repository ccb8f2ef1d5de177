"""Whether what an intent cites can be found: in facts, memory, the registry, itself, and files that the scan has seen.

**Invariant:** what cannot be found is not evidence, whatever its name says.
"""

import re
from collections.abc import Iterable
from typing import cast

from steersman.contracts.planning.words import Kind
from steersman.machines.coordinator.inputs import Inputs

IN_CONTEXT = ("scan", "fact", "memory")  # the bundle lists every name
_INTENT = "intent"  # its own words; nobody has answered anything when an intent is written, so that answer:// leads nowhere
_REGISTERED = re.compile(
    r"(workflow|agent|command|rule)/([a-z][a-z0-9_]{2,79})(?:@([0-9.]+))?(?:#([0-9a-f]+))?"
)
_RULE = re.compile(r"([a-z][a-z0-9_]{2,79})(?:@([0-9.]+))?")


def citable(inputs: Inputs) -> frozenset[str]:
    """Every name under which something of the context can be cited, and every file that the scan has seen."""
    seen = (f"doc://{evidence.source_file}" for evidence in inputs.bundle.facts.evidence)
    return frozenset((*inputs.bundle.evidence_refs, *seen))


def unmet(inputs: Inputs, refs: Iterable[str], known: frozenset[str]) -> tuple[str, ...]:
    """The references that lead nowhere, sorted."""
    return tuple(sorted({ref for ref in refs if not _leads(inputs, ref, known)}))


def _leads(inputs: Inputs, ref: str, known: frozenset[str]) -> bool:
    scheme, _, rest = ref.partition("://")
    if scheme in IN_CONTEXT:
        return ref in known
    if scheme == "registry" and (found := _REGISTERED.fullmatch(rest)):
        return _registered(inputs, cast("Kind", found[1]), found[2], found[3], found[4])
    if scheme == "rule" and (found := _RULE.fullmatch(rest)):
        return _registered(inputs, "rule", found[1], found[2], None)
    if scheme == "doc":
        return ref.partition("#")[0] in known
    return scheme == _INTENT and rest.partition("/")[0] == inputs.intent.id


def _registered(inputs: Inputs, kind: Kind, id_: str, version: str | None, digest: str | None) -> bool:
    entry = inputs.registry.entries.get((kind, id_))
    if entry is None:
        return False
    return version in (None, entry.version) and (digest is None or entry.digest.startswith(digest))
