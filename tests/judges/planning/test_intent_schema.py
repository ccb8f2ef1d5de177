"""Every way to break the schema of an intent, told in our words: field, line, what to write (001 §2)."""

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.cases import for_each_case
from tests.support.raw_intents import INTERACTIVE_POLICY, raw_intent, set_field

from steersman.contracts.planning.documents import planning_document_schema
from steersman.judges.planning.places import (
    get_text_at,
    get_value_at,
    iter_list_at,
    iter_texts_at,
    walk_texts,
)
from steersman.judges.planning.schema_errors import (
    _cached_document_validator,
    convert_unquoted_scalars,
    find_schema_part,
    find_schema_problems,
)

INTENT = planning_document_schema("execution_intent")


@for_each_case(
    ("path", "value", "message", "fix"),
    [
        ("title", ..., "is missing", "add this field"),
        ("audit.checksum", ..., "is missing", "run `steersman intent seal FILE`, which works it out"),
        ("titel", 1, "is not a known field", "did you mean `title`?"),
        ("budgets.zzz", 1, "is not a known field", "known here are max_commits, max_cost_usd, max_files, max_tokens"),
        ("budgets.max_files", "5", '"5" is not of type "integer"', "write it without quotes"),
        ("budgets.max_files", None, 'null is not of type "integer"', ""),
        ("budgets.max_files", True, 'true is not of type "integer"', ""),
        ("budgets.max_files", [], 'the value is not of type "integer"', ""),
        ("budgets.max_files", {}, 'the value is not of type "integer"', ""),
        ("budgets.max_files", 501, "501 is greater than the maximum of 500", ""),
        ("budgets.max_files", -1, "-1 is less than the minimum of 0", ""),
        ("title", 7, '7 is not of type "string"', ""),
        ("title", "abc", '"abc" is shorter than 5 characters', ""),
        ("title", "x" * 161, "the value is longer than 160 characters", ""),
        ("title", "      ", '"      " does not match "\\S"', "write at least one visible character"),
        ("id", "fix", '"fix" does not match "^intent_[a-z0-9_]{6,64}$"', "intent_ and then 6 to 64 small letters, digits or _, such as intent_fix_login"),
        ("version", "1.0.0\n", '"1.0.0\\n" does not match "^(0|[1-9]\\d{0,5})\\.(0|[1-9]\\d{0,5})\\.(0|[1-9]\\d{0,5})$"', "three numbers, such as 1.0.0"),
        ("version", "1.0.\u0661", '"1.0.١" does not match "^(0|[1-9]\\d{0,5})\\.(0|[1-9]\\d{0,5})\\.(0|[1-9]\\d{0,5})$"', "three numbers, such as 1.0.0"),
        ("interaction.mode", "semiauto", '"semiauto" is not one of "full_auto", "interactive" or "semi_auto"', "did you mean `semi_auto`?"),
        ("interaction.mode", 3, '3 is not one of "full_auto", "interactive" or "semi_auto"', ""),
        ("interaction.question_policy", "all", '"all" is not one of "blockers_only", "conceptual_only" or "never"', "`all` is called `conceptual_only` here"),
        ("constraints.execution", "allowed", '"allowed" is not one of "forbidden"', "known here are forbidden"),
        ("constraints.registry_only", 1, "1 is not one of true", "registry_only: true"),
        ("selected_workflows", [], "the value has less than 1 item", ""),
        ("risk.requires_review", ["cost"] * 7, "the value has more than 6 items", "a list of security, data, release, architecture, cost, compliance; it may be empty"),
    ],
)  # fmt: skip
def test_words(path, value, message, fix):
    """One problem, at its field, with what to write instead."""
    found = find_schema_problems(set_field(raw_intent(), path, value))
    assert [(p.message, p.fix) for p in found] == [(message, fix)]


def test_lines():
    """The line of the field, or of the nearest one around it; none where none is known."""
    raw = set_field(set_field(raw_intent(), "budgets.max_files", -1), "title", ...)
    lines = {(): 1, ("budgets",): 40}
    assert sorted((p.field, p.line) for p in find_schema_problems(raw, lines)) == [
        ("budgets.max_files", 40),
        ("title", 1),
    ]
    assert {p.line for p in find_schema_problems(raw)} == {0}


def test_one_problem_a_field():
    """A title that is too short and blank is one problem."""
    assert len(find_schema_problems(set_field(raw_intent(), "title", "  "))) == 1


@for_each_case(
    ("value", "said"),
    [
        ({"title": "\ud800"}, "lone surrogate"),
        ({"\ud800": [1]}, "key is not text"),
        ({"n": 10**400}, "beyond 2^53"),
        ({"n": float("nan")}, "float"),
        ({"n": [1.0]}, "float"),
    ],
)
def test_what_no_document_may_hold(value, said):
    """Values without canonical bytes are refused; nothing else is said of such a document."""
    (problem,) = find_schema_problems({**raw_intent(), **value})
    assert said in problem.message


