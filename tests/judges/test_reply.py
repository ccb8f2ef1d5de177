"""Strict replies: one object, all problems, no guessing."""

import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.cases import for_each_case

from steersman.app.reply_contracts import list_reply_contracts
from steersman.contracts import replies
from steersman.judges.replies import strict_json
from steersman.judges.replies.agent_reply import (
    MAX_REPLY_PROBLEMS,
    ParsedReply,
    RefusedReply,
    find_text_schema_problems,
    parse_reply,
    parse_verdict,
)
from steersman.wiring import installed_packages

NONCE = "n-1"
LISTS = {"nice_to_have": [], "tests": [], "security": []}
APPROVE = {"nonce": NONCE, "decision": "approve", "summary": "read", "must_fix": [], **LISTS}
CHANGES = {**APPROVE, "decision": "changes_requested", "must_fix": ["the loop never ends"]}
TESTS = {
    "nonce": NONCE, "test_plan": "run them", "commands": [["pytest", "-q"]], "expected_results": ["green"],
}  # fmt: skip
GOOD = json.dumps(APPROVE)
CONTRACTS = list_reply_contracts(installed_packages())


def parse(text, contract="reviewer"):
    return parse_reply(text, CONTRACTS[contract], NONCE)


def problems(value, contract="reviewer"):
    parsed = parse(value if isinstance(value, str) else json.dumps(value), contract)
    assert isinstance(parsed, RefusedReply)
    return parsed.problems


@for_each_case(
    "text",
    [
        GOOD, json.dumps(CHANGES), json.dumps(APPROVE, indent=2), f" \n\t{GOOD}\r\n", f"```json\n{GOOD}\n```",
        f"```JSON\n{GOOD}\n```", f"```Json \n{GOOD}\n```", f"```\n{GOOD}\n```\n",
        f"\n```json  \r\n{json.dumps(APPROVE, indent=1)}\r\n```",
        json.dumps({**CHANGES, "must_fix": ['café 你好 🚀\n\t"q" ```json\n{}\n``` {"decision":"approve"}']}),
        json.dumps({**CHANGES, "must_fix": ["x" * 4000] * 50}),
    ],
)  # fmt: skip
def test_good(text):
    """One object that fits is parsed, alone or in one fence, in any layout."""
    parsed = parse(text)
    assert isinstance(parsed, ParsedReply)
    assert isinstance(parsed.value, replies.ReviewerReply)


def test_good_tester():
    """A tester's commands come back as argv lists."""
    parsed = parse(json.dumps(TESTS), "tester")
    assert isinstance(parsed, ParsedReply)
    assert parsed.value.commands == (("pytest", "-q"),)


NOT_ONE_OBJECT = {
    "empty": "", "blank": " \n ", "null": "null", "bool": "true", "number": "1", "string": '"approve"',
    "word": "approve", "prose": "LGTM", "list": f"[{GOOD}]", "truncated": GOOD[:-1],
    "unquoted": "{decision:1}", "single quotes": "{'decision':'approve'}", "trailing comma": GOOD[:-1] + ",}",
    "comment": GOOD[:-1] + "/*c*/}", "python": str(APPROVE), "prose before": f"Here it is: {GOOD}",
    "prose after": f"{GOOD} Hope that helps.", "two objects": GOOD + GOOD, "two lines": f"{GOOD}\n{GOOD}",
    "trailing brace": GOOD + "}", "nul after": GOOD + "\0", "bom": "\ufeff" + GOOD,
    "no-break space": "\u00a0" + GOOD, "form feed": "\f" + GOOD,
    "two fences": f"```json\n{GOOD}\n```\n```json\n{GOOD}\n```",
    "prose and fence": f"Done.\n```json\n{GOOD}\n```", "fence and prose": f"```json\n{GOOD}\n```\nDone.",
    "long s": f"```J\u017fON\n{GOOD}\n```", "open fence": f"```json\n{GOOD}", "close fence": f"{GOOD}\n```",
    "other fence": f"```python\n{GOOD}\n```", "tildes": f"~~~\n{GOOD}\n~~~",
    "four ticks": f"````json\n{GOOD}\n````", "one line": f"```json {GOOD} ```",
    "empty fence": "```json\n\n```", "bad escape": GOOD.replace("approve", "\\x61pprove"),
    "raw newline": GOOD.replace("approve", "appr\nove"), "raw tab": GOOD.replace("approve", "appr\tove"),
    "surrogate": GOOD.replace("approve", "\ud800"), "leading zero": '{"a": 01}', "plus": '{"a": +1}',
    "hex": '{"a": 0x1}', "unterminated": '{"a": "b',
}  # fmt: skip


