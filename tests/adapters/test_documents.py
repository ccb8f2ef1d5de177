"""Documents in files: JSON or YAML by content, strictly, with the line of every field."""

import json
import os

import pytest
import yaml
from tests.support.cases import for_each_case

from steersman.adapters.storage.documents import MAX_DOCUMENT_BYTES, FileDocuments
from steersman.errors import ContractError, UserError

POLICY = {"policy_id": "policy_team", "mode": "semi_auto", "question_budget": 3, "auto_fallback": False}
INTENT = """# why: people with dots
id: intent_fix_login   # ours
evidence_refs:         # what speaks for it
  - fact://language/python
  - registry://command/cmd_read@1.0.0#000000000000
  # the last one
audit:
  created_by: ada
  checksum: 00   # of everything else
budgets: {max_files: 3}
"""


def read(data, name="execution_policy"):
    return FileDocuments().parse(data if isinstance(data, bytes) else data.encode(), "p.yaml", name)


def refused(data, name="execution_policy"):
    with pytest.raises(ContractError) as caught:
        read(data, name)
    assert caught.value.exit_code == 4
    assert caught.value.problems
    return str(caught.value)


def test_json_and_yaml_read_the_same():
    """The form is told by the content; numbers and truths of YAML are what the schema wants there."""
    for text in (
        json.dumps(POLICY),
        json.dumps(POLICY, indent=4),
        yaml.safe_dump(POLICY),
        "\n\n" + json.dumps(POLICY),
    ):
        assert read(text).value == POLICY
    assert read("mode: 3\nquestion_budget: '3'\nmax_retries: 3").value == {
        "mode": "3", "question_budget": "3", "max_retries": 3,
    }  # fmt: skip


def test_lines():
    """Every field has its line."""
    assert (
        read("mode: x\n\nconstraints:\n  forbidden_operations:\n  - deploy\n").lines[
            ("constraints", "forbidden_operations", 0)
        ]
        == 5
    )
    assert read('{\n"mode":\n"x"}').lines[("mode",)] == 2


@for_each_case(
    ("data", "said"),
    [
        ('{"a": 1,\n"a": 2}', "p.yaml, line 2: a: duplicate key"),
        ("a: 1\na: 2\n", "p.yaml, line 2: 'a' is given twice"),
        ("a: &x 1\nb: *x\n", "line 1: anchors"),
        ("a: !!python/object:os.system x\n", "line 1: tags"),
        ("a: 1\n---\nb: 2\n", "line 2: more than one document"),
        ('{"a":\n NaN}', "line 2: number NaN: is not JSON"),
        ('{"a": 1e999}', "line 1: number 1e999"),
        ('{"a":\n99999999999999999999}', "line 2: number 99999999999999999999…: beyond 2^53"),
        (b"\xef\xbb\xbfa: 1\n", "line 1: begins with a byte order mark"),
        (b"a: 1\nb: \xff\n", "line 2: not UTF-8"),
        ("\n\n{\n", "line 3: is not one JSON object"),
        ("{a: b}", "line 1: is not one JSON object"),
        ("[1]", "line 1: is not a JSON object"),
        ("{} {}", "line 1: more text after the first value"),
        ("a: [", "line 2:"),
        ("", "line 1: is empty"),
        ("# nothing\n", "line 1: is empty"),
        ("a: \x00", "line 1:"),
        ("- " * 40 + "a", "line 1: nested deeper than 32 levels"),
        ("[" * 40 + "]" * 40, "line 1: nested deeper than 32 levels"),
        ("a: " + "[" * 5000, "line 1: nested deeper than 32 levels"),
        ('{"a":\n' * 50 + '"x', "line 1: nested deeper than 32 levels"),
        ("a: " + "x" * MAX_DOCUMENT_BYTES, "line 1: longer than"),
        ("{" + ",".join(f'"{n}":1' for n in range(30_000)) + "}", "line 1: more than 20000 members"),
        ('{"a": "\\ud800"}', "line 1: a: holds a NUL character or a lone surrogate"),
    ],
)  # fmt: skip
def test_refused(data, said):
    """Everything doubtful is refused with file, line and reason."""
    assert said in refused(data)


@for_each_case("dump", [json.dumps, yaml.safe_dump, lambda value: "a: " + json.dumps(value["a"])])
def test_the_same_depth_in_every_form(dump):
    """Thirty-two levels are read, and of more nothing is."""
    value = {"b": 1}
    for _ in range(31):
        value = {"a": value}
    assert read(dump(value), "execution_intent").value["a"]
    assert "nested deeper than 32 levels" in refused(dump({"a": value}), "execution_intent")


