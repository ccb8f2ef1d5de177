"""How texts are taken apart into words, and what a plan is given."""

import pytest
from tests.support.cases import for_each_case

from steersman.errors import UserError
from steersman.judges.planning.memory_words import (
    MAX_SEARCH_TERMS,
    SearchTerm,
    build_memory_pack,
    build_memory_record,
    build_search_terms,
    memory_sort_key,
    split_memory_words,
)
from steersman.judges.redaction.redact import mask_secrets

AT = "2026-01-25T09:30:00Z"


@for_each_case(
    ("text", "words"),
    [
        ("", ()),
        ("Use uv_run, NOT pip!", ("use", "uv", "run", "not", "pip")),
        ("部署", ("部署", "署")),
        ("生产部署", ("生产", "产部", "部署", "署")),
        ("v2部署now", ("v2", "部署", "署", "now")),
        ("ＡＢ ﬁn Straße", ("ab", "fin", "strasse")),
        ("\x00\ud800 ?", ()),
        ("x" * 100, ("x" * 64,)),
    ],
)
def test_words(text, words):
    """Words as they are compared; pairs of characters where there are no spaces."""
    assert split_memory_words(text) == words


def test_terms():
    """Each word once; long ones also find what begins with them, lone characters the pairs that do."""
    assert build_search_terms("go deploy deploy 部署 部") == (
        SearchTerm("go", begins=False), SearchTerm("deploy", begins=True), SearchTerm("部署", begins=False), SearchTerm("部", begins=True),
    )  # fmt: skip
    assert len(build_search_terms(" ".join(f"word{n}" for n in range(200)))) == MAX_SEARCH_TERMS


def test_the_order_is_total():
    """How well it fits, then the younger one, then the name."""
    old, new = (
        build_memory_record("a", created_at=AT),
        build_memory_record("b", created_at="2026-02-01T00:00:00Z"),
    )
    assert sorted([(1, old), (1, new), (0, old)], key=lambda p: memory_sort_key(*p)) == [
        (0, old),
        (1, new),
        (1, old),
    ]


def test_a_memory_is_named_by_what_it_says():
    """The same words have the same name; scope and subject are part of it, tags and time are not."""
    one = build_memory_record(" a ", created_at=AT, tags=["x", " "])
    assert one.id == build_memory_record("a", created_at="2026-02-01T00:00:00Z").id
    assert one.tags == ("x",)
    assert (
        len(
            {
                one.id,
                build_memory_record("a", scope="repo", created_at=AT).id,
                build_memory_record("a", subject="s", created_at=AT).id,
            }
        )
        == 3
    )
    with pytest.raises(UserError, match="cannot be kept"):
        build_memory_record("", created_at=AT)


@pytest.mark.parametrize("scope", ["task", "agent"])
def test_what_is_about_one_names_it(scope):
    """A task or an agent has a name, and blanks are none."""
    with pytest.raises(UserError, match=f"about one {scope}: name it with --subject"):
        build_memory_record("a", scope=scope, subject=" ", created_at=AT)
    assert build_memory_record("a", scope=scope, subject="x", created_at=AT).subject == "x"


def test_a_secret_leaves_no_trace():
    """Its kind is told, and nothing that words could be tried against."""
    assert mask_secrets("use hunter-two-three now", ("hunter-two-three",)) == "use [redacted:known] now"


def test_a_pack_holds_each_memory_once():
    """Those that fit, and of the others only what holds everywhere; by name, without when and by whom."""
    a, b = build_memory_record("a", created_at=AT), build_memory_record("b", created_at=AT)
    task = build_memory_record("c", scope="task", subject="t", created_at=AT)
    pack = build_memory_pack("q" * 5000, "shop", ("project",), 1, [b], [a, b, task])
    assert [m.id for m in pack.memories] == sorted([a.id, b.id])
    assert not hasattr(pack.memories[0], "created_at")
    later = build_memory_record("a", created_at="2027-01-01T00:00:00Z", source="somebody else")
    assert build_memory_pack("q" * 5000, "shop", ("project",), 1, [b], [later]) == pack
    assert len(pack.query) == 4000
