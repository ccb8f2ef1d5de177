"""Frozen plans (001 §10): the same bytes for the same inputs, a lineage without gaps, and no byte changed unseen."""

import os
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.support.cases import for_each_case
from tests.support.planning_documents import (
    FACT_PACK,
    MEMORY_PACK,
    default_answers,
    frozen_files,
    make_command,
    make_context_bundle,
    make_decision,
    make_intent,
    make_plan_inputs,
    make_plan_outputs,
    make_policy,
    make_registry,
)

from steersman.contracts.planning.review import FrozenFile, PlanManifest
from steersman.judges.planning.attest import (
    PAYLOAD_TYPE,
    envelope_signers,
    find_envelope_problems,
    foreign_signer_problem,
    missing_envelope_problem,
    plan_statement,
    pre_authentication_encoding,
    signed_envelope,
)
from steersman.judges.planning.freeze import (
    FROZEN_DOCUMENT_TYPES,
    FROZEN_FILE_NAMES,
    MANIFEST_FILE,
    RENDERED_PLAN_FILES,
    find_lineage_gaps,
    find_malformed_files,
    find_unmatched_files,
    freeze_plan_files,
)
from steersman.judges.planning.plan_inputs import derive_plan_id
from steersman.judges.planning.verify import find_differing_inputs, verify_frozen_plan
from steersman.kernel.canonical import canonical_bytes, digest_of, sha256_hex

REVIEWED = make_plan_inputs(ruled=(make_decision("edit_files", "require_review", "warn"),))
FILES = frozen_files(make_plan_outputs(REVIEWED))
ANSWERED = digest_of(default_answers(REVIEWED).answers)


def manifest(of):
    return msgspec.json.decode(of[MANIFEST_FILE], type=PlanManifest)


def relisted(changed):
    """These files under a manifest that lists them as they are: what somebody does who knows the form."""
    listed = manifest(changed)
    entries = tuple(
        replace(f, sha256=sha256_hex(changed[f.name]), bytes=len(changed[f.name])) for f in listed.files
    )
    return {**changed, MANIFEST_FILE: canonical_bytes(replace(listed, files=entries))}


def test_a_frozen_plan_has_every_file_and_is_in_order():
    """001 §10: all outputs have checksums, the lineage is complete, outputs satisfy their schemas."""
    assert sorted(FILES) == sorted((*FROZEN_FILE_NAMES, MANIFEST_FILE))
    assert (
        verify_frozen_plan(FILES)
        == find_malformed_files(FILES)
        == find_unmatched_files(manifest(FILES), FILES)
        == ()
    )
    assert all(
        canonical_bytes(msgspec.json.decode(FILES[name])) == FILES[name] for name in FROZEN_DOCUMENT_TYPES
    )


def test_a_plan_frozen_with_a_drawing_still_verifies():
    """Plans of an earlier form list `execution_graph.svg`; a changed one is named, and so is one that is not listed."""
    drawing = "execution_graph.svg"
    with_drawing = {**FILES, drawing: b"<svg/>\n"}
    entry = FrozenFile(name=drawing, sha256=sha256_hex(b"<svg/>\n"), bytes=7)
    entries = sorted((*manifest(FILES).files, entry), key=lambda file: file.name)
    older = {**with_drawing, MANIFEST_FILE: canonical_bytes(replace(manifest(FILES), files=tuple(entries)))}
    assert verify_frozen_plan(older) == ()
    assert [p.field for p in verify_frozen_plan({**older, drawing: b"<svg>\n"})] == [drawing]
    assert [p.field for p in verify_frozen_plan(with_drawing)] == [drawing]


def test_no_clock_path_or_score_is_in_a_frozen_file():
    """The only moments are those of the intent and of memories that were given."""
    found = set()
    for name in FROZEN_DOCUMENT_TYPES:
        found |= {
            word for word in FILES[name].decode().split('"') if word.startswith("20") and word.endswith("Z")
        }
    assert found == {make_intent().created_at}


SCRIPT = """
import sys
from tests.support.planning_documents import frozen_files, make_decision, make_plan_inputs, make_plan_outputs
from steersman.kernel.canonical import sha256_hex
made = frozen_files(make_plan_outputs(make_plan_inputs(ruled=(make_decision("edit_files", "require_review", "warn"),))))
print(sha256_hex(b"".join(made[name] for name in sorted(made))))
"""


