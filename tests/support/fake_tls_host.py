"""A place on the net that is none: a TLS server on loopback under another's name, and a name service that leads to it."""

import contextlib
import datetime as dt
import json
import socket
import ssl
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID


def make_certificate(name, folder):
    """A self-signed certificate for a host name: its file, also the one to be trusted, and its key's."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    day = dt.timedelta(days=1)
    now = dt.datetime.now(dt.UTC)
    made = x509.CertificateBuilder() .subject_name(subject) .issuer_name(subject) .public_key(key.public_key()) .serial_number(x509.random_serial_number()) .not_valid_before(now - day) .not_valid_after(now + day) .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False) .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True) .sign(
        key, hashes.SHA256(),
    )  # fmt: skip
    files = folder / f"{name}.pem", folder / f"{name}.key"
    files[0].write_bytes(made.public_bytes(serialization.Encoding.PEM))
    plain = serialization.NoEncryption()
    files[1].write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, plain)
    )
    return files


@contextlib.contextmanager
def serve_tls_host(name, folder, answer, monkeypatch):
    """Answers POSTs to https://<name>/ with JSON; `answer` gets path and body. Yields the certificate to be trusted."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            asked = self.rfile.read(int(self.headers["content-length"]))
            said = json.dumps(answer(self.path, asked)).encode()
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(said)))
            self.end_headers()
            self.wfile.write(said)

        def log_message(self, *_):
            pass

    cert, key = make_certificate(name, folder)
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cert, key)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    real = socket.getaddrinfo

    def looked_up(host, port, *args, **kwargs):
        if host == name:
            host, port = "127.0.0.1", server.server_address[1]
        return real(host, port, *args, **kwargs)

    monkeypatch.setattr(socket, "getaddrinfo", looked_up)
    try:
        yield cert
    finally:
        server.shutdown()
        server.server_close()
        thread.join(5)
