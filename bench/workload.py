"""The workload as data: the implementation loop of the roundtable specification, with a context of about 2 KB.

Every contender drives the same events with the same payloads through the same table, and every run is
checked against the one right end. Peers route by (state, event) alone: the specification's guards are
left to contenders that have them on in any case, which spares the peers work and never the other way.
**Invariant:** nothing here knows a contender, a clock or a disk.
"""

from collections.abc import Callable, Iterator, Mapping
from itertools import chain, cycle
from typing import Any

Context = Mapping[str, Any]
Changes = dict[str, Any]
Step = tuple[str, Mapping[str, Any]]

# fmt: off
TABLE = {
    ("new",     "task_received"):            "intake",
    ("intake",  "implementation_confirmed"): "plan",
    ("plan",    "start_coder"):              "build",
    ("build",   "start_reviewer"):           "review",
    ("review",  "review_changes_requested"): "iterate",
    ("review",  "review_approved"):          "test",
    ("test",    "tests_failed"):             "iterate",
    ("test",    "tests_passed"):             "finalize",
    ("iterate", "start_coder"):              "build",
}
# fmt: on
START, FINAL = "new", "finalize"
STATES = ("new", "intake", "plan", "build", "review", "test", "iterate", "finalize")
EVENTS = tuple(dict.fromkeys(event for _, event in TABLE))

_SENTENCE = "Read the configuration once at start and hand it down, so that no module reaches for it again. "
TASK = (_SENTENCE * 11)[:1024]
CONTRACT = ("Accepted when the loader has one caller, every setting has a default and a test. " * 5)[:360]


def _tree(number: int) -> str:
    return f"{number:040x}"


def _finding(number: int) -> dict[str, Any]:
    text = f"The value read in line {40 + number} is never checked against its schema."
    return {
        "id": f"F{number:03}",
        "file": f"src/settings/part_{number}.py",
        "severity": "major",
        "text": text,
    }


FINDINGS = [_finding(number) for number in range(3)]
MUST_FIX = [f"{finding['id']}: {finding['text']}" for finding in FINDINGS]
COMMAND = "python -m pytest -q tests/settings"
STDERR = "FAILED tests/settings/test_loader.py::test_default - KeyError: 'timeout' " * 2

_RECEIVED = {"task": TASK, "mode": "implementation", "max_iterations": 5, "tree": _tree(1)}
_CHANGES = {"decision": "changes_requested", "findings": FINDINGS, "must_fix": MUST_FIX, "tokens": 2100}
_APPROVED = {"decision": "approve", "findings": FINDINGS[:1], "tokens": 1900}

SCRIPT: tuple[Step, ...] = (
    ("task_received", _RECEIVED),
    ("implementation_confirmed", {"by": "operator", "contract": CONTRACT}),
    ("start_coder", {}),
    ("start_reviewer", {"tree": _tree(2), "tokens": 5200}),
    ("review_changes_requested", _CHANGES),
    ("start_coder", {}),
    ("start_reviewer", {"tree": _tree(3), "tokens": 4100}),
    ("review_approved", _APPROVED),
    ("tests_failed", {"command": COMMAND, "exit": 1, "stderr": STDERR}),
    ("start_coder", {}),
    ("start_reviewer", {"tree": _tree(4), "tokens": 3300}),
    ("review_approved", _APPROVED),
    ("tests_passed", {"command": COMMAND, "exit": 0, "stderr": ""}),
)

# An unfinished run has stopped here: the reviewer works, and its verdict has not come.
PARKED_AFTER, PARKED_IN = 4, "review"

EMPTY: Changes = {
    "task": "",
    "mode": "",
    "max_iterations": 0,
    "contract": "",
    "round": 0,
    "tree": "",
    "findings": [],
    "must_fix": [],
    "last_check": {},
    "tokens": 0,
    "outcome": "",
}


def _reviewed(context: Context, payload: Mapping[str, Any]) -> Changes:
    spent = context["tokens"] + payload["tokens"]
    return {"findings": payload["findings"], "must_fix": payload.get("must_fix", []), "tokens": spent}


def _failed(_context: Context, payload: Mapping[str, Any]) -> Changes:
    return {"last_check": payload, "must_fix": [f"{payload['command']}: {payload['stderr']}"]}


_FOLDS: Mapping[str, Callable[[Context, Mapping[str, Any]], Changes]] = {
    "task_received": lambda _context, payload: dict(payload),
    "implementation_confirmed": lambda _context, payload: {"contract": payload["contract"]},
    "start_coder": lambda context, _payload: {"round": context["round"] + 1},
    "start_reviewer": lambda context, payload: {
        "tree": payload["tree"],
        "tokens": context["tokens"] + payload["tokens"],
    },
    "review_changes_requested": _reviewed,
    "review_approved": _reviewed,
    "tests_failed": _failed,
    "tests_passed": lambda _context, payload: {"last_check": payload, "must_fix": [], "outcome": "approved"},
}


def fold(context: Context, event: str, payload: Mapping[str, Any]) -> Changes:
    """The fields that this event changes, with their new values; the context is left as it was."""
    return _FOLDS[event](context, payload)


def _end() -> Changes:
    context = dict(EMPTY)
    for event, payload in SCRIPT:
        context.update(fold(context, event, payload))
    return context


END = _end()


class WrongEndError(AssertionError):
    """A contender ended elsewhere than the workload: it is disqualified, not averaged."""


def check_end(state: str, context: Context) -> int:
    """The number of transitions of a run that ended right; anything else is an error."""
    if state != FINAL:
        raise WrongEndError(f"ended in {state}, not in {FINAL}")
    wrong = [name for name, value in END.items() if context[name] != value]
    if wrong:
        raise WrongEndError(f"ended with other values of {', '.join(wrong)}")
    return len(SCRIPT)


def endless() -> Iterator[Step]:
    """One run that never ends: after the opening, rounds of review and rework."""
    return chain(SCRIPT[:PARKED_AFTER], cycle((SCRIPT[4], SCRIPT[5], SCRIPT[6])))


def note(number: int) -> str:
    """What a growing list gains with every transition: 50 bytes, each different."""
    return f"{number:08} tree {_tree(number)[:36]}"
