"""What a person can do with a run now, in the words of the prompt: the open gates' choices and the legal events.

**Invariant:** read from the machine, the snapshot and the gates; a word that is not here would be refused.
"""

from collections.abc import Iterable, Iterator
from itertools import pairwise

import msgspec
from msgspec.structs import replace

from steersman.contracts.task.facts import InspectFacts
from steersman.contracts.task.words import (
    CODE_REVIEW,
    COPIES,
    COPIES_LIST,
    DECISION,
    FILES,
    PATCH,
    PHASES,
    PLAN,
    PLAN_REVIEW,
    REVERT,
    TESTS,
)
from steersman.kernel.definition import Origin
from steersman.kernel.machine import Machine
from steersman.kernel.snapshot import Snapshot, fields
from steersman.kernel.step import Taken, legal, name_facts, override, step
from steersman.ports.journal import Gate
from steersman.views.gates import EVIDENCE, PREFIX, question
from steersman.views.moments import span

TASK = "task"
TRIGGERS = {  # §8: the word that starts a phase
    "plan": "planning",
    "review plan": "plan_review",
    "codegen": "codegen",
    "review code": "review",
    "test": "test",
    "accept": "accept",
    "revert": "revert",
}
CALLED = {phase: word for word, phase in TRIGGERS.items()}
AFTER = {**dict(pairwise(PHASES)), "accept": "done", "revert": "done", "done": "done"}
DECIDES = {
    "codegen": "rework",
    "review": "review",
    "planning": "replan",
    "revert": "revert",
    "accept": "approve",
}
LAID_DOWN = {
    "planning": (PLAN, FILES),
    "plan_review": (PLAN_REVIEW,),
    "codegen": (PATCH, COPIES, COPIES_LIST),
    "review": (CODE_REVIEW,),
    "test": (TESTS,),
    "accept": (DECISION,),
    "revert": (REVERT,),
}
_CHOICES = {  # a choice of a task's gate that has a word of its own; one with none is said by `redo`
    ("next", "approve"): ("next", "go on"),
    ("next", "rework"): ("", ""),
    ("others", "retry"): ("next", "look at the others again"),
    ("others", "begin"): ("begin", "begin without them, with a reason"),
    ("questions", "answer"): ("answer", "answer what the plan asks"),
    (EVIDENCE, "approve"): ("accept-evidence", "accept these results on this very tree"),
    (EVIDENCE, "rework"): ("rework", "send the change back"),
    ("decide", "approve"): ("accept", "accept exactly this change"),
    ("decide", "rework"): ("codegen", "have it changed further"),
    ("decide", "review"): ("review code", "have it reviewed again"),
    ("decide", "replan"): ("plan", "the plan is the problem"),
    ("decide", "revert"): ("revert", "take it back"),
    ("damage", "restore"): ("restore", "put the recorded documents back"),
    ("damaged_plan", "restore"): ("restore", "put the recorded documents back"),
    ("damaged_plan", "adopt"): ("adopt", "take the plan over as it is on disk"),
    ("again", "retry"): ("retry", "try again"),
}
_REDONE = {"codegen": "redo codegen", "review code": "redo review", "plan": "redo planning"}
_EVENTS = {
    "words_given": "say",
    "task_followup_received": "followup",
    "revert_requested": "revert",
    "delivery_requested": "deliver",
}


class Way(msgspec.Struct, frozen=True):
    """One thing that can be done now."""

    word: str
    what: str


class Standing(msgspec.Struct, frozen=True, kw_only=True):
    """Where a run is and what it waits for."""

    run: str
    machine: str
    title: str
    phase: str
    step: str
    status: str
    outcome: str
    waits: str
    next: tuple[Way, ...]
    after: tuple[str, ...] = ()  # tasks that come first
    overrides: int = 0  # guards that people have waived so far
    files: tuple[str, ...] = ()  # what hands did to those that are made from the tape


def command(word: str, run: str, me: str) -> str:
    """How the command line says what the prompt says in a word."""
    first, _, rest = _REDONE.get(word, word).partition(" ")
    if first in ("approve", "rework", "reject", "abort", "followup", "resume"):
        return f"{me} {first} {run}"
    if first == "accept-evidence":
        return f"{me} {first} {run} {rest}"
    if first in ("raise", "stop"):
        return f"{me} answer {run} {first}"
    more = '--override "why"' if rest == "--override" else '--reason "why"' if first == "begin" else rest
    return f"{me} tasks {first} {run} {more}".rstrip()


