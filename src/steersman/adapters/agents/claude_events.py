"""Reads the events of `claude -p --output-format stream-json`: one JSON object a line.

`subtype` says "success" also where the API failed, so it is ignored: `is_error`, `api_error_status` and `error` decide.
**Invariant:** a field that is not there, or of another kind than expected, is not known; nothing is guessed from it.
"""

import re
import time
from collections.abc import Callable
from decimal import ROUND_CEILING, Decimal
from typing import Any

import msgspec

from steersman.adapters.agents.headless import CallSummary, ProviderFailure
from steersman.contracts.agent import ProviderClass, ProviderUsage

CLAUDE_SHELL_TOOL = "Bash"
CLAUDE_SCHEMA_TOOL = "StructuredOutput"
SCHEMA_UNMET_SUBTYPE = "error_max_structured_output_retries"
MAX_CLAUDE_DENIALS = 4  # denials in a row, without any tool that worked: it will not get further
MAX_CLAUDE_RETRY_MS = 5_000  # if claude would wait longer before its own retry, steersman retries instead
_CLAUDE_DENIED = re.compile(r"\bpermission|requires approval", re.IGNORECASE)
_CLAUDE_TIMED_OUT = re.compile(r"timed? ?out", re.IGNORECASE)
_CLAUDE_CONNECTION_ERROR = re.compile(
    r"unable to connect|connection|econn|socket|network|fetch failed|terminated|stream ended", re.IGNORECASE
)
_CLAUDE_ERROR_KINDS: dict[str, ProviderClass] = {
    "authentication_failed": "provider_auth_error",
    "billing_error": "provider_auth_error",
    "oauth_org_not_allowed": "provider_auth_error",
    "rate_limit": "provider_rate_limited",
    "overloaded": "provider_rate_limited",
    "model_not_found": "provider_invalid_request",
    "invalid_request": "provider_invalid_request",
    "max_output_tokens": "provider_invalid_request",
}
_CLAUDE_STATUSES: dict[int, ProviderClass] = {
    401: "provider_auth_error",
    402: "provider_auth_error",
    403: "provider_auth_error",
    408: "provider_timeout",
    429: "provider_rate_limited",
    529: "provider_rate_limited",
}
_CLAUDE_LIMITS = {"error_max_turns": "turns", "error_max_budget_usd": "money"}
_CLAUDE_EVENT_DECODER = msgspec.json.Decoder(float_hook=Decimal)

ClaudeEvent = dict[str, Any]


def classify_claude_failure(status: int | None, kind: str | None, text: str) -> ProviderClass:
    """The class of a failed request: its status, then the CLI's own kind, and its words where both are silent."""
    if status in _CLAUDE_STATUSES:
        return _CLAUDE_STATUSES[status]
    if kind in _CLAUDE_ERROR_KINDS:
        return _CLAUDE_ERROR_KINDS[kind]
    if status is not None:
        return "provider_network_error" if status >= 500 else "provider_invalid_request"
    if _CLAUDE_TIMED_OUT.search(text):
        return "provider_timeout"
    if kind == "server_error" or _CLAUDE_CONNECTION_ERROR.search(text):
        return "provider_network_error"
    return "provider_protocol_error"


