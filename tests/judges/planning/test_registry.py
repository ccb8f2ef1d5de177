"""The registry as a value: digests, pins, drift, differences, soundness, and what is kept of it."""

import msgspec
import pytest
from tests.support.cases import for_each_case
from tests.support.raw_intents import raw_content, raw_phase
from tests.support.rule_contexts import BUILT_IN_REGISTRY, warning_rule

from steersman.contracts.planning.content import RegistrySnapshot
from steersman.judges.planning.items import ContentSource, parse_registry_items
from steersman.judges.planning.registry import (
    Registry,
    RegistryItem,
    compare_registries,
    encode_registry_archive,
    find_pin_drift,
    format_pin,
    get_content_kind,
    parse_pins,
    restore_archived_registry,
)
from steersman.judges.planning.validate import find_identity_problems, find_registry_problems
from steersman.kernel.canonical import canonical_bytes, digest_of

EDIT = raw_content("command", "cmd_edit", effects=["write"], risk_level="medium", phases=["implementation"])
READ = raw_content("command", "cmd_read", effects=["read"], risk_level="low", phases=["analysis"])
CODER = raw_content("agent", "agent_coder", role="coder", phases=["implementation"], capabilities=["writes"])
FIX = raw_content("workflow", "wf_fix", phases=[raw_phase("implementation", "coder", commands=["cmd_edit"])])
SMALL = Registry((EDIT, READ, CODER, FIX))


def other(item, origin="built-in", **fields):
    return item._replace(content=msgspec.structs.replace(item.content, **fields), origin=origin)


def told(*items):
    return [(p.field, p.message) for p in find_registry_problems(Registry(items))]


# ── digests ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_snapshot():
    """A snapshot lists everything that holds, sorted by kind and id, each with the digest of its canonical bytes."""
    snapshot = SMALL.snapshot()
    assert [(e.kind, e.id) for e in snapshot.entries] == [
        ("agent", "agent_coder"),
        ("command", "cmd_edit"),
        ("command", "cmd_read"),
        ("workflow", "wf_fix"),
    ]
    assert snapshot.entries[1].digest == digest_of(EDIT.content)
    assert snapshot.digest == digest_of(list(snapshot.entries)) == SMALL.digest
    assert msgspec.json.decode(canonical_bytes(snapshot), type=RegistrySnapshot) == snapshot


def test_order_and_defaults_do_not_matter():
    """The digest depends on what the content says, not on the order of files or on which defaults are written out."""
    assert Registry(tuple(reversed(SMALL.items))).digest == SMALL.digest
    spelled = raw_content(
        "command", "cmd_read", effects=["read"], risk_level="low", phases=["analysis"], minutes=5
    )
    assert Registry((EDIT, spelled, CODER, FIX)).digest == SMALL.digest


def test_any_change_changes_the_digest():
    """One word in one field, a status or an origin gives another digest."""
    for changed in (other(READ, title="x"), other(READ, status="frozen"), other(READ, origin="project")):
        assert Registry((EDIT, changed, CODER, FIX)).digest != SMALL.digest


def test_usable():
    """Active and frozen content can be planned with, draft and deprecated cannot."""
    for status, usable in (("active", True), ("frozen", True), ("draft", False), ("deprecated", False)):
        registry = Registry((other(READ, status=status),))
        assert (registry.usable("command", "cmd_read") is not None) == usable
        assert len(registry.all_usable("command")) == usable
        assert registry.get("command", "cmd_read") is not None
    assert SMALL.usable("command", "cmd_none") is None


def test_the_project_replaces():
    """Of two with one id the later holds."""
    registry = Registry((READ, other(READ, version="1.1.0", origin="project")))
    assert registry.entries["command", "cmd_read"].version == "1.1.0"
    assert registry.entries["command", "cmd_read"].origin == "project"


# ── pins ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_references():
    """A name is usable, missing, inactive, not pinned, or has drifted from its pin in version or content."""
    entry = SMALL.entries["command", "cmd_read"]
    fixed = parse_pins([format_pin(entry), "doc://else", "registry://command/cmd_read"])
    assert fixed == {("command", "cmd_read"): ("1.0.0", entry.digest[:12])}
    held = SMALL.reference("command", "cmd_read", fixed)
    assert (held.found, held.version, held.digest) == ("usable", "1.0.0", entry.digest)
    assert held.pinned == f"1.0.0#{entry.digest[:12]}"
    assert SMALL.reference("command", "cmd_none", fixed).found == "missing"
    assert SMALL.reference("command", "cmd_edit", fixed).found == "unpinned"
    for changed, found in (
        (other(READ, title="x"), "drifted"),
        (other(READ, version="1.0.1"), "drifted"),
        (other(READ, status="deprecated"), "inactive"),
    ):
        assert Registry((changed,)).reference("command", "cmd_read", fixed).found == found


