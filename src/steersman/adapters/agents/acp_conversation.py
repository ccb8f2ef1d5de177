"""One turn with an agent over the Agent Client Protocol: JSON-RPC, one message a line, both ways.

It is a `Reader` that answers: each line it hears may make it write one. The order is fixed: initialize, a session, its
mode and model where asked for, the prompt.
**Invariant:** only `end_turn` is an end that went well; no file, terminal or login is lent through the protocol.
"""

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from steersman.adapters.agents import acp_permission as permission
from steersman.adapters.agents.acp_errors import failure_of, stopped
from steersman.adapters.agents.headless import Failure, Heard
from steersman.adapters.tree_places import shown_path
from steersman.contracts.agent import AgentRequest, Usage

VERSION = 1
LOOP = 4  # rejections in a row, without any tool that worked: it will not get further
BEGINNINGS = (
    4  # messages in a row without a tool between them: a stream that breaks is begun anew, without end
)
_CAPABILITIES = {"fs": {"readTextFile": False, "writeTextFile": False}, "terminal": False}
_NO_METHOD = {"code": -32601, "message": "Method not found"}

Plain = Mapping[str, Any]


class Conversation:
    """What is said to one agent and heard from it, until its turn is over."""

    def __init__(
        self,
        request: AgentRequest,
        write: Callable[[bytes], object],
        *,
        isolated: bool,
        mode: str | None = None,
        model: str | None = None,
        usage: Callable[[Plain], Usage] = lambda _: Usage(),
        opened: Callable[[Plain], Failure | None] = lambda _: None,
        doubt: Callable[[Plain], Failure | None] = lambda _: None,
        status: Callable[[], int | None] = lambda: None,
    ) -> None:
        """`opened` looks at a session before anything is said in it, `usage` and `doubt` at a turn's result, `status`
        at what the model's server said: each agent has its own ways."""
        self._request, self._write, self._isolated = request, write, isolated
        self._mode, self._model = mode, model
        self._look, self._usage_of, self._doubt, self._status = opened, usage, doubt, status
        self._count = 0
        self._asked: dict[int, Callable[[Plain], None]] = {}
        self._session = ""
        self._text, self._message = "", None  # of the message that is being said
        self._begun = 0
        self._usage = Usage()
        self._ended = False
        self._failure: Failure | None = None
        self._cause: Failure | None = None  # of its last retry
        self._denied: list[str] = []
        self._outside: list[str] = []  # of these: commands beside those that it may run
        self._row = 0

    def begin(self) -> None:
        """Says the first word."""
        told = {
            "protocolVersion": VERSION,
            "clientCapabilities": _CAPABILITIES,
            "clientInfo": {"name": "steersman", "version": "1"},
        }
        self._ask("initialize", told, self._initialized)

    def cancel(self) -> None:
        """Asks the agent to stop its turn."""
        if self._session:
            self._send({"method": "session/cancel", "params": {"sessionId": self._session}})

    def fail(self, failure: Failure, *, now: bool) -> bool:
        """What standard error has told: a cause that may still pass, or enough to stop."""
        if now:
            self._failure = self._failure or failure
        self._cause = failure
        return now

    # ── what is heard ───────────────────────────────────────────────────────────────────────────────────────────────

    def feed(self, line: bytes) -> bool:
        """Takes one message; True when the turn is over, or will not get any further."""
        try:
            message = msgspec.json.decode(line)
        except (msgspec.DecodeError, RecursionError):
            return False  # a word on the wrong stream
        match message:
            case {"method": str(method), "id": asked}:
                self._requested(method, _table(message.get("params")), asked)
            case {"method": "session/update"}:
                self._updated(_table(_table(message.get("params")).get("update")))
            case {"id": int(number)} if number in self._asked:
                self._answered(number, message)
            case _:
                pass
        return self._ended or self._failure is not None

    def heard(self) -> Heard:
        """What is known so far."""
        failure = self._failure or (None if self._ended else self._cause)
        return Heard(
            ended=self._ended and failure is None,
            failure=failure,
            text=self._text,
            usage=self._usage,
            denied=tuple(self._denied),
            outside=tuple(dict.fromkeys(self._outside)),
            model=self._model or "",
        )

    def exited(self, code: int, errors: str) -> Failure | None:  # noqa: ARG002  an exit explains nothing here
        """An agent that ends while it is talked with has crashed, whatever its code."""
        return Failure(
            "provider_crashed", f"it ended in the middle of the talk: {errors or 'it said nothing'}"
        )

    def _answered(self, number: int, message: Plain) -> None:
        then = self._asked.pop(number)
        if "error" in message:
            self._failure = failure_of(message["error"], self._status())
        elif isinstance(message.get("result"), dict):
            then(message["result"])
        else:
            self._failure = Failure("provider_protocol_error", "an answer without a result")

    def _initialized(self, result: Plain) -> None:
        if result.get("protocolVersion") != VERSION:
            told = f"it speaks version {result.get('protocolVersion')!r} of the protocol, we speak {VERSION}"
            self._failure = Failure("provider_protocol_error", told)
        elif self._request.session:
            told = "sessions over this protocol are not kept: leave session out"
            self._failure = Failure("provider_invalid_request", told)
        else:
            cwd = shown_path(self._request.workdir, isolated=self._isolated)
            self._ask("session/new", {"cwd": cwd, "mcpServers": []}, self._opened)

    def _opened(self, result: Plain) -> None:
        if not isinstance(result.get("sessionId"), str):
            self._failure = Failure("provider_protocol_error", "a session without an id")
            return
        self._session = result["sessionId"]
        self._failure = self._look(result)
        if self._failure is None:
            self._choose_mode({})

    def _choose_mode(self, _: Plain) -> None:
        if self._mode:
            self._ask("session/set_mode", self._here(modeId=self._mode), self._choose_model)
        else:
            self._choose_model({})

    def _choose_model(self, _: Plain) -> None:
        if self._model:
            self._ask("session/set_model", self._here(modelId=self._model), self._prompt)
        else:
            self._prompt({})

    def _prompt(self, _: Plain) -> None:
        said = [{"type": "text", "text": self._request.prompt}]
        self._ask("session/prompt", self._here(prompt=said), self._turned)

    def _turned(self, result: Plain) -> None:
        self._usage = self._usage_of(result)
        self._failure = stopped(result.get("stopReason")) or self._doubt(result) or self._denial()
        self._ended = self._failure is None

    def _denial(self) -> Failure | None:
        """A writer that was denied something has not done its work; a reader is meant to be."""
        if not (self._request.writes and self._row) or len(self._outside) == len(self._denied):
            return None
        return Failure("provider_permission_denied", f"it was not allowed to use {self._denied[-1]}")

    def _updated(self, update: Plain) -> None:
        match update:
            case {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": str(text)}}:
                self._say(text, update.get("messageId"))
            case {"sessionUpdate": "tool_call"}:
                self._text, self._begun = "", 0  # what was said before a tool was a word on the way
            case {"sessionUpdate": "tool_call_update", "status": "completed"}:
                self._row = 0
            case _:
                pass

    def _say(self, text: str, message: Any) -> None:
        """The last message is the answer; where messages have names, a new name begins a new one."""
        if message is not None and message != self._message:
            self._text, self._message = "", message
            self._begun += 1
        self._text += text
        if self._begun >= BEGINNINGS:
            told = f"it has begun its answer {self._begun} times and not ended it"
            self._failure = Failure("provider_network_error", told)

    # ── what is asked of us ─────────────────────────────────────────────────────────────────────────────────────────

    def _requested(self, method: str, params: Plain, asked: Any) -> None:
        if method == "session/request_permission":
            self._send({"id": asked, "result": {"outcome": self._permission(params)}})
        else:
            self._send({"id": asked, "error": _NO_METHOD})

    def _permission(self, params: Plain) -> dict[str, Any]:
        call, request = _table(params.get("toolCall")), self._request
        self._text = ""
        allow = permission.allowed(
            call, request.permissions, request.workdir, isolated=self._isolated, allows=request.allows
        )
        if not allow:
            self._reject(permission.named(call))
            if request.allows is not None and call.get("kind") == "execute":
                self._outside.append(permission.command(call))
        return permission.answer(params.get("options"), allow=allow)

    def _reject(self, tool: str) -> None:
        self._denied.append(tool)
        self._row += 1
        if self._row >= LOOP:
            told = f"it asked {self._row} times in a row for what it may not do, last: {tool}"
            self._failure = Failure("provider_permission_denied", told)

    # ── what is said ────────────────────────────────────────────────────────────────────────────────────────────────

    def _here(self, **params: Any) -> Plain:
        return {"sessionId": self._session, **params}

    def _ask(self, method: str, params: Plain, then: Callable[[Plain], None]) -> None:
        self._count += 1
        self._asked[self._count] = then
        self._send({"id": self._count, "method": method, "params": params})

    def _send(self, message: Plain) -> None:
        said = msgspec.json.encode({"jsonrpc": "2.0", **_clean(message)})
        self._write(said + b"\n")


def _clean(value: Any) -> Any:
    """Text that can be encoded: half a character becomes its name."""
    match value:
        case str():
            return value.encode("utf-8", "backslashreplace").decode()
        case dict():
            return {key: _clean(item) for key, item in value.items()}
        case list():
            return [_clean(item) for item in value]
        case _:
            return value


def _table(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
