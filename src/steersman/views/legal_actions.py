"""Lists what a person can do with a run now: the choices of its open gates and its legal events.

**Invariant:** it is read from the machine, the snapshot and the gates. A word that is not listed would be refused.
"""

from collections.abc import Iterable, Iterator

import msgspec

from steersman.kernel.definition import EventDef, Origin
from steersman.kernel.machine import Machine
from steersman.kernel.snapshot import Snapshot
from steersman.kernel.step import legal_events
from steersman.views.gates import (
    DIGEST_PREFIX_LENGTH,
    GENERAL_CHOICES,
    GateView,
    choice_help,
    choice_word,
    gate_choice_command,
    gate_question,
)
from steersman.views.time_format import format_duration

ACCEPT_EVIDENCE = "accept-evidence"
ACCEPT_EVIDENCE_HELP = (
    "digest [reason]: accept the results of an evidence gate; the first 8 characters of the digest are shown"
)


class LegalAction(msgspec.Struct, frozen=True):
    """One thing that a person can do now: the word of a prompt, what it does, and the command that does the same."""

    word: str
    what: str
    command: str = ""  # behind the name of the program


class RunStatus(msgspec.Struct, frozen=True, kw_only=True):
    """Where a run is and what it waits for."""

    run: str
    machine: str
    title: str
    phase: str
    step: str
    status: str
    outcome: str
    waits: str
    next: tuple[LegalAction, ...]
    after: tuple[str, ...] = ()  # tasks that come first
    overrides: int = 0  # guards that people have waived so far
    files: tuple[str, ...] = ()  # documents that were changed and projections that cannot be read


def find_legal_actions(
    machine: Machine, snapshot: Snapshot, gates: Iterable[GateView]
) -> tuple[LegalAction, ...]:
    """Every answer to an open gate and every event of a person that is legal now, the nearest first, each word once."""
    every = (*gate_answer_actions(gates), *person_event_actions(machine, snapshot))
    return tuple(reversed({action.word: action for action in reversed(every)}.values()))


def gate_answer_actions(gates: Iterable[GateView]) -> Iterator[LegalAction]:
    """The answers that open gates take."""
    for gate in gates:
        for choice in () if gate.answer else gate.choices:
            word = choice_word(gate, choice)
            what = gate.words[choice].help if choice in gate.words else f"answer: {choice}"
            shown = f"{word} {gate.digest[:DIGEST_PREFIX_LENGTH]}" if word == ACCEPT_EVIDENCE else word
            if word:
                yield LegalAction(shown, what, gate_choice_command(gate, choice))


def person_event_actions(machine: Machine, snapshot: Snapshot) -> Iterator[LegalAction]:
    """The events that a person may cause now."""
    names = () if snapshot.ended else legal_events(machine, snapshot.state, Origin.PERSON, snapshot.context)
    for name in names:
        event = machine.events[name]
        yield LegalAction(
            event_word(machine, event),
            (event.action.help if event.action is not None else "") or event.meaning,
            event_command(machine, event, snapshot.run),
        )


def event_word(machine: Machine, event: EventDef) -> str:
    """What a person types at a prompt to cause an event."""
    if event is machine.abort:
        return "abort"
    return event.action.word if event.action is not None else event.name


def list_machine_words(machine: Machine) -> dict[str, str]:
    """Every word that gates and events of a machine give a person, with its help: what goes with it, and what it does."""
    words: dict[str, str] = {}
    for job in machine.jobs.values():
        choices = (job.choices or GENERAL_CHOICES) if job.kind == "gate" else {}
        for choice in choices.values():
            if choice.word == ACCEPT_EVIDENCE:
                words.setdefault(choice.word, ACCEPT_EVIDENCE_HELP)
            elif choice.word:
                words.setdefault(choice.word.split()[0], choice_help(choice))
    for event in _list_person_events(machine):
        help_text = (event.action.help if event.action is not None else "") or event.meaning
        words.setdefault(event_word(machine, event).split()[0], f"{event_argument(event)}: {help_text}")
    return words


def _list_person_events(machine: Machine) -> list[EventDef]:
    """The events that a person causes, without the one that begins a run and the one that ends it for good."""
    beginnings = {row.on.name for row in machine.rows if row.source is None}
    events = machine.events.values()
    return [
        e for e in events if e.origin is Origin.PERSON and e is not machine.abort and e.name not in beginnings
    ]


def event_argument(event: EventDef) -> str:
    """What a person may write with an event."""
    takes = "words" if "text" in event.carries.__struct_fields__ else "reason"
    return takes if event.action is not None and event.action.required else f"[{takes}]"


def find_event_by_word(machine: Machine, word: str) -> EventDef | None:
    """The event that a person causes by this word."""
    return next((e for e in _list_person_events(machine) if word in (event_word(machine, e), e.name)), None)


def event_command(machine: Machine, event: EventDef, run: str) -> str:
    """The command that causes an event, behind the name of the program."""
    if event is machine.abort:
        return f"abort {run}"
    if event.action is not None and event.action.command:
        return event.action.command.format(run=run)
    return f"send {run} {event.name}"


def describe_run_wait(snapshot: Snapshot, gates: Iterable[GateView], owner: str | None, now: int) -> str:
    """What a run waits for, in one line."""
    questions = [gate_question(g) for g in gates if not g.answer]
    if questions:
        return " ".join(questions)
    working = [i for i in snapshot.items.values() if i.kind != "gate"]
    if not working:
        return ""
    names = ", ".join(dict.fromkeys(i.input.get("role") or i.job for i in working))
    due = [i.due for i in working if i.due is not None and i.due > now]
    later = f" in {format_duration(min(due) - now)}" if due else ""
    return f"{names}{later}; {owner} drives it" if owner else f"{names}{later}, but no process drives it"