def besides(m: Machine, s: Snapshot, gates: Iterable[Gate]) -> tuple[str, ...]:
    """Where a task stands still: what is legal beside the answer that its gate asks for."""
    still = any(g.job == "again" and not g.answer for g in gates)
    found = (*_waiver(m, s), *_events(m, s)) if still else ()
    return tuple(way.word for way in found if way.word.startswith(("next --override", "redo ")))


def ways(m: Machine, s: Snapshot, gates: Iterable[Gate]) -> tuple[Way, ...]:
    """Everything that is legal now, the nearest first, and each once: a phase's own word does it again as `redo` does."""
    every = (*_answers(m, s, gates), *_waiver(m, s), *_events(m, s))
    found = {way.word: way for way in reversed(every)}
    own = {f"redo {phase}" for word, phase in TRIGGERS.items() if word in found and word in _REDONE}
    return tuple(way for way in reversed(found.values()) if way.word not in own)


def _answers(m: Machine, s: Snapshot, gates: Iterable[Gate]) -> Iterator[Way]:
    for gate in gates:
        for choice in () if gate.answer else gate.choices:
            word, what = _CHOICES.get((gate.job, choice), (choice, f"answer: {choice}"))
            if (gate.job, word) == ("next", "next") and s.machine == TASK:
                yield Way(word, f"{what}: to {leads_to(m, s)}")
            elif word:
                yield Way(f"{word} {gate.digest[:PREFIX]}" if word == "accept-evidence" else word, what)


def leads_to(m: Machine, s: Snapshot) -> str:
    """Where `next` would lead by what the documents said when they were last looked at, as the machine decides it; it
    looks again before it goes."""
    c = s.context
    job = next(d.job.name for d in m.states[s.state].work if d.job.does == "task_inspect")
    patch = 1 if PATCH in c.artifacts else 0
    facts = InspectFacts(**{**c.says, "seen": c.seen, "tree": c.tree, "patch": patch})
    then = replace(s, context=replace(c, step="confirmed"), counts={})
    taken = step(m, then, name_facts(m, then, job, facts))
    if not isinstance(taken, Taken):
        return s.state
    return "evidence" if taken.context.step == "evidence" else taken.to  # where a person is asked first


def _waiver(m: Machine, s: Snapshot) -> Iterator[Way]:
    after = {
        r.to.name for r in m.rows if r.waivable is not None and isinstance(r.to, type(m.states[s.state]))
    }
    for to in () if s.ended else after:
        if isinstance(override(m, s, to, "why"), Taken):
            yield Way("next --override", f"go on to {to} all the same, with a reason")


def _events(m: Machine, s: Snapshot) -> Iterator[Way]:
    for name in () if s.ended else legal(m, s.state, Origin.PERSON, s.context):
        abort = m.abort is not None and name == m.abort.name
        word = "abort" if abort else _EVENTS.get(name, name.replace("redo_", "redo ", 1))
        yield Way(word, m.events[name].meaning)
        if name == "redo_accept":
            yield Way("revert", "take the delivered change back")


def waits_for(s: Snapshot, gates: Iterable[Gate], owner: str | None, now: int) -> str:
    """What a run waits for, in one line."""
    asked = [question(g) for g in gates if not g.answer]
    if asked:
        return " ".join(asked)
    working = [i for i in s.items.values() if i.kind != "gate"]
    if not working:
        return ""
    named = ", ".join(dict.fromkeys(i.input.get("role") or i.job for i in working))
    due = [i.due for i in working if i.due is not None and i.due > now]
    later = f" in {span(min(due) - now)}" if due else ""
    return f"{named}{later}; {owner} drives it" if owner else f"{named}{later}, but nobody drives it"


def kept(s: Snapshot, phase: str) -> list[str]:
    """What a phase that is done again goes by, with digests: everything that came before it."""
    c = fields(s.context)
    before = PHASES[: PHASES.index(phase)] if phase in PHASES else ()
    names = [name for p in before for name in LAID_DOWN.get(p, ())]
    told = [f"{name} {c['artifacts'][name][:12]}" for name in names if name in c.get("artifacts", {})]
    if phase in ("codegen", "test") and c.get("workspace") == "measured":
        told.append("the checks of the base tree")
    return told
