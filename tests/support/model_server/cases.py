"""The scripts of the cases that every CLI is taken through, wire-neutral, by name."""

from tests.support.model_server.script import (
    DropConnection,
    HangForever,
    HangMidway,
    HttpFailure,
    ModelAnswer,
    ModelScript,
    ModelTurn,
    RunShell,
    SayText,
    StructuredReply,
    WriteFile,
)

CASE_TEXT = "The scripted model has spoken."
CASE_FILE, CASE_CONTENT = "hello.txt", "written by the scripted model\n"
SLEEP_COMMAND = "sleep 317"
CASE_REVIEW = {
    "decision": "approve", "summary": "read and understood", "must_fix": [],
    "nice_to_have": ["shorter names"], "tests": ["the whole suite"], "security": [], "fixed": [],
}  # fmt: skip


def answer_with_text(turn: ModelTurn) -> ModelAnswer:
    """Text alone."""
    return SayText(CASE_TEXT)


def answer_with_edit(turn: ModelTurn) -> ModelAnswer:
    """One file, then a word."""
    return SayText(CASE_TEXT) if turn.results else WriteFile(CASE_FILE, CASE_CONTENT)


def answer_with_shell(turn: ModelTurn) -> ModelAnswer:
    """A tool that runs for minutes."""
    return SayText(CASE_TEXT) if turn.results else RunShell(SLEEP_COMMAND)


def answer_with_review(turn: ModelTurn) -> ModelAnswer:
    """A reply that fits the reviewer's contract."""
    return SayText("Done.") if turn.results else StructuredReply({"nonce": turn.nonce, **CASE_REVIEW})


def answer_with_wrong_shape(turn: ModelTurn) -> ModelAnswer:
    """A reply that never fits, however often it is asked for."""
    return StructuredReply({"nonce": turn.nonce, "decision": "perhaps"})


def answer_with_failure(status: int, **headers: str) -> ModelScript:
    """The same HTTP error for every request."""
    return lambda turn: HttpFailure(status, headers)  # noqa: ARG005  the same


def answer_with_hang(turn: ModelTurn) -> ModelAnswer:
    """Never an answer."""
    return HangForever()


def answer_with_hang_midway(turn: ModelTurn) -> ModelAnswer:
    """The beginning of an answer."""
    return HangMidway()


def answer_with_drop(turn: ModelTurn) -> ModelAnswer:
    """A connection that is reset in the middle of the answer."""
    return DropConnection()


# By the name of the case; those that need no script of their own (no key, refused, cancel) use `say` or `shell`.
CASE_SCRIPTS: dict[str, ModelScript] = {
    "text": answer_with_text, "edit": answer_with_edit, "schema": answer_with_review,
    "schema not met": answer_with_wrong_shape, "schema ignored": answer_with_text,
    "401": answer_with_failure(401), "403": answer_with_failure(403), "no key": answer_with_text,
    "429": answer_with_failure(429, **{"retry-after": "60"}), "500": answer_with_failure(500),
    "529": answer_with_failure(529), "refused": answer_with_text, "never answers": answer_with_hang,
    "hangs midway": answer_with_hang_midway, "dropped": answer_with_drop, "denied tool": answer_with_edit,
    "bad model": answer_with_failure(404), "cancel": answer_with_shell, "kill -9": answer_with_shell,
}  # fmt: skip
