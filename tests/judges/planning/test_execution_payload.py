"""Red line I1 (001 RED LINE #1): keys that could carry an execution, however they are spelt."""

from tests.support.cases import for_each_case

from steersman.judges.planning.payload import (
    MAX_PAYLOAD_PARTS,
    MAX_PAYLOAD_PROBLEMS,
    find_execution_payload,
    is_execution_key,
    is_inspectable,
)
from steersman.judges.replies.strict_json import MAX_JSON_DEPTH


@for_each_case(
    "key",
    [
        "execute", "EXECUTE", "exe-cute", "e_x_e_c", "exe\u200bcute", "exe\u00adcute", "ｅｘｅｃｕｔｅ", "𝐬𝐡𝐞𝐥𝐥", "ſhell",
        "run", "Runs", "shellCommand", "post_exec", "ShellCmd", "command_line", "Command Line", "command.line", "scripts", "sub-process",
        "os.system", "popen", "power_shell", "PowerShell", "eval", "ＰＹＴＨＯＮ", " exec ", "\texec\n", "ⅽⅿⅾ",
    ],
)  # fmt: skip
def test_spellings(key):
    """Case, separators and fullwidth letters make no difference."""
    assert is_execution_key(key)
    assert [p.field != "" for p in find_execution_payload({"a": [{key: 1}]})] == [True]


@for_each_case(
    "key",
    [
        "", "execution", "runtime", "command_id", "shellfish", "prune", "systemic", "évaluer", "运行", "-",
        "crunch",
    ],
)  # fmt: skip
def test_other_words(key):
    """A longer word that only begins alike is another word."""
    assert not is_execution_key(key)


def test_every_place_is_told_with_its_line():
    """All of them at once, in the order of the document, with the line of the nearest field that is known."""
    raw = {"a": {"run": 1, "b": [{}, {"exec": {"shell": 2}}]}, "sh": 0}
    found = find_execution_payload(raw, {("a",): 2, ("a", "b", 1, "exec"): 7})
    assert [(p.field, p.line) for p in found] == [
        ("sh", 0),
        ("a.run", 2),
        ("a.b[1].exec", 7),
        ("a.b[1].exec.shell", 7),
    ]
    assert all("planned_commands" in p.fix for p in found)


def test_values_are_not_looked_at():
    """Words in prose are words."""
    assert find_execution_payload({"goal": "run bash -c 'exec'", "list": ["shell", "execute"]}) == ()


def test_what_cannot_be_looked_through_counts():
    """Depth and size are bounded, and beyond the bound nothing is called clean."""
    deep: object = {"exec": 1}
    for _ in range(3000):
        deep = [deep]
    assert [p.message[:18] for p in find_execution_payload(deep)] == ["nested deeper than"]
    assert not is_inspectable(deep)
    wide = [0] * MAX_PAYLOAD_PARTS + [[]]
    assert len(find_execution_payload(wide)) == 1
    shallow: object = 1
    for _ in range(MAX_JSON_DEPTH):
        shallow = [shallow]
    assert find_execution_payload(shallow) == ()
    assert is_inspectable(shallow)
    assert not is_inspectable([shallow])
    assert len(find_execution_payload([{"run": 1}] * 1000)) == MAX_PAYLOAD_PROBLEMS
