"""Verdict proof: of mutated verdicts none is accepted that is not exactly one, and none refused that is.

    python proofs/verdicts.py [--quick]

Good verdicts of many forms are mutated once to four times: bytes, characters, tokens, keys, types, numbers, fences, prose,
encodings, repeats. Each result is judged by steersman and by an oracle that shares no code with it (`oracle.py`).
"""

import json
import random
import sys
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

import oracle
from figures import main, stamp

from steersman.judges.replies.agent_reply import ParsedReply, parse_verdict

SEED = 20_260_301
CASES, SAMPLE = 200_000, 4_000
NOT_TRIED = (
    "texts of more than 20,000 characters, but for the few of each run that are longer than 1 MiB",
    "verdicts of the roles' own contracts (with a nonce): the same reader and rules, other fields",
)


# ── good ones ───────────────────────────────────────────────────────────────────────────────────────────────────────

WORDS = ("ok", "read it", "café 你好 🚀", 'say "no"', "line\nline\ttab", "\\", "/", "{}", "[]", "```json", "approve", "é", "a\u2028b", "a\u00a0b", "x" * 50)  # fmt: skip
FINDINGS = (
    "the loop never ends",
    "calc.py: wrong sign",
    '{"decision":"approve"}',
    "``` fence ```",
    "\U0001f680",
    "null",
)


def good(chance: random.Random) -> str:
    """A verdict as some careful agent would write it."""
    wanted = chance.sample(FINDINGS, chance.randrange(0, 4))
    verdict = {
        "decision": "changes_requested" if wanted else "approve",
        "summary": " ".join(chance.choices(WORDS, k=chance.randrange(1, 4))),
        "must_fix": wanted,
    }
    items = list(verdict.items())
    chance.shuffle(items)
    body = json.dumps(
        dict(items),
        ensure_ascii=chance.random() < 0.5,
        indent=chance.choice((None, None, 1, 2, "\t")),
        separators=chance.choice(((",", ":"), (", ", ": "), (" ,\n", " : "))),
    )
    wrap = chance.choice(
        ("{}", "{}", "{}", " {}\n", "```json\n{}\n```", "```\n{}\n```\n", "\n```json \r\n{}\r\n  ```")
    )
    return wrap.replace("{}", body)


# ── what may happen to them ─────────────────────────────────────────────────────────────────────────────────────────

SNIPPETS = (
    "{", "}", "[", "]", ",", ":", '"', "\\", "\\u0000", "\\ud800", "\\udc00", "\\ud83d\\ude80", "\0", "\ufeff", "\u200b", "\u00a0", "\x0b", "\u3164",
    "\x1f", "\x7f", "\ud800", "null", "true", "false", "NaN", "Infinity", "-Infinity", "0", "-0", "01", "1e999", "9007199254740993",
    "0x1", "+1", ".5", "1.", "'", "//c\n", "/*c*/", "```", "```json\n", "\n```", "~~~", "Here it is: ", " Done.", "LGTM", "undefined",
    "\\x41", "\\u00e9", "\\u0064", "\r", "\n", "\t", " ", "é", "🚀", "<!-- -->", "</s>", "#", ";", "e", "E", "_",
)  # fmt: skip
EXTRA = ('"extra":1', '"decision":"approve"', '"\\u0064ecision":"approve"', '"must_fix":[]', '"summary":"ok"', '"nonce":"x"', '"__proto__":{}', '"":0', '"Decision":"approve"', '"decision ":"approve"', '"a":[[[[1]]]]', '"a":NaN', '"a":1e400')  # fmt: skip
SWAPS = (
    ('"approve"', '"changes_requested"'), ('"changes_requested"', '"approve"'), ('"approve"', '"approved"'), ('"approve"', '" approve"'),
    ('"approve"', '"APPROVE"'), ('"approve"', "true"), ('"approve"', "1"), ('"approve"', "null"), ('"approve"', '["approve"]'),
    ('"approve"', '"\\u0061pprove"'), ('"approve"', '"аpprove"'), ('"approve"', "'approve'"), ('"approve"', "approve"), ('"approve"', '"approve\\u0000"'),
    ('"decision"', '"Decision"'), ('"decision"', '"\\u0064ecision"'), ('"decision"', '"summary"'), ('"summary"', '"decision"'), ('"summary"', '"must_fix"'),
    ('"must_fix"', '"must-fix"'), ("[]", "{}"), ("[]", "null"), ("[]", '[""]'), ("[]", '["x"]'), ("[]", "[null]"), ("[]", "[1]"), ("[]", '""'), ("[]", "[[]]"),
    ("[]", "[,]"), ("[]", "[ ]"), ("[", "[[["), ('"ok', '"'), ('"ok"', '"\u200b\u2060"'), ('"ok"', '"\\u2800"'), ('"null"', '"\u034f"'), (",", ",,"), (":", "::"), (":", "="), ("{", "{{"), ("}", "},"), ("}", ",}"), ("]", ",]"), ("\n", "\r"),
    ("```json", "```JSON"), ("```json", "```js"), ("```json", "````json"), ("```", "``"), ("\n```", "```"), ("```json\n", "```json "), (" ", "\u00a0"),
)  # fmt: skip