@pytest.mark.parametrize(("seed", "language"), [("1", "C"), ("77", "tr_TR.UTF-8")])
def test_another_process_makes_the_same_bytes(seed, language, tmp_path):
    """001 Implementation Notes: deterministic, whatever the hash seed, the locale and the directory."""
    environment = {
        **os.environ, "PYTHONHASHSEED": seed, "LC_ALL": language,
        "PYTHONPATH": str(Path(__file__).parents[3]),
    }  # fmt: skip
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], cwd=tmp_path, env=environment, capture_output=True, text=True,
        check=True,
    )  # fmt: skip
    assert done.stdout.strip() == sha256_hex(b"".join(FILES[name] for name in sorted(FILES)))


CHANGES = {
    "intent_checksum": make_plan_inputs(make_intent(description="The pump still leaks.")),
    "policy_digest": make_plan_inputs(context=make_context_bundle(make_policy(timeout_seconds=5))),
    "facts_digest": make_plan_inputs(
        context=make_context_bundle(facts=replace(FACT_PACK, fingerprint="3" * 64))
    ),
    "memory_digest": make_plan_inputs(
        context=make_context_bundle(memory=replace(MEMORY_PACK, query="leaks"))
    ),
    "registry_digest": make_plan_inputs(known=make_registry(make_command("unused_one", "setup"))),
}


@for_each_case("name", CHANGES)
def test_a_changed_input_changes_the_plan_and_the_lineage_tells_which(name):
    """Any changed input changes the checksums, and the lineage tells where."""
    first, second = (
        frozen_files(make_plan_outputs(make_plan_inputs())),
        frozen_files(make_plan_outputs(CHANGES[name])),
    )
    assert verify_frozen_plan(second) == ()
    assert first[MANIFEST_FILE] != second[MANIFEST_FILE]
    assert manifest(first).plan_id != manifest(second).plan_id
    assert find_differing_inputs(first, second) == (name,)
    assert find_differing_inputs(first, first) == ()


def test_a_changed_version_is_told_by_name():
    """The version of every piece of content that is used is in the lineage."""
    newer = make_plan_inputs(known=make_registry(make_command("read_code", "analysis", version="1.1.0")))
    assert find_differing_inputs(
        frozen_files(make_plan_outputs(make_plan_inputs())), frozen_files(make_plan_outputs(newer))
    ) == ("commands.read_code", "registry_digest")


def test_answers_do_not_change_the_name_of_a_plan():
    """Plan id from input digests: what people answer is not among them; the lineage has it, and tells two plans apart."""
    other = frozen_files(make_plan_outputs(REVIEWED, default_answers(REVIEWED, requires_review="leave_out")))
    assert manifest(other).plan_id == manifest(FILES).plan_id == derive_plan_id(REVIEWED.lineage)
    assert verify_frozen_plan(other) == ()
    assert find_differing_inputs(other, FILES) == ("answers_digest",)
    assert manifest(FILES).lineage.answers_digest == ANSWERED


@given(st.data())
@settings(max_examples=150, deadline=None)
def test_no_byte_of_any_file_changes_unseen(data):
    """`plan verify` finds any changed byte in any output, the manifest included."""
    name = data.draw(st.sampled_from(sorted(FILES)))
    at = data.draw(st.integers(0, len(FILES[name]) - 1))
    other = data.draw(st.integers(0, 255).filter(lambda b: b != FILES[name][at]))
    changed = FILES[name][:at] + bytes([other]) + FILES[name][at + 1 :]
    assert verify_frozen_plan({**FILES, name: changed})


@for_each_case("name", sorted(FILES))
def test_a_file_that_is_missing_shorter_or_longer_is_found(name):
    """Nothing may be missing, cut or appended."""
    rest = {key: value for key, value in FILES.items() if key != name}
    assert name in {p.field for p in verify_frozen_plan(rest)}
    assert verify_frozen_plan({**FILES, name: FILES[name][:-1]})
    assert verify_frozen_plan({**FILES, name: FILES[name] + b"\n"})
    assert verify_frozen_plan({**FILES, name: b""})


def test_a_file_that_does_not_belong_there_is_found():
    """Nothing may be added."""
    assert [p.field for p in verify_frozen_plan({**FILES, "extra.json": b"{}"})] == ["extra.json"]


