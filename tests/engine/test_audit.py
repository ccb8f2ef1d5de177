"""The audit of a tape: what it says about a sound one, what it cannot see, and what reading a tape again gives."""

import asyncio
import hashlib
import hmac
import json

import msgspec
import pytest
from msgspec import structs
from msgspec.structs import replace
from tests.support.cases import for_each_case
from tests.support.long_tapes import CREW_ROLES, SAMPLE_PERSON, anchor_ports, drive_sample_run, instant_ports
from tests.support.small_machines import MACHINES, fake_ports_with_machines, play_run, settle_post

from steersman.adapters.storage.anchors import FileAnchors
from steersman.adapters.storage.sqlite.store import SqliteJournal
from steersman.app.runs import RunService
from steersman.contracts.config import Budget, Config, Role
from steersman.engine.audit import (
    anchor_run,
    audit_run,
    audit_store,
    export_run,
    list_known_runs,
    prune_run,
    read_tape,
    replay_run,
    run_decision_hash,
    verify_run,
    verifying,
)
from steersman.engine.audit.side_rows import NOT_ON_TAPE
from steersman.engine.audit.verifying import UNANCHORED_GAPS, verify_for_driving
from steersman.engine.start import StartRequest, fork_run
from steersman.errors import JournalError, StoreBroken, UserError
from steersman.kernel.canonical import canonical_bytes
from steersman.kernel.replay import BadEntry
from steersman.kernel.tape import GENESIS_HASH, Entry, seal_entry
from steersman.machines.roundtable import MACHINE
from steersman.ports.anchors import RunAnchors
from steersman.testing.memory import MemoryJournal


@pytest.fixture
def ports(tmp_path):
    journal = SqliteJournal(tmp_path / "store.db")
    yield instant_ports(journal, **anchor_ports({"file": FileAnchors(tmp_path)}))
    journal.close()


@pytest.fixture
def head(ports):
    return drive_sample_run(ports, 2)


def stored(head):
    """A head row's columns as SQLite keeps them."""
    return [bytes.fromhex(v) if f == "hash" else v for f, v in structs.asdict(head).items()]


def change(ports, sql, *values):
    """Does to the store what nobody should."""
    ports.journal._write.execute(sql, values)


# ── a sound tape ─────────────────────────────────────────────────────────────────────────────────────────────────────


def test_sound(ports, head):
    """A run as the runtime left it is whole, anchored to its last entry, and nothing is left unseen."""
    verdict = audit_run(ports, head.run)
    assert verdict.ok
    assert (verdict.entries, verdict.first_bad, verdict.problems) == (head.seq, None, ())
    assert verdict.anchored
    assert verdict.unseen == ()


def test_sound_in_memory():
    """The audit asks the port alone: a journal in memory passes it too."""
    ports = instant_ports(MemoryJournal())
    assert audit_run(ports, drive_sample_run(ports, 1).run).ok


@pytest.mark.parametrize("machine", ["errand", "captain"])
def test_sound_with_children(tmp_path, machine):
    """A parent and its children, which name the parent's texts, are each whole."""
    ports = fake_ports_with_machines(tmp_path)
    root = play_run(ports, machine)
    tree = ports.journal.tree(root.run)
    assert len(tree) == (2 if machine == "captain" else 1)
    assert [audit_run(ports, h.run).ok for h in tree] == [True] * len(tree)


def test_unfinished(ports):
    """A run that still waits for somebody is verified as it is."""
    bridge = RunService(ports)
    run = drive_sample_run(ports, 0).run
    asyncio.run(
        bridge.settle(run, bridge.send(run, "task_followup_received", {"choice": "rework"}, SAMPLE_PERSON))
    )
    assert audit_run(ports, run).ok


def test_no_run(ports):
    """A run that never was is a clear error, not a verdict."""
    with pytest.raises(UserError, match="there is no run 'nobody'"):
        audit_run(ports, "nobody")


def test_vanished(ports, head):
    """A run that is gone from the store altogether is found when an anchor remembers it."""
    for sql in ("DELETE FROM entry", "DELETE FROM head", "DELETE FROM snapshot"):
        change(ports, sql)
    verdict = audit_run(ports, head.run)
    assert not verdict.ok
    assert verdict.first_bad == 1