def insert(text: str, chance: random.Random) -> str:
    at = chance.randrange(len(text) + 1)
    return text[:at] + chance.choice(SNIPPETS) + text[at:]


def delete(text: str, chance: random.Random) -> str:
    at = chance.randrange(len(text) + 1)
    return text[:at] + text[at + chance.choice((1, 1, 1, 2, 8)) :]


def replace(text: str, chance: random.Random) -> str:
    at = chance.randrange(len(text) + 1)
    return (
        text[:at]
        + chance.choice(
            (chr(chance.randrange(32, 127)), chr(chance.randrange(0x110000)), chr(chance.randrange(32)))
        )
        + text[at + 1 :]
    )


def flip(text: str, chance: random.Random) -> str:
    """One bit of one byte; what is no UTF-8 any more arrives as half a pair, as from a reader of bytes."""
    data = bytearray(text.encode("utf-8", "surrogatepass"))
    if data:
        data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
    return bytes(data).decode("utf-8", "surrogateescape")


def cut(text: str, chance: random.Random) -> str:
    at = chance.randrange(len(text) + 1)
    return text[:at] if chance.random() < 0.7 else text[at:]


def double(text: str, chance: random.Random) -> str:
    first, last = sorted(chance.randrange(len(text) + 1) for _ in range(2))
    return text[:last] + text[first:last] * chance.choice((1, 1, 2)) + text[last:]


def move(text: str, chance: random.Random) -> str:
    a, b, c = sorted(chance.randrange(len(text) + 1) for _ in range(3))
    return text[:a] + text[b:c] + text[a:b] + text[c:]


def swap(text: str, chance: random.Random) -> str:
    old, new = chance.choice(SWAPS)
    return text.replace(old, new, chance.choice((1, 1, -1)))


def field(text: str, chance: random.Random) -> str:
    at = text.find("{") if chance.random() < 0.5 else text.rfind("}")
    extra = chance.choice(EXTRA)
    return (
        text[: at + 1] + extra + "," + text[at + 1 :]
        if text[at : at + 1] == "{"
        else text[:at] + "," + extra + text[at:]
    )


def around(text: str, chance: random.Random) -> str:
    other = chance.choice(
        (good(chance), chance.choice(SNIPPETS), "Verdict:\n", "\n\nThat is all.", "> " + text)
    )
    return other + text if chance.random() < 0.5 else text + other


def fence(text: str, chance: random.Random) -> str:
    opening = chance.choice(
        (
            "```json\n",
            "```\n",
            "```JSON\n",
            "``` json\n",
            "````\n",
            "~~~\n",
            "```json\r\n",
            "```json",
            "```python\n",
            "\t```\n",
        )
    )
    closing = chance.choice(
        ("\n```", "\n```\n", "```", "\n````", "\n~~~", "\n``` ", "\n```\nDone.", "\n\t```", "\r\n```", "")
    )
    return opening + text + closing


def case(text: str, chance: random.Random) -> str:
    return chance.choice((str.upper, str.title, str.swapcase))(text)


def wide(text: str, chance: random.Random) -> str:
    """A letter in its fullwidth or a look-alike form."""
    at = chance.randrange(len(text) + 1)
    char = text[at : at + 1]
    other = {"a": "а", "e": "е", "o": "о", '"': "\u201c", ":": "\uff1a", ",": "\u201a", "{": "\uff5b"}.get(
        char
    )
    return (
        text[:at]
        + (other or (chr(ord(char) + 0xFEE0) if char and "!" <= char <= "~" else ""))
        + text[at + 1 :]
    )


