"""Checks, setup steps, writable places and variables of steersman.toml."""

import msgspec
import pytest
from tests.support.cases import for_each_case

from steersman.adapters.config.toml_file import parse_config
from steersman.contracts.config import (
    Check,
    Config,
    SetupStep,
    decode_frozen_config,
    freeze_config,
    list_check_commands,
    list_setup_commands,
)
from steersman.errors import UserError

FILE = r"""
version = 1
no_tests = ["lint"]
[worktree]
setup = [["npm", "ci"], { run = ["npm", "ci"], cwd = "docs" }]
writable = ["build", "packages/a/.cache"]
[env]
CI = "true"
DATABASE_URL = "env:DATABASE_URL"
[checks]
unit = ["npm", "test"]
lint = ["npm", "run", "lint"]
uvu = { run = ["npm", "test"], cwd = "packages/a", summary = 'Passed: +(?P<passed>\d+)' }
[checks.e2e]
run = ["make", "e2e"]
exit_code_is_enough = true
"""


def test_lists_and_tables():
    """An argv list and a table with `run` alone are the same; a table says where and how it counts."""
    config = parse_config(FILE, "steersman.toml")
    assert config.checks == {
        "unit": Check(("npm", "test")),
        "lint": Check(("npm", "run", "lint")),
        "uvu": Check(("npm", "test"), "packages/a", r"Passed: +(?P<passed>\d+)"),
        "e2e": Check(("make", "e2e"), exit_code_is_enough=True),
    }
    assert config.worktree.setup == (SetupStep(("npm", "ci")), SetupStep(("npm", "ci"), "docs"))
    assert config.worktree.writable == ("build", "packages/a/.cache")
    assert config.env == {"CI": "true", "DATABASE_URL": "env:DATABASE_URL"}


def test_commands_of_a_configuration():
    """What is run carries the folder, the pattern and the choice; setup steps count no tests."""
    config = parse_config(FILE, "steersman.toml")
    checks = {c.name: c for c in list_check_commands(config)}
    assert (checks["uvu"].cwd, checks["uvu"].tests, checks["lint"].tests) == ("packages/a", True, False)
    assert checks["e2e"].exit_code_is_enough
    assert [(c.name, c.cwd, c.tests) for c in list_setup_commands(config)] == [
        ("setup 1", "", False),
        ("setup 2", "docs", False),
    ]


def test_frozen_configurations_stay_readable():
    """A configuration frozen into a run is read back, also one from when checks were lists only."""
    config = parse_config(FILE, "steersman.toml")
    assert decode_frozen_config(msgspec.json.encode(config)) == freeze_config(config)
    old = b'{"checks":{"unit":["true"]},"worktree":{"setup":[["a","b"]]}}'
    assert decode_frozen_config(old).checks == {"unit": Check(("true",))}
    assert decode_frozen_config(old).worktree.setup == (SetupStep(("a", "b")),)
    assert decode_frozen_config(b"{}") == freeze_config(Config())
    with pytest.raises(msgspec.ValidationError):
        decode_frozen_config(b"[]")


@for_each_case(
    ("line", "problem"),
    [
        ('[checks]\na = { run = ["x"], cwd = "/etc" }', "line 3: checks.a.cwd: is not relative"),
        ('[checks]\na = { run = ["x"], cwd = "b/../.." }', "checks.a.cwd: leaves the repository"),
        ('[checks]\na = { run = ["x"], cwd = ".git/hooks" }', "checks.a.cwd: is inside git's own folder"),
        ('[checks]\na = { run = [""] }', "checks.a.run[0]: is empty"),
        ('[checks]\na = [" "]', "checks.a[0]: is empty"),
        ("[checks]\na = { run = [] }", "checks.a.run"),
        ('[checks]\na = { cwd = "b" }', "checks.a.run: is missing"),
        ('[checks]\na = { run = ["x"], cwdd = "b" }', "checks.a.cwdd: is not a known field; did you mean `cwd`?"),
        ('[checks]\na = { run = ["x"], summary = "Passed: 3" }', r"checks.a.summary: names no group `passed`: write the number as (?P<passed>\d+)"),
        (r"""[checks]
a = { run = ["x"], summary = '(?P<passed>\d+)', exit_code_is_enough = true }""", "contradicts `summary`"),
        ('no_tests = ["a"]\n[checks]\na = { run = ["x"], exit_code_is_enough = true }', "contradicts `no_tests`"),
        ('[checks]\na = "make"', "checks.a"),
        ('[worktree]\nsetup = [{ run = ["x"], cwd = ".." }]', "worktree.setup[0].cwd: leaves"),
        ('[worktree]\nsetup = ["make"]', "worktree.setup[0]"),
        ('[worktree]\nwritable = ["~/x"]', "worktree.writable[0]: is not relative"),
        ('[worktree]\nwritable = [""]', "worktree.writable[0]: is empty"),
        ('[env]\nPATH = "x"', "env.PATH: is set by steersman itself"),
        ('[env]\nSTEERSMAN_X = "x"', "env.STEERSMAN_X: is set by steersman itself"),
        ('[env]\n"A-B" = "x"', "env"),
        ('[env]\nA = "env:"', "env.A: 'env:' names no variable"),
        ("[env]\nA = 1", "env.A"),
    ],
)  # fmt: skip
def test_refused(line, problem):
    """What cannot be meant is refused with its field and what to write."""
    with pytest.raises(UserError) as caught:
        parse_config(f"version = 1\n{line}\n", "steersman.toml")
    assert problem in str(caught.value)
