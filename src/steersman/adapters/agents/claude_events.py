"""Reads the events of `claude -p --output-format stream-json`: one JSON object a line.

`subtype` says "success" also where the API failed, so it is never asked: `is_error`, `api_error_status` and `error` are.
**Invariant:** a field that is not there, or of another kind than expected, is not known; nothing is guessed from it.
"""

import re
import time
from collections.abc import Callable
from decimal import ROUND_CEILING, Decimal
from typing import Any

import msgspec

from steersman.adapters.agents.headless import Failure, Heard
from steersman.contracts.agent import ProviderClass, Usage

SHELL = "Bash"
SCHEMA_TOOL = "StructuredOutput"
UNMET = "error_max_structured_output_retries"
LOOP = 4  # denials in a row, without any tool that worked: it will not get further
LONG_MS = 5_000  # a retry that waits longer is ours to make
_DENIED = re.compile(r"\bpermission|requires approval", re.IGNORECASE)
_TIMED_OUT = re.compile(r"timed? ?out", re.IGNORECASE)
_UNREACHED = re.compile(
    r"unable to connect|connection|econn|socket|network|fetch failed|terminated|stream ended", re.IGNORECASE
)
_KINDS: dict[str, ProviderClass] = {
    "authentication_failed": "provider_auth_error",
    "billing_error": "provider_auth_error",
    "oauth_org_not_allowed": "provider_auth_error",
    "rate_limit": "provider_rate_limited",
    "overloaded": "provider_rate_limited",
    "model_not_found": "provider_invalid_request",
    "invalid_request": "provider_invalid_request",
    "max_output_tokens": "provider_invalid_request",
}
_STATUSES: dict[int, ProviderClass] = {
    401: "provider_auth_error",
    402: "provider_auth_error",
    403: "provider_auth_error",
    408: "provider_timeout",
    429: "provider_rate_limited",
    529: "provider_rate_limited",
}
_LIMITS = {"error_max_turns": "turns", "error_max_budget_usd": "money"}
_DECODER = msgspec.json.Decoder(float_hook=Decimal)

Event = dict[str, Any]


