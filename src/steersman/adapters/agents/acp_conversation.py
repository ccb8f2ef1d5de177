"""One turn with an agent over the Agent Client Protocol: JSON-RPC, one message a line, both ways.

It is a `Reader` that answers: each line it hears may make it write one. The order is fixed: initialize, a session, its
mode and model where asked for, the prompt.
**Invariant:** only `end_turn` is an end that went well; no file, terminal or login is lent through the protocol.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import msgspec

from steersman.adapters.agents import acp_permission as permission
from steersman.adapters.agents.acp_errors import classify_acp_error, classify_stop_reason
from steersman.adapters.agents.headless import CallSummary, ProviderFailure
from steersman.adapters.checks.setup_layers import visible_tree_path
from steersman.contracts.agent import AgentRequest, ProviderUsage

ACP_VERSION = 1
MAX_ACP_REJECTIONS = 4  # rejections in a row, without any tool that worked: it will not get further
# Messages in a row without a tool between them: a stream that breaks is started again, without end.
MAX_ANSWER_BEGINNINGS = 4
_CLIENT_CAPABILITIES = {"fs": {"readTextFile": False, "writeTextFile": False}, "terminal": False}
_METHOD_NOT_FOUND = {"code": -32601, "message": "Method not found"}

AcpObject = Mapping[str, Any]


class StderrComplaint(NamedTuple):
    """A line of standard error that tells what went wrong; with `now` it will not get better by itself."""

    failure: ProviderFailure
    now: bool = False


class AcpAgentProfile(NamedTuple):
    """One agent, as it wants to be called."""

    name: str
    argv: tuple[str, ...]
    env: Mapping[str, str] = {}
    keeps: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()  # logins that are lent
    network: tuple[str, ...] | None = ()
    model: str | None = None  # to be chosen in the session, where no word of the command line does it
    usage: Callable[[AcpObject], ProviderUsage] = lambda _: ProviderUsage()  # of a turn's result
    # Checks a new session before its prompt.
    opened: Callable[[AcpObject], ProviderFailure | None] = lambda _: None
    doubt: Callable[[AcpObject], ProviderFailure | None] = lambda _: None  # checks a turn's result
    # What the model's server answered, where the agent records it.
    status: Callable[[], int | None] = lambda: None
    complaint: Callable[[str], StderrComplaint | None] = lambda _: None  # reads a line of standard error


class AcpConversation:
    """The messages to one agent and from it, until its turn is over."""

    def __init__(
        self,
        request: AgentRequest,
        write: Callable[[bytes], object],
        profile: AcpAgentProfile,
        *,
        isolated: bool,
        mode: str | None = None,
    ) -> None:
        self._request, self._write, self._isolated = request, write, isolated
        self._profile, self._mode = profile, mode
        self._request_count = 0
        self._pending: dict[int, Callable[[AcpObject], None]] = {}
        self._session = ""
        self._text, self._message = "", None  # of the message under way
        self._answers_begun = 0
        self._usage = ProviderUsage()
        self._ended = False
        self._failure: ProviderFailure | None = None
        self._cause: ProviderFailure | None = None  # of its last retry
        self._denied: list[str] = []
        self._outside: list[str] = []  # of these: commands beside those that it may run
        self._denials_in_row = 0

    def begin(self) -> None:
        """Says the first word."""
        params = {
            "protocolVersion": ACP_VERSION,
            "clientCapabilities": _CLIENT_CAPABILITIES,
            "clientInfo": {"name": "steersman", "version": "1"},
        }
        self._send_request("initialize", params, self._handle_initialized)

    def cancel(self) -> None:
        """Asks the agent to stop its turn."""
        if self._session:
            self._send({"method": "session/cancel", "params": {"sessionId": self._session}})

    def fail(self, failure: ProviderFailure, *, now: bool) -> bool:
        """A cause that standard error names: one that may pass, or enough to stop."""
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
            case {"method": str(method), "id": request_id}:
                self._handle_request(method, _as_acp_object(message.get("params")), request_id)
            case {"method": "session/update"}:
                self._handle_update(_as_acp_object(_as_acp_object(message.get("params")).get("update")))
            case {"id": int(number)} if number in self._pending:
                self._handle_response(number, message)
            case _:
                pass
        return self._ended or self._failure is not None

    def read_result(self) -> CallSummary:
        """What is known so far."""
        failure = self._failure or (None if self._ended else self._cause)
        return CallSummary(
            ended=self._ended and failure is None,
            failure=failure,
            text=self._text,
            usage=self._usage,
            denied=tuple(self._denied),
            outside=tuple(dict.fromkeys(self._outside)),
            model=self._profile.model or "",
        )

    def explain_exit(self, code: int, errors: str) -> ProviderFailure | None:  # noqa: ARG002  an exit explains nothing here
        """An agent that ends while it is talked with has crashed, whatever its code."""
        return ProviderFailure(
            "provider_crashed", f"it ended in the middle of the conversation: {errors or 'it said nothing'}"
        )

    def _handle_response(self, number: int, message: AcpObject) -> None:
        handle_result = self._pending.pop(number)
        if "error" in message:
            self._failure = classify_acp_error(message["error"], self._profile.status())
        elif isinstance(message.get("result"), dict):
            handle_result(message["result"])
        else:
            self._failure = ProviderFailure("provider_protocol_error", "an answer without a result")

    def _handle_initialized(self, result: AcpObject) -> None:
        if result.get("protocolVersion") != ACP_VERSION:
            reason = (
                f"it speaks version {result.get('protocolVersion')!r} of the protocol, we speak {ACP_VERSION}"
            )
            self._failure = ProviderFailure("provider_protocol_error", reason)
        elif self._request.session:
            reason = "sessions over this protocol are not kept: leave session out"
            self._failure = ProviderFailure("provider_invalid_request", reason)
        else:
            cwd = visible_tree_path(self._request.workdir, isolated=self._isolated)
            self._send_request("session/new", {"cwd": cwd, "mcpServers": []}, self._handle_session_opened)

    def _handle_session_opened(self, result: AcpObject) -> None:
        if not isinstance(result.get("sessionId"), str):
            self._failure = ProviderFailure("provider_protocol_error", "a session without an id")
            return
        self._session = result["sessionId"]
        self._failure = self._profile.opened(result)
        if self._failure is None:
            self._choose_mode({})

    def _choose_mode(self, _: AcpObject) -> None:
        if self._mode:
            self._send_request(
                "session/set_mode", self._is_inside_workdir(modeId=self._mode), self._choose_model
            )
        else:
            self._choose_model({})

    def _choose_model(self, _: AcpObject) -> None:
        if self._profile.model:
            self._send_request(
                "session/set_model", self._is_inside_workdir(modelId=self._profile.model), self._send_prompt
            )
        else:
            self._send_prompt({})

    def _send_prompt(self, _: AcpObject) -> None:
        content = [{"type": "text", "text": self._request.prompt}]
        self._send_request("session/prompt", self._is_inside_workdir(prompt=content), self._handle_turn_end)

    def _handle_turn_end(self, result: AcpObject) -> None:
        self._usage = self._profile.usage(result)
        self._failure = (
            classify_stop_reason(result.get("stopReason"))
            or self._profile.doubt(result)
            or self._denied_tool_failure()
        )
        self._ended = self._failure is None

    def _denied_tool_failure(self) -> ProviderFailure | None:
        """A writer that was denied something has not done its work; a reader is meant to be."""
        if not (self._request.writes and self._denials_in_row) or len(self._outside) == len(self._denied):
            return None
        return ProviderFailure("provider_permission_denied", f"it was not allowed to use {self._denied[-1]}")

    def _handle_update(self, update: AcpObject) -> None:
        match update:
            case {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": str(text)}}:
                self._append_message(text, update.get("messageId"))
            case {"sessionUpdate": "tool_call"}:
                self._text, self._answers_begun = "", 0  # text before a tool call is no answer
            case {"sessionUpdate": "tool_call_update", "status": "completed"}:
                self._denials_in_row = 0
            case _:
                pass

    def _append_message(self, text: str, message_id: Any) -> None:
        """The last message is the answer; where messages have names, a new name begins a new one."""
        if message_id is not None and message_id != self._message:
            self._text, self._message = "", message_id
            self._answers_begun += 1
        self._text += text
        if self._answers_begun >= MAX_ANSWER_BEGINNINGS:
            reason = f"it has begun its answer {self._answers_begun} times and not ended it"
            self._failure = ProviderFailure("provider_network_error", reason)

    # ── what is asked of us ─────────────────────────────────────────────────────────────────────────────────────────

    def _handle_request(self, method: str, params: AcpObject, request_id: Any) -> None:
        if method == "session/request_permission":
            self._send({"id": request_id, "result": {"outcome": self._answer_permission(params)}})
        else:
            self._send({"id": request_id, "error": _METHOD_NOT_FOUND})

    def _answer_permission(self, params: AcpObject) -> dict[str, Any]:
        call, request = _as_acp_object(params.get("toolCall")), self._request
        self._text = ""
        allow = permission.allows_tool_call(
            call, request.permissions, request.workdir, isolated=self._isolated, allows=request.allows
        )
        if not allow:
            self._reject(permission.describe_tool_call(call))
            if request.allows is not None and call.get("kind") == "execute":
                self._outside.append(permission.read_call_command(call))
        return permission.choose_permission_option(params.get("options"), allow=allow)

    def _reject(self, tool: str) -> None:
        self._denied.append(tool)
        self._denials_in_row += 1
        if self._denials_in_row >= MAX_ACP_REJECTIONS:
            reason = f"it asked {self._denials_in_row} times in a row for what it may not do, last: {tool}"
            self._failure = ProviderFailure("provider_permission_denied", reason)

    # ── sending ──────────────────────────────────────────────────────────────────────────────────────────────────────

    def _is_inside_workdir(self, **params: Any) -> AcpObject:
        return {"sessionId": self._session, **params}

    def _send_request(
        self, method: str, params: AcpObject, handle_result: Callable[[AcpObject], None]
    ) -> None:
        self._request_count += 1
        self._pending[self._request_count] = handle_result
        self._send({"id": self._request_count, "method": method, "params": params})

    def _send(self, message: AcpObject) -> None:
        encoded = msgspec.json.encode({"jsonrpc": "2.0", **_escape_unencodable_text(message)})
        self._write(encoded + b"\n")


def _escape_unencodable_text(value: Any) -> Any:
    """Text that can be encoded: half a character becomes its name."""
    match value:
        case str():
            return value.encode("utf-8", "backslashreplace").decode()
        case dict():
            return {key: _escape_unencodable_text(item) for key, item in value.items()}
        case list():
            return [_escape_unencodable_text(item) for item in value]
        case _:
            return value


def _as_acp_object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