NO_PLAN = "plan_0000000000000000"
# file, what of it no longer leads to the plan, and what somebody changed in it
FORGED = [
    ("intent.json", "intent_checksum", lambda v: v.update(title="Another title")),
    ("intent.json", "audit.checksum", lambda v: v["audit"].update(checksum="0" * 64)),
    ("intent.json", "derived_from_intent", lambda v: v.update(id="intent_another_one")),
    ("manifest.json", "intent_id", lambda v: v.update(intent_id="intent_another_one")),
    ("policy.json", "policy_digest", lambda v: v.update(max_retries=3)),
    ("context_bundle.json", "policy_digest", lambda v: v["policy"].update(max_retries=3)),
    ("context_bundle.json", "facts_digest", lambda v: v["facts"].update(project_id="other")),
    ("context_bundle.json", "memory_digest", lambda v: v["memory"].update(query="another leak")),
    ("registry_snapshot.json", "registry_digest", lambda v: v.update(digest="0" * 64)),
    ("registry_snapshot.json", "digest", lambda v: v["entries"].pop()),
    ("execution_graph.json", "checksum", lambda v: v["nodes"][0].update(label="Another label")),
    ("execution_graph.json", "lineage", lambda v: v["lineage"].update(facts_digest="0" * 64)),
    ("manifest.json", "plan_id", lambda v: v.update(plan_id=NO_PLAN)),
    ("execution_graph.json", "plan_id", lambda v: v.update(plan_id=NO_PLAN)),
    ("settled_questions.json", "answers_digest", lambda v: v["answers"].pop()),
    ("settled_questions.json", "plan_id", lambda v: v.update(plan_id=NO_PLAN)),
    ("review_pack.json", "plan_id", lambda v: v.update(plan_id=NO_PLAN)),
]


@for_each_case(("name", "word", "forge"), FORGED)
def test_a_changed_document_under_a_new_manifest_does_not_fit_its_lineage(name, word, forge):
    """Whoever changes a document and lists it anew is found by what it was made from, each step of it by itself."""
    value = msgspec.json.decode(FILES[name])
    forge(value)
    found = verify_frozen_plan(relisted({**FILES, name: canonical_bytes(value)}))
    assert (name, word) in {(p.field, p.message.split()[0]) for p in found}


def test_a_manifest_that_lists_wrongly_is_found():
    """Twice, out of order, with a wrong length or not at all: none of it passes."""
    listed = manifest(FILES)

    def verified(entries):
        return verify_frozen_plan(
            {**FILES, MANIFEST_FILE: canonical_bytes(replace(listed, files=tuple(entries)))}
        )

    assert verified(reversed(listed.files))
    assert verified((*listed.files, listed.files[-1]))
    assert verified(replace(f, bytes=f.bytes + 1) for f in listed.files)
    assert {p.message for p in verified(listed.files[1:])} >= {"The manifest does not list it."}


@for_each_case("data", [b"", b"{}", b"[]", b"\xff", b'{"plan_id":1}', b"[" * 50_000])
def test_a_manifest_that_is_none_is_refused(data):
    """Nothing is held against what cannot be read."""
    assert MANIFEST_FILE in {p.field for p in verify_frozen_plan({**FILES, MANIFEST_FILE: data})}
    assert verify_frozen_plan({})


def test_what_breaks_its_schema_is_malformed():
    """001 §13: a schema violation in our own documents is counted; so are bytes that are not the canonical ones."""
    pretty = FILES["policy.json"].replace(b",", b", ", 1)
    broken = {**FILES, "policy.json": pretty, "risk_assessment.json": b"{}"}
    assert [p.field for p in find_malformed_files(broken)] == ["policy.json", "risk_assessment.json"]
    made = make_plan_outputs(REVIEWED)
    bad = freeze_plan_files(
        made._replace(graph=replace(made.graph, stage="half")), dict.fromkeys(RENDERED_PLAN_FILES, "x")
    )
    assert [p.field for p in find_malformed_files(bad)] == ["execution_graph.json"]


def test_a_lineage_with_gaps_is_told():
    """001 §10 guard: traceable back to intent and registry versions."""
    graph, snapshot = make_plan_outputs(REVIEWED).graph, REVIEWED.registry.snapshot()
    assert find_lineage_gaps(graph, snapshot) == ()
    versions = graph.lineage.registry_versions
    less = replace(
        graph.lineage,
        registry_versions=replace(
            versions, workflows={}, agents={}, rules={}, commands={**versions.commands, "read_code": "9.0.0"}
        ),
    )
    assert [p.field for p in find_lineage_gaps(replace(graph, lineage=less), snapshot)] == [
        "lineage.registry_versions.workflows.bug_fix", "lineage.registry_versions.agents.agent_coder",
        "lineage.registry_versions.agents.agent_reviewer", "lineage.registry_versions.agents.agent_tester",
        "lineage.registry_versions.commands.read_code", "lineage.registry_versions.rules.rule_no_writes",
    ]  # fmt: skip


