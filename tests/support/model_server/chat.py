"""The OpenAI chat completions wire: what opencode speaks to a provider of one's own."""

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


class ChatCompletionsWire:
    """Requests to …/chat/completions, answered in chunks, or whole where no stream was asked for."""

    name = "chat"

    def claims(self, path: str) -> bool:
        return path.split("?", maxsplit=1)[0].endswith("/chat/completions")

    def key(self, headers: Mapping[str, str]) -> str:
        return (headers.get("authorization") or "").removeprefix("Bearer ")

    def turn(self, path: str, body: dict[str, Any], key: str) -> ModelTurn:  # noqa: ARG002  a wire may need the path
        messages = [(m["role"], _chat_content_text(m.get("content"))) for m in body["messages"]]
        results = [text for role, text in messages if role == "tool"]
        return ModelTurn(
            wire=self.name,
            model=body["model"],
            key=key,
            prompt="\n".join(text for role, text in messages if role == "user"),
            tools=tuple(t["function"]["name"] for t in body.get("tools", ())),
            results=len(results),
            schema=(body.get("response_format") or {}).get("json_schema", {}).get("schema"),
            last=results[-1] if results else "",
            system="\n".join(text for role, text in messages if role in ("system", "developer")),
            streamed=bool(body.get("stream")),
        )

    def stream(self, turn: ModelTurn, answer: ModelAnswer) -> Iterator[bytes]:
        match answer:
            case SayText(text, usage):
                yield from _chat_response_bytes(turn, {"content": text}, "stop", usage)
            case UseTool(tool, args, text, usage):
                message = {"content": text or None, "tool_calls": [_chat_tool_call(turn, tool, args)]}
                yield from _chat_response_bytes(turn, message, "tool_calls", usage)
            case HangMidway(text=text) | DropConnection(text=text):
                yield _chat_chunk(turn, {"content": text}, None)
            case _:
                raise TypeError(f"no bytes for {answer!r}")

    def failure(self, fail: HttpFailure) -> dict[str, Any]:
        kind = "server_error" if fail.status >= 500 else "invalid_request_error"
        return {"error": {"message": fail.message, "type": kind, "code": None}}


def _chat_content_text(content: Any) -> str:
    parts = [{"text": content}] if isinstance(content, str) else content or ()
    return "\n".join(part.get("text", "") for part in parts)


def _chat_response_head(turn: ModelTurn, kind: str) -> dict[str, Any]:
    return {"id": "chatcmpl-scripted", "object": kind, "created": 0, "model": turn.model}


def _chat_usage(usage: ModelTokens) -> dict[str, int]:
    return {
        "prompt_tokens": usage.input,
        "completion_tokens": usage.output,
        "total_tokens": usage.input + usage.output,
    }


def _chat_response_bytes(
    turn: ModelTurn, message: dict[str, Any], why: str, usage: ModelTokens
) -> Iterator[bytes]:
    if not turn.streamed:
        choice = {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": why}
        yield json.dumps(
            {**_chat_response_head(turn, "chat.completion"), "choices": [choice], "usage": _chat_usage(usage)}
        ).encode()
        return
    yield _chat_chunk(turn, message, None)
    yield _chat_chunk(turn, {}, why)
    last = {**_chat_response_head(turn, "chat.completion.chunk"), "choices": [], "usage": _chat_usage(usage)}
    yield f"data: {json.dumps(last)}\n\ndata: [DONE]\n\n".encode()


def _chat_chunk(turn: ModelTurn, message: dict[str, Any], why: str | None) -> bytes:
    choice = {"index": 0, "delta": {"role": "assistant", **message}, "finish_reason": why}
    return f"data: {json.dumps({**_chat_response_head(turn, 'chat.completion.chunk'), 'choices': [choice]})}\n\n".encode()


def _chat_tool_call(turn: ModelTurn, tool: str, args: Mapping[str, Any]) -> dict[str, Any]:
    function = {"name": tool, "arguments": json.dumps(dict(args))}
    return {"index": 0, "id": f"call_scripted_{turn.results}", "type": "function", "function": function}
