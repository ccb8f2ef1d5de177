"""Manifests that cannot be read (001 §3): they are told, and what they would have said is not taken for missing."""

import json

import pytest
from msgspec.structs import replace
from tests.support.cases import for_each_case
from tests.support.rule_contexts import decide_commands, fact_bundle, plan_commands, warning_rule

from steersman.contracts.planning.context import ScanBounds
from steersman.judges.facts import dotnet, go, javascript
from steersman.judges.facts.choice import select_project_files
from steersman.judges.facts.finding import MAX_INSPECTED_CHARACTERS, ProjectSource
from steersman.judges.facts.pack import MAX_FACTS_PER_KIND, build_fact_pack, examine_project_file
from steersman.judges.facts.unread import MANIFEST_FACT_KINDS, unreadable_manifest_reason

BOUNDS = ScanBounds(files_seen=1, files_read=1, bytes_read=1, skipped=0, complete=True)
DEEP = "[" * 100_000
FINE = {
    "pyproject.toml": "\ufeff[project]\r\nname = 'x'\r\n",
    "Cargo.toml": "",
    "package.json": "{}",
    "deno.jsonc": '// tasks\n{"tasks": {}}',
    "pom.xml": "<project/>",
    "a/b.csproj": "<Project/>",
    "go.mod": "// a comment\nmodule example.com/x\n",
    "notes.json": "{bad",
    "README.md": "\0",
}
BROKEN = {
    ("pyproject.toml", "[[[["): "pyproject.toml, line 1: it is no TOML",
    ("pyproject.toml", "a = 1\nb =\n"): "pyproject.toml, line 2: it is no TOML",
    ("pyproject.toml", "a = " + "[" * 4000): "pyproject.toml: it is no TOML",
    ("sub/Cargo.toml", "x"): "sub/Cargo.toml, line 1: it is no TOML",
    ("package.json", "{bad"): "package.json, line 1: it is no JSON",
    ("package.json", '{\n"a": 1,\n}'): "package.json, line 3: it is no JSON",
    ("package.json", ""): "package.json, line 1: it is no JSON",
    ("package.json", "[]"): "package.json, line 1: it is no JSON object",
    (
        "package.json",
        "{" + " " * MAX_INSPECTED_CHARACTERS + "}",
    ): "package.json: it is too long to be looked into",
    ("deno.json", "// x\n{,}"): "deno.json, line 2: it is no JSON",
    ("composer.json", "\ud800"): "composer.json, line 1: it is no JSON",
    ("pom.xml", "<project>\n"): "pom.xml, line 2: it is no XML",
    (
        "pom.xml",
        "<!DOCTYPE x>\n<project/>",
    ): "pom.xml: it declares a document type, is too deep or has too many elements",
    ("x.fsproj", "no"): "x.fsproj, line 1: it is no XML",
    ("go.mod", "\n\0\0"): "go.mod, line 2: it is no text",
    ("go.mod", "require x v1"): "go.mod: it names no module",
}


def scanned(files, bounds=BOUNDS):
    """The pack of some files."""
    pages = [
        examine_project_file(ProjectSource(path, text), "0" * 64) for path, text in sorted(files.items())
    ]
    return build_fact_pack("shop", pages, select_project_files(tuple(sorted(files))), bounds)


@for_each_case("path", FINE)
def test_what_can_be_read_is_not_told(path):
    """A manifest that is whole, and a file that is none, leave the scan complete."""
    assert unreadable_manifest_reason(ProjectSource(path, FINE[path])) == ""
    assert scanned({path: FINE[path]}).bounds == BOUNDS


@for_each_case("case", BROKEN)
def test_a_manifest_that_cannot_be_read_is_told(case):
    """The file, its line and why; nothing is found in it, and the scan is not complete."""
    path, text = case
    assert unreadable_manifest_reason(ProjectSource(path, text)) == BROKEN[case]
    pack = scanned({path: text})
    assert not [f for f in pack.facts if f.kind in MANIFEST_FACT_KINDS]
    assert not pack.bounds.complete
    assert len(pack.bounds.unread) == 1
    assert pack.bounds.stopped_by == "1 manifests cannot be read"


@pytest.mark.untraced
def test_only_what_manifests_tell_of_is_not_known():
    """Where nothing else stopped the scan, other kinds stay complete; where something did, none is."""
    assert scanned({"package.json": "{"}).bounds.unknown == MANIFEST_FACT_KINDS
    stopped = replace(BOUNDS, complete=False, stopped_by="too many files")
    pack = scanned({"package.json": "{"}, stopped)
    assert (pack.bounds.unknown, pack.bounds.stopped_by) == ((), "too many files; 1 manifests cannot be read")
    scripts = {f"test:{n}": "x" for n in range(200)}
    many = {f"p{n}/package.json": json.dumps({"name": "p", "scripts": scripts}) for n in range(5)}
    cut = scanned({**many, "package.json": "{"}).bounds
    assert (cut.unknown, len(cut.unread)) == ((), 1)
    assert f"more than {MAX_FACTS_PER_KIND}" in cut.stopped_by


@pytest.mark.parametrize(("kind", "known"), [("test_command", False), ("ci", True)])
def test_a_rule_does_not_take_the_silence_of_a_manifest_for_an_absence(kind, known):
    """§4: what a broken manifest would have told is not known to be missing; a rule about it cannot be decided."""
    broken = scanned({"package.json": "{"})
    there = fact_bundle("language/python")
    found = replace(there, facts=replace(there.facts, bounds=broken.bounds))
    asks = warning_rule("rule_asks", f'!("{kind}" in facts.kinds)', evidence_required=[f"known:{kind}"])
    (decision,) = decide_commands(plan_commands("cmd_read_code"), found, asks)
    assert decision.undecidable != known
    assert decide_commands(plan_commands("cmd_read_code"), there, asks)[0].undecidable is False


@pytest.mark.parametrize(
    ("find", "path", "text", "kinds"),
    [
        (go.read_go_module, "go.mod", "", []),
        (dotnet.read_dotnet_project, "x.csproj", "<Other/>", ["package"]),
        (javascript.read_deno_json, "deno.json", "{}", []),
    ],
)
def test_a_manifest_that_says_little_gives_little(find, path, text, kinds):
    """What is whole and has nothing to say is no project by itself."""
    assert [found.kind for found in find(ProjectSource(path, text))] == kinds
