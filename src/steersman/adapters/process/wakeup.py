"""Wake-ups between processes: a datagram to every listener's socket. A lost one costs a poll interval, nothing else."""

import contextlib
import os
import socket
from pathlib import Path


class WakeupSockets:
    """Implements ports.ownership.DriverWakeup; `listen` is for drivers."""

    def __init__(self, directory: Path) -> None:
        self._folder = directory

    def notify(self) -> None:
        try:
            listeners = list(self._folder.iterdir())
        except OSError:
            return
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock:
            sock.setblocking(False)
            for path in listeners:
                try:
                    sock.sendto(b"!", str(path))
                except ConnectionRefusedError:
                    path.unlink(missing_ok=True)  # its process is gone
                except OSError:
                    continue  # full: it is awake already

    def listen(self) -> socket.socket | None:
        """A socket that becomes readable at a wake-up; None where the path is too long for one."""
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        path = self._folder / f"{os.getpid()}.{os.urandom(3).hex()}"
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        sock.setblocking(False)
        try:
            sock.bind(str(path))
        except OSError:
            sock.close()
            return None
        return sock

    def stop_listening(self, sock: socket.socket) -> None:
        """Stops listening."""
        path = sock.getsockname()
        sock.close()
        with contextlib.suppress(OSError):
            os.unlink(path)