def test_lines_of_json_go_as_far_as_yaml_reads_it():
    """What YAML writes otherwise, such as half a character as an escape, ends the lines and not the reading."""
    document = read('{"a": 1,\n"b": "\\ud83d\\ude00",\n"c": {\t"d": [1,\n2]}}', "execution_intent")
    assert document.value["b"] == "\U0001f600"
    assert document.lines == {(): 1, ("a",): 1, ("b",): 2}
    rest = read('{"a":1,\n\t"c":{"d":[1,\n2]}}', "execution_intent")
    assert rest.lines == {(): 1, ("a",): 1, ("c",): 2, ("c", "d"): 2, ("c", "d", 0): 2, ("c", "d", 1): 3}


def test_all_at_once():
    """A JSON file has all its problems told."""
    assert refused('{"a":1,"a":NaN,\n"b":NaN,"b":1}').count("\n") == 3


def test_files(tmp_path):
    """No link is followed, no pipe waited for; what cannot be read is a person's mistake."""
    good, link, pipe = tmp_path / "a.json", tmp_path / "l.json", tmp_path / "p.json"
    good.write_text("{}")
    link.symlink_to(good)
    os.mkfifo(pipe)
    documents = FileDocuments()
    assert documents.read(str(good), "execution_policy").value == {}
    for path, why in (
        (link, "is a link"),
        (pipe, "no file"),
        (tmp_path, "no file"),
        (tmp_path / "none", "No such file"),
    ):
        with pytest.raises(UserError, match=why):
            documents.read(str(path), "execution_policy")


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_sealing_keeps_comments(end):
    """Pins and checksum are put in their places; everything else stays as its author wrote it."""
    was = read(INTENT.replace("\n", end), "execution_intent")
    value = {
        **was.value,
        "evidence_refs": ["fact://language/python", "registry://command/cmd_read@1.1.0#111111111111"],
    }
    value["audit"] = {**value["audit"], "checksum": "f" * 64}
    now, kept = FileDocuments().replace_seal(was, value, "execution_intent")
    assert kept
    assert now.value == value
    expected = INTENT.replace("cmd_read@1.0.0#000000000000", "cmd_read@1.1.0#111111111111").replace(
        ": 00 ", f": {'f' * 64} "
    )
    assert now.text == expected.replace("\n", end)


def test_sealing_adds_what_is_missing():
    """An intent without a checksum gets one."""
    was = read("evidence_refs:\n- fact://a/b\naudit:\n    source: human\n", "execution_intent")
    value = {
        "evidence_refs": ["fact://a/b", "fact://c/d"],
        "audit": {"checksum": "e" * 64, "source": "human"},
    }
    now, kept = FileDocuments().replace_seal(was, value, "execution_intent")
    assert kept
    assert (
        now.text
        == f"evidence_refs:\n- fact://a/b\n- fact://c/d\naudit:\n    checksum: {'e' * 64}\n    source: human\n"
    )


@pytest.mark.parametrize(
    "text",
    ["evidence_refs: [fact://a/b]\naudit: {source: human}\n", "evidence_refs: []\naudit: {checksum: x}\n"],
)
def test_sealing_another_layout(text):
    """What has no lines of its own is written anew, and that is said."""
    value = {
        "evidence_refs": ["fact://a/b", "fact://c/d"],
        "audit": {"source": "human", "checksum": "e" * 64},
    }
    now, kept = FileDocuments().replace_seal(read(text, "execution_intent"), value, "execution_intent")
    assert not kept
    assert now.value == value


def test_sealing_json():
    """JSON has no comments to lose."""
    was = read('{"evidence_refs":[],"audit":{}}', "execution_intent")
    value = {"evidence_refs": ["fact://a/b"], "audit": {"checksum": "é"}}
    now, kept = FileDocuments().replace_seal(was, value, "execution_intent")
    assert (kept, now.value) == (True, value)
    assert '"é"' in now.text


def test_rendering_reads_back():
    """What is written new reads as it was meant, in both forms."""
    value = {"id": "true", "title": "123", "description": "a: b # c\n- d\n", "budgets": {"max_files": 3}}
    value["constraints"] = {"no_fabrication": True, "execution": "null"}
    value["evidence_refs"] = ["x" * 300, "\u2028é", "", "~"]
    for form in ("json", "yaml"):
        again = read(FileDocuments().render(value, form), "execution_intent")
        assert (again.value, again.form) == (value, form)


def test_writing(tmp_path):
    """Whole or not at all: a new file never takes another's place, an old one keeps its mode."""
    documents, path = FileDocuments(), tmp_path / "a.yaml"
    documents.write(str(path), "one", new=True)
    with pytest.raises(UserError, match="there already"):
        documents.write(str(path), "two", new=True)
    path.chmod(0o600)
    documents.write(str(path), "three", new=False)
    assert path.read_text() == "three"
    assert path.stat().st_mode & 0o777 == 0o600
    with pytest.raises(UserError, match="cannot write"):
        documents.write(str(tmp_path / "no" / "x"), "y", new=True)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.yaml"]