def test_two_pins_that_differ():
    """An id with two pins that differ fits nothing; the same pin twice is one."""
    entry = SMALL.entries["command", "cmd_read"]
    stale = f"registry://command/cmd_read@0.9.0#{'0' * 12}"
    for refs in ([format_pin(entry), stale], [stale, format_pin(entry)], [stale, stale, format_pin(entry)]):
        assert SMALL.reference("command", "cmd_read", parse_pins(refs)).found == "drifted"
    twice = SMALL.reference("command", "cmd_read", parse_pins([format_pin(entry), format_pin(entry)]))
    assert (twice.found, twice.pinned[:6]) == ("usable", "1.0.0#")


# ── differences ─────────────────────────────────────────────────────────────────────────────────────────────────────


def test_differences():
    """What came, went and changed is told, down to the fields."""
    new = Registry(
        (other(EDIT, effects=("write", "network"), rollback="git"), CODER, FIX, other(FIX, id="wf_new"))
    )
    found = compare_registries(SMALL, new)
    assert [(d.kind, d.id, d.old is None, d.new is None) for d in found] == [
        ("command", "cmd_edit", False, False),
        ("command", "cmd_read", False, True),
        ("workflow", "wf_new", True, False),
    ]
    assert found[0].fields == (("effects[1]", "", "network"), ("rollback", "", "git"))
    assert compare_registries(SMALL, SMALL) == ()


def test_kept():
    """A registry is read back from its bytes, and bytes that were changed give none."""
    data = encode_registry_archive(BUILT_IN_REGISTRY)
    back = restore_archived_registry(data, BUILT_IN_REGISTRY.digest)
    assert back is not None
    assert compare_registries(BUILT_IN_REGISTRY, back) == ()
    for broken in (
        data.replace(b"Read source", b"Reed source"),
        data[:-1],
        b"[" * 5000,
        b'[{"kind":"x"}]',
        b"",
    ):
        assert restore_archived_registry(broken, BUILT_IN_REGISTRY.digest) is None


# ── soundness ───────────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_built_in_set_is_sound():
    """Nothing is wrong with what comes with steersman, and there is enough of it."""
    assert find_registry_problems(BUILT_IN_REGISTRY) == ()
    counts = {kind: len(held) for kind, held in BUILT_IN_REGISTRY.held.items()}
    assert counts["workflow"] >= 6
    assert counts["agent"] >= 8
    assert counts["command"] >= 20
    assert counts["rule"] >= 12


def test_every_built_in_command_is_used():
    """A command that no workflow knows would never be planned."""
    used = {
        c for w in BUILT_IN_REGISTRY.held["workflow"].values() for p in w.content.phases for c in p.commands
    }
    assert {*BUILT_IN_REGISTRY.held["command"]} == used


def test_duplicates():
    """The same id twice from one side is told with both places; of another kind it is another thing."""
    again = READ._replace(file="b.yaml", lines={("id",): 7})
    first = READ._replace(file="a.yaml")
    (problem,) = find_identity_problems(Registry((first, again)))
    assert (problem.field, problem.line) == ("b.yaml: cmd_read.id", 7)
    assert "a.yaml" in problem.message
    assert find_identity_problems(Registry((READ, raw_content("rule", "cmd_read", **msgspec.to_builtins(warning_rule("rule_x")) | {"id": "cmd_read"})))) == ()  # fmt: skip


def lineage(*supersedes):
    return msgspec.structs.replace(READ.content.lineage, supersedes=supersedes)


@for_each_case(
    ("version", "supersedes", "fields"),
    [
        ("1.0.1", ("cmd_read@1.0.0",), []),
        ("1.0.0", ("cmd_read@1.0.0",), ["version"]),
        ("0.9.9", (), ["version", "lineage.supersedes"]),
        ("1.10.0", (), ["lineage.supersedes"]),
        ("1.10.0", ("cmd_read@0.9.0",), ["lineage.supersedes"]),
    ],
)
def test_replacing(version, supersedes, fields):
    """A project replaces a built-in piece of content with a higher version, and says so."""
    mine = other(READ, origin="project", version=version, lineage=lineage(*supersedes))
    assert [field for field, _ in told(READ, mine)] == [f": cmd_read.{f}" for f in fields]


def test_chains():
    """Content does not stand beside the content that it replaces."""
    new = other(READ, id="cmd_new", lineage=lineage("cmd_read@1.0.0", "cmd_gone@1.0.0"))
    assert told(READ, new) == [(": cmd_new.lineage.supersedes[0]", "cmd_read is replaced and still active")]
    assert told(other(READ, status="deprecated"), new) == []


WRONG = {
    "phases[0].commands[0]": (raw_phase("implementation", "coder", commands=["cmd_none"]), "there is no command"),
    "phases[0].commands[1]": (
        raw_phase("implementation", "coder", commands=["cmd_edit", "cmd_read"]),
        "cmd_read does not belong to implementation",
    ),
    "phases[0].role": (raw_phase("implementation", "poet"), "no agent has the role poet"),
    "phases[0].after[0]": (raw_phase("implementation", "coder", after=["design"]), "no phase design"),
    "phases[0].fallback": (raw_phase("implementation", "coder", fallback="operations"), "no phase operations"),
}  # fmt: skip


