"""A pack of facts: harmless, bounded, and the same for the same files."""

import itertools

import pytest
from tests.support.cases import for_each_case
from tests.support.rule_contexts import SCANNED, examine_texts, scan_texts

from steersman.contracts.planning.context import FactPack, ScanBounds
from steersman.judges.facts import reading
from steersman.judges.facts.choice import find_excluded_directory, select_project_files
from steersman.judges.facts.finding import ProjectSource, classify_task_name
from steersman.judges.facts.pack import MAX_FACTS_PER_KIND, MAX_FINDINGS_PER_FILE, build_fact_pack
from steersman.kernel.canonical import canonical_bytes, sha256_hex

TOKEN = "ghp_" + "a1B2c3D4e5" * 4


def test_no_secret_and_no_control_character_gets_in():
    """Values and snippets have markers that nobody can try words against, and nothing that a terminal obeys."""
    pack = scan_texts({"package.json": '{"scripts": {"test": "TOKEN=' + TOKEN + ' vitest \\u001b[2J"}}'})
    written = canonical_bytes(pack).decode()
    assert TOKEN not in written
    assert "[redacted:" in pack.facts[0].value
    assert "[redacted:" in pack.evidence[0].snippet
    assert "\x1b" not in pack.facts[0].value
    assert not [word for word in written.split("[redacted:")[1:] if word.partition("]")[0].count(":")]


def ids(text, path="package.json"):
    """The names of what a file shows, by fact."""
    return {(f.kind, f.name): f.evidence for f in scan_texts({path: text}).facts}


LONG = "vitest " + "x" * 300


@pytest.mark.parametrize("command", ["vitest", LONG], ids=["short", "longer than what is shown"])
def test_a_place_is_known_by_its_own_lines(command):
    """Other lines of its file may change, come and go; its own may not."""
    text = f'{{"scripts": {{\n"test": "{command}",\n"build": "tsc"\n}}}}'
    name = "test_command", next(n for k, n in ids(text) if k == "test_command")
    assert ids(text)[name] == ids("\n" + text.replace("tsc", "tsc -b"))[name]
    assert ids(text)[name] != ids(text.replace("vitest", "vitest run"))[name]
    assert ids(text)[name] != ids(text.replace(command, f"{command} y"))[name]


def test_the_same_lines_twice_are_two_places():
    """Each has its own name and its own line."""
    text = "jobs:\n  a:\n    steps:\n      - run: pytest\n  b:\n    steps:\n      - run: pytest\n"
    shown = scan_texts(
        {".github/workflows/ci.yml": text, "Makefile": "test:\n\tpytest\ntest:\n\tpytest\n"}
    ).evidence
    assert len({e.id for e in shown}) == len(shown)
    assert len({(e.source_file, e.first_line, e.last_line) for e in shown}) == len(shown)


@pytest.mark.parametrize("path", ["app/settings.py", "package.json"], ids=["read", "cannot be read"])
def test_no_digest_of_a_file_lets_a_secret_be_tried_out(path):
    """Whoever has the pack and guesses the secret of a short file learns nothing: two secrets have the same pack. A file
    without one has the digest of its bytes."""
    texts = [f'PASSWORD = "{secret}"\n' for secret in ("hunter2", "letmein")]
    first, second = (canonical_bytes(scan_texts({path: text})).decode() for text in texts)
    assert first == second
    assert all(sha256_hex(text.encode()) not in first for text in texts)
    assert {page.digest for page in examine_texts({path: "LIMIT = 10\n"})} == {sha256_hex(b"LIMIT = 10\n")}


@pytest.mark.parametrize("more", ["", "x" * 300])
def test_no_name_of_a_place_lets_a_secret_be_tried_out(more):
    """Two secrets in the same words have the same name, also where the place is longer than what is shown."""
    secrets = TOKEN, "ghp_" + "Z9y8X7w6V5" * 4
    texts = [f'{{"scripts": {{\n"test": "TOKEN={secret} vitest {more}"}}}}' for secret in secrets]
    assert ids(texts[0]) == ids(texts[1])