def classified(status: int | None, kind: str | None, words: str) -> ProviderClass:
    """The class of a failed request: its status, then the CLI's own kind, and its words where both are silent."""
    if status in _STATUSES:
        return _STATUSES[status]
    if kind in _KINDS:
        return _KINDS[kind]
    if status is not None:
        return "provider_network_error" if status >= 500 else "provider_invalid_request"
    if _TIMED_OUT.search(words):
        return "provider_timeout"
    if kind == "server_error" or _UNREACHED.search(words):
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
        before: Usage | None = None,  # what a session that is continued had told; None: it is a new one
        now: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
    ) -> None:
        self._writes, self._schema, self._held = writes, schema, held
        self._before, self._now = before, now
        self._model, self._session = "", ""
        self._tools: frozenset[str] | None = None
        self._cause: Failure | None = None  # of the last retry, until something works again
        self._kind: str | None = None  # of the last message that stands for an API error
        self._reset_at: int | None = None
        self._asked: dict[str, str] = {}  # tool calls under way, by id
        self._denied: list[str] = []
        self._row = 0  # denials in a row
        self._stuck: Failure | None = None
        self._offered: Any = None  # the last thing it tried to pass off as its reply
        self._begun = False  # a model has answered, be it in part
        self._results: list[Event] = []

    def feed(self, line: bytes) -> bool:
        """Takes one event; True when no later one can change what this call comes to."""
        try:
            event = _DECODER.decode(line)
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
                self._limit(_part(event, "rate_limit_info"))
            case "result":
                self._results.append(event)
        return False

    def _system(self, event: Event) -> bool:
        if event.get("subtype") == "init":
            self._model, self._session = _text(event, "model"), _text(event, "session_id")
            tools = event.get("tools")
            self._tools = frozenset(map(str, tools)) if isinstance(tools, list) else None
        return event.get("subtype") == "api_retry" and self._retry(event)

    def _retry(self, event: Event) -> bool:
        status, kind, delay = (
            _number(event, "error_status"),
            _text(event, "error"),
            event.get("retry_delay_ms"),
        )
        wait = int(delay) if isinstance(delay, int | Decimal) and delay >= 0 else 0
        # Without a status it was the way to the API that failed.
        error = classified(status, kind, "connection" if status is None else "")
        if error == "provider_rate_limited" and wait > LONG_MS:
            self._reset_at = self._now() + wait
        told = f"the API answered {status} ({kind})" if status else f"the API could not be reached ({kind})"
        self._cause = Failure(error, told, self._reset_at)
        return error == "provider_auth_error" or (error == "provider_rate_limited" and wait > LONG_MS)

    def _limit(self, info: Event) -> None:
        resets = _number(info, "resetsAt")
        if info.get("status") == "rejected" and resets:
            self._reset_at = resets * 1000

    def _assistant(self, event: Event) -> None:
        self._kind = event["error"] if isinstance(event.get("error"), str) else None
        if self._kind is None:
            self._cause = None
        for block in _blocks(event):
            if block.get("type") == "tool_use":
                self._asked[_text(block, "id")] = _text(block, "name")
                if block.get("name") == SCHEMA_TOOL:
                    self._offered = block.get("input")

    def _user(self, event: Event) -> bool:
        for block in _blocks(event):
            if block.get("type") == "tool_result":
                self._tool_ended(self._asked.pop(_text(block, "tool_use_id"), ""), block)
        if self._row < LOOP:
            return False
        self._stuck = Failure(
            "provider_permission_denied", f"it asked {self._row} times in a row for what it may not do"
        )
        return True

    def _tool_ended(self, name: str, block: Event) -> None:
        if block.get("is_error") is not True:
            self._row = 0
        elif self._is_denial(name, block):
            self._row += 1
            self._denied.append(name)

    def _is_denial(self, name: str, block: Event) -> bool:
        """A tool that was not on offer; or one whose error speaks of permission: good enough to count by."""
        missing = self._tools is not None and bool(name) and name not in self._tools
        return missing or bool(_DENIED.search(str(block.get("content"))))

    # ── the end ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def heard(self) -> Heard:
        """What the call came to, as far as its events say."""
        result = self._results[-1] if self._results else {}
        failure = self._stuck or self._failure(result)
        return Heard(
            ended=bool(self._results) and failure is None,
            failure=failure,
            exits=(1,) if result.get("subtype") == UNMET else (0,),
            text=self._reply(result),
            usage=self._usage(result),
            session=_text(result, "session_id") or self._session or None,
            model=self._model,
            denied=tuple(dict.fromkeys((*_denials(result), *self._denied))),
            outside=_commands(result) if self._held else (),
        )

    def _failure(self, result: Event) -> Failure | None:
        if not self._results:
            return self._cause
        if len(self._results) > 1:
            return Failure("provider_protocol_error", "it had two last words")
        if result.get("subtype") == UNMET:
            return None  # its reply is judged like any other, and asked for again with all its problems
        if result.get("is_error") is not False:
            return self._error(result)
        return self._denial(result)

    def _error(self, result: Event) -> Failure:
        subtype, told = _text(result, "subtype"), _told(result)
        if subtype in _LIMITS:
            return Failure(
                "provider_invalid_request", f"its ceiling of {_LIMITS[subtype]} was reached: {told}"
            )
        if subtype == "error_during_execution":
            error: ProviderClass = (
                "provider_invalid_request" if "No conversation found" in told else "provider_crashed"
            )
            return Failure(error, told)
        status = _number(result, "api_error_status")
        kind = self._kind
        error = classified(status, kind, told)
        return Failure(error, told, self._reset_at if error == "provider_rate_limited" else None)

    def _denial(self, result: Event) -> Failure | None:
        """A writer that was denied something has not done its work; a reader is meant to be."""
        denied = _denials(result) or (tuple(self._denied) if self._row else ())
        if self._held:
            denied = tuple(name for name in denied if name != SHELL)
        if not (self._writes and denied):
            return None
        return Failure("provider_permission_denied", f"it was not allowed to use {', '.join(denied)}")

    def _reply(self, result: Event) -> str:
        if not self._schema:
            return _text(result, "result")
        value = result.get("structured_output", self._offered)
        if value is None:
            return f"[no structured reply]\n{_text(result, 'result')}"
        return msgspec.json.encode(value).decode()

    def told(self) -> Usage:
        """What the last word says was used; of a session that is continued it may be all of it."""
        return usage_of(self._results[-1]) if self._results else Usage()

    def _usage(self, result: Event) -> Usage:
        """What this call used; an answer that broke off is told as nothing, and was not free."""
        told = usage_of(result)
        if self._begun and not told.tokens:
            return Usage()
        return told if self._before is None else since(self._before, told, _own_tokens(result))

    def exited(self, code: int, errors: str) -> Failure | None:
        """An exit without a last word: a flag or a right it does not have is told on standard error only."""
        if code != 0 and ("unknown option" in errors or "root/sudo privileges" in errors):
            return Failure("provider_invalid_request", errors)
        if code != 0 and _UNREACHED.search(errors):
            return Failure("provider_network_error", errors)
        return None