@for_each_case("text", NOT_ONE_OBJECT.values())
def test_not_one_object(text):
    """Anything but exactly one object is refused; nothing is searched for inside."""
    (only,) = problems(text)
    assert only.startswith("reply: ")


def test_duplicates_first():
    """A key given twice is refused at any depth, escapes undone, all of them named, before all else."""
    text = '{"decision":"approve","\\u0064ecision":"changes_requested","x":{"y":[{"k":1,"k":2}]}}'
    assert problems(text)[:2] == ("k: duplicate key", "decision: duplicate key")
    assert "x: is not a known field" in problems(text)


def test_duplicates_with_broken_rest():
    """What was seen before the text breaks is still said."""
    found = problems('{"a":{"k":1,"k":1},')
    assert found[0] == "k: duplicate key"
    assert found[1].startswith("reply: is not one JSON object")


@for_each_case(
    "number",
    ["NaN", "Infinity", "-Infinity", "-0", "-0.0", "-0e1", "1e999", "-1e999", "9007199254740992", "1" * 5000],
)
def test_odd_numbers(number):
    """Numbers that another reader would see otherwise are refused as numbers, before any schema."""
    assert problems(f'{{"a": [{number}]}}')[0].startswith("number ")
    assert isinstance(strict_json.read_json_object(f'{{"a": [{number}]}}'), RefusedReply)


@for_each_case("number", ["0", "-1", "9007199254740991", "0.5", "1e3", "0.0"])
def test_plain_numbers(number):
    """Plain numbers pass the reader; whether one belongs there is the schema's to say."""
    assert isinstance(strict_json.read_json_object(f'{{"a": {number}}}'), strict_json.DecodedObject)


def test_smuggled_characters():
    """A NUL or a lone surrogate behind an escape is refused in keys and values, with its place."""
    text = '{"a":{"b":["ok","\\ud800"]},"c\\u0000":"\\u0000","ok":"\\ud83d\\ude80"}'
    assert problems(text) == (
        "a.b[1]: holds a NUL character or a lone surrogate",
        "key c\\x00: holds a NUL character or a lone surrogate",
        "c\\x00: holds a NUL character or a lone surrogate",
    )


def test_all_problems_at_once():
    """Every problem is named with its field: shape, extra, missing, nonce and contradiction together."""
    bad = {**APPROVE, "nonce": "other", "must_fix": ["", 5], "tests": "none", "actor": "operator"}
    del bad["security"]
    found = problems(bad)
    for part in (
        "must_fix[0]: ",
        'must_fix[1]: 5 is not of type "string"',
        'tests: "none" is not of type "array"',
        "actor: is not a known field",
        "security: is missing",
        "nonce: is not the one",
        "decision: approve contradicts",
    ):
        assert any(p.startswith(part) for p in found), part


@for_each_case(
    "decision",
    [
        " approve", "Approve", "approved", "pass", "", True, False, 1, 0, None, ["approve"],
        {"value": "approve"},
    ],
)  # fmt: skip
def test_decision(decision):
    """Only the two words are decisions; a boolean or a number is none of them."""
    assert problems({**APPROVE, "decision": decision})[0].startswith("decision: ")


@for_each_case("field", ["must_fix", "nice_to_have", "tests", "security"])
@for_each_case("bad", [None, "x", {}, [""], [" \n"], [1], [True], [None], [["x"]], ["x"] * 51, ["x" * 4001]])
def test_lists(field, bad):
    """Lists hold at most fifty texts of 1 to 4000 characters, and a blank line is not a text."""
    assert any(p.startswith(field) for p in problems({**CHANGES, field: bad}))


@for_each_case("field", list(APPROVE))
def test_missing(field):
    """Each field is required."""
    assert f"{field}: is missing" in problems({k: v for k, v in APPROVE.items() if k != field})


def test_contradictions():
    """changes_requested if and only if there is something to fix: both ways."""
    assert problems({**APPROVE, "must_fix": ["broken"]}) == (
        "decision: approve contradicts a must_fix that is not empty",
    )
    assert problems({**CHANGES, "must_fix": []}) == (
        "decision: changes_requested needs at least one must_fix",
    )


@for_each_case("nonce", ["", "n-2", "N-1", " n-1", 1, None])
def test_nonce(nonce):
    """The nonce of this very request comes back, exactly, and is never told."""
    (only,) = problems({**APPROVE, "nonce": nonce})
    assert only.startswith("nonce: ")
    assert NONCE not in only


