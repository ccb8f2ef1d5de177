"""The words of the prompt: those of any run, those of a run's machine, and what was probably meant.

**Invariant:** every word that the prompt offers can be typed.
"""

from collections.abc import Iterable

from steersman.app.run_words import MachinePackage
from steersman.errors import UserError
from steersman.views.legal_actions import LegalAction, list_machine_words

GENERAL_WORD_HELP = {
    "raise": "turns N | tokens N | usd N | hours N: a new limit where the budget is used up",
    "stop": "[reason]: answer the open gate: end here",
    "resume": "drive the run on from where it was let go",
    "abort": "[reason]: stop the run for good",
    "status": "where the run is, what it waits for, what is legal",
    "show": "[file]: the documents, or one of them",
    "diff": "the change",
    "why": "what the run waits for and what would move it",
    "tasks": "every task here",
    "switch": "run: go to another run",
    "new": "[--after RUN] words: begin another task, or one that comes after another",
    "help": "[command]: this",
    "quit": "end the session (so does Ctrl-D)",
}
READ_ONLY_WORDS = ("status", "show", "diff", "why", "tasks", "switch", "new", "help", "quit")
FREE_TEXT_HELP = (
    "free text goes to the planner, or answers what the plan asks; end a line with \\ to go on in the next"
)


def list_repl_words(package: MachinePackage, actions: Iterable[LegalAction] = ()) -> dict[str, str]:
    """What can be typed for a run of a machine, each word with its help."""
    own_words = {name: word.help for name, word in package.words.items() if word.help}
    declared = list_machine_words(package.machine)
    unwritten = {name for name, word in package.words.items() if not word.help}
    offered = {action.word.split()[0]: f"[reason]: {action.what}" for action in actions}
    machine_words = {**offered, **declared, **own_words, **GENERAL_WORD_HELP}
    order = (*own_words, *declared, *offered, *GENERAL_WORD_HELP)
    return {word: machine_words[word] for word in order if word not in unwritten}


def split_repl_entry(text: str) -> tuple[str, str]:
    """The word of an entry that begins with a slash, and the rest of it, which may have many lines."""
    word = text[1:].split(maxsplit=1)[0] if text[1:].strip() and not text[1].isspace() else ""
    return word, text[1 + len(word) :].strip()


def unknown_word_error(word: str, known_words: Iterable[str]) -> UserError:
    """There is no such word; the nearest one is named."""
    import difflib

    close_matches = difflib.get_close_matches(word.lower(), tuple(known_words), 1, 0.6)
    hint = f"did you mean /{close_matches[0]}?" if close_matches else "/help lists the words"
    return UserError(f"there is no /{word}: {hint}")


def repl_action_text(word: str) -> str:
    """What is typed for an action."""
    return "words" if word == "say" else f"/{word}"


def repl_banner_text(action: LegalAction) -> str:
    """An action in the prompt; of `next`, where it leads."""
    target_phase = action.what.rpartition(": to ")[2]
    return (
        f"/next→{target_phase}"
        if action.word == "next" and target_phase != action.what
        else repl_action_text(action.word)
    )
