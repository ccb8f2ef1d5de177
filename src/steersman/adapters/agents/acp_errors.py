"""What an agent over the Agent Client Protocol means when it fails: codes differ from agent to agent.

**Invariant:** structured fields first (code, data), then the beginning of its own sentence; what nothing explains is a
crash.
"""

import datetime as dt
import re
from collections.abc import Mapping
from typing import Any

from steersman.adapters.agents.claude_events import classified
from steersman.adapters.agents.codex_events import by_status, known
from steersman.adapters.agents.headless import Failure
from steersman.contracts.agent import ProviderClass

AUTH_REQUIRED = -32000
_CODES: Mapping[int, ProviderClass] = {
    AUTH_REQUIRED: "provider_auth_error",
    -32002: "provider_invalid_request",  # a resource, a session or a model that is not there
    -32600: "provider_invalid_request",
    -32602: "provider_invalid_request",
    -32601: "provider_protocol_error",
    -32700: "provider_protocol_error",
}
_STOPS: Mapping[str, tuple[ProviderClass, str]] = {
    "refusal": ("provider_invalid_request", "the model refused"),
    "max_tokens": ("provider_invalid_request", "its ceiling of tokens was reached"),
    "max_turn_requests": ("provider_invalid_request", "its ceiling of turns was reached"),
    "cancelled": ("provider_crashed", "it says that it was cancelled, and nobody did"),
}
# Names that agents give to an error in its data.
_NAMES: Mapping[str, ProviderClass] = {
    "ProviderAuthError": "provider_auth_error",
    "ProviderModelNotFoundError": "provider_invalid_request",
    "ContextOverflowError": "provider_invalid_request",
    "MessageOutputLengthError": "provider_invalid_request",
}

_API_ERROR = re.compile(r"(?:Failed to authenticate\. )?API Error: (\d{3})\b")


def failure_of(error: Any, status: int | None = None) -> Failure:
    """The class of a JSON-RPC error; `status` is the one of the model's server, where the agent's record has it."""
    if not isinstance(error, dict):
        return Failure("provider_protocol_error", f"an error that is none: {error!r}")
    code, data = error.get("code"), error.get("data")
    told = _told(error)
    found = status or _status(code) or _in_data(data) or _in_words(error)
    if found is not None:
        return Failure(by_status(found), told)
    if (named := _named(data, told)) is not None:
        return Failure(named, told)
    if isinstance(code, int) and code in _CODES:
        return Failure(_CODES[code], told)
    now = dt.datetime.now().astimezone()
    said = next((found for words in _sentences(error) if (found := known(words, now)) is not None), None)
    return Failure(said.error, told, said.reset_at) if said else Failure("provider_crashed", told)


def stopped(reason: Any) -> Failure | None:
    """What a turn's end means; only `end_turn` is a good one."""
    if reason == "end_turn":
        return None
    error, told = _STOPS.get(str(reason), ("provider_protocol_error", f"it stopped for {reason!r}"))
    return Failure(error, told)


def _status(code: Any) -> int | None:
    """An HTTP status that was passed on as a code."""
    return code if isinstance(code, int) and 400 <= code < 600 else None


def _in_data(data: Any) -> int | None:
    if not isinstance(data, dict):
        return None
    for name in ("statusCode", "status", "httpStatus"):
        if (found := _status(data.get(name))) is not None:
            return found
    return None


def _in_words(error: dict[str, Any]) -> int | None:
    """A status at the beginning of claude's own sentence."""
    found = next((hit for words in _sentences(error) if (hit := _API_ERROR.match(words))), None)
    return _status(int(found[1])) if found else None


def _named(data: Any, told: str) -> ProviderClass | None:
    if not isinstance(data, dict):
        return None
    if isinstance(kind := data.get("errorKind"), str):
        return classified(None, kind, told)
    return _NAMES.get(str(data.get("errorName")))


def _sentences(error: dict[str, Any]) -> tuple[str, ...]:
    """What it says, without the words that every such error begins with."""
    data = error.get("data")
    inner = (data.get("message"), data.get("details")) if isinstance(data, dict) else (data,)
    words = [said for said in (error.get("message"), *inner) if isinstance(said, str)]
    return tuple(said.removeprefix("Internal error").lstrip(": ") for said in words)


def _told(error: dict[str, Any]) -> str:
    said = "; ".join(filter(None, _sentences(error)))
    return f"{said or 'no reason told'} (code {error.get('code')})"
