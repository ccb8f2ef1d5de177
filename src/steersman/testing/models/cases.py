"""The scripts of the cases that every CLI is taken through, wire-neutral, by name."""

from steersman.testing.models.script import (
    Answer,
    Drop,
    Fail,
    Hang,
    HangMidway,
    Say,
    Script,
    Shell,
    Structured,
    Turn,
    Write,
)

TEXT = "The scripted model has spoken."
FILE, CONTENT = "hello.txt", "written by the scripted model\n"
SLEEP = "sleep 317"
REVIEW = {
    "decision": "approve",
    "summary": "read and understood",
    "must_fix": [],
    "nice_to_have": ["shorter names"],
    "tests": ["the whole suite"],
    "security": [],
    "fixed": [],
}


def say(turn: Turn) -> Answer:  # noqa: ARG001  a script is a function of a turn
    """Text alone."""
    return Say(TEXT)


def edit(turn: Turn) -> Answer:
    """One file, then a word."""
    return Say(TEXT) if turn.results else Write(FILE, CONTENT)


def shell(turn: Turn) -> Answer:
    """A tool that runs for minutes."""
    return Say(TEXT) if turn.results else Shell(SLEEP)


def review(turn: Turn) -> Answer:
    """A reply that fits the reviewer's contract."""
    return Say("Done.") if turn.results else Structured({"nonce": turn.nonce, **REVIEW})


def wrong_shape(turn: Turn) -> Answer:
    """A reply that never fits, however often it is asked for."""
    return Structured({"nonce": turn.nonce, "decision": "perhaps"})


def fails(status: int, **headers: str) -> Script:
    """The same HTTP error for every request."""
    return lambda turn: Fail(status, headers)  # noqa: ARG005  the same


def hang(turn: Turn) -> Answer:  # noqa: ARG001  the same
    """Never an answer."""
    return Hang()


def hang_midway(turn: Turn) -> Answer:  # noqa: ARG001  the same
    """The beginning of an answer."""
    return HangMidway()


def drop(turn: Turn) -> Answer:  # noqa: ARG001  the same
    """A connection that is reset in the middle of the answer."""
    return Drop()


# By the name of the case; those that need no script of their own (no key, refused, cancel) use `say` or `shell`.
SCRIPTS: dict[str, Script] = {
    "text": say,
    "edit": edit,
    "schema": review,
    "schema not met": wrong_shape,
    "schema ignored": say,
    "401": fails(401),
    "403": fails(403),
    "no key": say,
    "429": fails(429, **{"retry-after": "60"}),
    "500": fails(500),
    "529": fails(529),
    "refused": say,
    "never answers": hang,
    "hangs midway": hang_midway,
    "dropped": drop,
    "denied tool": edit,
    "bad model": fails(404),
    "cancel": shell,
    "kill -9": shell,
}
