"""Secrets leave a stable marker and nothing else."""

import base64
import json
import time

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from test_secret_shapes import HARMLESS, IN_PLACE, TOKENS
from tests.support.cases import for_each_case

from steersman.judges.redaction.redact import (
    _is_suspicious_string,
    _list_suspicious_marks,
    _redact_plain_text,
    redact_text,
    redaction_marker,
)
from steersman.judges.redaction.secret_shapes import SHAPE_WORDS, find_secret_signs

GITHUB = TOKENS["github"][1]


def test_markers_are_keyed():
    """One key, one marker for a secret; another key, another marker: without it nobody can try guesses."""
    assert redact_text("password=hunter2", key=b"k") == redact_text("password=hunter2", key=b"k")
    assert redact_text("password=hunter2", key=b"k") != redact_text("password=hunter2", key=b"l")
    assert redaction_marker("aws", "x", b"k") != redaction_marker("aws", "x")
    assert (
        redact_text(f"a {GITHUB} b {GITHUB}", key=b"k").count(redaction_marker("github", GITHUB, b"k")) == 2
    )


def test_the_longest_wins():
    """A secret inside another one goes with it."""
    assert (
        redact_text(f'password = "abc {GITHUB} def"')
        == f'password = "{redaction_marker("assignment", f"abc {GITHUB} def")}"'
    )
    inside = f"https://user:{GITHUB}@h"
    assert redact_text(inside) == f"https://{redaction_marker('url', f'user:{GITHUB}')}@h"


def test_overlapping():
    """Of two that overlap the longer one goes first; what is left of the other goes after it."""
    hidden = redact_text("x://me:abc;password=letmein@host/and-more-of-it y")
    assert hidden == f"x://me:abc;password={redaction_marker('assignment', 'letmein@host/and-more-of-it')} y"


@for_each_case("form", ["\x1b[31m", "\u200b", "\b", "\x9b1m", "\\x1b[31m", "\\u001b[0;1m"])
def test_invisible_letters_hide_nothing(form):
    """A key is found through colours and invisible letters."""
    torn = GITHUB[:12] + form + GITHUB[12:]
    assert redact_text(f"a {torn} b") == f"a {redaction_marker('github', GITHUB)} b"
    assert redact_text(f"a{form}{GITHUB}{form}b") == f"a{form}{redaction_marker('github', GITHUB)}{form}b"


@for_each_case(
    "plain",
    [f"token {GITHUB}", "https://user:pw12345@example.invalid/x.git", 'password = "hunter2 and more"'],
)
@for_each_case("encode", [base64.b64encode, base64.urlsafe_b64encode])
def test_encoded(plain, encode):
    """Base64 that holds a secret goes as a whole."""
    run = encode(plain.encode()).decode()
    assert redact_text(f"data: {run}.") == f"data: {redaction_marker('encoded', run)}."


def test_encoded_harmless():
    """Base64 of ordinary words, of bytes and of letters that nobody sees stays."""
    for data in (
        b"only ordinary words are in here",
        bytes(range(200, 250)),
        b"password=\x00hunter2 and more words",
    ):
        run = base64.b64encode(data).decode()
        assert redact_text(f"data: {run}") == f"data: {run}"


# ── JSON ────────────────────────────────────────────────────────────────────────────────────────────────────────────


@for_each_case(
    "value",
    [
        {"output": "-----BEGIN RSA PRIV" + "ATE KEY-----\nMIIE", "next": "kept"},
        {"output": 'x = "password=\\"abc', "next": ["kept"]},
        [{"argv": ["mysql", "--password", "letmein"]}, {"next": "kept"}],
        {"password": "hunter2", "n": 1, "next": "kept"},
        {"a": "password='", "b": "' kept"},
        {"a": "token: abc12345", "b": "kept"},
    ],
)
def test_json_stays_json(value):
    """Whatever is hidden inside, the text can be read like before, and what is no secret is still there."""
    text = json.dumps(value)
    hidden = redact_text(text)
    assert "kept" in json.dumps(json.loads(hidden))
    assert type(json.loads(hidden)) is type(value)
    for secret in ("MIIE", "hunter2", "letmein", "abc12345"):
        assert secret not in hidden


def test_json_that_nothing_is_hidden_in():
    """Its very letters stay: spaces, order, doubled names."""
    text = '{ "a" : 1,  "a": "\\u00e9\\/x" }'
    assert redact_text(text) == text


def test_json_with_lone_surrogates():
    """What no JSON library takes is a text like any other."""
    assert (
        redact_text('["\ud800 password=hunter2"]')
        == f'["\ud800 password={redaction_marker("assignment", "hunter2")}"]'
    )


JSON = st.recursive(
    st.one_of(
        st.none(),
        st.integers(-(2**53), 2**53),
        st.text(st.characters(exclude_categories=["Cs"])),
        st.sampled_from([s for _, s in TOKENS.values()]),
        st.sampled_from(["".join(p) for p in IN_PLACE.values()]),
    ),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=5) | st.just("token"), inner, max_size=3)),
    max_leaves=6,
)  # fmt: skip