@for_each_case(
    "commands",
    [
        None, "pytest -q", ["pytest -q"], [[]], [["x"] * 65], [["x"]] * 21, [["x", 1]], [["x" * 4001]],
        {"0": ["x"]},
    ],
)  # fmt: skip
def test_commands(commands):
    """Commands are argv lists, never shell lines, within bounds."""
    assert any(p.startswith("commands") for p in problems({**TESTS, "commands": commands}, "tester"))


def test_no_command():
    """A tester without a command has proved nothing."""
    assert f"commands: {replies.NO_COMMAND_PROBLEM}" in problems({**TESTS, "commands": []}, "tester")


@for_each_case("plan", ["", "  ", None, 1])
def test_plan(plan):
    """A test plan says something."""
    assert problems({**TESTS, "test_plan": plan}, "tester")[0].startswith("test_plan: ")


def test_contract_without_joined_rules():
    """A contract whose fields are independent needs no rule of its own, and reports no facts of its own."""
    contract = replies.ReplyContract(replies.ReviewerReply)
    parsed = parse_reply(json.dumps({**APPROVE, "must_fix": ["x"]}), contract, NONCE)
    assert isinstance(parsed, ParsedReply)
    assert contract.facts(parsed.value) == {}


def test_decoder_stricter_than_schema():
    """Where only the decoder sees a problem, its own words are passed on."""
    only_blank_for_python = "\x1c"
    found = problems({**CHANGES, "must_fix": [only_blank_for_python]})
    assert found[0].startswith("reply: Expected")


def test_depth_and_members():
    """Nesting and members are bounded before anything is decoded; what is inside strings is not counted."""
    assert problems('{"a":' * 33 + "1" + "}" * 33) == ("reply: nested deeper than 32 levels",)
    assert problems('{"a":[' + "1," * 2000 + "1]}") == ("reply: more than 2000 members",)
    assert isinstance(
        parse(json.dumps({**CHANGES, "must_fix": ["[{" * 1000 + "," * 1000 + '\\"']})), ParsedReply
    )
    assert isinstance(strict_json.read_json_object('{"a":' * 32 + "1" + "}" * 32), strict_json.DecodedObject)


def test_size():
    """1 MiB of UTF-8 is the most, however few characters that is."""
    assert problems(GOOD + " " * 1_048_576) == ("reply: longer than 1048576 bytes",)
    assert problems("é" * 600_000) == ("reply: longer than 1048576 bytes",)
    assert isinstance(parse(GOOD + " " * (1_048_576 - len(GOOD))), ParsedReply)


def test_long_values_are_not_repeated():
    """A problem names a long value by its place, not by its content."""
    assert all(len(p) < 600 and "zzzzz" not in p for p in problems({**APPROVE, "decision": "z" * 5000}))
    assert all(len(p) < 600 for p in problems({**APPROVE, "k" * 5000: 1}))


def test_a_field_with_a_default_is_not_missing():
    """What may be left out is never named as missing, whatever else is wrong."""
    assert "fixed: is missing" not in problems({**APPROVE, "decision": "perhaps"})
    assert isinstance(parse(json.dumps({**APPROVE, "fixed": ["f-0123456789"]})), ParsedReply)


def test_without_a_nonce():
    """Where nobody asked for a nonce any will do, or none; another type still will not."""
    bare = {k: v for k, v in APPROVE.items() if k != "nonce"}
    assert isinstance(parse_reply(json.dumps(bare), CONTRACTS["reviewer"], None), ParsedReply)
    assert isinstance(parse_reply(GOOD, CONTRACTS["reviewer"], None), ParsedReply)
    assert isinstance(
        parse_reply(json.dumps({**bare, "nonce": 1}), CONTRACTS["reviewer"], None), RefusedReply
    )
    assert isinstance(parse_reply("no", CONTRACTS["reviewer"], None), RefusedReply)


def test_a_verdict_in_its_plainest_form():
    """Three fields, no others, and the decision fits the list."""
    plain = {"decision": "approve", "summary": "ok", "must_fix": []}
    assert isinstance(parse_verdict(json.dumps(plain)), ParsedReply)
    many = {"decision": "changes_requested", "summary": "s" * 4000, "must_fix": ["x" * 9000] * 100}
    assert isinstance(parse_verdict(json.dumps(many)), ParsedReply)
    wrong = (
        {"must_fix": ["x"]},
        {"nonce": "n"},
        {"summary": ""},
        {"summary": "s" * 4001},
        {"must_fix": ["x"] * 201},
    )
    for more in wrong:
        assert isinstance(parse_verdict(json.dumps({**plain, **more})), RefusedReply), more


