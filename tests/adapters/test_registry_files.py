"""Registry files: the built-in set from the package, a project's own read as hostile, and kept registries."""

import os
from importlib.resources import files

import msgspec
import pytest

from steersman.adapters.storage import registry_files
from steersman.adapters.storage.registry_files import FileRegistries, load_built_in_yaml
from steersman.judges.planning.registry import compare_registries, encode_registry_archive

COMMAND = """\
id: cmd_polish
version: 1.0.0
status: active
title: Polish the brass
description: Until it shines.
lineage:
  introduced_in: our project
effects: [write]
risk_level: low
phases: [implementation]
minutes: 7
"""


@pytest.fixture
def project(tmp_path):
    for folder in ("workflows", "agents", "commands", "rules"):
        (tmp_path / "project" / ".steersman" / "registry" / folder).mkdir(parents=True)
    return tmp_path / "project"


@pytest.fixture
def registries(project, tmp_path):
    return FileRegistries(project, tmp_path / "state")


@pytest.fixture
def put(project):
    def put(name, text):
        path = project / ".steersman" / "registry" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return put


def told(loaded):
    return [(p.field, p.line, p.message) for p in loaded.problems]


def test_built_in(registries):
    """The built-in set is package data: read through importlib.resources, whole and without problems."""
    loaded = registries.built_in()
    assert loaded.problems == ()
    assert {e.origin for e in loaded.registry.entries.values()} == {"built-in"}
    folders = files("steersman.machines.coordinator").joinpath("registry")
    assert {f.name for f in folders.iterdir()} == {"agents", "commands", "rules", "workflows", "archive.json"}
    by_hand = load_built_in_yaml()
    assert by_hand.problems == ()
    assert encode_registry_archive(by_hand.registry) == encode_registry_archive(loaded.registry)


def test_without_an_overlay(registries, tmp_path):
    """A project without a folder of its own has the built-in registry."""
    bare = FileRegistries(tmp_path / "none", tmp_path / "state").load()
    assert bare.problems == ()
    assert bare.registry.digest == registries.built_in().registry.digest == registries.load().registry.digest


def test_a_project_adds(registries, put):
    """One file has one item or a list of them, and the folder says which kind."""
    second = COMMAND.replace("cmd_polish", "cmd_sweep").replace("\n", "\n  ").rstrip()
    put("commands/brass.yaml", COMMAND)
    put("commands/deck.yml", f"- {second}\n")
    loaded = registries.load()
    assert loaded.problems == ()
    command = loaded.registry.usable("command", "cmd_polish")
    assert (command.minutes, command.effects) == (7, ("write",))
    assert loaded.registry.entries["command", "cmd_sweep"].origin == "project"
    (item,) = [i for i in loaded.registry.items if i.content.id == "cmd_sweep"]
    assert item.lines[("version",)] == 2


def test_replacing_a_built_in(registries, put):
    """Content with a built-in id has a higher version and says what it replaces; else nothing may be planned."""
    quiet = COMMAND.replace("cmd_polish", "cmd_lint")
    put("commands/lint.yaml", quiet)
    assert [field for field, _, _ in told(registries.load())] == [
        ".steersman/registry/commands/lint.yaml: cmd_lint.version",
        ".steersman/registry/commands/lint.yaml: cmd_lint.lineage.supersedes",
    ]
    open_ = quiet.replace("version: 1.0.0", "version: 1.1.0").replace(
        "introduced_in: our project", "introduced_in: our project\n  supersedes: [cmd_lint@1.0.0]"
    )
    put("commands/lint.yaml", open_)
    loaded = registries.load()
    assert loaded.problems == ()
    assert loaded.registry.usable("command", "cmd_lint").title == "Polish the brass"


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        (COMMAND + "title: again\n", 12, "given twice"),
        (COMMAND.replace("[write]", "&a [write]"), 8, "anchors"),
        (COMMAND.replace("[write]", "*a"), 8, "aliases"),
        (COMMAND.replace("[write]", "!!python/name:os.system x"), 8, "tags"),
        (COMMAND + "---\nid: other\n", 12, "more than one document"),
        (COMMAND + "colour: red\n", 12, "not a known field"),
        (COMMAND.replace("minutes: 7", 'minutes: "7"'), 11, 'is not of type "integer"'),
        (COMMAND.replace("version: 1.0.0\n", ""), 1, "is missing"),
        (b"\xff", 1, "not UTF-8"),
        ("", 1, "is empty"),
        ("id: [", 2, ""),
        ("[" * 40, 1, "nested deeper than 32 levels"),
        ("just words", 1, 'is not of type "object"'),
    ],
)
def test_refused(registries, put, text, line, said):
    """What is not plain YAML or not what its folder says is refused with file, line and reason, and left out."""
    put("commands/brass.yaml", text)
    loaded = registries.load()
    (problem,) = loaded.problems
    assert problem.field.startswith(".steersman/registry/commands/brass.yaml")
    assert (problem.line, said in problem.message, bool(problem.fix)) == (line, True, True), problem
    assert loaded.registry.get("command", "cmd_polish") is None


