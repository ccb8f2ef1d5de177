"""What a scripted model is told and what it answers, in words that no wire knows.

A script is a function from a turn to an answer. **Invariant:** it sees one request and nothing else: no counter, no
clock, no memory, so that a retried request gets the same answer.
"""

import json
import re
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

_NONCE_PATTERN = re.compile(r"nonce ([A-Za-z0-9_-]+)")


@dataclass(frozen=True)
class ModelTurn:
    """One request for a completion, whatever wire it came over."""

    wire: str
    model: str
    key: str
    prompt: str  # everything the user side has said, tool results left out
    tools: tuple[str, ...] = ()  # the names on offer
    results: int = 0  # tool results so far
    schema: Mapping[str, Any] | None = None  # what the answer has to fit, where the wire says so
    last: str = ""  # the last tool result
    system: str = ""
    streamed: bool = True  # the answer is wanted event by event

    @property
    def nonce(self) -> str:
        """The nonce of the reply contract, as the prompt gives it; nothing where there is none."""
        match = _NONCE_PATTERN.search(self.prompt)
        return match[1] if match else ""


@dataclass(frozen=True)
class ModelTokens:
    """What a turn says it used."""

    input: int = 1000
    output: int = 234


@dataclass(frozen=True)
class SayText:
    """A text, and the turn is over."""

    text: str
    usage: ModelTokens = field(default_factory=ModelTokens)


@dataclass(frozen=True)
class UseTool:
    """A call of one tool by the name the CLI has for it."""

    tool: str
    args: Mapping[str, Any]
    text: str = ""  # said before the call
    usage: ModelTokens = field(default_factory=ModelTokens)


@dataclass(frozen=True)
class WriteFile:
    """A file to be written, with whatever tool is on offer."""

    path: str
    content: str


@dataclass(frozen=True)
class RunShell:
    """A command for a shell, with whatever tool is on offer."""

    command: str


@dataclass(frozen=True)
class StructuredReply:
    """A value in answer to a schema: through a tool where the CLI made one of it, else as text."""

    value: Any


@dataclass(frozen=True)
class HttpFailure:
    """An HTTP error; the wire words it, unless a body is given."""

    status: int
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes | None = None
    message: str = "scripted failure"


@dataclass(frozen=True)
class HangForever:
    """Takes the request and never answers."""


@dataclass(frozen=True)
class HangMidway:
    """Begins to answer and never goes on."""

    text: str = "I will now"


@dataclass(frozen=True)
class DropConnection:
    """Closes the connection: at once, or in the middle of the answer."""

    midway: bool = True
    text: str = "I will now"


ModelAnswer = (
    SayText
    | UseTool
    | WriteFile
    | RunShell
    | StructuredReply
    | HttpFailure
    | HangForever
    | HangMidway
    | DropConnection
)
ModelScript = Callable[[ModelTurn], ModelAnswer]

# How each CLI calls its tools: offered name -> arguments. The first one on offer is used.
WRITE_TOOLS: dict[str, Callable[[WriteFile], dict[str, Any]]] = {
    "Write": lambda a: {"file_path": a.path, "content": a.content},
    "write_file": lambda a: {"file_path": a.path, "content": a.content},
    "write": lambda a: {"filePath": a.path, "content": a.content},
}
SHELL_TOOLS: dict[str, Callable[[RunShell], dict[str, Any]]] = {
    "Bash": lambda a: {"command": a.command, "description": "scripted"},
    "run_shell_command": lambda a: {"command": a.command, "description": "scripted"},
    "bash": lambda a: {"command": a.command, "description": "scripted"},
    "exec_command": lambda a: {"cmd": a.command},
    "shell_command": lambda a: {"command": a.command},
    "shell": lambda a: {"command": ["bash", "-lc", a.command]},
}
STRUCTURED_TOOL = "StructuredOutput"  # the tool claude makes of a schema


def make_concrete_answer(answer: ModelAnswer, turn: ModelTurn) -> ModelAnswer:
    """The answer in the words of this CLI: intents become calls of tools on offer.

    A tool that is not on offer is called all the same, by the first name of the table: what a CLI does then is a case
    worth seeing.
    """
    match answer:
        case WriteFile():
            return _call_offered_tool(answer, turn, WRITE_TOOLS) or make_concrete_answer(
                RunShell(_write_file_command(answer)), turn
            )
        case RunShell():
            return _call_offered_tool(answer, turn, SHELL_TOOLS) or UseTool(
                "Bash", SHELL_TOOLS["Bash"](answer)
            )
        case StructuredReply(value) if STRUCTURED_TOOL in turn.tools:
            return UseTool(STRUCTURED_TOOL, value)
        case StructuredReply(value):
            return SayText(json.dumps(value))
        case _:
            return answer


def _call_offered_tool(
    answer: Any, turn: ModelTurn, table: Mapping[str, Callable[[Any], dict[str, Any]]]
) -> UseTool | None:
    name = next((name for name in table if name in turn.tools), None)
    return UseTool(name, table[name](answer)) if name else None


def _write_file_command(answer: WriteFile) -> str:
    return f"printf %s {shlex.quote(answer.content)} > {shlex.quote(answer.path)}"
