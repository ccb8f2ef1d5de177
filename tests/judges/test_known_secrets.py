"""Known values go in whatever form a program prints them."""

import base64
from urllib.parse import quote

from hypothesis import given
from hypothesis import strategies as st
from tests.support.cases import for_each_case

from steersman.judges.redaction.redact import find_known_secrets, redact_text, redaction_marker

VALUE = 'Swordfish/"7\\+x?yz'
KNOWN = (VALUE,)
FORMS = {
    "plain": VALUE, "json": 'Swordfish/\\"7\\\\+x?yz', "percent": quote(VALUE, safe=""),
    "percent small": "Swordfish%2f%227%5c%2bx%3fyz", "hex": VALUE.encode().hex(),
    "hex capitals": VALUE.encode().hex().upper(), "base64": base64.b64encode(VALUE.encode()).decode(),
    "base64 for addresses": base64.urlsafe_b64encode(VALUE.encode()).decode(),
    "colours": f"{VALUE[:4]}\x1b[31m{VALUE[4:9]}\x1b[0m{VALUE[9:]}", "zero width": "\u200b".join(VALUE),
    "title": f"{VALUE[:4]}\x1b]0;t\x07{VALUE[4:]}", "lines": f"{VALUE[:7]}\n    {VALUE[7:]}",
    "shell lines": f"{VALUE[:7]}\\\n{VALUE[7:]}", "diff lines": f"{VALUE[:7]}\n+ {VALUE[7:]}",
    "escaped line": f"{VALUE[:7]}\\n{VALUE[7:]}",
}  # fmt: skip


@for_each_case("form", FORMS.values())
def test_forms(form):
    """Whatever form it has, the value leaves one and the same marker, and nothing else of the text is gone."""
    assert redact_text(f"a ({form}) b", KNOWN) == f"a ({redaction_marker('known', VALUE)}) b"


@for_each_case("before", [b"", b"u", b"us", b"user:"])
@for_each_case("after", [b"", b"@", b"@h"])
@for_each_case("width", [0, 20, 76])
def test_base64_of_something_around_it(before, after, width):
    """Inside a larger base64 text no letter of the value is left, however it is aligned and wrapped."""
    whole = base64.b64encode(before + VALUE.encode() + after).decode()
    lines = "\n".join(whole[n : n + width] for n in range(0, len(whole), width)) if width else whole
    hidden = redact_text(f"x {lines} y", KNOWN)
    left = hidden.replace("\n", "")
    assert not any(whole[n : n + 6] in left for n in range(len(before) * 8 // 6 + 1, len(whole) - 8))
    assert hidden.startswith("x ")
    assert hidden.endswith(" y")


@given(st.text(min_size=8, max_size=40), st.text(max_size=30), st.text(max_size=30))
def test_nothing_is_left(value, before, after):
    """A known value of any letters is gone, plain and in base64."""
    encoded = base64.b64encode(value.encode("utf-8", "backslashreplace")).decode()
    for form in (value, encoded):
        assert form not in redact_text(f"{before} {form} {after}", (value,))


def test_short_values():
    """Very short values are not searched for, and shorter ones only as they are."""
    assert redact_text("abc server7 c2VydmVyNw== 73657276657237", ("abc", "", "server7")) == (
        f"abc {redaction_marker('known', 'server7')} c2VydmVyNw== 73657276657237"
    )
    assert redact_text("serv\ner7", ("server7",)) == "serv\ner7"


def test_nothing_known():
    """Without known values nothing is searched for."""
    assert list(find_known_secrets("Swordfish", ())) == []


def test_a_value_in_a_decoded_text():
    """A base64 text that holds a known value among others is hidden where a form of it would not be found."""
    inner = base64.b64encode(f"password is {quote(VALUE, safe='')}".encode()).decode()
    assert inner not in redact_text(f"x {inner} y", KNOWN)
