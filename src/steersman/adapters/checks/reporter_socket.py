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
        self._path, self._word = path, token.encode("ascii")
        self._told = _ReceivedBytes(limit)
        self._line: socket.socket | None = None
        self._door = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)

    @contextmanager
    def open(self) -> Iterator[None]:
        """Listens as long as it is open; what came is kept."""
        loop = asyncio.get_running_loop()
        try:
            self._door.bind(self._path)
            self._door.listen(1)
            self._door.setblocking(False)
            loop.add_reader(self._door, self._accept_runner)
            yield
        finally:
            for sock in (self._door, self._line):
                if sock is not None:
                    _remove_socket_reader(sock)
                    sock.close()

    @property
    def is_connected(self) -> bool:
        """Whether a runner has connected."""
        self.received_text()
        return self._line is not None

    def received_text(self) -> bytes:
        """All that came until now."""
        if self._line is None:
            self._accept_runner()
        if self._line is not None:
            self._told.take(self._line.fileno())
        return bytes(self._told.data)

    def _accept_runner(self) -> None:
        try:
            self._line, _ = self._door.accept()
        except OSError:
            return
        _remove_socket_reader(self._door)
        self._door.close()
        with suppress(OSError):
            os.unlink(self._path)
        self._line.setblocking(False)
        with suppress(OSError):
            self._line.send(self._word)
        asyncio.get_running_loop().add_reader(self._line, self._read_available)

    def _read_available(self) -> None:
        if self._line is not None and not self._told.take(self._line.fileno()):
            _remove_socket_reader(self._line)


class ReporterPipe:
    """A named pipe; both ends are held here, so that a writer finds a reader and an early end is no end."""

    def __init__(self, path: str, limit: int) -> None:
        self._path, self._fd = path, -1
        self._told = _ReceivedBytes(limit)

    @contextmanager
    def open(self) -> Iterator[None]:
        """Reads as long as it is open; what came is kept."""
        os.mkfifo(self._path, 0o600)
        self._fd = os.open(self._path, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
        loop = asyncio.get_running_loop()
        loop.add_reader(self._fd, self._read_available)
        try:
            yield
        finally:
            loop.remove_reader(self._fd)
            os.close(self._fd)

    def received_text(self) -> bytes:
        """All that came until now."""
        self._read_available()
        return bytes(self._told.data)

    def _read_available(self) -> None:
        self._told.take(self._fd)
        if self._told.data:
            with suppress(OSError):
                os.unlink(self._path)


class _ReceivedBytes:
    """Bytes up to the limit and one; what is beyond is taken and dropped."""

    def __init__(self, limit: int) -> None:
        self._most, self.data = limit, bytearray()

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
            self.data += piece[: self._most + 1 - len(self.data)]


def _remove_socket_reader(sock: socket.socket) -> None:
    if sock.fileno() >= 0:
        asyncio.get_running_loop().remove_reader(sock)
