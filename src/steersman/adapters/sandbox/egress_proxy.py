"""The narrow way out of a sandbox without a network: named places and no others.

A unix socket is bound into the sandbox; what comes through it begins with a line that names its kind: `<port>` is a
loopback address of this machine, `proxy` is an HTTP proxy's conversation.
**Invariant:** only this side decides; a place that was not named is refused and recorded.
"""

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator, Sequence
from typing import NamedTuple
from urllib.parse import urlsplit

from steersman.adapters.sandbox.space_limit import scratch_directory

PROXY_CHUNK_BYTES = 64 * 1024
MAX_PROXY_HEAD_BYTES = 64 * 1024  # bytes of a proxy request's head
PROXY_SECONDS = 30.0  # to say what is wanted, and to reach it
MAX_REFUSED_ADDRESSES = 100
MAX_PROXY_CONNECTIONS = 256  # connections of one sandbox: each costs this process two of its descriptors
_LOOPBACK_HOSTS = ("localhost", "::1", "0.0.0.0")  # noqa: S104  names that mean this machine, nothing is bound


class NetworkAddress(NamedTuple):
    """A host and a port."""

    host: str
    port: int

    @property
    def is_loopback(self) -> bool:
        """Is it on this machine's own loopback?"""
        return self.host in _LOOPBACK_HOSTS or self.host.startswith("127.")

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def parse_network_address(text: str) -> NetworkAddress:
    """`host:port` as a place; raises ValueError for anything else."""
    url = urlsplit(f"//{text}")
    if not url.hostname or not url.port or url.netloc != text or "@" in text:
        raise ValueError(f"{text!r} is not host:port")
    return NetworkAddress(url.hostname.lower().rstrip("."), url.port)


class EgressProxy:
    """The egress proxy of one sandbox."""

    def __init__(self, allowed: Sequence[str]) -> None:
        self._allowed = frozenset(map(parse_network_address, allowed))
        self.refused: list[str] = []
        self._open: set[asyncio.Task[None]] = set()

    @property
    def ports(self) -> tuple[int, ...]:
        """The ports of this machine that the sandbox sees as its own."""
        return tuple(sorted({address.port for address in self._allowed if address.is_loopback}))

    @contextlib.asynccontextmanager
    async def open_socket(self) -> AsyncIterator[str]:
        """The path of the socket, as long as the sandbox is there."""
        with scratch_directory() as directory:
            path = os.path.join(directory, "way")
            server = await asyncio.start_unix_server(
                self._handle_connection, path, limit=MAX_PROXY_HEAD_BYTES
            )
            try:
                yield path
            finally:
                server.close()
                for task in tuple(self._open):
                    task.cancel()
                await asyncio.gather(*self._open, return_exceptions=True)

    async def _handle_connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None  # noqa: S101  asyncio runs this in one
        if len(self._open) >= MAX_PROXY_CONNECTIONS:
            writer.close()
            return
        self._open.add(task)
        try:
            await self._serve_request(reader, writer)
        except (OSError, TimeoutError, ValueError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass  # a client that sends nonsense or is gone gets no answer
        finally:
            self._open.discard(task)
            writer.close()

    async def _serve_request(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        async with asyncio.timeout(PROXY_SECONDS):
            line = (await reader.readuntil(b"\n")).decode("ascii", "replace").strip()
        if line == "proxy":
            await self._proxy_request(reader, writer)
            return
        address = next(
            (allowed for allowed in self._allowed if allowed.is_loopback and line == str(allowed.port)), None
        )
        if address is None:
            self._refuse(f"loopback port {line[:20]}")
            return
        await self._relay_streams(reader, writer, address, b"")

    async def _proxy_request(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        async with asyncio.timeout(PROXY_SECONDS):
            head = await reader.readuntil(b"\r\n\r\n")
        line, _, rest = head.partition(b"\r\n")
        method, target, version = line.decode("ascii", "replace").split(" ", 2)
        address, forwarded_head = _parse_proxy_request(method, target, version, rest)
        if address not in self._allowed:
            self._refuse(str(address))
            writer.write(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
            await writer.drain()
            return
        await self._relay_streams(reader, writer, address, forwarded_head)

    async def _relay_streams(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        address: NetworkAddress,
        forwarded_head: bytes | None,
    ) -> None:
        """Both ways until both sides have ended; None as `onward` is a tunnel that has to be acknowledged."""
        try:
            async with asyncio.timeout(PROXY_SECONDS):
                remote_reader, remote_writer = await asyncio.open_connection(address.host, address.port)
        except (OSError, TimeoutError):
            if not address.is_loopback:
                writer.write(b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
            return
        try:
            if forwarded_head is None:
                writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
            elif forwarded_head:
                remote_writer.write(forwarded_head)
            await asyncio.gather(_relay_stream(reader, remote_writer), _relay_stream(remote_reader, writer))
        finally:
            remote_writer.close()

    def _refuse(self, address: str) -> None:
        if address not in self.refused and len(self.refused) < MAX_REFUSED_ADDRESSES:
            self.refused.append(address)


def _parse_proxy_request(
    method: str, target: str, version: str, rest: bytes
) -> tuple[NetworkAddress, bytes | None]:
    """Where a proxy request wants to go, and what to send on: None for a tunnel, else the request in its own form."""
    if method == "CONNECT":
        return parse_network_address(target), None
    url = urlsplit(target)
    if url.scheme != "http" or not url.hostname:
        raise ValueError(f"{url.scheme!r} does not go through here")
    path = url._replace(scheme="", netloc="").geturl() or "/"
    # One request a connection: a second one could be for another place.
    headers = [
        line for line in rest.split(b"\r\n") if line and not line.lower().startswith(_HOP_BY_HOP_HEADERS)
    ]
    head = b"\r\n".join([f"{method} {path} {version}".encode(), *headers, b"Connection: close", b"", b""])
    return NetworkAddress(url.hostname.lower().rstrip("."), url.port or 80), head


_HOP_BY_HOP_HEADERS = (b"connection:", b"proxy-connection:", b"proxy-authorization:", b"keep-alive:")


async def _relay_stream(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while data := await source.read(PROXY_CHUNK_BYTES):
            target.write(data)
            await target.drain()
    with contextlib.suppress(OSError):
        target.write_eof()