@for_each_case("field", WRONG)
def test_workflow(field):
    """Names in a workflow lead somewhere."""
    wrong, message = WRONG[field]
    found = told(EDIT, READ, CODER, raw_content("workflow", "wf_fix", phases=[wrong]))
    assert [(f, message in m) for f, m in found] == [(f": wf_fix.{field}", True)]
    assert told(*SMALL.items) == []


def test_inactive_command_in_a_workflow():
    """A workflow does not offer what nobody may plan."""
    assert told(other(EDIT, status="draft"), READ, CODER, FIX) == [
        (": wf_fix.phases[0].commands[0]", "cmd_edit is draft")
    ]


def test_a_phase_twice():
    """A workflow has each phase once."""
    twice = [raw_phase("analysis", "coder"), raw_phase("analysis", "coder")]
    assert told(CODER, raw_content("workflow", "wf_twice", phases=twice)) == [
        (": wf_twice.phases[1].phase", "analysis is there twice")
    ]


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"fact": "weather"}, "fact"),
        ({"evidence": ("ci", "weather")}, "evidence[1]"),
        ({"destructive": True, "effects": ("read",)}, "effects"),
    ],
)
def test_command(fields, field):
    """A command names kinds of facts that there are, and does not destroy by reading."""
    assert [f for f, _ in told(other(READ, **fields))] == [f": cmd_read.{field}"]


def test_rules_are_typed_as_they_enter():
    """A rule that does not compile, or whose scope leads nowhere, is a problem of the registry."""
    lost = warning_rule("rule_lost", "command.idd == ''", scope={"commands": ["cmd_none", "cmd_read"]})
    assert [f for f, _ in told(READ, RegistryItem(lost, "project"))] == [
        ": rule_lost.scope.commands[0]",
        ": rule_lost.when",
    ]


# ── files ───────────────────────────────────────────────────────────────────────────────────────────────────────────

LINES = {(0,): 1, (0, "id"): 1, (1,): 5, (1, "title"): 6, (2,): 9}
BARE = frozenset({("minutes",), (0, "minutes"), (1, "minutes")})


def read(value, kind="command", lines=LINES):
    many = isinstance(value, list)
    bare = {path for path in BARE if (len(path) == 2) == many and (not many or len(value) == 2)}
    return parse_registry_items(
        value, lines if many else {("id",): 1}, bare, ContentSource("c.yaml", kind, "project")
    )


def test_one_or_many():
    """A file holds one piece of content or a list; numbers and yes or no are read by the schema."""
    plain = msgspec.to_builtins(READ.content) | {"minutes": "7"}
    (item,), wrong = read(plain)
    assert (item.content.minutes, item.origin, item.file, wrong) == (7, "project", "c.yaml", ())
    assert get_content_kind(item.content) == "command"
    items, wrong = read([plain, plain | {"id": "cmd_more", "title": "x"}])
    assert ([i.content.id for i in items], wrong) == (["cmd_read", "cmd_more"], ())
    assert (items[1].content.minutes, items[1].lines[("title",)]) == (7, 6)
    assert read([]) == ((), ())


def test_all_problems_of_a_file():
    """Everything that is wrong is told with file, line, id and field; what is whole is kept."""
    plain = msgspec.to_builtins(READ.content)
    items, wrong = read([plain, plain | {"title": "", "colour": "red", "risk_level": "some"}, "what"])
    assert [i.content.id for i in items] == ["cmd_read"]
    assert {(p.field, p.line) for p in wrong} == {
        ("c.yaml: cmd_read.title", 6),
        ("c.yaml: cmd_read.colour", 5),
        ("c.yaml: cmd_read.risk_level", 5),
        ("c.yaml: [2].document", 9),
    }
    _, wrong = read("what", "rule")
    assert [(p.field, p.line) for p in wrong] == [("c.yaml: document", 0)]


# ── drift ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_drift():
    """Each pin that does not fit any more is told, with the fields where the pinned content is kept."""
    refs = [
        format_pin(SMALL.entries["command", "cmd_read"]),
        format_pin(SMALL.entries["agent", "agent_coder"]),
        "doc://x",
    ]
    assert find_pin_drift(refs, SMALL, []) == ()
    now = Registry((other(READ, title="x", version="1.1.0"), EDIT, FIX))
    gone, changed = find_pin_drift(refs, now, [Registry(()), SMALL])
    assert (gone.id, gone.found, gone.now, gone.fields, gone.kept) == ("agent_coder", "missing", "", (), True)
    assert (changed.id, changed.found, changed.kept) == ("cmd_read", "drifted", True)
    assert changed.now == f"1.1.0#{now.entries['command', 'cmd_read'].digest[:12]}"
    assert changed.fields == (("title", "cmd_read", "x"), ("version", "1.0.0", "1.1.0"))
    lost = find_pin_drift(refs, now, [])
    assert [(d.kept, d.fields) for d in lost] == [(False, ()), (False, ())]