def test_what_only_one_reader_refuses():
    """Separators that Python calls blank and JSON Schema does not: nothing is called fit that cannot be decoded."""
    found = find_schema_problems(set_field(raw_intent(), "title", "\x1c" * 6))
    assert [p.field for p in found] == ["document"]
    assert "title" in found[0].message


def test_too_deep():
    """One answer for what nobody can look through."""
    deep: object = 1
    for _ in range(500):
        deep = [deep]
    assert len(find_schema_problems({"a": deep})) == 1


def test_anything_else_of_a_schema():
    """A policy's form is told in the same words."""
    assert find_schema_problems(INTERACTIVE_POLICY, name="execution_policy") == ()
    assert [
        p.field for p in find_schema_problems({**INTERACTIVE_POLICY, "mode": "x"}, name="execution_policy")
    ] == ["mode"]


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
_PLACES = [path for path, _ in walk_texts(raw_intent())]


@given(st.sampled_from(_PLACES), _JSON, st.text(max_size=4))
@settings(max_examples=150, deadline=None)
def test_the_quick_answer_is_the_whole_one(place, value, tail):
    """What is called fit without listing problems is what the schema calls fit."""
    for replaced in (value, str(get_value_at(raw_intent(), place)) + tail):
        raw = set_field(raw_intent(), ".".join(map(str, place)), replaced)
        if not find_schema_problems(raw):
            assert _cached_document_validator("execution_intent").is_valid(raw)


@given(_JSON)
@settings(max_examples=100, deadline=None)
def test_total(value):
    """Any value is answered."""
    assert find_schema_problems(value)


# ── looking in ──────────────────────────────────────────────────────────────────────────────────────────────────────


def test_raw():
    """What is not there, or not of the form, is not seen."""
    raw = {"a": [{"b": "x"}, 3], "c": "y"}
    assert get_value_at(raw, ("a", 0, "b")) == "x"
    assert get_value_at(raw, ("a", 2)) is None
    assert get_value_at(raw, ("a", "b")) is None
    assert get_value_at(raw, ("c", "b")) is None
    assert get_text_at(raw, "a") == ""
    assert list(iter_list_at(raw, "c")) == []
    assert list(iter_texts_at(["x", 1], *())) == [((0,), "x")]
    assert list(walk_texts(raw)) == [(("a", 0, "b"), "x"), (("c",), "y")]


def test_part():
    """A path leads to what the schema says about it, or to nothing."""
    assert find_schema_part(INTENT, ("budgets", "max_files"))["maximum"] == 500
    assert find_schema_part(INTENT, ("planned_commands", 3, "effects", 0))["enum"][0] == "data"
    assert find_schema_part(INTENT, ("nowhere", 1)) == {}
    assert find_schema_part({"items": False}, (0,)) == {}


def test_typed():
    """Bare text becomes a number or a truth where the schema wants one, and nowhere else."""
    raw = {
        "budgets": {"max_files": "5", "max_commits": "05", "max_tokens": "7"}, "title": "12345",
        "x": ["true"], "n": None,
    }  # fmt: skip
    raw["constraints"] = {"no_fabrication": "true", "registry_only": "True", "execution": "true"}
    bare = {p for p, _ in walk_texts(raw)} - {("budgets", "max_tokens")}
    assert convert_unquoted_scalars(raw, INTENT, bare) == {
        "budgets": {"max_files": 5, "max_commits": "05", "max_tokens": "7"}, "title": "12345", "x": ["true"],
        "n": None, "constraints": {"no_fabrication": True, "registry_only": "True", "execution": "true"},
    }  # fmt: skip


def test_typed_goes_no_deeper_than_it_has_to():
    """A value of any depth is answered."""
    deep: object = "1"
    for _ in range(3000):
        deep = [deep]
    assert len(find_schema_problems(convert_unquoted_scalars({"a": deep}, INTENT, set()))) == 1


@for_each_case(
    ("kind", "such"),
    [
        ("workflow", "wf_bug_fix"),
        ("agent", "agent_coder"),
        ("command", "cmd_run_tests"),
        ("rule", "rule_two_reviews"),
    ],
)
@for_each_case("raw", [{"id": "x"}, {}])
def test_an_id_is_worded_for_its_kind(kind, such, raw):
    """What to write for the id of a registry's content is an id of that kind, not an intent's; so where it is missing."""
    (told,) = [p for p in find_schema_problems(raw, name=kind) if p.field == "id"]
    assert told.fix.endswith(f"such as {such}")