@pytest.mark.parametrize("tables", [("head",), ("head", "entry"), ("head", "entry", "snapshot")])
def test_known(ports, head, tables):
    """A run counts among those to verify while a row or a genuine anchor is left of it; one that never was does not."""
    for table in tables:
        change(ports, f"DELETE FROM {table}")  # noqa: S608  a constant
    ports.anchors["file"].path.open("a").write('{"run":"forged","seq":1,"hash":"","at":1}\n')
    assert list_known_runs(ports) == [head.run]
    assert not audit_run(ports, head.run).ok


def test_snapshot_alone(ports, head):
    """A snapshot without a tape is a finding even where no anchor remembers the run."""
    for sql in ("DELETE FROM entry", "DELETE FROM head"):
        change(ports, sql)
    assert not verify_run(ports.journal, ports.machines, head.run).ok


# ── gates ────────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def asked(ports):
    """Ports with a run that waits for an approval."""
    run = asyncio.run(_asking(RunService(ports)))
    assert len(ports.journal.gates(run)) == 1
    assert audit_run(ports, run).ok
    return ports, run


async def _asking(bridge):
    config = Config(roles={name: Role(agent="fake") for name in CREW_ROLES})
    driver, lock, live = await bridge.start(
        StartRequest(MACHINE.name, "Mend the rudder", SAMPLE_PERSON, config)
    )
    await driver.drive(live.run, held=lock, live=live)
    return live.run


@pytest.mark.parametrize(
    ("sql", "words"),
    [
        ("DELETE FROM gate", "its row is missing"),
        ("UPDATE gate SET answer='approve', person='Mallory'", "an answer that no command has sent"),
        ("UPDATE gate SET person='Mallory'", "an answer that no command has sent"),
        ("UPDATE gate SET digest='x'", "does not say what the tape gives: digest"),
        ("UPDATE gate SET body=json_set(body, '$.choices', json('[\"yes\"]'))", "tape gives: choices"),
        ("UPDATE gate SET body=json_set(body, '$.shown', json('{\"a\":1}'))", "tape gives: shown"),
        ("UPDATE gate SET id=id||'9', body=json_set(body, '$.id', 'g')", "which is not open on tape"),
        ("UPDATE gate SET body='{'", "a gate row cannot be read"),
        ("UPDATE gate SET body=json_set(body, '$.job', 'budget')", "tape gives: job"),
        ("UPDATE gate SET body=json_set(body, '$.opened', 1)", "tape gives: opened"),
        ("UPDATE gate SET id=id||'9'", "is not found under its name"),
        (
            "INSERT INTO inbox SELECT 99, run, 'answer', json_object('gate', id, 'choice', 'approve'), 1, NULL FROM gate",
            "is waiting in the inbox, but its row has none",
        ),
    ],
)
def test_gate_rows(asked, sql, words):
    """A gate row that was dropped, changed or answered by hand is a finding."""
    ports, run = asked
    change(ports, sql)
    verdict = audit_run(ports, run)
    assert not verdict.ok
    assert words in " ".join(verdict.problems)


def said_yes(gate):
    """An answer as a person sends it."""
    return {"choice": gate.choices[0], "person": "ann", "digest": gate.digest}


def test_answered_gate(asked):
    """An answer that was sent and is not taken yet fits, and is told: a forged one would look the same."""
    ports, run = asked
    assert audit_run(ports, run).waiting == ()
    gate = ports.journal.gates(run)[0]
    ports.journal.answer(gate.id, gate.digest, said_yes(gate), 1)
    verdict = audit_run(ports, run)
    assert verdict.ok
    told = f"{gate.choices[0]} by ann, not yet on tape, so no anchor speaks for it"
    assert verdict.waiting == (told,)


