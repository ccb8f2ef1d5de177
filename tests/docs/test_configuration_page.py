"""The page on configuration: every example loads, and every key that it lists is read by the product."""

import ast
import tomllib

import msgspec
import pytest
from docs.configuration_page import AGENT_TABLES, LIMIT_TABLES, PROJECT_TABLES, example_file, file_keys
from tests.docs.test_prose import TOP

from steersman.adapters.agents.registry import _AGENT_MAKERS
from steersman.adapters.config.toml_file import parse_config
from steersman.adapters.config.trust_file import read_limits_from

SOURCE = TOP / "src" / "steersman"
# These only say what keys there are, or turn a file into values.
NOT_READERS = ("contracts/", "testing/", "adapters/config/toml_file.py", "adapters/config/toml_advice.py")


@pytest.mark.parametrize("table", PROJECT_TABLES, ids=lambda table: table.header or "top")
def test_every_example_of_the_project_file_loads(table):
    """A file with the examples of one table is accepted as a whole."""
    parse_config(example_file(table), "steersman.toml")


@pytest.mark.parametrize("table", LIMIT_TABLES, ids=lambda table: table.header or "top")
def test_every_example_of_a_limit_file_loads(table, tmp_path):
    """A limit file with the examples of one table is accepted as a whole."""
    (tmp_path / "config.toml").write_text(example_file(table).removeprefix("version = 1\n"))
    assert read_limits_from(tmp_path / "config.toml")


@pytest.mark.parametrize("table", AGENT_TABLES, ids=lambda table: table.header)
def test_every_example_of_an_agent_loads(table):
    """A role's table with the examples of one agent is accepted, by the project file and by the agent."""
    text = example_file(table, agent=True)
    parse_config(text, "steersman.toml")
    options = tomllib.loads(text)["roles"]["coder"]
    assert msgspec.convert({name: value for name, value in options.items() if name != "agent"}, table.struct)


def test_the_page_names_every_agent():
    """The agents that a role may name are those that steersman makes."""
    page = (TOP / "docs" / "reference" / "configuration.md").read_text(encoding="utf-8")
    assert [name for name in _AGENT_MAKERS if f"`{name}`" not in page] == []


def test_every_key_is_read():
    """No key exists that nothing reads: each field is loaded from a value outside the contracts and the file readers."""
    loaded = set(read_names())
    tables = (*PROJECT_TABLES, *AGENT_TABLES, *LIMIT_TABLES)
    keys = {(table.header, field) for table in tables for field, _ in file_keys(table)}
    assert len(keys) > 90
    assert {key for key in keys if key[1] not in loaded} == set()


def read_names():
    """Names of attributes that the product loads, and of keys that it takes from a role's own table."""
    for path in sorted(SOURCE.rglob("*.py")):
        if path.relative_to(SOURCE).as_posix().startswith(NOT_READERS):
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
                yield node.attr
            elif path.name in ("run_writer.py", "registry.py") and isinstance(node, ast.Constant):
                yield node.value