def test_all_problems_of_all_files(registries, put):
    """Every file is read, whatever the others are."""
    put("commands/a.yaml", COMMAND + "colour: red\nshape: round\n")
    put("rules/b.yaml", "what")
    put("agents/notes.txt", "remember")
    put("readme.md", "hello")
    assert [field.rpartition("/")[2] for field, _, _ in told(registries.load())] == [
        "readme.md", "notes.txt", "a.yaml: cmd_polish.colour", "a.yaml: cmd_polish.shape", "b.yaml: document",
    ]  # fmt: skip


@pytest.mark.parametrize("place", ["commands/brass.yaml", "commands", ".", ".."])
def test_no_link_is_followed(registries, project, tmp_path, place):
    """A link in place of a file or of any folder on the way is told, and what it leads to is not read."""
    elsewhere = tmp_path / "elsewhere"
    (elsewhere / "registry" / "commands").mkdir(parents=True)
    (elsewhere / "registry" / "commands" / "brass.yaml").write_text(COMMAND)
    top = project / ".steersman"
    link = {
        "commands/brass.yaml": top / "registry/commands/brass.yaml",
        "commands": top / "registry/commands",
        ".": top / "registry",
        "..": top,
    }[place]
    target = {"..": elsewhere, ".": elsewhere / "registry"}.get(place, elsewhere / "registry" / place)
    if link.is_dir():
        link.rename(tmp_path / "away")
    link.symlink_to(target)
    loaded = registries.load()
    assert loaded.registry.get("command", "cmd_polish") is None
    (problem,) = loaded.problems
    assert "cannot be read" in problem.message


def test_what_is_no_file(registries, project):
    """A pipe or a folder in place of a file is told, and nobody waits for it."""
    commands = project / ".steersman" / "registry" / "commands"
    os.mkfifo(commands / "pipe.yaml")
    (commands / "folder.yaml").mkdir()
    assert [(f.rpartition("/")[2], m) for f, _, m in told(registries.load())] == [
        ("folder.yaml", "is not a plain file"),
        ("pipe.yaml", "is not a plain file"),
    ]
    (project / ".steersman" / "registry" / "rules").rmdir()
    (project / ".steersman" / "registry" / "rules").write_text("a file")
    assert "cannot be read" in told(registries.load())[-1][2]


def test_bounds(registries, put, monkeypatch):
    """Size in all and number in a folder are bounded, and what is beyond is told."""
    put("commands/a.yaml", COMMAND)
    put("commands/b.yaml", COMMAND.replace("cmd_polish", "cmd_sweep"))
    monkeypatch.setattr(registry_files, "MAX_REGISTRY_BYTES", len(COMMAND) + 10)
    ((field, _, message),) = told(registries.load())
    assert field.endswith("b.yaml")
    assert "longer than" in message
    monkeypatch.undo()
    monkeypatch.setattr(registry_files, "MAX_REGISTRY_FILES", 1)
    ((field, _, message),) = told(registries.load())
    assert (field, message) == (".steersman/registry/commands", "has more than 1 files")


def test_hidden_files_are_left_alone(registries, put):
    """What an editor leaves behind is no content."""
    put("commands/.brass.yaml.swp", b"\x00\x01")
    assert registries.load().problems == ()


def test_another_folder(registries, project, tmp_path):
    """A folder of somebody else can be read before it is taken over."""
    other = tmp_path / "other" / "commands"
    other.mkdir(parents=True)
    (other / "brass.yaml").write_text(COMMAND)
    assert registries.load(str(other.parent)).registry.get("command", "cmd_polish") is not None
    assert registries.load(str(tmp_path / "none")).problems == ()


def test_kept(registries, put, tmp_path):
    """A registry that was kept is found by the start of its digest, as it was, and only if its bytes are."""
    old = registries.load().registry
    assert registries.digests() == ()
    assert registries.store_registry(old) == registries.store_registry(old) == old.digest
    put("commands/brass.yaml", COMMAND)
    new = registries.load().registry
    registries.store_registry(new)
    assert registries.digests() == tuple(sorted([old.digest, new.digest]))
    (change,) = compare_registries(registries.find_stored_registry(old.digest[:12]), new)
    assert (change.id, change.old) == ("cmd_polish", None)
    assert registries.find_stored_registry("0" * 64) is None
    assert registries.find_stored_registry("") is None
    assert registries.find_stored_registry("../../x") is None
    place = tmp_path / "state" / "registry" / f"{old.digest}.json"
    place.write_bytes(place.read_bytes().replace(b"Lint", b"Lent"))
    assert FileRegistries(tmp_path / "project", tmp_path / "state").find_stored_registry(old.digest) is None


def test_nothing_but_content_decides_the_digest(registries, put):
    """Another file name, order or spelling of the same content gives the same registry."""
    path = put("commands/brass.yaml", COMMAND)
    first = registries.load().registry.digest
    path.rename(path.with_name("zinc.yml"))
    assert registries.load().registry.digest == first
    plain = msgspec.yaml.decode(COMMAND.encode())
    put("commands/zinc.yml", "\n".join(f"{k}: {msgspec.json.encode(v).decode()}" for k, v in plain.items()))
    assert registries.load().registry.digest == first
