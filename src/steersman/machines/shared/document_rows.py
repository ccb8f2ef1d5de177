"""The rows of a phase whose work becomes documents on disk.

A phase writes its documents (`record`), inspects all of them on disk (`inspect`), and goes on only from what is there. A
person may go from phase to phase, have a phase done again, and have damaged documents restored. The machine keeps in its
memory field `step` how far the phase is. What the documents say is in its own rows and namings.
"""

from collections.abc import Sequence

import msgspec

from steersman.kernel.definition import EventDef, Row, StateDef, otherwise, row

DISK = "extension: §5.2, artifacts are inspected before any transition"
PACE = "extension: a person goes from phase to phase"


class DocumentEvents(msgspec.Struct, frozen=True, eq=False):
    """The machine's own events for what happens to documents."""

    documents_recorded: EventDef
    recording_failed: EventDef
    repair_failed: EventDef
    documents_damaged: EventDef
    phase_ready: EventDef
    next_requested: EventDef
    rework_requested: EventDef
    restore_requested: EventDef


# fmt: off
def document_rows(phases: Sequence[StateDef], paced: Sequence[StateDef], on: DocumentEvents) -> tuple[Row, ...]:
    """The rows of every phase that writes documents, and of those after which a person may say next."""
    return (
        *(row(phase, on.documents_recorded, otherwise, phase, None, "look at what is on disk",             DISK, sets={"step": "inspect"}) for phase in phases),
        *(row(phase, on.recording_failed,   otherwise, phase, None, "nothing was laid down: ask a person", DISK, sets={"step": "unwritten"}) for phase in phases),
        *(row(phase, on.repair_failed,      otherwise, phase, None, "nothing was put right: look again",   DISK, sets={"step": "inspect"}) for phase in phases),
        *(row(phase, on.documents_damaged,  otherwise, phase, None, "name what is wrong, trust nothing",   DISK, sets={"step": "damaged"}) for phase in phases),
        *(row(phase, on.phase_ready,        otherwise, phase, None, "show what would happen",              PACE, sets={"step": "ready"}) for phase in paced),
        *(row(phase, on.next_requested,     otherwise, phase, None, "look again, then go on",              PACE, sets={"step": "confirmed"}) for phase in paced),
        *(row(phase, on.rework_requested,   otherwise, phase, None, "do the phase again",                  PACE, sets={"step": "work"}) for phase in paced),
        *(row(phase, on.restore_requested,  otherwise, phase, None, "put the recorded documents back",     DISK, sets={"step": "restore"}) for phase in phases),
    )
# fmt: on