def test_waiting_rows(asked):
    """Whatever waits in the inbox is told, in whoever's name it came; an item that makes no sense is no crash."""
    ports, run = asked
    ports.journal.post(run, "abort", {"person": "Mallory"}, 1)
    ports.journal.post(run, "event", {"event": "task_followup_received"}, 1)
    ports.journal.post(run, "answer", {"gate": [run], "choice": {"a": 1}, "person": 7}, 1)
    verdict = audit_run(ports, run)
    assert verdict.ok
    assert [w.partition(f", {NOT_ON_TAPE}")[0] for w in verdict.waiting] == [
        "abort by Mallory", "task_followup_received by a person without a name", "{'a': 1} by 7",
    ]  # fmt: skip
    assert verdict.waiting[2].endswith("its gate is not open on tape, so it will be refused")


@pytest.mark.parametrize("check", [verify_run, verify_for_driving])
@pytest.mark.parametrize(
    ("look", "nth"), [("head", 1), ("gates", 1), ("pending", 1), ("gate", 1), ("head", 2), ("gates", 2)]
)
def test_answered_while_read(asked, monkeypatch, check, look, nth):
    """An answer that arrives between two looks is no finding, wherever it arrives."""
    ports, run = asked
    gate = ports.journal.gates(run)[0]
    ask, calls = getattr(ports.journal, look), []

    def answer_first(name):
        calls.append(name)
        if len(calls) == nth:
            assert ports.journal.answer(gate.id, gate.digest, said_yes(gate), 1)
        return ask(name)

    monkeypatch.setattr(ports.journal, look, answer_first)
    assert check(ports.journal, ports.machines, run).ok
    assert len(calls) >= nth


@pytest.mark.parametrize(
    ("sql", "words"),
    [
        ("CREATE TABLE cargo(x)", "there is a table cargo"),
        ("CREATE TRIGGER hand AFTER INSERT ON entry BEGIN DELETE FROM gate; END", "there is a trigger hand, which steersman has not made"),
        ("DROP INDEX gate_run", "the index gate_run is missing"),
        ("INSERT INTO gate VALUES('x:1:1', 'x', 'd', '{}', '', '')", "rows in gate of run x"),
        ("INSERT INTO budget VALUES('x', 'turns', 1, 0, NULL)", "rows in budget of run x"),
        ("INSERT INTO payload VALUES('x', 'p-1', x'00', 1)", "rows in payload of run x"),
        ("INSERT INTO payload_key VALUES('x', x'00')", "rows in payload_key of run x"),
        ("INSERT INTO quarantine VALUES('x', 'why', 1)", "rows in quarantine of run x"),
        ("DROP TABLE quarantine", "the table quarantine is missing"),
    ],
)  # fmt: skip
def test_around(ports, head, sql, words):
    """What nobody's run has put into the store is a finding of its own, and no run is blamed for it."""
    assert audit_store(ports).ok
    change(ports, sql)
    verdict = audit_store(ports)
    assert (verdict.run, verdict.ok) == ("", False)
    assert words in " ".join(verdict.problems)
    assert verify_run(ports.journal, ports.machines, head.run).ok


def test_beyond(ports, head):
    """What no verdict can see is said with every verdict: the inbox, rows put aside, refusals that are only counted."""
    said = " ".join(audit_run(ports, head.run).beyond)
    assert all(word in said for word in ("inbox", "put aside", "refusals", "program of this account"))


def test_released(ports, head):
    """A run that was put aside and fits is released, and the verdict says so once; one that does not fit stays."""
    ports.journal.quarantine(head.run, "forged")
    assert audit_run(ports, head.run).released
    assert not audit_run(ports, head.run).released
    ports.journal.quarantine(head.run, "deserved")
    change(ports, "DELETE FROM entry WHERE seq = 3")
    assert not audit_run(ports, head.run).released
    assert ports.journal.quarantined() == {head.run: "deserved"}


def test_no_list_of_runs_put_aside(ports, head):
    """Where the list itself cannot be read that is a finding, not a crash."""
    change(ports, "DROP TABLE quarantine")
    assert "the list of runs put aside cannot be read" in " ".join(audit_run(ports, head.run).problems)


# ── budgets ──────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def paid(ports):
    """Ports with a finished run that had a budget and used some of it."""
    run = drive_sample_run(ports, 2, budget=Budget(turns=50)).run
    assert audit_run(ports, run).ok
    assert [(r.name, r.limit) for r in ports.journal.budget(run) if r.limit] == [("turns", 50)]
    return ports, run


