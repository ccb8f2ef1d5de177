"""What is known can be cited: every fact, every place, every memory has one name, and it fits a reference."""

import msgspec
from tests.support.cases import for_each_case

from steersman.contracts.planning.context import (
    ContextBundle,
    FactPack,
    MemoryPack,
    ProjectFact,
    RecalledMemory,
    ScanBounds,
    ScanEvidence,
)
from steersman.contracts.planning.policy import POLICY_PRESETS
from steersman.judges.planning.evidence import build_context_bundle, format_fact_ref


def a_fact(name):
    return ProjectFact(kind="package", name=name, evidence=("ev0123456789ab",))


@for_each_case(
    ("name", "ref"),
    [
        ("pytest", "fact://package/pytest"),
        ("@scope/name", "fact://package/@scope/name"),
        ("two words", "fact://package/two%20words"),
        ("部署", "fact://package/部署"),
        ("100%", "fact://package/100%25"),
        ("a\nb", "fact://package/a%0Ab"),
    ],
)
def test_a_fact_has_one_name(name, ref):
    """Whatever a fact is called, its name has no space, no control character and no second meaning."""
    assert format_fact_ref(a_fact(name)) == ref


def test_everything_known_is_listed_and_the_bundle_fits_its_contract():
    """Facts, places and memories are citable, sorted, each once; the longest name still fits."""
    seen = ScanEvidence(
        id="ev0123456789ab", source_file="a", first_line=1, last_line=1, digest="0" * 64, snippet=""
    )
    bounds = ScanBounds(files_seen=1, files_read=1, bytes_read=1, skipped=0, complete=True)
    facts = FactPack(
        project_id="p", fingerprint="0" * 64, facts=(a_fact("b"), a_fact("é " * 100), a_fact("a\n" * 100)),
        evidence=(seen,), bounds=bounds,
    )  # fmt: skip
    kept = RecalledMemory(id="mem_0123456789ab", scope="project", text="x")
    memory = MemoryPack(project_id="p", query="", scopes=("project",), threshold=1, memories=(kept,))
    made = build_context_bundle(memory, facts, POLICY_PRESETS["interactive"])
    assert made.evidence_refs == tuple(sorted(made.evidence_refs))
    assert {"scan://ev0123456789ab", "memory://mem_0123456789ab", "fact://package/b"} < set(
        made.evidence_refs
    )
    assert msgspec.json.decode(msgspec.json.encode(made), type=ContextBundle) == made
