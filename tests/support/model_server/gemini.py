"""The Gemini wire: what gemini speaks."""

import json
import re
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

_GEMINI_PATH = re.compile(r"/models/([^/:]+):(streamGenerateContent|generateContent)(?:\?|$)")
_GEMINI_STATUSES = {
    400: "INVALID_ARGUMENT", 401: "UNAUTHENTICATED", 403: "PERMISSION_DENIED", 404: "NOT_FOUND",
}  # fmt: skip
_GEMINI_STATUSES |= {429: "RESOURCE_EXHAUSTED", 500: "INTERNAL", 503: "UNAVAILABLE"}


class GeminiWire:
    """Requests to …/models/NAME:generateContent, or its streamed form."""

    name = "gemini"

    def claims(self, path: str) -> bool:
        return _GEMINI_PATH.search(path) is not None

    def key(self, headers: Mapping[str, str]) -> str:
        """An API key, or a login's bearer token."""
        return headers.get("x-goog-api-key") or (headers.get("authorization") or "").removeprefix("Bearer ")

    def turn(self, path: str, body: dict[str, Any], key: str) -> ModelTurn:
        match = _GEMINI_PATH.search(path)
        model, form = match.groups() if match else ("", "")
        parts = [p for c in body["contents"] if c.get("role") != "model" for p in c["parts"]]
        results = [p["functionResponse"] for p in parts if "functionResponse" in p]
        config = body.get("generationConfig", {})
        return ModelTurn(
            wire=self.name,
            model=model,
            key=key,
            prompt="\n".join(p["text"] for p in parts if "text" in p),
            tools=tuple(f["name"] for t in body.get("tools", ()) for f in t.get("functionDeclarations", ())),
            results=len(results),
            schema=config.get("responseJsonSchema") or config.get("responseSchema"),
            last=json.dumps(results[-1].get("response", {})) if results else "",
            system="\n".join(p.get("text", "") for p in body.get("systemInstruction", {}).get("parts", ())),
            streamed=form == "streamGenerateContent",
        )

    def stream(self, turn: ModelTurn, answer: ModelAnswer) -> Iterator[bytes]:
        match answer:
            case SayText(text, usage):
                yield _gemini_response_bytes(turn, _gemini_response(turn, [{"text": text}], usage))
            case UseTool(tool, args, text, usage):
                text_parts = [{"text": text}] if text else []
                call = {"functionCall": {"name": tool, "args": dict(args)}}
                yield _gemini_response_bytes(turn, _gemini_response(turn, [*text_parts, call], usage))
            case HangMidway(text=text) | DropConnection(text=text):
                partial = {
                    "candidates": [{"content": {"parts": [{"text": text}], "role": "model"}, "index": 0}]
                }
                yield _gemini_response_bytes(turn, partial)
            case _:
                raise TypeError(f"no bytes for {answer!r}")

    def failure(self, fail: HttpFailure) -> dict[str, Any]:
        status = _GEMINI_STATUSES.get(fail.status, "UNKNOWN")
        return {"error": {"code": fail.status, "message": fail.message, "status": status}}


def _gemini_response_bytes(turn: ModelTurn, value: dict[str, Any]) -> bytes:
    encoded = json.dumps(value)
    return f"data: {encoded}\r\n\r\n".encode() if turn.streamed else encoded.encode()


def _gemini_response(turn: ModelTurn, parts: list[dict[str, Any]], usage: ModelTokens) -> dict[str, Any]:
    content = {"parts": parts, "role": "model"}
    return {
        "candidates": [{"content": content, "finishReason": "STOP", "index": 0}],
        "usageMetadata": {
            "promptTokenCount": usage.input,
            "candidatesTokenCount": usage.output,
            "totalTokenCount": usage.input + usage.output,
        },
        "modelVersion": turn.model,
    }