@pytest.mark.parametrize(
    ("sql", "words"),
    [
        ("UPDATE budget SET spent=spent-1 WHERE name='turns'", "the budget row of turns says"),
        ("UPDATE budget SET spent=spent+1 WHERE name='ms'", "the budget row of ms says"),
        ("DELETE FROM budget", "says 0 spent"),
        ("INSERT INTO budget SELECT run, 'gold', 3, 0, NULL FROM budget LIMIT 1", "gold says 3 spent"),
        ("UPDATE budget SET reserved=1 WHERE name='turns'", "reserves 1, but nothing is under way"),
        ("UPDATE budget SET bound=51 WHERE name='turns'", "has limit 51, the tape gives 50"),
        ("UPDATE budget SET bound=NULL WHERE name='turns'", "has limit None, the tape gives 50"),
        ("UPDATE budget SET bound=9 WHERE name='ms'", "has limit 9, the tape gives None"),
        ("UPDATE budget SET spent='x' WHERE name='turns'", "its row in budget cannot be read: spent is text"),
    ],
)
def test_budget_rows(paid, sql, words):
    """A budget row that was changed by hand is a finding."""
    ports, run = paid
    change(ports, sql)
    verdict = audit_run(ports, run)
    assert not verdict.ok
    assert words in " ".join(verdict.problems)


def test_budget_of_a_pruned_run(paid):
    """What a pruned run has spent still is on tape; its limits are among the settings that are gone."""
    ports, run = paid
    prune_run(ports, run, SAMPLE_PERSON)
    assert audit_run(ports, run).ok
    change(ports, "UPDATE budget SET spent=0 WHERE name='turns'")
    assert not audit_run(ports, run).ok


# ── what cannot be seen ──────────────────────────────────────────────────────────────────────────────────────────────


def test_unanchored(ports, head):
    """Without an anchor the verdict says exactly what it cannot see: a cut tail, and a tape rewritten as a whole."""
    verdict = verify_run(ports.journal, ports.machines, head.run)
    assert verdict.ok
    assert not verdict.anchored
    assert verdict.unseen == UNANCHORED_GAPS


def test_old_anchor(ports, head):
    """Entries after the newest anchor are said to be unseen, by number."""
    first = audited_kept(ports, head).genuine[0]
    verdict = verify_run(ports.journal, ports.machines, head.run, RunAnchors((first,)))
    assert verdict.ok
    assert len(verdict.unseen) == 1
    assert verdict.unseen[0].startswith(f"entries {first.seq + 1} to {head.seq} removed or rewritten")


def audited_kept(ports, head):
    return ports.anchors["file"].list_anchors(head.run)


def test_unknown_machine(ports, head):
    """Without its machine a run is verified by its stored definition; whether it succeeded is said to be unseen."""
    verdict = verify_run(ports.journal, {}, head.run, audited_kept(ports, head))
    assert verdict.ok
    assert verdict.unseen == (
        f"whether its outcome counts as a success: roundtable is not installed as it was ({MACHINE.digest})",
    )


def test_unknown_machine_head(ports, head):
    """Without its machine a head row that says another state or another outcome is found all the same."""
    wrong = ("outcome='canceled'", "status='working'", "title='x'", "due=5", "state='test'")
    for sql in (f"UPDATE head SET {cell}" for cell in wrong):  # noqa: S608  the five above
        change(ports, sql)
        assert not verify_run(ports.journal, {}, head.run).ok, sql
        change(ports, "REPLACE INTO head VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", *stored(head))
    assert verify_run(ports.journal, {}, head.run).ok


def test_other_definition(ports, head):
    """A machine that has changed since does not make an old tape look tampered with."""
    changed = replace(MACHINE, digest="0" * 16)
    verdict = verify_run(ports.journal, {"roundtable": changed}, head.run)
    assert verdict.ok


# ── what is found beyond the proof's own cases ───────────────────────────────────────────────────────────────────────