def usage_of(result: Event) -> Usage:
    """Tokens and money as told; what is not told is unknown."""
    return Usage(_tokens(result), _micro_usd(result.get("total_cost_usd")))


def since(before: Usage, told: Usage, own: int | None) -> Usage:
    """What one call of a continued session used: some versions tell that, some all there ever was; else it is unknown."""
    if own is None or told.tokens is None:
        return Usage()
    if told.tokens == own:
        return told
    if before.tokens is None or told.tokens != before.tokens + own:
        return Usage()
    return Usage(own, _difference(told.micro_usd, before.micro_usd))


def _difference(now: int | None, then: int | None) -> int | None:
    return now - then if now is not None and then is not None and now >= then else None


def _tokens(result: Event) -> int | None:
    models = [m for m in _part(result, "modelUsage").values() if isinstance(m, dict)]
    if not models:
        return _own_tokens(result)
    names = ("inputTokens", "outputTokens", "cacheReadInputTokens", "cacheCreationInputTokens")
    return sum(_number(m, name) or 0 for m in models for name in names)


def _own_tokens(result: Event) -> int | None:
    """Those of this call, whatever came before."""
    told, names = _part(result, "usage"), ("input_tokens", "output_tokens")
    if not all(isinstance(told.get(name), int) for name in names):
        return None
    cached = ("cache_creation_input_tokens", "cache_read_input_tokens")
    return sum(_number(told, name) or 0 for name in (*names, *cached))


def _micro_usd(cost: Any) -> int | None:
    if isinstance(cost, bool) or not isinstance(cost, int | Decimal) or not 0 <= cost < 1_000_000:
        return None
    return int((Decimal(cost) * 1_000_000).to_integral_value(ROUND_CEILING))


def _denials(result: Event) -> tuple[str, ...]:
    told = result.get("permission_denials")
    found = [_text(d, "tool_name") for d in told if isinstance(d, dict)] if isinstance(told, list) else []
    return tuple(dict.fromkeys(filter(None, found)))


def _commands(result: Event) -> tuple[str, ...]:
    """The commands that were denied."""
    told = result.get("permission_denials")
    denied = [d for d in told if isinstance(d, dict)] if isinstance(told, list) else []
    found = [_text(_part(d, "tool_input"), "command") for d in denied if d.get("tool_name") == SHELL]
    return tuple(dict.fromkeys(filter(None, found)))


def _told(result: Event) -> str:
    errors = result.get("errors")
    said = [str(e) for e in errors] if isinstance(errors, list) else []
    return (
        _text(result, "result") or "; ".join(said) or _text(result, "subtype") or "it failed without a word"
    )


def _blocks(event: Event) -> list[Event]:
    content = _part(event, "message").get("content")
    return [b for b in content if isinstance(b, dict)] if isinstance(content, list) else []


def _part(event: Event, name: str) -> Event:
    value = event.get(name)
    return value if isinstance(value, dict) else {}


def _text(event: Event, name: str) -> str:
    value = event.get(name)
    return value if isinstance(value, str) else ""


def _number(event: Event, name: str) -> int | None:
    value = event.get(name)
    return value if isinstance(value, int) and not isinstance(value, bool) else None
