"""The OpenAI Responses wire: what codex speaks.

A model that has its tools inside a program (`exec`, in JavaScript) is answered through that program.
"""

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

EXEC_PROGRAM = "exec"
_TOOL_OUTPUT_TYPES = ("function_call_output", "custom_tool_call_output")
_RESPONSES_ERROR_CODES = {401: "invalid_api_key", 404: "model_not_found", 429: "rate_limit_exceeded"}


class ResponsesWire:
    """Requests to …/responses, answered as a stream of server-sent events."""

    name = "responses"

    def claims(self, path: str) -> bool:
        return path.split("?", maxsplit=1)[0].endswith("/responses")

    def key(self, headers: Mapping[str, str]) -> str:
        return (headers.get("authorization") or "").removeprefix("Bearer ")

    def turn(self, path: str, body: dict[str, Any], key: str) -> ModelTurn:  # noqa: ARG002  a wire may need the path
        items = body["input"]
        results = [item for item in items if item.get("type") in _TOOL_OUTPUT_TYPES]
        spoken = [item for item in items if item.get("type", "message") == "message"]
        return ModelTurn(
            wire=self.name,
            model=body["model"],
            key=key,
            prompt="\n".join(
                _responses_content_text(item["content"]) for item in spoken if item["role"] == "user"
            ),
            tools=tuple(_offered_tool_names(body)),
            results=len(results),
            schema=body.get("text", {}).get("format", {}).get("schema"),
            last=_responses_content_text(results[-1]["output"]) if results else "",
            system="\n".join(
                [
                    body.get("instructions", ""),
                    *(_responses_content_text(i["content"]) for i in spoken if i["role"] == "developer"),
                ]
            ),
        )

    def stream(self, turn: ModelTurn, answer: ModelAnswer) -> Iterator[bytes]:
        yield _responses_event("response.created", response={"id": "resp_scripted"})
        match answer:
            case SayText(text, usage):
                yield from _responses_events([_responses_message(text)], usage)
            case UseTool(tool, args, text, usage):
                messages = [_responses_message(text)] if text else []
                yield from _responses_events([*messages, _responses_tool_call(turn, tool, args)], usage)
            case HangMidway(text=text) | DropConnection(text=text):
                started = {**_responses_message(""), "content": []}
                yield _responses_event("response.output_item.added", output_index=0, item=started)
                yield _responses_event(
                    "response.output_text.delta", output_index=0, content_index=0, delta=text
                )
            case _:
                raise TypeError(f"no bytes for {answer!r}")

    def failure(self, fail: HttpFailure) -> dict[str, Any]:
        kind = "server_error" if fail.status >= 500 else "invalid_request_error"
        return {
            "error": {"message": fail.message, "type": kind, "code": _RESPONSES_ERROR_CODES.get(fail.status)}
        }


def _offered_tool_names(body: dict[str, Any]) -> Iterator[str]:
    """The names of all tools; those that a program of the model's calls count as on offer."""
    added = (tool for item in body["input"] for tool in item.get("tools", ()))
    for tool in [*body.get("tools", ()), *added]:
        for offered in [tool, *tool.get("tools", ())]:
            yield offered.get("name") or offered["type"]
            if offered.get("type") == "custom" and offered.get("name") == EXEC_PROGRAM:
                yield "exec_command"


def _responses_content_text(content: Any) -> str:
    parts = [{"text": content}] if isinstance(content, str) else content
    return "\n".join(part.get("text", "") for part in parts)


def _responses_event(kind: str, **fields: Any) -> bytes:
    return f"event: {kind}\ndata: {json.dumps({'type': kind, **fields})}\n\n".encode()


def _responses_events(items: list[dict[str, Any]], usage: ModelTokens) -> Iterator[bytes]:
    for n, item in enumerate(items):
        yield _responses_event("response.output_item.done", output_index=n, item=item)
    spent = {
        "input_tokens": usage.input, "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": usage.output, "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": usage.input + usage.output,
    }  # fmt: skip
    yield _responses_event("response.completed", response={"id": "resp_scripted", "usage": spent})


def _responses_message(text: str) -> dict[str, Any]:
    content = [{"type": "output_text", "text": text}]
    return {"type": "message", "role": "assistant", "id": "msg_scripted", "content": content}


def _responses_tool_call(turn: ModelTurn, tool: str, args: Mapping[str, Any]) -> dict[str, Any]:
    name = {"id": f"fc_scripted_{turn.results}", "call_id": f"call_scripted_{turn.results}"}
    if EXEC_PROGRAM in turn.tools:
        program = f"text(await tools.{tool}({json.dumps(dict(args))}))"
        return {"type": "custom_tool_call", "name": EXEC_PROGRAM, "input": program, **name}
    return {"type": "function_call", "name": tool, "arguments": json.dumps(dict(args)), **name}
