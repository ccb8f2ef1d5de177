"""Reads what a runner reports while it runs, as it is sent.

A wire is for one process: the first that connects, and no child of it, for a socket cannot be
opened again through /proc. A pipe is for a runner that only knows files: its name is removed when its first bytes have come.
**Invariant:** what was sent cannot be withdrawn; memory is bounded whatever arrives, and the sender never waits for us.
"""

import asyncio
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress

REPORTER_CHUNK_BYTES = 64 * 1024


class ReporterSocket:
    """The listening end; `token` is sent to the one process that connects."""

    def __init__(self, path: str, token: str, limit: int) -> None:
        self._path, self._token = path, token.encode("ascii")
        self._received = _ReceivedBytes(limit)
        self._connection: socket.socket | None = None
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)

    @contextmanager
    def open(self) -> Iterator[None]:
        """Listens as long as it is open; what came is kept."""
        loop = asyncio.get_running_loop()
        try:
            self._listener.bind(self._path)
            self._listener.listen(1)
            self._listener.setblocking(False)
            loop.add_reader(self._listener, self._accept_runner)
            yield
        finally:
            for sock in (self._listener, self._connection):
                if sock is not None:
                    _remove_socket_reader(sock)
                    sock.close()

    @property
    def is_connected(self) -> bool:
        """Whether a runner has connected."""
        self.received_text()
        return self._connection is not None

    def received_text(self) -> bytes:
        """All that came until now."""
        if self._connection is None:
            self._accept_runner()
        if self._connection is not None:
            self._received.take(self._connection.fileno())
        return bytes(self._received.data)

    def _accept_runner(self) -> None:
        try:
            self._connection, _ = self._listener.accept()
        except OSError:
            return
        _remove_socket_reader(self._listener)
        self._listener.close()
        with suppress(OSError):
            os.unlink(self._path)
        self._connection.setblocking(False)
        with suppress(OSError):
            self._connection.send(self._token)
        asyncio.get_running_loop().add_reader(self._connection, self._read_available)

    def _read_available(self) -> None:
        if self._connection is not None and not self._received.take(self._connection.fileno()):
            _remove_socket_reader(self._connection)


class ReporterPipe:
    """A named pipe; both ends are held here, so that a writer finds a reader and an early end is no end."""

    def __init__(self, path: str, limit: int) -> None:
        self._path, self._pipe_fd = path, -1
        self._received = _ReceivedBytes(limit)

    @contextmanager
    def open(self) -> Iterator[None]:
        """Reads as long as it is open; what came is kept."""
        os.mkfifo(self._path, 0o600)
        self._pipe_fd = os.open(self._path, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
        loop = asyncio.get_running_loop()
        loop.add_reader(self._pipe_fd, self._read_available)
        try:
            yield
        finally:
            loop.remove_reader(self._pipe_fd)
            os.close(self._pipe_fd)

    def received_text(self) -> bytes:
        """All that came until now."""
        self._read_available()
        return bytes(self._received.data)

    def _read_available(self) -> None:
        self._received.take(self._pipe_fd)
        if self._received.data:
            with suppress(OSError):
                os.unlink(self._path)


class _ReceivedBytes:
    """Bytes up to the limit and one; what is beyond is taken and dropped."""

    def __init__(self, limit: int) -> None:
        self._limit, self.data = limit, bytearray()

    def take(self, fd: int) -> bool:
        """All that is there now; False when nothing will follow."""
        while True:
            try:
                piece = os.read(fd, REPORTER_CHUNK_BYTES)
            except BlockingIOError:
                return True
            except OSError:
                return False
            if not piece:
                return False
            self.data += piece[: self._limit + 1 - len(self.data)]


def _remove_socket_reader(sock: socket.socket) -> None:
    if sock.fileno() >= 0:
        asyncio.get_running_loop().remove_reader(sock)
