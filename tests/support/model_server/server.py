"""The server itself: loopback HTTP, one thread a request, every request kept.

**Invariant:** it listens on 127.0.0.1 alone, and a request with another key than the one it was given gets a 401 before
any script is asked.
"""

import json
import socket
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Protocol, Self

from tests.support.model_server.script import (
    DropConnection,
    HangForever,
    HangMidway,
    HttpFailure,
    ModelAnswer,
    ModelScript,
    ModelTurn,
    make_concrete_answer,
)

MODEL_SERVER_KEY = "key-of-the-scripted-model"
_MAX_HANG_SECONDS = 600.0  # how long a hanging answer is held, at most


class ModelWire(Protocol):
    """One provider's protocol: requests become turns, answers become bytes."""

    name: str

    def claims(self, path: str) -> bool:
        """Whether a POST to this path asks for a completion over this wire."""
        ...

    def key(self, headers: Mapping[str, str]) -> str:
        """The credential of a request; the names of headers are small letters."""
        ...

    def turn(self, path: str, body: dict[str, Any], key: str) -> ModelTurn: ...

    def stream(self, turn: ModelTurn, answer: ModelAnswer) -> Iterator[bytes]:
        """The whole answer in the form the turn wants; for `HangMidway` and `Drop` as far as it goes."""
        ...

    def failure(self, fail: HttpFailure) -> dict[str, Any]:
        """The body of an error as the provider words it."""
        ...


@dataclass(frozen=True)
class ReceivedRequest:
    """One request as it came in; `turn` is None for what asked for no completion."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes
    turn: ModelTurn | None = None


class ModelServer:
    """Answers every wire it knows after one script; a context manager."""

    def __init__(
        self, script: ModelScript, *, key: str | None = MODEL_SERVER_KEY, wires: tuple[ModelWire, ...] = ()
    ) -> None:
        self.script, self.key, self.wires = script, key, wires or all_wires()
        self.requests: list[ReceivedRequest] = []
        self.broken: list[Exception] = []  # what a script has raised; leaving the server raises it again
        self._closing = threading.Event()
        self._http = _ModelHttpServer(("127.0.0.1", 0), _ModelRequestHandler)
        self._http.models = self
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.02,), daemon=True)

    @property
    def port(self) -> int:
        return int(self._http.server_address[1])

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def turns(self) -> list[ModelTurn]:
        """The requests for completions, in order."""
        return [request.turn for request in self.requests if request.turn is not None]

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        self._closing.set()
        self._http.shutdown()
        self._http.server_close()
        self._thread.join(5)
        if self.broken and kind is None:
            raise self.broken[0]

    def hold(self) -> None:
        """Keeps a hanging request until the server closes."""
        self._closing.wait(_MAX_HANG_SECONDS)


class _ModelHttpServer(ThreadingHTTPServer):
    daemon_threads = True
    models: ModelServer

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Somebody who went away in the middle is not worth a word."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


def all_wires() -> tuple[ModelWire, ...]:
    """Every wire there is."""
    from tests.support.model_server.anthropic import AnthropicWire
    from tests.support.model_server.chat import ChatCompletionsWire
    from tests.support.model_server.gemini import GeminiWire
    from tests.support.model_server.responses import ResponsesWire

    return (AnthropicWire(), ResponsesWire(), ChatCompletionsWire(), GeminiWire())


def unused_address() -> str:
    """An address on which nobody listens: its port was free a moment ago."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{free.getsockname()[1]}"


class _ModelRequestHandler(BaseHTTPRequestHandler):
    """One request; made anew for each."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        wire = next((w for w in self.models.wires if w.claims(self.path)), None)
        if wire is None:
            self._keep(body, None)
            self._send(404, {}, b"{}")
            return
        self._complete(wire, body)

    def do_GET(self) -> None:
        self._keep(b"", None)
        self._send(404, {}, b"{}")

    do_HEAD = do_GET  # noqa: N815  the library's name

    def _complete(self, wire: ModelWire, body: bytes) -> None:
        headers = {name.lower(): value for name, value in self.headers.items()}
        turn = wire.turn(self.path, json.loads(body), wire.key(headers))
        self._keep(body, turn)
        match answer := self._answer(turn):
            case HttpFailure():
                error_body = answer.body or json.dumps(wire.failure(answer)).encode()
                self._send(answer.status, answer.headers, error_body)
            case HangForever():
                self.models.hold()
                self.close_connection = True
            case DropConnection(midway=False):
                self._cut()
            case _:
                self._stream(wire.stream(turn, answer), turn)
                if isinstance(answer, HangMidway):
                    self.models.hold()
                if isinstance(answer, DropConnection):
                    time.sleep(0.2)  # a reset takes back what was not read yet
                    self._cut()

    def _answer(self, turn: ModelTurn) -> ModelAnswer:
        if self.models.key is not None and turn.key != self.models.key:
            return HttpFailure(401, message="invalid key")
        try:
            return make_concrete_answer(self.models.script(turn), turn)
        except Exception as error:
            self.models.broken.append(error)
            return HttpFailure(500, message="the script is broken")

    def _keep(self, body: bytes, turn: ModelTurn | None) -> None:
        self.models.requests.append(
            ReceivedRequest(self.command, self.path, dict(self.headers.items()), body, turn)
        )

    def _stream(self, events: Iterator[bytes], turn: ModelTurn) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/event-stream" if turn.streamed else "application/json")
        self.send_header("connection", "close")
        self.end_headers()
        self.close_connection = True
        for event in events:
            self.wfile.write(event)
            self.wfile.flush()

    def _send(self, status: int, headers: Mapping[str, str], body: bytes) -> None:
        self.send_response(status)
        for name, value in {"content-type": "application/json", **headers}.items():
            self.send_header(name, value)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def _cut(self) -> None:
        """Closes with a reset, as a server that dies does."""
        self.close_connection = True
        linger = (1).to_bytes(4, "little") + (0).to_bytes(4, "little")
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        self.connection.close()

    def log_message(self, *_: Any) -> None:
        """Nothing is printed: the requests are kept."""

    @property
    def models(self) -> ModelServer:
        assert isinstance(self.server, _ModelHttpServer)
        return self.server.models
