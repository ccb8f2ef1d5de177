"""Each transcription against its document, and against the transcription that was compared last."""

import hashlib
import json
from typing import Any

import pytest

from tests.specifications import coordinator, feature, orchestrator, readers, roundtable, task
from tests.specifications.documents import name_wording
from tests.support.cases import for_each_case

READERS = {
    roundtable: readers.read_roundtable, coordinator: readers.read_coordinator, task: readers.read_task,
    feature: readers.read_feature, orchestrator: readers.read_orchestrator,
}  # fmt: skip
# Of everything that a module transcribes: a change without a document beside it is noticed as well.
DIGESTS = {
    roundtable: "2f74fe465964e501ee46578962f72df390c2cce5627b3c4fdef2a667dfe8f5fa",
    coordinator: "90584484c4fbc5afd84389b7b60bf2658ea6fe8459c148c8e9910fa8f81fb627",
    task: "f14ebee1c426c4fc779988fd84f257dd3747c6261115d675d1c1450b260ff032",
    feature: "5eca82853480eb9ad2c93007f66dbe7c152c8ff40ef1c8070279d4555bd916d7",
    orchestrator: "557090d0cf676679de57c14aab51c7c9ea0a89fa8f5819bbb0adebfe014de656",
}
each_transcription = pytest.mark.parametrize("spec", READERS, ids=lambda m: m.__name__.rpartition(".")[2])
DERIVED = {"ORDER"}  # from STATES, for the tests of the machines


@pytest.fixture
def document(spec):
    """The text of a transcription's document; only comparisons with it are skipped where it is not there."""
    if not spec.DOCUMENT.path.exists():
        pytest.skip(f"the document {spec.DOCUMENT.file} is not in ../shared/spec beside this checkout")
    return spec.DOCUMENT.path.read_text(encoding="utf-8")


def transcribed_tables(spec) -> dict[str, Any]:
    """Everything that a module transcribes, by name."""
    left_out = {"DOCUMENT", "WORDINGS", *DERIVED}
    return {name: table for name, table in vars(spec).items() if name.isupper() and name not in left_out}


def read_tables(spec, text, wordings=None) -> dict[str, Any]:
    """The same tables as a document has them."""
    known = spec.WORDINGS if wordings is None else wordings
    return READERS[spec](text, lambda words: name_wording(words, known))


def digest_tables(tables, wordings) -> str:
    """The digest of everything that is transcribed."""
    return hashlib.sha256(json.dumps([tables, wordings], sort_keys=True).encode()).hexdigest()


def find_differences(mine, theirs) -> list[str]:
    """The names of the tables that are not the same."""
    return [name for name in sorted({*mine, *theirs}) if mine.get(name) != theirs.get(name)]


def changed_once(value):
    """Every copy of a table in which one thing is different: changed, left out, doubled or moved."""
    match value:
        case tuple():
            for n, entry in enumerate(value):
                yield (*value[:n], *value[n + 1 :])
                yield (*value[: n + 1], entry, *value[n + 1 :])
                yield from ((*value[:n], other, *value[n + 1 :]) for other in changed_once(entry))
                if n and value[n - 1] != entry:
                    yield (*value[: n - 1], entry, value[n - 1], *value[n + 1 :])
        case str():
            yield f"{value}_"
        case int() | float():
            yield value + 1
        case None:
            yield "somewhere"


@each_transcription
def test_the_transcription_is_the_one_that_was_compared(spec):
    """Without its document a changed transcription is still noticed: its digest is kept here."""
    tables = transcribed_tables(spec)
    assert digest_tables(tables, spec.WORDINGS) == DIGESTS[spec]
    for name, table in tables.items():
        for copy in changed_once(table):
            assert digest_tables({**tables, name: copy}, spec.WORDINGS) != DIGESTS[spec], copy


@each_transcription
def test_the_document_is_the_one_that_was_transcribed(spec, document):
    """The document beside the checkout is, byte for byte, the one that the transcription was written from."""
    assert document
    assert hashlib.sha256(spec.DOCUMENT.path.read_bytes()).hexdigest() == spec.DOCUMENT.digest


@each_transcription
def test_the_transcription_is_faithful(spec, document):
    """Every table of a transcription is what its document says, in the document's order, and none is left unread."""
    tables, read = transcribed_tables(spec), read_tables(spec, document)
    for name in find_differences(tables, read):
        assert tables.get(name) == read.get(name), name


@each_transcription
def test_a_changed_transcription_is_noticed(spec, document):
    """A copy of a table with one value changed, left out, doubled or moved is not what the document says."""
    tables, read = transcribed_tables(spec), read_tables(spec, document)
    for name, table in tables.items():
        copies = list(changed_once(table))
        assert copies
        for copy in copies:
            assert find_differences({**tables, name: copy}, read) == [name], copy


@each_transcription
def test_a_changed_wording_is_noticed(spec, document):
    """An identifier with the fingerprint of another wording, or with none, stands for nothing in the document."""
    tables = transcribed_tables(spec)
    for name in spec.WORDINGS:
        left = {known: fingerprint for known, fingerprint in spec.WORDINGS.items() if known != name}
        for wordings in ({**left, name: "0" * 12}, left):
            assert find_differences(tables, read_tables(spec, document, wordings)), name


@each_transcription
def test_an_identifier_stands_for_one_wording(spec):
    """No two identifiers have the same fingerprint, and every one of them is used in a table."""
    assert len(set(spec.WORDINGS.values())) == len(spec.WORDINGS)
    assert set(spec.WORDINGS) <= set(_list_leaves(tuple(transcribed_tables(spec).values())))


def _list_leaves(value):
    if not isinstance(value, tuple):
        return [value]
    return [leaf for entry in value for leaf in _list_leaves(entry)]


@for_each_case("spec", READERS)
def test_an_edge_joins_two_states(spec):
    """Each arrow of a diagram begins at a state, at the beginning or at any state, and ends at a state."""
    states = {state if isinstance(state, str) else state[0] for state in spec.STATES}
    edges = spec.TRANSITIONS if spec is roundtable else spec.DIAGRAM
    assert {edge[0] for edge in edges} <= {*states, None, "*"}
    assert {edge[-1] for edge in edges} <= states
    assert len({tuple(edge) for edge in edges}) == len(edges)
