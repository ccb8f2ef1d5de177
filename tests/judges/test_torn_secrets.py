"""What a cut leaves of a secret goes as well."""

import time

import pytest

from steersman.judges.redaction import marker, redact

GAP = "\n[... 12345 bytes left out ...]\n"
VALUE = "Swordfish-and-more-7"
TOKEN = "ghp_" + "Ab1" * 12
END = "-----END RSA PRIV" + "ATE KEY-----"


@pytest.mark.parametrize("cut", range(4, len(VALUE) - 3))
def test_a_known_value(cut):
    """Wherever it was cut, neither part is left, and both have the value's own marker."""
    hidden = redact(f"a {VALUE[:cut]}{GAP}{VALUE[cut:]} b", (VALUE,))
    assert hidden == f"a {marker('known', VALUE)}{GAP}{marker('known', VALUE)} b"
    line = redact(f"a {VALUE[:cut]} [... 7 bytes of this line left out ...]", (VALUE,))
    assert line == f"a {marker('known', VALUE)} [... 7 bytes of this line left out ...]"


def test_only_beside_a_cut():
    """The beginning of a value is no secret elsewhere, nor are a few letters."""
    for text in (f"a {VALUE[:9]} b", f"a {VALUE[:9]} b{GAP}c", f"a {VALUE[:3]}{GAP}{VALUE[-3:]} b"):
        assert redact(text, (VALUE,)) == text


def test_a_key():
    """A word that begins like a key and runs into the cut goes, with what goes on behind it."""
    hidden = redact(f"x={TOKEN[:14]}{GAP}{TOKEN[14:]} b\nc")
    assert TOKEN[:14] not in hidden
    assert TOKEN[14:] not in hidden
    assert hidden.endswith(" b\nc")
    assert redact(f"x={TOKEN[:14]}{GAP}\nc").endswith(f"{GAP}\nc")
    for text in (f"ordinary{GAP}words", f"ghp_a{GAP}words"):
        assert redact(text) == text


def test_the_end_of_a_private_key():
    """Lines of a key whose beginning was cut off go; what stands above them stays."""
    body = "MIIEabcdefghijklmnop\nqrstuvwxyz0123456789=="
    hidden = redact(f"out\nplain words here\n{body}\n{END}\nafter")
    assert hidden.startswith("out\nplain words here\n[redacted:private_key:")
    assert hidden.endswith("]\nafter")
    assert redact(f"{body}\n{END}").startswith("[redacted:private_key:")


@pytest.mark.parametrize("text", [END, f"\n{END}", f"see\n{END}", f"a b\n{END} c"])
def test_the_last_line_alone(text):
    """The last line of a key by itself hides nothing."""
    assert redact(text) == text


@pytest.mark.parametrize(
    "unit",
    [
        GAP,
        f"A{GAP}",
        f"{END}\n",
        f"MIIEabcdefghijklmnop\n{END}\n",
        "MIIEabcdefghijklmnop\n",
        f"ghp_aaaaaaaa{GAP}",
    ],
)
def test_linear(unit):
    """Many cuts and many ends take a moment."""
    started = time.process_time()
    redact(unit * (50_000 // len(unit)), (VALUE,))
    assert time.process_time() - started < 5.0
