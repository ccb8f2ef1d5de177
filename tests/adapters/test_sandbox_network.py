"""The network of a box: none, a narrow way to named places, or the host's."""

import asyncio
import contextlib
import os
import sys
import tempfile
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from tests.support.cases import for_each_case

from steersman.adapters.process.program_runner import run_program
from steersman.adapters.sandbox import egress_proxy as narrows_module
from steersman.adapters.sandbox.bubblewrap import SandboxPolicy
from steersman.adapters.sandbox.egress_proxy import EgressProxy, NetworkAddress, parse_network_address

PY = sys.executable
# Far by its name, this machine by its address: a place that is only reached through the proxy.
FAR = "[::ffff:127.0.0.1]"


class Echo(BaseHTTPRequestHandler):
    """Answers with the path it was asked for and the bytes it was sent."""

    protocol_version = "HTTP/1.1"

    def do_GET(self):
        """One answer."""
        sent = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        body = b"%s %d" % (self.path.encode(), len(sent))
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_POST = do_GET  # noqa: N815  http.server's name

    def log_message(self, *_):
        """Says nothing."""


@contextlib.contextmanager
def serving():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Echo)
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        server.server_close()


@pytest.fixture
def port():
    """A server on this machine's loopback."""
    with serving() as number:
        yield number


@pytest.fixture
def other_port():
    """Another one."""
    with serving() as number:
        yield number


def run(sandbox, code, network, cwd):
    """What a piece of Python printed in a box with this network, and what it was refused."""

    async def go():
        env = {"PATH": os.environ["PATH"], "HOME": os.environ["HOME"]}
        box = SandboxPolicy(writes=(str(cwd),), network=network)
        async with sandbox.wrap((PY, "-c", code), box, env, str(cwd)) as boxed:
            done = await run_program(boxed.argv, str(cwd), boxed.env, 30.0, "none:0:0", doors=boxed.doors)
            return done.output.decode().strip(), list(boxed.refused)

    return asyncio.run(go())


def fetch(*urls):
    """Code that fetches each and prints what came, or the kind of what went wrong."""
    return (
        "import urllib.request\n"
        f"for url in {urls!r}:\n"
        "    try: print(urllib.request.urlopen(url, timeout=5).read().decode())\n"
        "    except Exception as error: print(type(error).__name__, getattr(error, 'code', ''))\n"
    )


def test_a_box_without_a_network_reaches_nothing(sandbox, tmp_path, port):
    """Not even this machine's own loopback."""
    said, refused = run(sandbox, fetch(f"http://127.0.0.1:{port}/a"), (), tmp_path)
    assert said.split()[0] == "URLError"
    assert refused == []


def test_the_hosts_network_is_there_for_who_asks(sandbox, tmp_path, port):
    """A setup step gets it."""
    assert run(sandbox, fetch(f"http://127.0.0.1:{port}/a"), None, tmp_path) == ("/a 0", [])


def test_a_named_loopback_port_keeps_its_address(sandbox, tmp_path, port, other_port):
    """http://127.0.0.1:PORT works as outside, by its other name too; the port beside it does not."""
    urls = (f"http://127.0.0.1:{port}/a", f"http://localhost:{port}/b", f"http://127.0.0.1:{other_port}/c")
    said, refused = run(sandbox, fetch(*urls), (f"127.0.0.1:{port}",), tmp_path)
    assert said.splitlines()[:2] == ["/a 0", "/b 0"]
    assert "URLError" in said.splitlines()[2]
    assert refused == []


def test_much_goes_through_both_ways(sandbox, tmp_path, port):
    """Eight connections at once, each with a megabyte, arrive whole."""
    code = (
        "import threading, urllib.request\n"
        f"def one(): print(urllib.request.urlopen('http://127.0.0.1:{port}/x', b'x' * 1000000, 20).read().decode())\n"
        "threads = [threading.Thread(target=one) for _ in range(8)]\n"
        "for t in threads: t.start()\n"
        "for t in threads: t.join()\n"
    )
    said, _ = run(sandbox, code, (f"127.0.0.1:{port}",), tmp_path)
    assert said.split() == ["/x", "1000000"] * 8


def test_a_named_host_is_reached_through_the_proxy(sandbox, tmp_path, port):
    """Plain HTTP and a tunnel both get there; the program finds the proxy in its environment."""
    tunnel = (
        "import http.client, os, urllib.parse\n"
        "way = urllib.parse.urlsplit(os.environ['HTTPS_PROXY'])\n"
        "c = http.client.HTTPConnection(way.hostname, way.port, timeout=5)\n"
        f"c.set_tunnel('{FAR}', {port})\n"
        "c.request('GET', '/tunnel'); print(c.getresponse().read().decode())\n"
    )
    code = fetch(f"http://{FAR}:{port}/plain") + tunnel
    said, refused = run(sandbox, code, (f"{FAR}:{port}",), tmp_path)
    assert said.splitlines() == ["/plain 0", "/tunnel 0"]
    assert refused == []


