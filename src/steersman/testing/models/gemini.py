"""The Gemini wire: what gemini speaks."""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from steersman.testing.models.script import Answer, Drop, Fail, HangMidway, Say, Tokens, Turn, Use

_PATH = re.compile(r"/models/([^/:]+):(streamGenerateContent|generateContent)(?:\?|$)")
_STATUSES = {400: "INVALID_ARGUMENT", 401: "UNAUTHENTICATED", 403: "PERMISSION_DENIED", 404: "NOT_FOUND"}
_STATUSES |= {429: "RESOURCE_EXHAUSTED", 500: "INTERNAL", 503: "UNAVAILABLE"}


class GeminiWire:
    """Requests to …/models/NAME:generateContent, or its streamed form."""

    name = "gemini"

    def claims(self, path: str) -> bool:
        return _PATH.search(path) is not None

    def key(self, headers: Mapping[str, str]) -> str:
        """An API key, or a login's bearer token."""
        return headers.get("x-goog-api-key") or (headers.get("authorization") or "").removeprefix("Bearer ")

    def turn(self, path: str, body: dict[str, Any], key: str) -> Turn:
        found = _PATH.search(path)
        model, form = found.groups() if found else ("", "")
        parts = [p for c in body["contents"] if c.get("role") != "model" for p in c["parts"]]
        results = [p["functionResponse"] for p in parts if "functionResponse" in p]
        config = body.get("generationConfig", {})
        return Turn(
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

    def stream(self, turn: Turn, answer: Answer) -> Iterator[bytes]:
        match answer:
            case Say(text, usage):
                yield _form(turn, _whole(turn, [{"text": text}], usage))
            case Use(tool, args, text, usage):
                said = [{"text": text}] if text else []
                call = {"functionCall": {"name": tool, "args": dict(args)}}
                yield _form(turn, _whole(turn, [*said, call], usage))
            case HangMidway(text=text) | Drop(text=text):
                begun = {
                    "candidates": [{"content": {"parts": [{"text": text}], "role": "model"}, "index": 0}]
                }
                yield _form(turn, begun)
            case _:
                raise TypeError(f"no bytes for {answer!r}")

    def failure(self, fail: Fail) -> dict[str, Any]:
        status = _STATUSES.get(fail.status, "UNKNOWN")
        return {"error": {"code": fail.status, "message": fail.message, "status": status}}


def _form(turn: Turn, value: dict[str, Any]) -> bytes:
    said = json.dumps(value)
    return f"data: {said}\r\n\r\n".encode() if turn.streamed else said.encode()


def _whole(turn: Turn, parts: list[dict[str, Any]], usage: Tokens) -> dict[str, Any]:
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
