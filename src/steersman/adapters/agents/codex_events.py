"""What `codex exec --json` says, event by event, and the class of what it says when it fails.

codex has no structured error: the class comes from the beginning of its own sentence, never from the middle, where the
server's words are. **Invariant:** pure; no line makes it raise, and only `turn.completed` is an end that went well.
"""

import datetime as dt
import re
from collections.abc import Callable
from typing import Any

import msgspec

from steersman.adapters.agents.headless import CallSummary, ProviderFailure
from steersman.contracts.agent import ProviderClass, ProviderUsage

MAX_CODEX_NETWORK_WAITS = 2  # network-wait messages before steersman stops codex, which would wait for ever
MAX_CODEX_DENIALS = 4  # denials in a row, without any tool that worked: it will not get further
# Messages of commands blocked by the sandbox; codex looks for the same words.
_CODEX_DENIED = re.compile(
    r"read-only file system|operation not permitted|permission denied|bwrap: |codex-linux-sandbox",
    re.IGNORECASE,
)
_CODEX_RETRY = re.compile(
    r"Reconnecting\.\.\.\s*(?:\d+/\d+|waiting for network)?\s*(?:\((.*)\))?\s*$", re.DOTALL
)
_CODEX_STATUS = re.compile(r"(?:unexpected status|exceeded retry limit, last status:) (\d{3})\b")
_RESET_IN_SECONDS = re.compile(r"try again in\s*(\d+(?:\.\d+)?)\s*(ms|s)", re.IGNORECASE)
_RESET_AT_TIME = re.compile(
    r"try again at ((\w{3}) (\d{1,2})\w{2}, (\d{4}) )?(\d{1,2}):(\d{2}) ([AP])M", re.IGNORECASE
)
_RESET_MONTH_NAMES = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
# The beginning of a sentence of codex's own → class; the first that fits.
_CODEX_SENTENCES: tuple[tuple[str, ProviderClass], ...] = (
    (
        r"Missing environment variable|Your (?:access token|authentication session) could",
        "provider_auth_error",
    ),
    (r"To use Codex with your ChatGPT plan|Not logged in|Authentication required", "provider_auth_error"),
    (
        r"You.(?:ve)? ?hit your (?:usage limit|spend cap)|Your workspace is out of credits",
        "provider_rate_limited",
    ),
    (r"Quota exceeded|Selected model is at capacity|Rate limit reached", "provider_rate_limited"),
    (r"stream disconnected before completion: Rate limit", "provider_rate_limited"),
    (r"stream disconnected before completion: idle timeout|request timed out", "provider_timeout"),
    (
        r"stream disconnected|Connection failed|Error while reading the server response",
        "provider_network_error",
    ),
    (r"We.re currently experiencing high demand|error sending request", "provider_network_error"),
    (
        r"internal error; agent loop died|Fatal error|turn aborted|interrupted|sandbox error",
        "provider_crashed",
    ),
    (r"codex-linux-sandbox was required|spawn failed|timeout waiting for child", "provider_crashed"),
)
_CODEX_SENTENCE_PATTERNS = tuple((re.compile(start, re.DOTALL), error) for start, error in _CODEX_SENTENCES)
_CODEX_BAD_CALL = re.compile(
    r"^error: (?:unexpected argument|invalid value|the argument)|^Error loading config|^Error: Model provider|"
    r"no rollout found for thread id|^(?:Failed to read output|Output) schema file|^No prompt provided",
    re.MULTILINE,
)