def test_a_command_that_could_not_be_shown_is_none():
    """A word that would change on the way to a screen, a place that would, a name that is none: no fact."""
    files = {
        "a\u202eb/go.mod": "module x\n",
        "package.json": '{"scripts": {"test\\u0000": "x"}, "name": " "}',
        f"{TOKEN}/Makefile": "test:\n",
    }
    assert [(f.kind, f.name) for f in scan_texts(files).facts] == []


def test_a_secret_file_is_never_opened():
    """It is named; there is no snippet, and its digest is that of no bytes, so that nobody can try out its content."""
    pack = scan_texts({".env": "PIN=1234\n"})
    assert [(e.snippet, e.digest) for e in pack.evidence] == [("", sha256_hex(b""))]
    assert select_project_files((".env",)).read == ()
    odd = select_project_files(("a\u202e/.env",))
    assert build_fact_pack("shop", [], odd, SCANNED).facts == ()


def test_a_file_and_a_kind_give_only_so_many():
    """What is over the bound is left out and said; what is nearer the top is kept."""
    many = "".join(f"test-{n}:\n" for n in range(MAX_FINDINGS_PER_FILE + 50))
    assert len(scan_texts({"Makefile": many}).facts) == MAX_FINDINGS_PER_FILE
    folders = {f"z{n:04}/Makefile": "test:\n" for n in range(MAX_FACTS_PER_KIND + 1)} | {
        "Makefile": "test:\n"
    }
    stopped = ScanBounds(
        files_seen=1, files_read=1, bytes_read=1, skipped=0, complete=False, stopped_by="other"
    )
    pack = scan_texts(folders, stopped)
    assert (len(pack.facts), pack.facts[0].root) == (MAX_FACTS_PER_KIND, ".")
    assert pack.bounds.stopped_by == f"other; more than {MAX_FACTS_PER_KIND} facts of kind test_command"
    assert not scan_texts(folders).bounds.complete
    assert {e.id for e in pack.evidence} == {name for f in pack.facts for name in f.evidence}


def test_evidence_of_one_fact_is_bounded():
    """Twenty places are enough to show something."""
    pom = "<project>" + "<dependency><groupId>org.postgresql</groupId></dependency>\n" * 30 + "</project>"
    fact = next(f for f in scan_texts({"pom.xml": pom}).facts if f.kind == "database")
    assert len(fact.evidence) == 20


def test_the_order_of_reading_makes_no_difference():
    """Pages in any order give the same bytes."""
    files = {
        "a/go.mod": "module a\n", "go.mod": "module b\n", "b.py": "", "a.py": "",
        "Makefile": "test:\nlint:\n",
    }  # fmt: skip
    wanted = canonical_bytes(scan_texts(files))
    for shuffled in itertools.permutations(files.items()):
        assert canonical_bytes(scan_texts(dict(shuffled))) == wanted
    assert canonical_bytes(scan_texts(files | {"go.mod": "module c\n"})) != wanted
    assert (
        canonical_bytes(FactPack(**{n: getattr(scan_texts(files), n) for n in FactPack.__struct_fields__}))
        == wanted
    )


def test_samples_that_could_not_be_read():
    """A language without evidence is no fact."""
    choice = select_project_files(("a.py", "b.go"))
    pages = examine_texts({"a.py": ""})
    assert [f.name for f in build_fact_pack("x", pages, choice, SCANNED).facts] == ["python"]


@for_each_case(
    ("path", "outside"),
    [
        ("a/node_modules/b/c.js", "a/node_modules"),
        ("Vendor/x", "Vendor"),
        ("build/x/dist/y", "build"),
        ("vendor", None),
        ("src/vendors/x", None),
    ],
)
def test_what_is_not_the_projects_own(path, outside):
    """Folders of others and of tools, by their names; a file may be called like one."""
    assert find_excluded_directory(path) == outside