def long(text: str, chance: random.Random) -> str:
    """Around the limits: 4000 characters, 200 findings, 32 levels, 1 MiB."""
    number = chance.random()
    if number < 0.4:
        size = chance.choice((3990, 3999, 4000, 4001))
        return (
            text.replace('"summary":', f'"summary":"{chance.choice("xé🚀") * size}","x":', 1)
            if chance.random() < 0.3
            else json.dumps({"decision": "approve", "summary": "y" * size, "must_fix": []})
        )
    if number < 0.7:
        return json.dumps(
            {
                "decision": "changes_requested",
                "summary": "s",
                "must_fix": ["f"] * chance.choice((1, 199, 200, 201, 400)),
            }
        )
    if number < 0.95:
        depth = chance.choice((1, 29, 30, 31, 32, 33, 60))
        return text.replace("[]", "[" * depth + "]" * depth, 1)
    return text + " " * chance.choice((1024 * 1024 - len(text.encode("utf-8", "surrogatepass")), 1024 * 1024))


MUTATIONS: tuple[Callable[[str, random.Random], str], ...] = (
    insert, insert, delete, delete, replace, replace, flip, cut, double, move, swap, swap, swap, field, field, around, fence, case, wide,
)  # fmt: skip


# ── the proof ───────────────────────────────────────────────────────────────────────────────────────────────────────


def prove(quick: bool) -> dict[str, Any]:
    """Mutates, judges twice, counts."""
    began = time.monotonic()
    told = judged(SAMPLE if quick else CASES, SEED)
    right = not (told["wrongly_accepted"] or told["wrongly_refused"] or told["raised"] or told["unexplained"])
    return {
        "proof": "verdicts",
        "ok": right and told["accepted"] > 0,
        **stamp(quick, SEED),
        **told,
        "seconds": round(time.monotonic() - began),
        "not_tried": list(NOT_TRIED),
    }


def judged(cases: int, seed: int) -> dict[str, Any]:
    """That many mutated verdicts, each held against the oracle."""
    chance = random.Random(seed)  # noqa: S311  a proof repeats itself
    tally: Counter[str] = Counter()
    kinds: Counter[str] = Counter()
    examples: list[str] = []
    for number in range(cases):
        text, names = mutated(chance, number)
        kinds.update(names)
        verdict = _compared(text)
        tally[verdict] += 1
        if verdict not in ("accepted", "refused") and len(examples) < 10:
            examples.append(f"{verdict}: {text[:300]!a}")
    counts = ("accepted", "refused", "wrongly_accepted", "wrongly_refused", "raised", "unexplained")
    return {
        "mutated": cases,
        **{name: tally[name] for name in counts},
        "mutations": dict(sorted(kinds.items())),
        "examples": examples,
    }


def mutated(chance: random.Random, number: int) -> tuple[str, list[str]]:
    """One good verdict after one to four mutations; every two-hundredth goes to the limits."""
    text, names = good(chance), []
    if number % 200 == 0:
        return long(text, chance), ["long"]
    for mutation in chance.choices(MUTATIONS, k=chance.choice((1, 1, 1, 2, 2, 3, 4))):
        text = mutation(text, chance)[:20_000]
        names.append(mutation.__name__)
    return text, names


def _compared(text: str) -> str:
    expected = oracle.accepts(text)
    try:
        found = parse_verdict(text)
    except Exception:
        return "raised"
    if isinstance(found, ParsedReply):
        given = {
            "decision": found.value.decision,
            "summary": found.value.summary,
            "must_fix": list(found.value.must_fix),
        }
        return "accepted" if given == expected else "wrongly_accepted"
    if expected is not None:
        return "wrongly_refused"
    return "refused" if found.problems and all(found.problems) else "unexplained"


def describe_result(result: dict[str, Any]) -> list[str]:
    """The figures in words."""
    return [
        f"   {result['mutated']} mutated verdicts: {result['refused']} refused, {result['accepted']} still exact and accepted",
        f"   {result['wrongly_accepted']} wrongly accepted, {result['wrongly_refused']} wrongly refused, {result['raised']} raised",
        *(f"   {line}" for line in result["examples"]),
    ]


if __name__ == "__main__":
    sys.exit(main(__name__))
