"""The narrow way out of a box without a network: named places and no others.

A unix socket is bound into the box; what comes through it begins with a line that says how it is meant: `<port>` is a
loopback address of this machine, `proxy` is an HTTP proxy's conversation.
**Invariant:** only this side decides; a place that was not named is refused and remembered, whatever the box asks.
"""

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator, Sequence
from typing import NamedTuple
from urllib.parse import urlsplit

from steersman.adapters.scratch import scratch

CHUNK = 64 * 1024
HEAD = 64 * 1024  # bytes of a proxy request's head
SECONDS = 30.0  # to say what is wanted, and to reach it
REMEMBERED = 100
AT_ONCE = 256  # connections of one box: each costs this process two of its descriptors
_LOOPBACK = ("localhost", "::1", "0.0.0.0")  # noqa: S104  names that mean this machine, nothing is bound


class Place(NamedTuple):
    """A host and a port."""

    host: str
    port: int

    @property
    def near(self) -> bool:
        """Is it on this machine's own loopback?"""
        return self.host in _LOOPBACK or self.host.startswith("127.")

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def place(text: str) -> Place:
    """`host:port` as a place; raises ValueError for anything else."""
    found = urlsplit(f"//{text}")
    if not found.hostname or not found.port or found.netloc != text or "@" in text:
        raise ValueError(f"{text!r} is not host:port")
    return Place(found.hostname.lower().rstrip("."), found.port)


class Narrows:
    """One box's way out."""

    def __init__(self, allowed: Sequence[str]) -> None:
        self._allowed = frozenset(map(place, allowed))
        self.refused: list[str] = []
        self._open: set[asyncio.Task[None]] = set()

    @property
    def ports(self) -> tuple[int, ...]:
        """The ports of this machine that the box sees as its own."""
        return tuple(sorted({p.port for p in self._allowed if p.near}))

    @contextlib.asynccontextmanager
    async def opened(self) -> AsyncIterator[str]:
        """The path of the socket, as long as the box is there."""
        with scratch() as folder:
            path = os.path.join(folder, "way")
            server = await asyncio.start_unix_server(self._come, path, limit=HEAD)
            try:
                yield path
            finally:
                server.close()
                for task in tuple(self._open):
                    task.cancel()
                await asyncio.gather(*self._open, return_exceptions=True)

    async def _come(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None  # noqa: S101  asyncio runs this in one
        if len(self._open) >= AT_ONCE:
            writer.close()
            return
        self._open.add(task)
        try:
            await self._served(reader, writer)
        except (OSError, TimeoutError, ValueError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass  # whoever speaks nonsense, or went away, hears nothing more
        finally:
            self._open.discard(task)
            writer.close()

    async def _served(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        async with asyncio.timeout(SECONDS):
            first = (await reader.readuntil(b"\n")).decode("ascii", "replace").strip()
        if first == "proxy":
            await self._proxied(reader, writer)
            return
        wanted = next((p for p in self._allowed if p.near and first == str(p.port)), None)
        if wanted is None:
            self._refuse(f"loopback port {first[:20]}")
            return
        await self._joined(reader, writer, wanted, b"")

    async def _proxied(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        async with asyncio.timeout(SECONDS):
            head = await reader.readuntil(b"\r\n\r\n")
        line, _, rest = head.partition(b"\r\n")
        method, target, version = line.decode("ascii", "replace").split(" ", 2)
        wanted, onward = _asked(method, target, version, rest)
        if wanted not in self._allowed:
            self._refuse(str(wanted))
            writer.write(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
            await writer.drain()
            return
        await self._joined(reader, writer, wanted, onward)

    async def _joined(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, wanted: Place, onward: bytes | None
    ) -> None:
        """Both ways until both sides have said all; None as `onward` is a tunnel that has to be acknowledged."""
        try:
            async with asyncio.timeout(SECONDS):
                far_reader, far_writer = await asyncio.open_connection(wanted.host, wanted.port)
        except (OSError, TimeoutError):
            if not wanted.near:
                writer.write(b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
            return
        try:
            if onward is None:
                writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
            elif onward:
                far_writer.write(onward)
            await asyncio.gather(_pour(reader, far_writer), _pour(far_reader, writer))
        finally:
            far_writer.close()

    def _refuse(self, wanted: str) -> None:
        if wanted not in self.refused and len(self.refused) < REMEMBERED:
            self.refused.append(wanted)


def _asked(method: str, target: str, version: str, rest: bytes) -> tuple[Place, bytes | None]:
    """Where a proxy request wants to go, and what to send on: None for a tunnel, else the request in its own form."""
    if method == "CONNECT":
        return place(target), None
    url = urlsplit(target)
    if url.scheme != "http" or not url.hostname:
        raise ValueError(f"{url.scheme!r} does not go through here")
    path = url._replace(scheme="", netloc="").geturl() or "/"
    # One request a connection: a second one could be for another place.
    kept = [line for line in rest.split(b"\r\n") if line and not line.lower().startswith(_HOP)]
    head = b"\r\n".join([f"{method} {path} {version}".encode(), *kept, b"Connection: close", b"", b""])
    return Place(url.hostname.lower().rstrip("."), url.port or 80), head


_HOP = (b"connection:", b"proxy-connection:", b"proxy-authorization:", b"keep-alive:")


async def _pour(source: asyncio.StreamReader, goal: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while data := await source.read(CHUNK):
            goal.write(data)
            await goal.drain()
    with contextlib.suppress(OSError):
        goal.write_eof()
