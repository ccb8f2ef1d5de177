"""What an agent over the Agent Client Protocol means when it fails: codes differ from agent to agent.

**Invariant:** structured fields first (code, data), then the beginning of its own sentence. An unexplained failure
counts as a crash.
"""

import datetime as dt
import re
from collections.abc import Mapping
from typing import Any

from steersman.adapters.agents.claude_events import classify_claude_failure
from steersman.adapters.agents.codex_events import classify_codex_sentence, classify_http_status
from steersman.adapters.agents.headless import ProviderFailure
from steersman.contracts.agent import ProviderClass

ACP_AUTH_REQUIRED = -32000
_RPC_CODE_CLASSES: Mapping[int, ProviderClass] = {
    ACP_AUTH_REQUIRED: "provider_auth_error",
    -32002: "provider_invalid_request",  # a resource, a session or a model that is not there
    -32600: "provider_invalid_request",
    -32602: "provider_invalid_request",
    -32601: "provider_protocol_error",
    -32700: "provider_protocol_error",
}
_STOP_REASON_CLASSES: Mapping[str, tuple[ProviderClass, str]] = {
    "refusal": ("provider_invalid_request", "the model refused"),
    "max_tokens": ("provider_invalid_request", "the token limit was reached"),
    "max_turn_requests": ("provider_invalid_request", "the turn limit was reached"),
    "cancelled": ("provider_crashed", "it says that it was cancelled, and steersman did not cancel it"),
}
# Names that agents give to an error in its data.
_ERROR_NAME_CLASSES: Mapping[str, ProviderClass] = {
    "ProviderAuthError": "provider_auth_error",
    "ProviderModelNotFoundError": "provider_invalid_request",
    "ContextOverflowError": "provider_invalid_request",
    "MessageOutputLengthError": "provider_invalid_request",
}

_API_ERROR_PATTERN = re.compile(r"(?:Failed to authenticate\. )?API Error: (\d{3})\b")


def classify_acp_error(error: Any, status: int | None = None) -> ProviderFailure:
    """The class of a JSON-RPC error; `status` is the one of the model's server, where the agent's record has it."""
    if not isinstance(error, dict):
        return ProviderFailure("provider_protocol_error", f"invalid error object: {error!r}")
    code, data = error.get("code"), error.get("data")
    text = _acp_error_text(error)
    candidate = (
        status or _as_http_status(code) or _find_status_in_data(data) or _find_status_in_sentences(error)
    )
    if candidate is not None:
        return ProviderFailure(classify_http_status(candidate), text)
    if (error_class := _classify_error_name(data, text)) is not None:
        return ProviderFailure(error_class, text)
    if isinstance(code, int) and code in _RPC_CODE_CLASSES:
        return ProviderFailure(_RPC_CODE_CLASSES[code], text)
    now = dt.datetime.now().astimezone()
    sentence_failure = next(
        (
            failure
            for words in _list_error_sentences(error)
            if (failure := classify_codex_sentence(words, now)) is not None
        ),
        None,
    )
    return (
        ProviderFailure(sentence_failure.error, text, sentence_failure.reset_at)
        if sentence_failure
        else ProviderFailure("provider_crashed", text)
    )


def classify_stop_reason(reason: Any) -> ProviderFailure | None:
    """What a turn's end means; only `end_turn` is a good one."""
    if reason == "end_turn":
        return None
    error, text = _STOP_REASON_CLASSES.get(
        str(reason), ("provider_protocol_error", f"it stopped for {reason!r}")
    )
    return ProviderFailure(error, text)


def _as_http_status(code: Any) -> int | None:
    """An HTTP status that was passed on as a code."""
    return code if isinstance(code, int) and 400 <= code < 600 else None


def _find_status_in_data(data: Any) -> int | None:
    if not isinstance(data, dict):
        return None
    for name in ("statusCode", "status", "httpStatus"):
        if (status := _as_http_status(data.get(name))) is not None:
            return status
    return None


def _find_status_in_sentences(error: dict[str, Any]) -> int | None:
    """A status at the beginning of claude's own sentence."""
    match = next(
        (hit for words in _list_error_sentences(error) if (hit := _API_ERROR_PATTERN.match(words))), None
    )
    return _as_http_status(int(match[1])) if match else None


def _classify_error_name(data: Any, text: str) -> ProviderClass | None:
    if not isinstance(data, dict):
        return None
    if isinstance(kind := data.get("errorKind"), str):
        return classify_claude_failure(None, kind, text)
    return _ERROR_NAME_CLASSES.get(str(data.get("errorName")))


def _list_error_sentences(error: dict[str, Any]) -> tuple[str, ...]:
    """What it says, without the words that every such error begins with."""
    data = error.get("data")
    inner = (data.get("message"), data.get("details")) if isinstance(data, dict) else (data,)
    words = [sentence for sentence in (error.get("message"), *inner) if isinstance(sentence, str)]
    return tuple(sentence.removeprefix("Internal error").lstrip(": ") for sentence in words)


def _acp_error_text(error: dict[str, Any]) -> str:
    sentences = "; ".join(filter(None, _list_error_sentences(error)))
    return f"{sentences or 'no reason given'} (code {error.get('code')})"