def test_another_host_is_refused_and_remembered(sandbox, tmp_path, port):
    """By name, by number, on another port: 403, and we know what it wanted."""
    urls = ("http://example.com/", f"http://{FAR}:{port + 1}/", "http://169.254.169.254/latest/meta-data")
    said, refused = run(sandbox, fetch(*urls), (f"{FAR}:{port}",), tmp_path)
    assert said.splitlines() == ["HTTPError 403"] * 3
    assert refused == ["example.com:80", f"[::ffff:127.0.0.1]:{port + 1}", "169.254.169.254:80"]


def test_the_proxy_is_no_way_to_a_loopback_port_that_was_not_named(sandbox, tmp_path, port, other_port):
    """A tunnel asked for 127.0.0.1 is judged like any other place."""
    code = (
        "import http.client, os, urllib.parse\n"
        "way = urllib.parse.urlsplit(os.environ['HTTPS_PROXY'])\n"
        "c = http.client.HTTPConnection(way.hostname, way.port, timeout=5)\n"
        f"c.set_tunnel('127.0.0.1', {other_port})\n"
        "try: c.request('GET', '/'); print('through')\nexcept OSError as error: print(error)\n"
    )
    said, refused = run(sandbox, code, (f"127.0.0.1:{port}",), tmp_path)
    assert "403" in said
    assert refused == [f"127.0.0.1:{other_port}"]


def test_the_socket_itself_leads_nowhere_else(sandbox, tmp_path, port, other_port):
    """A program that speaks to the way out directly gets no further than one that uses it as meant."""
    code = (
        "import socket\n"
        f"for first in (b'{other_port}\\n', b'22\\n', b'proxy\\nGET / HTTP/1.1\\r\\n\\r\\n', b'\\xff\\n', b'-1\\n', b'\\n'):\n"
        "    s = socket.socket(socket.AF_UNIX); s.settimeout(5); s.connect('/run/narrows'); s.sendall(first)\n"
        "    s.shutdown(socket.SHUT_WR)\n"
        "    print(s.recv(100))\n"
    )
    said, refused = run(sandbox, code, (f"127.0.0.1:{port}",), tmp_path)
    assert said.split() == ["b''"] * 6
    assert f"loopback port {other_port}" in refused


def test_nobody_is_there_is_told_apart_from_not_allowed(sandbox, tmp_path):
    """A named place where nobody listens is a broken connection, or a 502 through the proxy; nothing is refused."""
    with serving() as number:
        pass
    urls = (f"http://127.0.0.1:{number}/", f"http://{FAR}:{number}/")
    said, refused = run(sandbox, fetch(*urls), (f"127.0.0.1:{number}", f"{FAR}:{number}"), tmp_path)
    assert said.splitlines()[1] == "HTTPError 502"
    assert "403" not in said
    assert refused == []


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("api.example.com:443", NetworkAddress("api.example.com", 443)),
        ("API.Example.com.:443", NetworkAddress("api.example.com", 443)),
        ("[::1]:80", NetworkAddress("::1", 80)),
    ],
)
def test_a_place_is_a_host_and_a_port(text, found):
    """Case and a closing dot do not make another host."""
    assert parse_network_address(text) == found


@for_each_case("text", ["", "host", "host:", ":80", "host:0", "host:x", "u@host:80", "host:80/x", "a b:1:2"])
def test_anything_else_is_no_place(text):
    """A slip in a list of places is an error when the box is made."""
    with pytest.raises(ValueError, match=r"[Pp]ort"):
        parse_network_address(text)


def test_what_is_left_open_is_closed_with_the_box():
    """A connection that hangs does not hold up the end."""

    async def go():
        narrows = EgressProxy(("127.0.0.1:1",))
        async with narrows.open_socket() as path:
            _, writer = await asyncio.open_unix_connection(path)
            await asyncio.sleep(0.05)
        writer.close()
        return path

    assert not os.path.exists(asyncio.run(asyncio.wait_for(go(), 30)))


def test_a_box_has_only_so_many_connections_at_once(monkeypatch):
    """One that opens too many is turned away; those it has go on, and when they end there is room again."""
    monkeypatch.setattr(narrows_module, "MAX_PROXY_CONNECTIONS", 2)

    async def asked(path):
        reader, writer = await asyncio.open_unix_connection(path)
        writer.write(b"proxy\nCONNECT other.example:443 HTTP/1.1\r\n\r\n")
        try:
            return await reader.read()
        except ConnectionError:  # turned away
            return b""
        finally:
            writer.close()

    async def go():
        async with EgressProxy(("127.0.0.1:1",)).open_socket() as path:
            first, second, third = [await asyncio.open_unix_connection(path) for _ in range(3)]
            assert await third[0].read() == b""
            for _, writer in (first, second):
                writer.close()
                await writer.wait_closed()
            third[1].close()
            while not (said := await asked(path)):  # until it has seen that they have ended
                pass
            return said

    assert asyncio.run(asyncio.wait_for(go(), 30)).startswith(b"HTTP/1.1 403")


def test_a_long_way_to_temporary_files_is_no_obstacle(monkeypatch, tmp_path):
    """A socket's path has to be short; the folder for it is chosen so."""
    long = tmp_path / ("x" * 100)
    long.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(long))

    async def go():
        async with EgressProxy(("127.0.0.1:1",)).open_socket() as path:
            return len(path)

    assert asyncio.run(go()) < 108
