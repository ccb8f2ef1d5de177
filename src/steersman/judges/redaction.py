"""Obvious secrets taken out of outside text before it is kept.

A marker stands where the secret stood, the same for the same secret, so that texts stay comparable.
**Invariant:** linear time; redacting twice changes nothing; a net for accidents, not a proof of absence.
"""

import base64
import hashlib
import re

_PASSES = 8  # a marker can lay bare what was hidden in front of it; two passes settle all but contrived texts
SHORTEST_KNOWN = 6  # a shorter value would tear holes into words that only contain it

_MARKER = r"\[redacted:[a-z_]+:[0-9a-f]{8}\]"
_FIRST = (
    r"(?<![A-Za-z0-9_-].)"  # behind the first letter of a token: nothing of its alphabet is in front of it
)
_TOKEN = r"[A-Za-z0-9_-]"  # noqa: S105  an alphabet
_BASE64 = r"[A-Za-z0-9._~+/=-]"
_GAP = r"[ \t]{0,4}"
_NAME = r"[aApPsStT](?i:(?<=p)assw(?:or)?d|(?<=p)assphrase|(?<=p)wd|(?<=p)rivate[_-]?key|(?<=s)ecret|(?<=t)oken|(?<=a)pi[_-]?key|(?<=a)ccess[_-]?key)"
_QUOTE = r"\\{0,3}[\"']"  # also as it looks inside a JSON string
_VALUE = r"[^\s\"'`,;&()\[\]{}<>|\\]"

# (kind, what stays in front, the secret). Runs are possessive, so that nothing is tried twice.
_SHAPES = (
    (
        "private_key",
        "",
        r"-----BEGIN[^\n-]{0,40}PRIVATE KEY(?: BLOCK)?-----(?:[^-]++|-(?!----))*+(?:-----END[^\n-]{0,60}-----)?",
    ),
    ("url", rf"://(?!{_MARKER}@)", r"[^\s/@:\"'<>]*+:[^\s/@\"'<>]++(?=@)"),
    (
        "authorization",
        rf"[aA](?i:uthorization)[\"']?{_GAP}[:=]{_GAP}[\"']?(?i:bearer|basic|token)[ \t]{{1,4}}",
        rf"{_BASE64}{{4,}}+",
    ),
    ("authorization", r"[bB](?i:earer)[ \t]{1,4}", rf"{_BASE64}{{20,}}+"),
    ("jwt", "", rf"e{_FIRST}yJ{_TOKEN}{{8,}}+\.{_TOKEN}{{8,}}+(?:\.{_TOKEN}*+)?"),
    ("github", "", rf"g{_FIRST}(?:h[pousr]_|ithub_pat_){_TOKEN}{{20,}}+"),
    ("aws", "", rf"A{_FIRST}(?:KI|SI|BI|CC)A[A-Z0-9]{{16}}(?!{_TOKEN})"),
    # A word such as sk-learn-compatible is no key: one capital or digit at least.
    ("api_key", "", rf"[srp]{_FIRST}k[-_](?=[a-z_-]*+[A-Z0-9]){_TOKEN}{{16,}}+"),
    (
        "api_key",
        "",
        rf"[xgnphA]{_FIRST}(?:(?<=x)ox[a-z]-|(?<=g)lpat-|(?<=n)pm_|(?<=p)ypi-|(?<=h)f_|(?<=A)Iza){_TOKEN}{{16,}}+",
    ),
    (
        "assignment",
        rf"{_NAME}(?:{_QUOTE})?{_GAP}[:=]{_GAP}(?P<quote>{_QUOTE})(?!{_MARKER}(?P=quote))",
        r"(?:(?!(?P=quote))(?:[^\n\\]|\\[^\n])){1,4096}+(?=(?P=quote))",
    ),
    ("assignment", rf"{_NAME}=(?!=)", rf"{_VALUE}++(?!\()"),  # not a call: token=make_token()
    ("assignment", rf"{_NAME}:[ \t]{{1,4}}", rf"(?=[^\s\"']{{0,64}}\d){_VALUE}{{8,}}+(?!\()"),
)
_KINDS = [kind for kind, _, _ in _SHAPES]
_ANY_SHAPE = "|".join(f"{keep}(?P<secret{n}>{hit})" for n, (_, keep, hit) in enumerate(_SHAPES))
_SECRETS = re.compile(f"{_MARKER}|{_ANY_SHAPE}")


def redact(text: str, known: tuple[str, ...] = ()) -> str:
    """The text with secrets replaced by markers; `known` are exact values to hide too, such as a server's token."""
    values = [value for value in known if len(value) >= SHORTEST_KNOWN]
    hidden = _exactly(values).sub(_replaced, text) if values else text
    for _ in range(_PASSES):
        before, hidden = hidden, _SECRETS.sub(_replaced, hidden)
        if hidden == before:
            break
    return hidden


def marker(kind: str, secret: str) -> str:
    """What stands in place of a secret."""
    return f"[redacted:{kind}:{hashlib.sha256(_bytes(secret)).hexdigest()[:8]}]"


def _exactly(values: list[str]) -> re.Pattern[str]:
    encoded = [base64.b64encode(_bytes(value)).decode() for value in values]
    longest_first = sorted({*values, *encoded}, key=lambda v: (-len(v), v))
    return re.compile(f"{_MARKER}|(?P<known>{'|'.join(map(re.escape, longest_first))})")


def _replaced(match: re.Match[str]) -> str:
    group = match.lastgroup
    if group is None:  # a marker from before
        return match[0]
    if group == "known":
        return marker("known", match[0])
    number = int(group.removeprefix("secret"))
    kept = match[0][: match.start(group) - match.start()]
    return kept + marker(_KINDS[number], match[group])


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "backslashreplace")