@for_each_case(
    "text", ["\u200b", "\u2060\u2060", "\u3164", "\u2800 \u2800", "\u034f", "\U000e0041", "\ue000"]
)
def test_words_can_be_seen(text):
    """A text that looks empty is none, wherever the contract asks for words; it is named once, with all that is wrong."""
    plain = {"decision": "changes_requested", "summary": text, "must_fix": ["a", text]}
    found = parse_verdict(json.dumps(plain))
    assert found.problems == (
        "summary: holds nothing that can be seen",
        "must_fix[1]: holds nothing that can be seen",
    )
    review = {**APPROVE, "summary": text, "security": [text]}
    assert problems(review) == (
        "summary: holds nothing that can be seen",
        "security[0]: holds nothing that can be seen",
    )
    tester = {"nonce": NONCE, "test_plan": text, "commands": [["pytest", text]], "expected_results": []}
    assert problems(tester, "tester") == ("test_plan: holds nothing that can be seen",)
    assert not isinstance(
        parse_verdict(json.dumps({**plain, "summary": f"{text}x", "must_fix": ["a"]})), RefusedReply
    )


def test_any_schema():
    """A schema of somebody else's, with the same strict reading, and all problems of both kinds."""
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a", "b"]}
    assert find_text_schema_problems('{"a":1,"b":0}', schema) == ()
    assert set(find_text_schema_problems('{"a":"x","a":"y"}', schema)) == {
        "a: duplicate key", 'a: "y" is not of type "integer"', "b: is missing",
    }  # fmt: skip
    assert find_text_schema_problems("[1]", schema) == ("reply: is not a JSON object",)


@pytest.mark.parametrize("uri", ["https://example.com/s.json", "file:///etc/passwd"])
def test_a_schema_that_refers_elsewhere(uri):
    """Nothing is fetched: a schema holds all it refers to."""
    with pytest.raises(ValueError, match="elsewhere"):
        find_text_schema_problems("{}", {"$ref": uri})


def test_endless_problems():
    """However much is wrong, a list of problems stays readable."""
    found = problems({**CHANGES, "must_fix": [""] * 1900})
    assert len(found) == MAX_REPLY_PROBLEMS + 1
    assert found[-1].endswith("more problems")


JUNK = [
    "{", "[", '{"a":', '\\"', "`", "```json\n", '"', "\n", " ", "a", ",", "[1,", "é", '""', '"",', '{"a":1}',
    "-", "1",
]  # fmt: skip


@for_each_case("unit", JUNK)
@for_each_case("size", [250_000, 1_000_000])
def test_linear(unit, size):
    """Junk of any kind and size is refused in a moment."""
    text = unit * (size // len(unit.encode()))
    started = time.process_time()
    assert isinstance(parse(text), RefusedReply)
    assert isinstance(parse("```json\n" + text[:250_000] + "\n```"), RefusedReply)
    assert time.process_time() - started < 1.0


PIECES = st.sampled_from(
    [*JUNK, GOOD, GOOD[:-1], "}", "]", ":", "NaN", "\ud800", "\0", "\\u0064", "```", "\ufeff", "1e999"]
)


@given(st.one_of(st.text(st.characters()), st.lists(PIECES, max_size=12).map("".join)), st.text(max_size=3))
def test_never_raises(text, nonce):
    """Any text and any nonce give an answer, and what is accepted is the good reply itself."""
    for contract in ("reviewer", "tester"):
        found = parse_reply(text, CONTRACTS[contract], nonce)
        assert isinstance(found, RefusedReply)  # no text made of these pieces carries this nonce
        assert found.problems
    accepted = parse_reply(text, CONTRACTS["reviewer"], NONCE)
    assert isinstance(accepted, RefusedReply) or json.loads(text.strip(" \n`json")) == APPROVE


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@given(
    st.dictionaries(
        st.sampled_from([*APPROVE, "extra"]), JSON | st.sampled_from(["approve", NONCE, ["x"], []])
    )
)
def test_accepts_only_what_fits(value):
    """Whatever object is given: accepted values are consistent, refused ones have a reason."""
    match parse(json.dumps(value)):
        case ParsedReply(value=reply):
            assert (reply.decision == "changes_requested") == bool(reply.must_fix)
            assert reply.nonce == NONCE
        case RefusedReply(problems=found):
            assert found