# ── The statement that is signed ────────────────────────────────────────────────────────────────────────────────────

KEY = Ed25519PrivateKey.from_private_bytes(b"k" * 32)


def holds(message, keyid, signature):
    try:
        KEY.public_key().verify(signature, message)
    except InvalidSignature:
        return False
    return keyid == "the key"


def signed(of, payload_type=PAYLOAD_TYPE):
    said = plan_statement(of)
    return signed_envelope(said, "the key", KEY.sign(pre_authentication_encoding(payload_type, said)))


def test_what_is_signed_is_encoded_as_dsse_says():
    """The example of the DSSE protocol, byte for byte."""
    assert (
        pre_authentication_encoding("http://example.com/HelloWorld", b"hello world")
        == b"DSSEv1 29 http://example.com/HelloWorld 11 hello world"
    )
    assert pre_authentication_encoding("é", b"") == "DSSEv1 2 é 0 ".encode()


def test_the_statement_names_every_file_with_its_digest():
    """In-toto Statement v1: subjects are the files, the predicate is the lineage."""
    said = msgspec.json.decode(plan_statement(FILES))
    assert said["_type"] == "https://in-toto.io/Statement/v1"
    assert {s["name"]: s["digest"]["sha256"] for s in said["subject"]} == {
        n: sha256_hex(d) for n, d in FILES.items()
    }
    assert digest_of(said["predicate"]["lineage"]) == digest_of(
        replace(REVIEWED.lineage, answers_digest=ANSWERED)
    )


def test_a_genuine_envelope_holds_and_no_other():
    """A signature holds over exactly these bytes and these files."""
    data = signed(FILES)
    assert find_envelope_problems(data, FILES, holds) == ()
    assert find_envelope_problems(data, frozen_files(make_plan_outputs(make_plan_inputs())), holds)
    assert find_envelope_problems(data, FILES, lambda *_: False)
    assert find_envelope_problems(data.replace(b'"the key"', b'"another"'), FILES, holds)
    assert find_envelope_problems(data + b"\n", FILES, holds)
    assert find_envelope_problems(signed(FILES, "text/plain"), FILES, holds)
    assert find_envelope_problems(data.replace(b"vnd.in-toto", b"vnd.in-tota"), FILES, holds)


@for_each_case(
    "data",
    [b"", b"{}", b"\xff", '{"payload":"é","payloadType":"","signatures":[]}'.encode(),
     b'{"payload":"a","payloadType":"","signatures":[]}', b'{"payload":"YR==","payloadType":"","signatures":[]}',
     b'{"payload":"","payloadType":"","signatures":[]}', b'{"payload":"","payloadType":"","signatures":[{"keyid":"","sig":"?"}]}'],
)  # fmt: skip
def test_what_is_no_envelope_is_refused(data):
    """Nothing but one canonical envelope with a signature is taken."""
    assert find_envelope_problems(data, FILES, lambda *_: True)


@pytest.mark.parametrize("times", [0, 2, 3])
def test_an_envelope_has_one_signature(times):
    """§10: the same signature twice, or none, is not the file that was frozen, though every signature in it holds."""
    found = msgspec.json.decode(signed(FILES))
    found["signatures"] *= times
    (told,) = find_envelope_problems(canonical_bytes(found), FILES, holds)
    assert f"{times} signatures" in told.message


def test_no_byte_of_an_envelope_changes_unseen():
    """Whatever byte is changed, it does not hold."""
    data = signed(FILES)
    for at in range(0, len(data), 97):
        changed = data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]
        assert find_envelope_problems(changed, FILES, holds)


def test_an_envelope_names_its_signers():
    """Whose it is can be told before anybody knows whether it holds; what is no envelope names nobody."""
    assert envelope_signers(signed_envelope(b"{}", "a key", b"sig")) == ("a key",)
    assert envelope_signers(b"{}") == envelope_signers(b"\xff") == ()
    assert "k1, k2" in foreign_signer_problem(("k1", "k2")).message
    assert missing_envelope_problem().field == foreign_signer_problem(("k",)).field == "plan.dsse.json"