def test_all_findings(ports, head):
    """Several things wrong at once are all told, and the first bad entry is the lowest, however late it was noticed."""
    entry = next(e for e, _ in read_tape(ports.journal, head.run) if e.event == "workspace_ready")
    ref = ports.journal.head(head.run) and next(iter(ports.journal.payload_refs(head.run)))
    change(ports, "UPDATE payload SET body=x'00', size=1 WHERE ref=?", ref)
    change(ports, "UPDATE head SET title='x' WHERE run=?", head.run)
    verdict = audit_run(ports, head.run)
    assert len(verdict.problems) >= 2
    assert verdict.first_bad is not None
    assert verdict.first_bad != entry.seq


def test_many_findings(ports, head):
    """A key that is not the key makes every text bad; the verdict tells some and counts the rest."""
    change(ports, "UPDATE payload_key SET key=zeroblob(32)")
    verdict = audit_run(ports, head.run)
    assert verdict.first_bad == 1
    assert verdict.problems[-1].endswith("more findings")
    assert len(verdict.problems) == 21


@pytest.mark.parametrize(
    ("sql", "words"),
    [
        ("UPDATE payload SET body=x'00', size=1 WHERE ref=?", "does not have the digest in its name"),
        ("DELETE FROM payload WHERE ref=?", "is not in the store"),
    ],
)
def test_texts_before_a_long_run_is_driven(ports, head, monkeypatch, sql, words):
    """Of a long run the texts that it can still reach are judged, and no others."""
    monkeypatch.setattr(verifying, "SHORT_TAPE_ENTRIES", 0)
    state = ports.journal.snapshot(head.run)[1].decode()
    refs = sorted(ports.journal.payload_refs(head.run), key=lambda ref: ref in state)
    change(ports, sql, refs[0])
    assert verify_for_driving(ports.journal, ports.machines, head.run).ok
    change(ports, sql, refs[-1])
    verdict = verify_for_driving(ports.journal, ports.machines, head.run)
    assert verdict.problems == (f"the run's state names payload {refs[-1]}, which {words}",)


def test_unnamed_payload(ports, head):
    """A payload that no entry names is judged too."""
    change(ports, "INSERT INTO payload VALUES(?, 'p-1', x'00', 1)", head.run)
    verdict = audit_run(ports, head.run)
    assert verdict.problems == ("payload 'p-1' does not have the digest in its name",)
    assert verdict.first_bad is None


def test_no_utf8(ports, head):
    """Text that is no UTF-8 any more is a finding, not a crash."""
    change(ports, "UPDATE head SET title=CAST(x'ff' AS TEXT) WHERE run=?", head.run)
    verdict = audit_run(ports, head.run)
    assert not verdict.ok
    assert any(p.startswith("the head row cannot be read") for p in verdict.problems)


def test_busy_is_no_finding(ports, head):
    """A store that cannot be asked says nothing about a tape: that is an error, not a verdict."""

    class Busy:
        def __getattr__(self, name):
            raise JournalError("busy")

    with pytest.raises(JournalError, match="busy"):
        verify_run(Busy(), ports.machines, head.run)


def test_a_name_in_somebodys_words(ports):
    """A reason that looks like a payload's name is words, not a missing payload."""
    bridge = RunService(ports)
    run = drive_sample_run(ports, 0).run
    reason = "p-" + "0" * 32
    asyncio.run(
        bridge.settle(
            run, bridge.send(run, "task_followup_received", {"choice": "more"}, SAMPLE_PERSON, reason)
        )
    )
    assert any(entry.why == reason for entry, _ in read_tape(ports.journal, run))
    assert audit_run(ports, run).ok


class Moving:
    """A journal in which the run goes on while it is being read."""

    def __init__(self, journal, go):
        self._journal, self._go = journal, go

    def __getattr__(self, name):
        return getattr(self._journal, name)

    def rows(self, run, after=0):
        first = True
        for row in self._journal.rows(run, after):
            yield row
            if first and self._go is not None:
                first, go, self._go = False, self._go, None
                go()


def test_moving_run(ports, head):
    """A run that is driven on while it is verified is not taken for torn."""
    bridge = RunService(ports)

    def go():
        said = {"choice": "rework", "person": SAMPLE_PERSON}
        asyncio.run(
            bridge.settle(head.run, bridge.send(head.run, "task_followup_received", said, SAMPLE_PERSON))
        )

    moving = Moving(ports.journal, go)
    assert verify_run(moving, ports.machines, head.run).ok
    assert moving._go is None
    assert ports.journal.head(head.run).seq > head.seq


