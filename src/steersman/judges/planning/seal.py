"""An intent made fast: a pin for everything it names, and the checksum over all of it.

**Invariant:** nothing else of the document changes; whether it can be planned is for the precheck to say.
"""

from typing import Any

from steersman.judges.planning.intent import compute_intent_checksum
from steersman.judges.planning.precheck import find_intent_references
from steersman.judges.planning.registry import Registry, format_pin, parse_pins
from steersman.judges.planning.safe_get import get_value_at, iter_texts_at


def seal_intent(raw: dict[str, Any], registry: Registry) -> dict[str, Any]:
    """The same document, pinned to the registry as it is now; what the registry lacks stays without a pin."""
    refs, audit = get_value_at(raw, ("evidence_refs",)), get_value_at(raw, ("audit",))
    old_refs = refs if isinstance(refs, list) else []
    entries = [
        registry.entries[r.kind, r.id] for r in find_intent_references(raw, registry) if r.found != "missing"
    ]
    fresh_pins = {format_pin(entry) for entry in entries}
    kept_refs = [
        ref for ref in old_refs if not isinstance(ref, str) or ref in fresh_pins or not parse_pins([ref])
    ]
    pinned = {
        **raw,
        "evidence_refs": [*kept_refs, *(ref for ref in map(format_pin, entries) if ref not in kept_refs)],
    }
    old_audit = audit if isinstance(audit, dict) else {}
    return {
        **pinned,
        "audit": {**old_audit, "checksum": compute_intent_checksum({**pinned, "audit": old_audit})},
    }


def find_dangling_pins(raw: dict[str, Any], registry: Registry) -> tuple[str, ...]:
    """The pins of an intent that name nothing of the registry: sealing takes them out."""
    return tuple(
        ref
        for _, ref in iter_texts_at(raw, "evidence_refs")
        if parse_pins([ref]).keys() - registry.entries.keys()
    )