class ClaudeReader:
    """The events of one call."""

    def __init__(
        self,
        *,
        writes: bool,
        schema: bool,
        held: bool = False,  # to some commands: others are outside, and no failure of the call
        before: ProviderUsage | None = None,  # the usage of a continued session so far; None: it is a new one
        now: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
    ) -> None:
        self._writes, self._schema, self._held = writes, schema, held
        self._before, self._now = before, now
        self._model, self._session = "", ""
        self._tools: frozenset[str] | None = None
        self._cause: ProviderFailure | None = None  # of the last retry, until something works again
        self._kind: str | None = None  # of the last message that stands for an API error
        self._reset_at: int | None = None
        self._asked: dict[str, str] = {}  # tool calls under way, by id
        self._denied: list[str] = []
        self._row = 0  # denials in a row
        self._stuck: ProviderFailure | None = None
        self._offered: Any = None  # the last thing it tried to pass off as its reply
        self._begun = False  # a model has answered, be it in part
        self._results: list[ClaudeEvent] = []

    def feed(self, line: bytes) -> bool:
        """Takes one event; True when no later one can change what this call comes to."""
        try:
            event = _CLAUDE_EVENT_DECODER.decode(line)
        except msgspec.DecodeError:
            return False  # a warning on the wrong stream; without a last word it is missed at the end
        if not isinstance(event, dict):
            return False
        match event.get("type"):
            case "system":
                return self._system(event)
            case "assistant":
                self._assistant(event)
            case "user":
                return self._user(event)
            case "stream_event":
                self._begun = True
            case "rate_limit_event":
                self._limit(_get_event_dict(event, "rate_limit_info"))
            case "result":
                self._results.append(event)
        return False

    def _system(self, event: ClaudeEvent) -> bool:
        if event.get("subtype") == "init":
            self._model, self._session = _get_event_text(event, "model"), _get_event_text(event, "session_id")
            tools = event.get("tools")
            self._tools = frozenset(map(str, tools)) if isinstance(tools, list) else None
        return event.get("subtype") == "api_retry" and self._retry(event)

    def _retry(self, event: ClaudeEvent) -> bool:
        status = _get_event_number(event, "error_status")
        kind = _get_event_text(event, "error")
        delay = event.get("retry_delay_ms")
        wait_ms = int(delay) if isinstance(delay, int | Decimal) and delay >= 0 else 0
        # Without a status it was the way to the API that failed.
        error = classify_claude_failure(status, kind, "connection" if status is None else "")
        if error == "provider_rate_limited" and wait_ms > MAX_CLAUDE_RETRY_MS:
            self._reset_at = self._now() + wait_ms
        reason = f"the API answered {status} ({kind})" if status else f"the API could not be reached ({kind})"
        self._cause = ProviderFailure(error, reason, self._reset_at)
        return error == "provider_auth_error" or (
            error == "provider_rate_limited" and wait_ms > MAX_CLAUDE_RETRY_MS
        )

    def _limit(self, info: ClaudeEvent) -> None:
        resets = _get_event_number(info, "resetsAt")
        if info.get("status") == "rejected" and resets:
            self._reset_at = resets * 1000

    def _assistant(self, event: ClaudeEvent) -> None:
        self._kind = event["error"] if isinstance(event.get("error"), str) else None
        if self._kind is None:
            self._cause = None
        for block in _list_content_blocks(event):
            if block.get("type") == "tool_use":
                self._asked[_get_event_text(block, "id")] = _get_event_text(block, "name")
                if block.get("name") == CLAUDE_SCHEMA_TOOL:
                    self._offered = block.get("input")

    def _user(self, event: ClaudeEvent) -> bool:
        for block in _list_content_blocks(event):
            if block.get("type") == "tool_result":
                self._tool_ended(self._asked.pop(_get_event_text(block, "tool_use_id"), ""), block)
        if self._row < MAX_CLAUDE_DENIALS:
            return False
        self._stuck = ProviderFailure(
            "provider_permission_denied", f"it asked {self._row} times in a row for what it may not do"
        )
        return True

    def _tool_ended(self, name: str, block: ClaudeEvent) -> None:
        if block.get("is_error") is not True:
            self._row = 0
        elif self._is_denial(name, block):
            self._row += 1
            self._denied.append(name)

    def _is_denial(self, name: str, block: ClaudeEvent) -> bool:
        """A tool that was not on offer; or one whose error speaks of permission: good enough to count by."""
        missing = self._tools is not None and bool(name) and name not in self._tools
        return missing or bool(_CLAUDE_DENIED.search(str(block.get("content"))))

    # ── the end ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def read_result(self) -> CallSummary:
        """What the call came to, as far as its events say."""
        result = self._results[-1] if self._results else {}
        failure = self._stuck or self._failure(result)
        return CallSummary(
            ended=bool(self._results) and failure is None,
            failure=failure,
            exits=(1,) if result.get("subtype") == SCHEMA_UNMET_SUBTYPE else (0,),
            text=self._reply(result),
            usage=self._usage(result),
            session=_get_event_text(result, "session_id") or self._session or None,
            model=self._model,
            denied=tuple(dict.fromkeys((*_list_denied_tools(result), *self._denied))),
            outside=_list_denied_commands(result) if self._held else (),
        )

    def _failure(self, result: ClaudeEvent) -> ProviderFailure | None:
        if not self._results:
            return self._cause
        if len(self._results) > 1:
            return ProviderFailure("provider_protocol_error", "it had two last words")
        if result.get("subtype") == SCHEMA_UNMET_SUBTYPE:
            return None  # its reply is judged like any other, and asked for again with all its problems
        if result.get("is_error") is not False:
            return self._error(result)
        return self._denied_tool_failure(result)

    def _error(self, result: ClaudeEvent) -> ProviderFailure:
        subtype, text = _get_event_text(result, "subtype"), _claude_failure_text(result)
        if subtype in _CLAUDE_LIMITS:
            return ProviderFailure(
                "provider_invalid_request", f"its ceiling of {_CLAUDE_LIMITS[subtype]} was reached: {text}"
            )
        if subtype == "error_during_execution":
            error: ProviderClass = (
                "provider_invalid_request" if "No conversation found" in text else "provider_crashed"
            )
            return ProviderFailure(error, text)
        status = _get_event_number(result, "api_error_status")
        kind = self._kind
        error = classify_claude_failure(status, kind, text)
        return ProviderFailure(error, text, self._reset_at if error == "provider_rate_limited" else None)

    def _denied_tool_failure(self, result: ClaudeEvent) -> ProviderFailure | None:
        """A writer that was denied something has not done its work; a reader is meant to be."""
        denied = _list_denied_tools(result) or (tuple(self._denied) if self._row else ())
        if self._held:
            denied = tuple(name for name in denied if name != CLAUDE_SHELL_TOOL)
        if not (self._writes and denied):
            return None
        return ProviderFailure("provider_permission_denied", f"it was not allowed to use {', '.join(denied)}")

    def _reply(self, result: ClaudeEvent) -> str:
        if not self._schema:
            return _get_event_text(result, "result")
        value = result.get("structured_output", self._offered)
        if value is None:
            return f"[no structured reply]\n{_get_event_text(result, 'result')}"
        return msgspec.json.encode(value).decode()

    def last_usage(self) -> ProviderUsage:
        """What the last word says was used; of a session that is continued it may be all of it."""
        return read_claude_usage(self._results[-1]) if self._results else ProviderUsage()

    def _usage(self, result: ClaudeEvent) -> ProviderUsage:
        """What this call used; an answer that broke off is reported without usage, and was not free."""
        usage = read_claude_usage(result)
        if self._begun and not usage.tokens:
            return ProviderUsage()
        return (
            usage
            if self._before is None
            else usage_since_resume(self._before, usage, _count_call_tokens(result))
        )

    def explain_exit(self, code: int, errors: str) -> ProviderFailure | None:
        """An exit without a last word: a missing flag or permission is on standard error only."""
        if code != 0 and ("unknown option" in errors or "root/sudo privileges" in errors):
            return ProviderFailure("provider_invalid_request", errors)
        if code != 0 and _CLAUDE_CONNECTION_ERROR.search(errors):
            return ProviderFailure("provider_network_error", errors)
        return None