def forged(entries):
    """Rows of a tape that fits together by its hashes."""
    rows, prev = [], GENESIS_HASH
    for n, fields in enumerate(entries, 1):
        stored = seal_entry(Entry(run="r", seq=n, at=n, prev=prev, **fields))
        rows.append((n, stored.body, stored.hash))
        prev = stored.hash
    return rows


class Forged:
    """A journal that holds nothing but one forged tape."""

    def __init__(self, entries):
        self._rows = forged(entries)

    def rows(self, *_):
        return iter(self._rows)

    def __getattr__(self, name):
        return lambda *_: None

    def payload_refs(self, *_):
        return ()


CREATED = {"kind": "created", "to": "s", "context": {}, "root": "r", "machine": "m"}


@for_each_case(
    ("entries", "words", "seq"),
    [
        ([{"kind": "note"}], "does not begin the run", 1),
        ([CREATED, CREATED], "begins the run a second time", 2),
        ([{**CREATED, "context": None}], "creates nothing", 1),
        ([CREATED, {"kind": "transition", "source": "t", "to": "s"}], "leads from t, but the run was in s", 2),
        ([CREATED, {"kind": "sealed", "state_hash": "0"}], "seals another state", 2),
        ([CREATED, {"kind": "note", "ops": (["take", "f", "g"],)}], "cannot be read", 2),
        ([CREATED, {"kind": "note", "ops": ([],)}], "cannot be read", 2),
        ([{**CREATED, "definition": "d"}], "names definition d, which is not in the store", 1),
        ([{**CREATED, "data": "p-" + "0" * 32}], "is not in the store", 1),
    ],
)  # fmt: skip
def test_forged(entries, words, seq):
    """A tape whose hashes fit but whose story does not is found at the entry where it stops making sense."""
    verdict = verify_run(Forged(entries), {}, "r")
    assert any(words in p for p in verdict.problems), verdict
    assert verdict.first_bad == seq


# ── memory ───────────────────────────────────────────────────────────────────────────────────────────────────────────


class Endless(Forged):
    """A journal that makes up a long tape while it is read."""

    def __init__(self, count):
        self._count = count

    def rows(self, *_):
        prev = GENESIS_HASH
        for n in range(1, self._count + 1):
            fields = (
                CREATED
                if n == 1
                else {"kind": "transition", "source": "s", "to": "s", "ops": (("add", "n", 1),)}
            )
            stored = seal_entry(Entry(run="r", seq=n, at=n, prev=prev, data={"ref": f"p-{n:032x}"}, **fields))
            prev = stored.hash
            yield n, stored.body, stored.hash


def test_memory_does_not_grow():
    """Verifying ten times as many entries, each with a text of its own, takes no more memory."""
    import tracemalloc

    from steersman.engine.audit import texts

    def peak(count):
        tracemalloc.start()
        verify_run(Endless(count), {}, "r")
        used = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return used

    remembered, texts.MAX_REMEMBERED_PAYLOADS = texts.MAX_REMEMBERED_PAYLOADS, 500
    try:
        peak(10)  # what is made once and kept
        assert peak(10_000) < peak(1_000) * 1.2
    finally:
        texts.MAX_REMEMBERED_PAYLOADS = remembered


# ── reading it again ─────────────────────────────────────────────────────────────────────────────────────────────────


def test_replay(ports, head):
    """Every transition of a run is decided the same again by the machine that decided it."""
    again = replay_run(ports.journal, MACHINE, head.run)
    steps = [e for e, _ in read_tape(ports.journal, head.run) if e.kind in ("created", "transition")]
    assert (again.same, again.different, again.other_version) == (len(steps), 0, 0)
    assert again.bad is None


def test_replay_other_version(ports, head):
    """Where the definition is another one, replay says so instead of guessing."""
    again = replay_run(ports.journal, MACHINES["errand"], head.run)
    assert again.same == again.different == 0
    assert again.other_version == len(again.decisions) > 0


