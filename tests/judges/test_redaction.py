"""Secrets leave a stable marker and nothing else."""

import re
import time

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from steersman.judges.redaction import marker, redact

SECRETS = {
    "anthropic": ("api_key", "sk-ant-api03-" + "A" * 80),
    "openai": ("api_key", "sk-" + "aB3" * 12),
    "stripe": ("api_key", "sk_" + "live_" + "aB3" * 8),
    "slack": ("api_key", "xox" + "b-" + "1a" * 12),
    "gitlab": ("api_key", "glpat-" + "x" * 20),
    "npm": ("api_key", "npm_" + "I" * 36),
    "google": ("api_key", "AI" + "za" + "Z" * 35),
    "github": ("github", "ghp_" + "C" * 36),
    "github fine": ("github", "github" + "_pat_" + "D" * 60),
    "aws": ("aws", "AKIA" + "Q" * 16),
    "jwt": ("jwt", "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.c2lnbmF0dXJl-_"),
    "pem": (
        "private_key",
        "-----BEGIN RSA PRIV" + "ATE KEY-----\nDEK-Info: AES\nMIIE\n-----END RSA PRIV" + "ATE KEY-----",
    ),
}
IN_PLACE = {
    "env": ("aws_secret_access_key=", "F" * 40, "\n"),
    "short": ("PASSWORD=", "x", ";"),
    "query": ("https://h/p?token=", "abc-def_1", "&a=b"),
    "json": ('{"password": "', "hun, ter2", '"}'),
    "json in json": ('{\\"api_key\\": \\"', "hunter2", '\\"}'),
    "code": ("client_secret = '", "it\\'s", "'"),
    "yaml": ("api-key: ", "abc12345678", "\n"),
    "header": ("Authorization: Basic ", "dXNlcjpwYXNz", "\r\n"),
    "header json": ('"authorization": "Bearer ', "abcd", '"'),
    "bearer": ("using bearer ", "a1" * 12, " now"),
    "url": ("https://", "user:p%40ss:w", "@example.invalid/x.git"),
    "url token": ("https://", "oauth2:" + "g" * 8, "@example.invalid"),
}
HARMLESS = [
    "max_tokens=4096",
    "tokens: 3000000",
    "token = make_token()",
    "token=make_token()",
    "if token == 'abc':",
    "password: must be long",
    "Basic authentication is off",
    "task-0123456789012345678901",
    "sk-learn-compatible-estimator",
    "https://example.invalid/a:b@c",
    "AKIA" + "q" * 16,
    "the secret of success",
    "password=",
    "-----BEGIN CERTIFICATE-----\nMIIE\n-----END CERTIFICATE-----",
]


@pytest.mark.parametrize(("kind", "secret"), SECRETS.values(), ids=SECRETS.keys())
def test_tokens(kind, secret):
    """A token of a known shape goes, wherever it stands, and leaves the marker of its kind."""
    assert redact(secret) == marker(kind, secret)
    assert redact(f"key ({secret}), twice: {secret}\n") == "key ({0}), twice: {0}\n".format(
        marker(kind, secret)
    )


@pytest.mark.parametrize(("before", "secret", "after"), IN_PLACE.values(), ids=IN_PLACE.keys())
def test_in_place(before, secret, after):
    """A value goes by its name alone, and the text around it stays."""
    found = redact(f"a {before}{secret}{after} b")
    assert re.fullmatch(
        rf"a {re.escape(before)}\[redacted:[a-z_]+:[0-9a-f]{{8}}\]{re.escape(after)} b", found
    )


@pytest.mark.parametrize("text", HARMLESS)
def test_harmless(text):
    """Ordinary words are left as they are."""
    assert redact(text) == text


def test_unterminated_key():
    """A key block that was cut off is hidden to the end of what there is."""
    assert redact("x -----BEGIN PRIV" + "ATE KEY-----\nMIIEabc\nMIIE").startswith("x [redacted:private_key:")
    assert "MIIE" not in redact("-----BEGIN PRIV" + "ATE KEY-----\nMIIEabc\nMIIE")


def test_known_values():
    """Values the caller knows go too, plain and in base64; very short ones are not searched for."""
    known = ("server-value-1", "abc", "")
    assert redact("abc server-value-1 c2VydmVyLXZhbHVlLTE=", known) == (
        f"abc {marker('known', 'server-value-1')} {marker('known', 'c2VydmVyLXZhbHVlLTE=')}"
    )
    assert redact(redact("server-value-1", known), ("redacted", *known)) == marker("known", "server-value-1")


PIECES = st.sampled_from(
    [*(s for _, s in SECRETS.values()), *("".join(p) for p in IN_PLACE.values()), *HARMLESS, "password=", "token: ", "://",
     "@", ":", '"', "'", "\\", " ", "\n", "-----", "[redacted:", marker("aws", "x"), "x", "9", "abcdef", "(", "=", "Bearer ", "\ud800"]
)  # fmt: skip


@settings(max_examples=400)
@given(st.one_of(st.lists(PIECES, max_size=8).map("".join), st.text(st.characters())))
@example("password=" + marker("aws", "x") + "rest")
@example("://a:b@c:d@")
def test_idempotent(text):
    """Redacting twice changes nothing."""
    for known in ((), ("hunter2", "abcdef")):
        once = redact(text, known)
        assert redact(once, known) == once


UNITS = ["password=", 'password="', "password='\\\"", "://a:", "-----BEGIN PRIVATE KEY-----", "-", "eyJaaaaaaaaa.", "sk-",
         "token: ", "Bearer ", "a", "authorization:", "\\", "[redacted:", "eyJ"]  # fmt: skip


@pytest.mark.parametrize("unit", UNITS)
def test_linear(unit):
    """Half a megabyte of near misses takes a moment, and twice as much about twice as long."""
    started = time.process_time()
    redact(unit * (500_000 // len(unit)))
    assert time.process_time() - started < 3.0


def test_bounded(monkeypatch):
    """However contrived the text, the number of passes has an end."""
    monkeypatch.setattr("steersman.judges.redaction._PASSES", 1)
    assert redact("password=hunter2") == "password=" + marker("assignment", "hunter2")
