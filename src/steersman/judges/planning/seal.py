"""An intent made fast: a pin for everything it names, and the checksum over all of it.

**Invariant:** nothing else of the document changes; whether it can be planned is for the precheck to say.
"""

from typing import Any

from steersman.judges.planning.intent import checksum
from steersman.judges.planning.precheck import references
from steersman.judges.planning.raw import at, texts
from steersman.judges.planning.registry import Registry, pin, pins


def sealed(raw: dict[str, Any], registry: Registry) -> dict[str, Any]:
    """The same document, pinned to the registry as it is now; what the registry lacks stays without a pin."""
    refs, audit = at(raw, ("evidence_refs",)), at(raw, ("audit",))
    listed = refs if isinstance(refs, list) else []
    entries = [registry.entries[r.kind, r.id] for r in references(raw, registry) if r.found != "missing"]
    fresh = {pin(entry) for entry in entries}
    kept = [ref for ref in listed if not isinstance(ref, str) or ref in fresh or not pins([ref])]
    now = {**raw, "evidence_refs": [*kept, *(ref for ref in map(pin, entries) if ref not in kept)]}
    known = audit if isinstance(audit, dict) else {}
    return {**now, "audit": {**known, "checksum": checksum({**now, "audit": known})}}


def dangling_pins(raw: dict[str, Any], registry: Registry) -> tuple[str, ...]:
    """The pins of an intent that name nothing of the registry: sealing takes them out."""
    return tuple(
        ref for _, ref in texts(raw, "evidence_refs") if pins([ref]).keys() - registry.entries.keys()
    )