def test_names_of_tasks():
    """The first word of a name says what it does."""
    assert [classify_task_name(n) for n in ("test", "test:unit", "lint-fix", "type-check", "attest", "")] == [
        "test_command", "test_command", "lint_command", "type_command", None, None,
    ]  # fmt: skip


class TestReading:
    """Files are read within bounds, and what cannot be read is empty."""

    def test_toml(self):
        assert reading.parse_manifest_toml("\ufeffa = 1\r\n") == {"a": 1}
        assert reading.parse_manifest_toml("[[[") == {}
        assert reading.parse_manifest_toml("a = " + "[" * 3_000) == {}
        assert reading.parse_manifest_toml("a." * 3_000 + "a = 1") == {}
        assert reading.parse_manifest_toml("#" * 10 + "\n" * reading.MAX_INSPECTED_CHARACTERS) == {}

    def test_json(self):
        assert reading.parse_manifest_json('\ufeff{"a": 1}') == {"a": 1}
        assert reading.parse_manifest_json("[1]") == {}
        assert reading.parse_manifest_json("{") == {}
        assert reading.parse_manifest_json('{"a":' * 50_000) == {}
        assert reading.parse_manifest_json('"\ud800"') == {}
        assert reading.parse_manifest_json(" " * (reading.MAX_INSPECTED_CHARACTERS + 1)) == {}

    def test_tables_and_words(self):
        assert reading.get_manifest_table({"a": {"b": {"c": 1}}}, "a", "b") == {"c": 1}
        assert reading.get_manifest_table({"a": 3}, "a", "b") == {}
        assert reading.list_manifest_texts(["a", 3]) == ["a"]
        assert reading.list_manifest_texts("abc") == []
        assert len(reading.get_manifest_table({str(n): n for n in range(5_000)})) == reading.MAX_TABLE_MEMBERS
        assert reading.get_manifest_text({"a": 3}, "a") == ""

    def test_yaml(self):
        text = "# jobs:\n\njobs: # all\n  a: |\n    no: key\n  # b: 1\n  - c\n   x: 1\n  'd' : {e: 1}\nurl:x\n  f: 1\n"
        assert reading.list_yaml_members(text.split("\n"), "jobs") == [("a", 4), ("d", 9)]
        assert reading.list_yaml_members(["tasks: {a: b}", "jobs:"], "jobs") == []

    def test_ini(self):
        lines = reading.parse_ini_lines(["a = 0", "[s]", "B : 1", "; no"])
        assert list(lines) == [("", "a", "0", 1), ("s", "", "", 2), ("s", "b", "1", 3)]

    def test_xml(self):
        found = reading.parse_xml_elements("<a x='1'>\n<n:b>t</n:b></a>")
        assert [(e.path, e.text, e.number) for e in found] == [(("a", "b"), "t", 2), (("a",), "", 1)]
        assert reading.parse_xml_elements("<!DOCTYPE a [<!ENTITY b 'c'>]><a>&b;</a>") == []
        assert reading.parse_xml_elements("<a>" * 100) == []
        assert [e.path for e in reading.parse_xml_elements("<a><b/><c></a>")] == [("a", "b")]
        assert len(reading.parse_xml_elements("<a>" + "<b/>" * 30_000)) == reading.MAX_XML_ELEMENTS


def test_lines_of_keys():
    """Keys of JSON are found from a line on; nothing is line 0."""
    source = ProjectSource("a/b.json", '{"a": 1,\n"b": {"a" : 2}}', frozenset({"c"}))
    assert [source.line_of("a"), source.line_of("a", 2), source.line_of("a", 3), source.line_of("x")] == [
        1, 2, 0, 0,
    ]  # fmt: skip
    assert [source.line_with("b"), source.line_with('"a"', 2), source.line_with("zz")] == [2, 2, 0]
    assert (source.name, source.folder, source.has("c", "d"), source.has("d")) == ("b.json", "a", True, False)
