"""The words of the prompt: which there are, which a machine's runs have, and what was probably meant.

**Invariant:** every word that the prompt line offers is one that can be typed; the tests hold it against every machine.
"""

import shlex
from collections.abc import Iterable

from steersman.contracts.task.words import TASK_PHASES
from steersman.errors import UserError
from steersman.views.legal_actions import LegalAction

REPL_WORD_HELP = {
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
READ_ONLY_WORDS = ("status", "show", "diff", "why", "tasks", "switch", "new", "help", "quit")
COMMON_WORDS = ("raise", "stop", "resume", "abort", *READ_ONLY_WORDS)
MACHINE_WORDS = {
    "task": ("plan", "review", "codegen", "test", "accept", "revert", "next", "redo", "begin", "restore", "adopt", "retry", "answer", "accept-evidence", "approve", "rework"),
    "coordinator": ("answer", "defaults"),
}  # fmt: skip
OTHER_MACHINE_WORDS = ("accept-evidence", "approve", "rework", "reject", "followup", "revert", "deliver")
FREE_TEXT_HELP = (
    "free text goes to the planner, or answers what the plan asks; end a line with \\ to go on in the next"
)


def list_repl_words(machine: str, actions: Iterable[LegalAction] = ()) -> tuple[str, ...]:
    """What can be typed for a run of a machine; one that nobody here knows has the words of what is legal now."""
    known_words = (*MACHINE_WORDS.get(machine, OTHER_MACHINE_WORDS), *COMMON_WORDS)
    machine_words = (
        action.word for action in actions if machine not in MACHINE_WORDS and action.word not in known_words
    )
    return (*machine_words, *known_words)


def split_repl_entry(text: str) -> tuple[str, str]:
    """The word of an entry that begins with a slash, and the rest of it, which may have many lines."""
    word = text[1:].split(maxsplit=1)[0] if text[1:].strip() and not text[1].isspace() else ""
    return word, text[1 + len(word) :].strip()


def parse_override_words(words: str) -> tuple[str, str]:
    """The reason and the phase of `/next --override "reason" --to phase`; nothing else goes with it."""
    try:
        arguments = shlex.split(words)
    except ValueError:  # a quotation mark without its other half, as in "it's fine"
        arguments = [word.strip("\"'") for word in words.split()]
    usage = UserError('/next takes nothing, or --override "reason", and with that --to phase')
    target_phase = ""
    if "--to" in arguments:
        option_index = arguments.index("--to")
        target_phase, arguments = (
            " ".join(arguments[option_index + 1 : option_index + 2]),
            [*arguments[:option_index], *arguments[option_index + 2 :]],
        )
        if target_phase not in TASK_PHASES:
            raise UserError(f"--to which phase? One of {', '.join(TASK_PHASES)}")
    if arguments[:1] != ["--override"] or any(word.startswith("--") for word in arguments[1:]):
        raise usage
    return " ".join(arguments[1:]).strip(), target_phase


def unknown_word_error(word: str, known_words: Iterable[str]) -> UserError:
    """There is no such word; the nearest one is named."""
    import difflib

    close_matches = difflib.get_close_matches(word.lower(), tuple(known_words), 1, 0.6)
    hint = f"did you mean /{close_matches[0]}?" if close_matches else "/help says what there is"
    return UserError(f"there is no /{word}: {hint}")


def repl_action_text(word: str) -> str:
    """What is typed for a way."""
    return "words" if word == "say" else f"/{word}"


def repl_banner_text(action: LegalAction) -> str:
    """A way in the prompt; of `next`, where it leads."""
    target_phase = action.what.rpartition(": to ")[2]
    return (
        f"/next→{target_phase}"
        if action.word == "next" and target_phase != action.what
        else repl_action_text(action.word)
    )
