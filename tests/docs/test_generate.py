"""The generated pages are what the code gives now."""

import json
import subprocess
import sys
from pathlib import Path

import jsonschema_rs
from tests.support.cases import for_each_case

TOP = Path(__file__).resolve().parents[2]
SCHEMAS = TOP / "docs" / "reference" / "schemas"


def generate(*args):
    return subprocess.run(
        [sys.executable, "-m", "docs.generate", *args], cwd=TOP, capture_output=True, text=True, check=False
    )


def test_current():
    """Every generated page is current."""
    done = generate("--check")
    assert (done.returncode, done.stderr) == (0, "")


def test_drift_is_named(tmp_path, monkeypatch):
    """A page that was edited, one that is missing and one that nothing writes are each named."""
    sys.path.insert(0, str(TOP))
    try:
        from docs import generate as g
    finally:
        sys.path.remove(str(TOP))
    monkeypatch.setattr(g, "REFERENCE", tmp_path)
    g.write()
    assert g.drifted() == []
    (tmp_path / "cli.md").unlink()
    (tmp_path / "machines" / "roundtable.md").write_text("edited")
    (tmp_path / "schemas" / "old.json").write_text("{}")
    assert g.drifted() == ["cli.md", "machines/roundtable.md", "schemas/old.json"]
    g.write()
    assert g.drifted() == []


@for_each_case("path", sorted(SCHEMAS.glob("*.json")))
def test_schemas(path):
    """Every published schema is a schema."""
    assert jsonschema_rs.meta.is_valid(json.loads(path.read_text(encoding="utf-8")))


def test_entries_fit_their_schema():
    """What the runtime writes on a tape fits the published schema of an entry, and so does an anchor."""
    from tests.support.long_tapes import drive_sample_run, instant_ports

    from steersman.testing.memory import MemoryJournal

    journal = MemoryJournal()
    run = drive_sample_run(instant_ports(journal), 1).run
    entry = jsonschema_rs.validator_for(json.loads((SCHEMAS / "entry.json").read_text()))
    bodies = [json.loads(body) for _, body, _ in journal.rows(run)]
    assert [b["seq"] for b in bodies if not entry.is_valid(b)] == []
    assert not entry.is_valid({**bodies[0], "extra": 1})