def test_replay_of_a_torn_tape(ports, head):
    """Replay goes as far as the tape can be read and says where that is."""
    change(ports, "UPDATE entry SET body=x'00' WHERE run=? AND seq=9", head.run)
    again = replay_run(ports.journal, MACHINE, head.run)
    assert again.bad == BadEntry(9, "entry 9 does not have the hash it was stored with")
    assert again.same == 8


def test_decisions(ports, head, tmp_path):
    """Two runs that decided the same about the same trees have one decision hash; another story has another."""
    twin = instant_ports(MemoryJournal())
    assert run_decision_hash(ports.journal, head.run) == run_decision_hash(
        twin.journal, drive_sample_run(twin, 2).run
    )
    assert run_decision_hash(ports.journal, head.run) != run_decision_hash(
        twin.journal, drive_sample_run(twin, 1).run
    )


# ── export ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_export_needs_no_steersman(ports, head):
    """An export is checked with a JSON parser and SHA-256 alone: chain, texts, and its own end."""
    kept = audited_kept(ports, head)
    lines = [json.loads(line) for line in export_run(ports.journal, head.run, payloads=True, anchors=kept)]
    first, *middle, end = lines
    assert (first["export"], first["run"], first["entries"]) == (1, head.run, head.seq)
    prev = "0" * 64
    for n, line in enumerate((x for x in middle if "entry" in x), 1):
        plain = json.dumps(line["entry"], sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        assert hashlib.sha256(plain.encode()).hexdigest() == line["hash"]
        assert (line["entry"]["seq"], line["entry"]["prev"]) == (n, prev)
        prev = line["hash"]
    assert prev == end["hash"] == head.hash
    key = bytes.fromhex(next(x["key"] for x in middle if "key" in x))
    texts = {x["payload"]: x["text"].encode() for x in middle if "payload" in x}
    assert texts
    assert all(name == "p-" + hmac.digest(key, t, "sha256").hex()[:32] for name, t in texts.items())
    assert end["end"] == len(lines) - 1
    assert [x["anchor"]["seq"] for x in middle if "anchor" in x] == [a.seq for a in kept.genuine]
    assert [x["definition"] for x in middle if "definition" in x] == [MACHINE.digest]


def test_export_without_texts(ports, head):
    """An export leaves the texts and their key out unless they are asked for."""
    lines = [json.loads(line) for line in export_run(ports.journal, head.run)]
    assert not any({"key", "payload"} & line.keys() for line in lines)
    assert all(
        canonical_bytes(line) == canonical_bytes(msgspec.json.decode(canonical_bytes(line))) for line in lines
    )


def test_export_of_odd_bytes(ports, head):
    """A payload that is no text is exported as it is."""
    change(
        ports,
        "UPDATE payload SET body=x'ff', size=1 WHERE ref=(SELECT min(ref) FROM payload WHERE body IS NOT NULL)",
    )
    assert any(b'"base64":"/w=="' in line for line in export_run(ports.journal, head.run, payloads=True))


def test_export_refuses_a_torn_tape(ports, head):
    """A tape that does not fit is not exported as if it did."""
    change(ports, "DELETE FROM entry WHERE run=? AND seq=5", head.run)
    with pytest.raises(StoreBroken, match=r"entry 5 is missing.*audit verify"):
        list(export_run(ports.journal, head.run))


def test_export_of_nothing(ports):
    """A run that never was has no export."""
    with pytest.raises(UserError, match="there is no run"):
        list(export_run(ports.journal, "nobody"))


# ── pruning ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_prune(ports, head):
    """Pruning drops every text and the key, keeps tape and state, says so on tape, and the run still verifies."""
    before = RunService(ports).live(head.run).snapshot
    texts = len(list(ports.journal.payload_refs(head.run)))
    done = prune_run(ports, head.run, "ann", "they asked for it")
    assert (done.run, done.seq, done.payloads, done.runs) == (head.run, head.seq + 1, texts, (head.run,))
    assert list(ports.journal.payload_refs(head.run)) == []
    assert ports.journal.key(head.run) is None
    after = RunService(ports).live(head.run).snapshot
    assert structs.replace(after, seq=before.seq, hash=before.hash, at=before.at) == before
    last = list(read_tape(ports.journal, head.run))[-1][0]
    assert (last.kind, last.actor, last.why) == ("pruned", "person:ann", "they asked for it")
    verdict = audit_run(ports, head.run)
    assert verdict.ok
    assert verdict.unseen == (
        "changes to the texts and settings of this run: they were pruned, and only their digests are left",
    )


def test_pruned_followup(ports, head):
    """Nobody can go on with a pruned run: a follow-up is journaled as refused, with the reason and the next step."""
    prune_run(ports, head.run, "ann")
    posted = RunService(ports).send(head.run, "task_followup_received", {"choice": "rework"}, "ann")
    verdict = settle_post(ports, head.run, posted)
    assert verdict["result"] == "refused"
    assert "pruned" in verdict["why"]
    assert "Start a new run" in verdict["why"]
    assert list(read_tape(ports.journal, head.run))[-1][0].kind == "refused"
    assert audit_run(ports, head.run).ok


def test_pruned_words(ports, head):
    """Longer words for a pruned run are refused before they are kept anywhere."""
    prune_run(ports, head.run, "ann")
    with pytest.raises(UserError, match="pruned: start a new run"):
        RunService(ports).text(head.run, "go on")


def test_pruned_fork(ports, head):
    """A pruned run cannot be forked."""
    prune_run(ports, head.run, "ann")
    with pytest.raises(UserError, match="pruned"):
        asyncio.run(fork_run(ports, head.run, 3, "ann"))


def test_prune_twice(ports, head):
    """What was pruned is not pruned again."""
    prune_run(ports, head.run, "ann")
    with pytest.raises(UserError, match="pruned already"):
        prune_run(ports, head.run, "ann")


def test_prune_export(ports, head):
    """A pruned run is exported without its texts, and says why not with them."""
    prune_run(ports, head.run, "ann")
    assert len(list(export_run(ports.journal, head.run))) > head.seq
    with pytest.raises(UserError, match="pruned"):
        list(export_run(ports.journal, head.run, payloads=True))


def test_prune_nobody(ports):
    """A run that never was is not pruned."""
    with pytest.raises(UserError, match="there is no run"):
        prune_run(ports, "nobody", "ann")


def test_prune_waits_for_the_tree(ports, head):
    """While one run of the tree goes on, nothing of it is pruned; afterwards both are, and both verify."""
    other = asyncio.run(fork_run(ports, head.run, 3, "ann"))
    with pytest.raises(UserError, match=f"run {other} is working.*steersman abort {other}"):
        prune_run(ports, head.run, "ann")
    assert ports.journal.key(head.run) is not None
    assert settle_post(ports, other, RunService(ports).abort(other, "ann"))["result"] == "taken"
    assert set(prune_run(ports, other, "ann").runs) == {head.run, other}
    assert [audit_run(ports, r).ok for r in (head.run, other)] == [True, True]


def test_prune_while_driven(ports, head):
    """A run that somebody drives is left alone."""
    lock = ports.locks.acquire(head.run)
    with pytest.raises(UserError, match="driven by"):
        prune_run(ports, head.run, "ann")
    lock.release()
    assert prune_run(ports, head.run, "ann").payloads > 0


def test_gone_without_a_word(ports, head):
    """Texts that are gone though no entry says so are a finding; so is a `pruned` entry of another tree."""
    change(ports, "DELETE FROM payload")
    change(ports, "DELETE FROM payload_key")
    verdict = audit_run(ports, head.run)
    assert verdict.first_bad == 1
    assert any("no entry says that they were pruned" in p for p in verdict.problems)


# ── anchoring ────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_anchor_words(ports, head):
    """An unknown place and an unknown run are told with what there is."""
    with pytest.raises(UserError, match="Choose one of: file"):
        anchor_run(ports, head.run, "moon")
    with pytest.raises(UserError, match="there is no run"):
        anchor_run(ports, "nobody")


def test_anchor(ports, head):
    """An anchor states the run's length and last hash as they are now."""
    made = anchor_run(ports, head.run)
    assert (made.run, made.seq, made.hash) == (head.run, head.seq, head.hash)
    assert made in audited_kept(ports, head).genuine
