"""A table held against the diagram of specification 002, and against itself: what one row less would leave."""

import re
from itertools import product

from steersman.kernel.build import machine
from steersman.kernel.check import check_machine
from steersman.kernel.definition import STAY, Guard, Origin, otherwise
from steersman.kernel.machine import machine_guards, row_source_states
from steersman.kernel.step import EventOccurrence, StepTaken, take_step
from steersman.machines.task import MACHINE, phases, table
from tests.specifications import task as spec
from tests.specifications.documents import name_wording
from tests.support.simulated_task import task_at, task_gate_answer, task_payload

TASK_STATES = tuple(MACHINE.states.values())
# What a person may say in each phase, and where it leads (§5.4, §8, the edges of §2).
PERSON_EVENTS = {
    "planning": {"words_given": "planning", "redo_planning": "planning"},
    "plan_review": {
        "words_given": "plan_review", "redo_planning": "planning", "redo_plan_review": "plan_review",
    },
    "codegen": {
        "words_given": "codegen", "redo_planning": "planning", "redo_plan_review": "plan_review",
        "redo_codegen": "codegen",
    },
    "review": {
        "words_given": "review", "redo_planning": "planning", "redo_codegen": "codegen",
        "redo_review": "review",
    },
    "test": {"words_given": "test", "redo_codegen": "codegen", "redo_test": "test"},
    "accept": {
        "words_given": "accept", "redo_planning": "planning", "redo_codegen": "codegen",
        "redo_review": "review",
    },
    "revert": {"words_given": "revert"},
    "done": {"redo_planning": "planning", "redo_codegen": "codegen", "redo_accept": "accept"},
}  # fmt: skip
# What another try does: the step that a phase which waits goes to.
RETRY_STEPS = {
    **{
        (phase, "unwritten", delivered): "record" for phase in spec.STATES[:-1] for delivered in ("no", "yes")
    },
    **{(phase, "broken", "no"): "work" for phase in ("planning", "plan_review", "codegen", "review")},
    **{(phase, "stuck", "no"): "confirmed" for phase in ("planning", "plan_review", "codegen", "review")},
    ("test", "stuck", "no"): "work",  # the suites are run again
    ("accept", "broken", "no"): "base",
    ("accept", "stuck", "yes"): "base",
}
SECTION = re.compile(r"§[1-8](\.\d+)?\b|extension: \S")


def rebuild_task(**changes):
    """Task with some of its parts replaced."""
    parts = {
        "states": table.S, "events": table.E, "rows": table.TABLE, "context": MACHINE.context, "namings": table.NAMES,
        "folds": table.FOLDS, "laws": table.LAWS, "constants": MACHINE.constants, "memory": MACHINE.memory,
        "successes": MACHINE.successes,
    }  # fmt: skip
    return machine("task", MACHINE.meaning, **{**parts, **changes})


def drop_row(n):
    """The table with one row less."""
    return (*table.TABLE[:n], *table.TABLE[n + 1 :])


def row_target(r, source):
    return source if r.to is STAY else r.to.name


def find_edge_rows(edge, rows=MACHINE.rows):
    """The rows for one edge of the diagram, label for label."""
    source, label, to = edge
    fitting = (r for r in rows if source in row_source_states(r, TASK_STATES) and row_target(r, source) == to)
    return [r for r in fitting if not label or name_wording(r.label, spec.WORDINGS) == label]


def find_missing_edges(rows):
    """The edges of the diagram that these rows do not have."""
    return [edge for edge in spec.DIAGRAM if not find_edge_rows(edge, rows)]


def find_unexplained_rows(rows):
    """The rows beyond the diagram that neither name a section nor call themselves an extension."""
    drawn = {id(r) for edge in spec.DIAGRAM for r in find_edge_rows(edge, rows)}
    return [r.label for r in rows if id(r) not in drawn and not SECTION.match(r.origin)]


def find_uncounted_parks(rows):
    """Rows that ask a person because something came too often, where nothing is counted before them."""
    return [
        r.label
        for n, r in enumerate(rows)
        if r.origin == table.PARK and r.on.origin is Origin.EFFECT and not _has_cap(rows[:n], r)
    ]


def _has_cap(rows, r):
    same = (
        b
        for b in rows
        if b.on is r.on and row_source_states(b, TASK_STATES) == row_source_states(r, TASK_STATES)
    )
    return any(b.cap is not None for b in same)


def find_unused_guards(m):
    """Guards that are written down and that nothing asks."""
    named = [g for module in (phases, table) for g in vars(module).values() if isinstance(g, Guard)]
    laws = {id(law.when) for law in m.laws if hasattr(law, "when")}
    asked = {id(g) for g in machine_guards(m)} | {id(r.waivable) for r in m.rows} | laws
    return [g.name for g in named if g is not otherwise and id(g) not in asked]


def find_wrong_person_events(m):
    """What a person may say somewhere and should not, or should and may not."""
    said: dict[str, dict[str, str]] = {name: {} for name in m.states}
    for source, event in product(m.states, (e for e in m.events.values() if e.origin is Origin.PERSON)):
        taken = take_step(
            m,
            task_at(source, delivered="yes"),
            EventOccurrence(event, task_payload(event.name), Origin.PERSON),
        )
        if isinstance(taken, StepTaken):
            said[source][event.name] = taken.to
    return {name: events for name, events in said.items() if events != PERSON_EVENTS[name]}


def find_wrong_retries(m):
    """Where another try leads elsewhere than it should."""
    retry = EventOccurrence(table.E.retry_requested, task_gate_answer("retry"), Origin.GATE)
    found = {}
    for state, step_, delivered in RETRY_STEPS:
        taken = take_step(m, task_at(state, step=step_, delivered=delivered), retry)
        found[state, step_, delivered] = taken.context.step if isinstance(taken, StepTaken) else ""
    return {case: to for case, to in found.items() if to != RETRY_STEPS[case]}


def is_row_loss_unnoticed(n):
    """Whether nobody notices that a row is gone: neither the diagram, nor what is written down here, nor the check."""
    rows = drop_row(n)
    m = rebuild_task(rows=rows)
    return not (find_table_errors(m) or check_machine(m).findings)


def find_table_errors(m):
    """Everything in which a machine is not what is written down here."""
    return [
        *find_missing_edges(m.rows), *find_unexplained_rows(m.rows), *find_uncounted_parks(m.rows),
        *find_unused_guards(m), *find_wrong_person_events(m), *find_wrong_retries(m),
    ]  # fmt: skip