def read_claude_usage(result: ClaudeEvent) -> ProviderUsage:
    """Tokens and money as reported; what is not reported is unknown."""
    return ProviderUsage(_count_all_claude_tokens(result), _parse_micro_usd(result.get("total_cost_usd")))


def usage_since_resume(earlier: ProviderUsage, reported: ProviderUsage, tokens: int | None) -> ProviderUsage:
    """What one call of a continued session used: some versions tell that, some all there ever was; else it is unknown."""
    if tokens is None or reported.tokens is None:
        return ProviderUsage()
    if reported.tokens == tokens:
        return reported
    if earlier.tokens is None or reported.tokens != earlier.tokens + tokens:
        return ProviderUsage()
    return ProviderUsage(tokens, _subtract_known(reported.micro_usd, earlier.micro_usd))


def _subtract_known(total: int | None, earlier: int | None) -> int | None:
    return total - earlier if total is not None and earlier is not None and total >= earlier else None


def _count_all_claude_tokens(result: ClaudeEvent) -> int | None:
    models = [m for m in _get_event_dict(result, "modelUsage").values() if isinstance(m, dict)]
    if not models:
        return _count_call_tokens(result)
    names = ("inputTokens", "outputTokens", "cacheReadInputTokens", "cacheCreationInputTokens")
    return sum(_get_event_number(m, name) or 0 for m in models for name in names)


