"""The words of the prompt: which there are, which a machine's runs have, and what was probably meant.

**Invariant:** every word that the prompt line offers is one that can be typed; the tests hold it against every machine.
"""

import shlex
from collections.abc import Iterable

from steersman.contracts.task.words import PHASES
from steersman.errors import UserError
from steersman.views.ways import TASK, Way

HELP = {
    "plan": "[words]: begin a task; in planning, plan again with these words",
    "review": "plan | code: go on to that review, or have it done again",
    "codegen": "[words]: go on to codegen, or have it done again",
    "test": "go on to the tests, or have them run again",
    "accept": "[reason]: after the tests, see what would be accepted; then accept exactly that, and have it delivered",
    "revert": "[reason]: take the change back",
    "next": '[--override "reason" [--to phase]]: go on to the next phase, or past its guard',
    "redo": "[phase [words]]: do a phase again, without a name the one at hand; reopens a task that is done",
    "begin": "reason: begin without the tasks that come first",
    "restore": "put the recorded documents back",
    "adopt": "take over a plan that was changed by hand",
    "retry": "try again what could not be done",
    "answer": "[text]: answer what the plan asks, one by one or all at once",
    "defaults": "answer what the plan asks with its own defaults",
    "accept-evidence": "digest [reason]: accept the results of an evidence gate; the first 8 characters of the digest are shown",
    "approve": "[reason]: answer the open gate: yes",
    "rework": "words: answer the open gate: again, and this is what to change",
    "reject": "[reason]: answer the open gate: no",
    "raise": "turns N | tokens N | usd N | hours N: a new limit where the budget is used up",
    "stop": "[reason]: answer the open gate: end here",
    "followup": "words: ask a run that has its outcome for more",
    "deliver": "try a failed delivery again",
    "abort": "[reason]: stop the run for good",
    "resume": "drive the run on from where it was let go",
    "status": "where the run is, what it waits for, what is legal",
    "show": "[file]: the documents, or one of them",
    "diff": "the change",
    "why": "what the run waits for and what would move it",
    "tasks": "every task here",
    "switch": "run: go to another run",
    "new": "[--after RUN] words: begin another task, or one that comes after another",
    "help": "[command]: this",
    "quit": "end the sitting (so does Ctrl-D)",
}
LOOKS = ("status", "show", "diff", "why", "tasks", "switch", "new", "help", "quit")
ALWAYS = ("raise", "stop", "resume", "abort", *LOOKS)
OF = {
    TASK: ("plan", "review", "codegen", "test", "accept", "revert", "next", "redo", "begin", "restore", "adopt", "retry", "answer", "accept-evidence", "approve", "rework"),
    "coordinator": ("answer", "defaults"),
}  # fmt: skip
OF_OTHERS = ("accept-evidence", "approve", "rework", "reject", "followup", "revert", "deliver")
SAID = "free text goes to the planner, or answers what the plan asks; end a line with \\ to go on in the next"


def words_of(machine: str, ways: Iterable[Way] = ()) -> tuple[str, ...]:
    """What can be typed for a run of a machine; one that nobody here knows has the words of what is legal now."""
    known = (*OF.get(machine, OF_OTHERS), *ALWAYS)
    own = (way.word for way in ways if machine not in OF and way.word not in known)
    return (*own, *known)


def parted(text: str) -> tuple[str, str]:
    """The word of an entry that begins with a slash, and the rest of it, which may have many lines."""
    word = text[1:].split(maxsplit=1)[0] if text[1:].strip() and not text[1].isspace() else ""
    return word, text[1 + len(word) :].strip()


def overriding(words: str) -> tuple[str, str]:
    """The reason and the phase of `/next --override "reason" --to phase`; nothing else goes with it."""
    try:
        given = shlex.split(words)
    except ValueError:  # a quotation mark without its other half, as in "it's fine"
        given = [word.strip("\"'") for word in words.split()]
    usage = UserError('/next takes nothing, or --override "reason", and with that --to phase')
    to = ""
    if "--to" in given:
        at = given.index("--to")
        to, given = " ".join(given[at + 1 : at + 2]), [*given[:at], *given[at + 2 :]]
        if to not in PHASES:
            raise UserError(f"--to which phase? One of {', '.join(PHASES)}")
    if given[:1] != ["--override"] or any(word.startswith("--") for word in given[1:]):
        raise usage
    return " ".join(given[1:]).strip(), to


def unknown(word: str, known: Iterable[str]) -> UserError:
    """There is no such word; the nearest one is named."""
    import difflib

    near = difflib.get_close_matches(word.lower(), tuple(known), 1, 0.6)
    hint = f"did you mean /{near[0]}?" if near else "/help says what there is"
    return UserError(f"there is no /{word}: {hint}")


def slash(word: str) -> str:
    """What is typed for a way."""
    return "words" if word == "say" else f"/{word}"


def short(way: Way) -> str:
    """A way in the prompt; of `next`, where it leads."""
    to = way.what.rpartition(": to ")[2]
    return f"/next→{to}" if way.word == "next" and to != way.what else slash(way.word)
