"""The schemas of files people write."""

import msgspec

from steersman.contracts.config import Config, config_schema, drop_null_types
from steersman.contracts.script import script_schema


def test_without_null():
    """A field that may be left out is described by what it is, wherever it stands."""
    nullable = {"anyOf": [{"type": "integer", "minimum": 1}, {"type": "null"}], "default": None, "title": "t"}
    assert drop_null_types({"a": [nullable], "b": {"anyOf": [{"type": "string"}, {"type": "integer"}]}}) == {
        "a": [{"title": "t", "type": "integer", "minimum": 1}],
        "b": {"anyOf": [{"type": "string"}, {"type": "integer"}]},
    }


def test_schemas_speak_of_no_null():
    """Neither file knows null."""
    for schema in (config_schema(), script_schema()):
        assert b'"null"' not in msgspec.json.encode(schema)


def test_round_trip():
    """A configuration frozen into a run reads back equal."""
    assert msgspec.json.decode(msgspec.json.encode(Config()), type=Config) == Config()