@settings(max_examples=200, deadline=None)
@given(JSON.filter(lambda v: isinstance(v, dict | list)))
def test_any_json_stays_json(value):
    """For any document, with secrets and without."""
    for text in (json.dumps(value), json.dumps(value, ensure_ascii=False)):
        assert type(json.loads(redact_text(text))) is type(value)


# ── always ──────────────────────────────────────────────────────────────────────────────────────────────────────────

PIECES = st.sampled_from(
    [*(s for _, s in TOKENS.values()), *("".join(p) for p in IN_PLACE.values()), *HARMLESS, "password=", "token: ", "://",
     "@", ":", '"', "'", "\\", " ", "\n", "-----", "[redacted:", redaction_marker("aws", "x"), "x", "9", "abcdef", "(", "=", "Bearer ", "\ud800"]
)  # fmt: skip


@settings(max_examples=400, deadline=None)
@given(st.one_of(st.lists(PIECES, max_size=8).map("".join), st.text(st.characters())))
@example("password=" + redaction_marker("aws", "x") + "rest")
@example('password="' + redaction_marker("aws", "x") + 'rest"')
@example("Authorization: Basic dXNlcjpwYXNz")
@example("://a:b@c:d@")
def test_idempotent(text):
    """Redacting twice changes nothing."""
    for known in ((), ("hunter2", "abcdef")):
        once = redact_text(text, known)
        assert redact_text(once, known) == once


@settings(max_examples=400, deadline=None)
@given(st.lists(PIECES.filter(lambda piece: piece != "\ud800"), max_size=4).map("".join), st.booleans())
@example("password=hunter2", False)
@example("to\u212aen=hunter2", False)  # in small letters it is a k
@example("\u0130 token=hunter2", False)  # in small letters it is longer
@example("password=hunter2", True)
@example("pass\u200bword=hunter2", False)
@example(base64.b64encode(GITHUB.encode()).decode(), False)
@example("said abcdef", False)
@example("A" * 20 + "\n-----END PRIV" + "ATE KEY-----", False)
def test_what_is_passed_over_at_first_sight_would_stay_at_a_close_look(string, escaped):
    """Of a document's strings only those are looked at closely in which something could be."""
    word = _in_numbers(string) if escaped else json.dumps(string, ensure_ascii=False)
    strings = f'"kind"{word}"of a risk_level"'
    signs = find_secret_signs(strings)
    for known in ((), ("hunter2", "abcdef")):
        if not _is_suspicious_string(
            word, _list_suspicious_marks(strings, known, signs), may_have_names=signs.named
        ):
            assert _redact_plain_text(string, known, b"") == string


def test_words_of_shapes_have_no_quotation_mark():
    """So none of them begins in one string of a document and ends outside of it."""
    assert not any('"' in word for word in SHAPE_WORDS)


def _in_numbers(string):
    """A string of JSON in which no letter stands for itself."""
    return '"' + "".join(f"\\u{ord(char):04x}" for char in string) + '"'


def test_letters_written_as_numbers():
    """A key is found in a document in which none of its letters stands."""
    hidden = json.loads(redact_text(f'{{"of": {_in_numbers(f"a {GITHUB} b")}}}'))
    assert hidden == {"of": f"a {redaction_marker('github', GITHUB)} b"}


UNITS = [
    "password=", 'password="', "password='\\\"", "://a:", "-----BEGIN PRIV" + "ATE KEY-----\nA\n", "-", "eyJaaaaaaaaa.", "sk-",
    "token: ", "Bearer ", "a", "authorization:", "\\", "[redacted:", "eyJ", "--token ", "-u a:", "machine a login b ",
    "-eyJ", "-sk-", "-SG.a", "_hf_", "-AKIA", "\x1b[", "ghp_\n", "A\n", "\n+", "://a:b@", "cookie:a=", "password:\n ", "password:\n- a12345\n", "- password:\n", "password:\n\n", "password: !a ", "password:\n '", "password: |\n a\n", "AC", ".atlasv1.", "a.", "Q~", "pat.a", "A" * 16 + "\n-----END PRIV" + "ATE KEY-----\n", redaction_marker("aws", "x"), "password=" + redaction_marker("aws", "x"),
]  # fmt: skip


@pytest.mark.untraced
@for_each_case("unit", UNITS)
def test_linear(unit):
    """A hundred thousand letters of near misses take a moment; with the square of them it would be minutes."""
    started = time.process_time()
    redact_text(unit * (100_000 // len(unit)), ("a known value",))
    assert time.process_time() - started < 5.0


def test_bounded(monkeypatch):
    """However contrived the text, the number of passes has an end."""
    monkeypatch.setattr("steersman.judges.redaction.redact._MAX_REDACTION_PASSES", 1)
    assert redact_text("password=hunter2") == "password=" + redaction_marker("assignment", "hunter2")