def _count_call_tokens(result: ClaudeEvent) -> int | None:
    """Those of this call, whatever came before."""
    usage, names = _get_event_dict(result, "usage"), ("input_tokens", "output_tokens")
    if not all(isinstance(usage.get(name), int) for name in names):
        return None
    cached = ("cache_creation_input_tokens", "cache_read_input_tokens")
    return sum(_get_event_number(usage, name) or 0 for name in (*names, *cached))


def _parse_micro_usd(cost: Any) -> int | None:
    if isinstance(cost, bool) or not isinstance(cost, int | Decimal) or not 0 <= cost < 1_000_000:
        return None
    return int((Decimal(cost) * 1_000_000).to_integral_value(ROUND_CEILING))


def _list_denied_tools(result: ClaudeEvent) -> tuple[str, ...]:
    denials = result.get("permission_denials")
    names = (
        [_get_event_text(d, "tool_name") for d in denials if isinstance(d, dict)]
        if isinstance(denials, list)
        else []
    )
    return tuple(dict.fromkeys(filter(None, names)))


def _list_denied_commands(result: ClaudeEvent) -> tuple[str, ...]:
    """The commands that were denied."""
    denials = result.get("permission_denials")
    denied = [d for d in denials if isinstance(d, dict)] if isinstance(denials, list) else []
    commands = [
        _get_event_text(_get_event_dict(d, "tool_input"), "command")
        for d in denied
        if d.get("tool_name") == CLAUDE_SHELL_TOOL
    ]
    return tuple(dict.fromkeys(filter(None, commands)))


def _claude_failure_text(result: ClaudeEvent) -> str:
    errors = result.get("errors")
    messages = [str(e) for e in errors] if isinstance(errors, list) else []
    return (
        _get_event_text(result, "result")
        or "; ".join(messages)
        or _get_event_text(result, "subtype")
        or "it failed without a word"
    )


def _list_content_blocks(event: ClaudeEvent) -> list[ClaudeEvent]:
    content = _get_event_dict(event, "message").get("content")
    return [b for b in content if isinstance(b, dict)] if isinstance(content, list) else []


def _get_event_dict(event: ClaudeEvent, name: str) -> ClaudeEvent:
    value = event.get(name)
    return value if isinstance(value, dict) else {}


def _get_event_text(event: ClaudeEvent, name: str) -> str:
    value = event.get(name)
    return value if isinstance(value, str) else ""


def _get_event_number(event: ClaudeEvent, name: str) -> int | None:
    value = event.get(name)
    return value if isinstance(value, int) and not isinstance(value, bool) else None
