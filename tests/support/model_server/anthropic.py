"""The Anthropic Messages wire: what claude speaks."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from tests.support.model_server.script import (
    DropConnection,
    HangMidway,
    HttpFailure,
    ModelAnswer,
    ModelTokens,
    ModelTurn,
    SayText,
    UseTool,
)

_ANTHROPIC_ERRORS = {
    400: "invalid_request_error", 401: "authentication_error", 403: "permission_error",
    404: "not_found_error", 429: "rate_limit_error", 529: "overloaded_error",
}  # fmt: skip


class AnthropicWire:
    """Requests to /v1/messages, answered as a stream of server-sent events."""

    name = "anthropic"

    def claims(self, path: str) -> bool:
        return path.split("?", maxsplit=1)[0].endswith("/v1/messages")

    def key(self, headers: Mapping[str, str]) -> str:
        """An API key, or a login's bearer token."""
        return headers.get("x-api-key") or (headers.get("authorization") or "").removeprefix("Bearer ")

    def turn(self, path: str, body: dict[str, Any], key: str) -> ModelTurn:  # noqa: ARG002  a wire may need the path
        blocks = [b for m in body["messages"] if m["role"] == "user" for b in _content_blocks(m["content"])]
        results = [b for b in blocks if b["type"] == "tool_result"]
        return ModelTurn(
            wire=self.name,
            model=body["model"],
            key=key,
            prompt="\n".join(b["text"] for b in blocks if b["type"] == "text"),
            tools=tuple(t["name"] for t in body.get("tools", ())),
            results=len(results),
            schema=next(
                (t["input_schema"] for t in body.get("tools", ()) if t["name"] == "StructuredOutput"), None
            ),
            last=_anthropic_text(results[-1].get("content", "")) if results else "",
            system=_anthropic_text(body.get("system", "")),
            streamed=body.get("stream") is True,
        )

    def stream(self, turn: ModelTurn, answer: ModelAnswer) -> Iterator[bytes]:
        if not turn.streamed:
            raise TypeError("only streams are scripted on this wire")
        match answer:
            case SayText(text, usage):
                yield from _anthropic_message_events(turn, usage, [_text_block(text)], "end_turn")
            case UseTool(tool, args, text, usage):
                text_blocks = [_text_block(text)] if text else []
                yield from _anthropic_message_events(
                    turn, usage, [*text_blocks, _tool_block(tool, args, turn)], "tool_use"
                )
            case HangMidway(text=text) | DropConnection(text=text):
                yield _message_start_event(turn, ModelTokens())
                yield from list(_content_block_events(0, _text_block(text)))[:-1]
            case _:
                raise TypeError(f"no bytes for {answer!r}")

    def failure(self, fail: HttpFailure) -> dict[str, Any]:
        kind = _ANTHROPIC_ERRORS.get(fail.status, "api_error")
        return {"type": "error", "error": {"type": kind, "message": fail.message}}


def _content_blocks(content: Any) -> list[dict[str, Any]]:
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def _anthropic_text(content: Any) -> str:
    return "\n".join(b.get("text", "") for b in _content_blocks(content))


def _anthropic_event(kind: str, **fields: Any) -> bytes:
    return f"event: {kind}\ndata: {json.dumps({'type': kind, **fields})}\n\n".encode()


def _message_start_event(turn: ModelTurn, usage: ModelTokens) -> bytes:
    message: dict[str, Any] = {
        "id": "msg_scripted", "type": "message", "role": "assistant", "model": turn.model, "content": [],
        "stop_reason": None, "stop_sequence": None,
        "usage": {"input_tokens": usage.input, "output_tokens": 1},
    }  # fmt: skip
    return _anthropic_event("message_start", message=message)


def _anthropic_message_events(
    turn: ModelTurn, usage: ModelTokens, blocks: list[dict[str, Any]], why: str
) -> Iterator[bytes]:
    yield _message_start_event(turn, usage)
    for n, block in enumerate(blocks):
        yield from _content_block_events(n, block)
    yield _anthropic_event(
        "message_delta",
        delta={"stop_reason": why, "stop_sequence": None},
        usage={"output_tokens": usage.output},
    )
    yield _anthropic_event("message_stop")


def _text_block(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def _tool_block(tool: str, args: Mapping[str, Any], turn: ModelTurn) -> dict[str, Any]:
    return {"type": "tool_use", "id": f"toolu_scripted_{turn.results}", "name": tool, "input": dict(args)}


def _content_block_events(index: int, block: dict[str, Any]) -> Iterator[bytes]:
    if block["type"] == "text":
        empty, delta = {**block, "text": ""}, {"type": "text_delta", "text": block["text"]}
    else:
        empty = {**block, "input": {}}
        delta = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
    yield _anthropic_event("content_block_start", index=index, content_block=empty)
    yield _anthropic_event("content_block_delta", index=index, delta=delta)
    yield _anthropic_event("content_block_stop", index=index)
