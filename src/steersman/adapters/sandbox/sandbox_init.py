"""The first program in a sandbox: sets its own limits, connects the egress proxy, and becomes the program to run.

Run as a file of its own by `python -I -S`, so it imports the standard library alone.
Words: `<limits> <socket> <ports> program …`; limits are `name=value` with commas, ports are `5000,5001` or nothing.
**Invariant:** it only gives up rights, and does not decide which places the proxy reaches. Imports next to
nothing: every program in a sandbox waits for its start (`socket`, `contextlib` and `typing` alone would treble it).
"""
# ruff: noqa: SIM105  for the same reason

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _socket import socket
    from _thread import LockType
    from typing import NoReturn

SOCKET_CHUNK_BYTES = 64 * 1024
EXIT_CANNOT_RUN, EXIT_NOT_FOUND = 126, 127


def main(arguments: list[str]) -> "NoReturn":
    """Never returns: becomes the program, or says why it cannot."""
    limits, socket_path, ports, *program = arguments
    try:
        _apply_resource_limits(limits)
        _restore_environment()
        if socket_path:
            _open_egress_listeners(socket_path, [int(port) for port in ports.split(",") if port])
    except (OSError, ValueError) as error:  # a sandbox that lacks one of its limits runs nothing
        sys.stderr.write(f"cannot set up the sandbox: {error}\n")
        sys.exit(EXIT_CANNOT_RUN)
    try:
        os.execvp(program[0], program)  # noqa: S606  an argv that steersman made
    except OSError as error:
        sys.stderr.write(f"cannot start {program[0]}: {error.strerror}\n")
        sys.exit(EXIT_NOT_FOUND if isinstance(error, FileNotFoundError) else EXIT_CANNOT_RUN)


def _apply_resource_limits(limits: str) -> None:
    import resource

    for name, _, value in (limit.partition("=") for limit in limits.split(",") if limit):
        kind = getattr(resource, f"RLIMIT_{name.upper()}", None)
        if kind is None:
            raise ValueError(f"there is no limit called {name!r} on this system")
        hard_limit = resource.getrlimit(kind)[1]
        limit_value = int(value) if hard_limit == resource.RLIM_INFINITY else min(int(value), hard_limit)
        resource.setrlimit(kind, (limit_value, limit_value))
    try:  # when memory runs out on this machine, it is the sandbox that goes
        with open("/proc/self/oom_score_adj", "w") as file:
            file.write("500")
    except OSError:
        pass


def _restore_environment() -> None:
    """Takes out what this interpreter has put into the environment when it started."""
    with open("/proc/self/environ", "rb") as file:
        pairs = file.read().split(b"\0")
    if not any(pair.startswith(b"LC_CTYPE=") for pair in pairs):
        os.environ.pop("LC_CTYPE", None)


def _open_egress_listeners(socket_path: str, ports: list[int]) -> None:
    """Listens before the program starts; a child of its own carries what comes through."""
    import _socket

    listeners = []
    for port in ports:
        for family, address in ((_socket.AF_INET, "127.0.0.1"), (_socket.AF_INET6, "::1")):
            try:
                listeners.append((_open_listener(family, address, port), b"%d\n" % port))
            except OSError as error:
                if family == _socket.AF_INET:  # without IPv6 a connection there is refused
                    raise OSError(error.errno, f"port {port} of this machine: {error.strerror}") from None
    proxy = _open_listener(_socket.AF_INET, "127.0.0.1", 0)
    listeners.append((proxy, b"proxy\n"))
    address = f"http://127.0.0.1:{proxy.getsockname()[1]}"
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"):
        os.environ[name] = address
    os.environ["NO_PROXY"] = os.environ["no_proxy"] = "127.0.0.1,localhost,::1"
    if os.fork() == 0:
        _serve_listeners(listeners, socket_path)
    for listener, _ in listeners:
        listener.close()


def _open_listener(family: int, address: str, port: int) -> "socket":
    import _socket

    listener = _socket.socket(family, _socket.SOCK_STREAM)
    listener.setsockopt(_socket.SOL_SOCKET, _socket.SO_REUSEADDR, 1)
    listener.bind((address, port))
    listener.listen(128)
    return listener


def _serve_listeners(listeners: "list[tuple[socket, bytes]]", socket_path: str) -> "NoReturn":
    """The child: each connection goes through the socket, with a first line that says which listener it came to."""
    import _signal  # type: ignore[import-not-found]  # a part of CPython that typeshed leaves out
    import _socket
    import _thread
    import select

    # What the program was given to write to is not held open from here; a Ctrl-C is not for this child.
    null_fd = os.open(os.devnull, os.O_RDWR)
    for fd in (0, 1, 2):
        os.dup2(null_fd, fd)
    _signal.signal(_signal.SIGINT, _signal.SIG_IGN)
    by_number = {listener.fileno(): (listener, preamble) for listener, preamble in listeners}
    ready = select.poll()
    for number in by_number:
        ready.register(number, select.POLLIN)
    while True:
        for number, _ in ready.poll():
            listener, preamble = by_number[number]
            try:
                accepted_fd, _ = listener._accept()  # type: ignore[attr-defined]  # noqa: SLF001  what `accept` is made of
                client = _socket.socket(listener.family, listener.type, listener.proto, fileno=accepted_fd)
                client.setsockopt(_socket.IPPROTO_TCP, _socket.TCP_NODELAY, 1)  # what streams in small pieces
                _thread.start_new_thread(_relay_connection, (client, socket_path, preamble))
            except (OSError, RuntimeError):  # gone again, or one thread too many
                pass


def _relay_connection(client: "socket", socket_path: str, preamble: bytes) -> None:
    import _socket
    import _thread

    upstream = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    done = _thread.allocate_lock()
    try:
        upstream.connect(socket_path)
        upstream.sendall(preamble)
        done.acquire()
        _thread.start_new_thread(_relay_back, (upstream, client, done))
        _copy_socket(client, upstream)
        done.acquire()
    except (OSError, RuntimeError):
        pass
    finally:
        client.close()
        upstream.close()


def _relay_back(upstream: "socket", client: "socket", done: "LockType") -> None:
    _copy_socket(upstream, client)
    done.release()


def _copy_socket(source: "socket", target: "socket") -> None:
    try:
        while data := source.recv(SOCKET_CHUNK_BYTES):
            target.sendall(data)
    except OSError:
        pass
    try:
        target.shutdown(1)  # SHUT_WR
    except OSError:
        pass


if __name__ == "__main__":
    main(sys.argv[1:])