class CodexReader:
    """Understands one call; `now` and the local zone are for the moment at which a limit ends."""

    def __init__(self, now: Callable[[], dt.datetime] = lambda: dt.datetime.now().astimezone()) -> None:
        self._now = now
        self._ended = False
        self._failure: ProviderFailure | None = None
        self._retry: ProviderFailure | None = None
        self._waits = 0
        self._text = ""
        self._usage = ProviderUsage()
        self._session: str | None = None
        self._denied: list[str] = []
        self._ran: list[str] = []
        self._row = 0  # denials in a row

    def feed(self, line: bytes) -> bool:
        """Takes one event; True when it will not end by itself, or only say the same again."""
        try:
            event = msgspec.json.decode(line)
        except (msgspec.DecodeError, RecursionError):
            return False
        if not isinstance(event, dict):
            return False
        match event:
            case {"type": "thread.started", "thread_id": str(thread)}:
                self._session = thread
            case {"type": "item.started", "item": {"type": "command_execution", "command": str(command)}}:
                self._ran.append(command)
            case {"type": "item.completed", "item": dict(item)}:
                return self._item(item)
            case {"type": "turn.completed"}:
                self._ended, self._usage = True, read_codex_usage(event.get("usage"))
            case {"type": "turn.failed"}:
                self._failure = classify_codex_message(_codex_error_text(event.get("error")), self._now())
            case {"type": "error", "message": str(message)}:
                return self._note_error(message)
            case _:
                pass
        return False

    def read_result(self) -> CallSummary:
        """What is known so far; a retry's cause stands for the end while there is none."""
        failure = self._failure or (None if self._ended else self._retry)
        return CallSummary(
            ended=self._ended and failure is None,
            failure=failure,
            text=self._text,
            usage=self._usage,
            session=self._session,
            denied=tuple(self._denied),
        )

    def list_commands(self) -> tuple[str, ...]:
        """Every command that was started, in order."""
        return tuple(dict.fromkeys(self._ran))

    def explain_exit(self, code: int, errors: str) -> ProviderFailure | None:
        """An exit without a last word: a call that codex did not understand, or what it wrote to standard error."""
        if code != 0 and _CODEX_BAD_CALL.search(errors):
            return ProviderFailure("provider_invalid_request", errors)
        lines = [line.removeprefix("Error: ") for line in errors.splitlines()]
        failures = [
            failure for line in lines if (failure := classify_codex_sentence(line, self._now())) is not None
        ]
        return ProviderFailure(failures[-1].error, errors, failures[-1].reset_at) if failures else None

    def _item(self, item: dict[str, Any]) -> bool:
        match item:
            case {"type": "agent_message", "text": str(text)}:
                self._text = text  # the last one is the answer; those before it are comments on the way
            case {"type": "command_execution"} if _is_denied_item(item):
                return self._denied_tool_failure(str(item.get("command", "")))
            case {"type": "file_change", "status": "failed"}:
                return self._denied_tool_failure("apply_patch")
            case {"type": "command_execution" | "file_change"}:
                self._row = 0
            case _:
                pass
        return False

    def _denied_tool_failure(self, tool: str) -> bool:
        self._denied.append(tool)
        self._row += 1
        if self._row < MAX_CODEX_DENIALS:
            return False
        reason = f"it tried {self._row} times in a row what it may not do, last: {tool}"
        self._failure = ProviderFailure("provider_permission_denied", reason)
        return True

    def _note_error(self, message: str) -> bool:
        """A retry, or the sentence that `turn.failed` will say again. A login does not come back by waiting."""
        retry = _CODEX_RETRY.match(message)
        cause = (retry[1] or "Connection failed") if retry else message
        # What it tries again can pass, whatever the server's words are.
        unknown = ProviderFailure("provider_network_error", cause)
        self._retry = classify_codex_sentence(cause, self._now()) or (
            unknown if retry else classify_codex_message(cause, self._now())
        )
        self._waits += "waiting for network" in message
        return retry is not None and (
            self._waits >= MAX_CODEX_NETWORK_WAITS or self._retry.error == "provider_auth_error"
        )


def read_codex_usage(usage: Any) -> ProviderUsage:
    """All tokens of a usage; nothing but zeros is what codex reports when the server has sent nothing."""
    if not isinstance(usage, dict):
        return ProviderUsage()
    figures: list[Any] = [usage.get(name) for name in ("input_tokens", "output_tokens")]
    if not all(type(n) is int and n >= 0 for n in figures):
        return ProviderUsage()
    return ProviderUsage(tokens=sum(figures) or None)


def classify_codex_message(message: str, now: dt.datetime) -> ProviderFailure:
    """The class of one sentence; what is only the server's words is a request that it did not want."""
    return classify_codex_sentence(message, now) or ProviderFailure("provider_invalid_request", message)


def classify_codex_sentence(message: str, now: dt.datetime) -> ProviderFailure | None:
    """The class of a sentence that codex begins like this; None where the sentence is not codex's own."""
    if status := _CODEX_STATUS.match(message):
        return ProviderFailure(classify_http_status(int(status[1])), message, parse_limit_reset(message, now))
    for start, error in _CODEX_SENTENCE_PATTERNS:
        if start.match(message):
            return ProviderFailure(error, message, parse_limit_reset(message, now))
    return None


def classify_http_status(status: int) -> ProviderClass:
    """The class of an HTTP status."""
    if status in (401, 403):
        return "provider_auth_error"
    if status in (429, 529):
        return "provider_rate_limited"
    if status in (408, 504):
        return "provider_timeout"
    return "provider_network_error" if status >= 500 else "provider_invalid_request"


def parse_limit_reset(message: str, now: dt.datetime) -> int | None:
    """When a limit ends, in ms since the epoch, where the sentence says it: `in 11.05s`, `at 3:04 PM`, with a date."""
    if match := _RESET_IN_SECONDS.search(message):
        seconds = float(match[1]) / (1000 if match[2].lower() == "ms" else 1)
        return int((now.timestamp() + min(seconds, 10**9)) * 1000)
    if not (match := _RESET_AT_TIME.search(message)):
        return None
    hour = int(match[5]) % 12 + (12 if match[7].upper() == "P" else 0)
    try:
        day = (
            now.replace(
                year=int(match[4]), month=_RESET_MONTH_NAMES.index(match[2].lower()) + 1, day=int(match[3])
            )
            if match[1]
            else now
        )
        return int(day.replace(hour=hour, minute=int(match[6]), second=0, microsecond=0).timestamp() * 1000)
    except ValueError:
        return None


def has_sandbox_denial(output: str) -> bool:
    """Whether a command's output is that of one that met a sandbox."""
    return _CODEX_DENIED.search(output) is not None


def _is_denied_item(item: dict[str, Any]) -> bool:
    if item.get("status") == "declined":
        return True
    return item.get("exit_code") not in (0, None) and has_sandbox_denial(
        str(item.get("aggregated_output", ""))
    )


def _codex_error_text(error: Any) -> str:
    text = error.get("message") if isinstance(error, dict) else None
    return text if isinstance(text, str) else "it gave no reason"
