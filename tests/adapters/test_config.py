"""steersman.toml: found, read whole, refused with everything that is wrong."""

import tomllib
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.cases import for_each_case

from steersman.adapters.config.detect_checks import detect_checks, render_config
from steersman.adapters.config.toml_file import find_config, load_config, parse_config, read_config
from steersman.contracts.config import Check, Config, Role, Rules, SetupStep, Worktree, config_schema
from steersman.errors import UserError

FULL = """
version = 1
base = "main"
deliver = "draft-pr"            # branch | merge | draft-pr
known_failures = ["tests/test_old.py::test_slow"]
[worktree]
include = [".env.test"]
setup = [["uv", "sync", "--frozen"]]
[checks]
unit = ["uv", "run", "pytest", "-q"]
[roles.coder]
agent = "claude"
model = "sonnet"
effort = "high"
temperature = 0.5
[roles.coder.options]
since = 2026-01-01
seed = 99999999999999999999
nested = { list = [0.25, 07:32:00] }
[roles.reviewer]
agent = "scripted"
script = "demo.yaml"
retries = 0
seconds = 30
[budget]                      # the run and all its children
usd = 8
tokens = 3_000_000
turns = 40
hours = 1.5
[unattended]
on_limit = "wait"
[notify]
webhook = "env:STEERSMAN_WEBHOOK"
[rules]
repeated_failure = "same_failure"
max_iterations = 5
"""


def refused(text):
    with pytest.raises(UserError) as caught:
        parse_config(text, "steersman.toml")
    return str(caught.value)


def test_full():
    """Every field of the design is read, amounts exactly, and a role keeps its provider's own options."""
    config = parse_config(FULL, "x")
    assert (config.base, config.deliver, config.known_failures) == (
        "main", "draft-pr", ("tests/test_old.py::test_slow",),
    )  # fmt: skip
    assert config.worktree.setup == (SetupStep(("uv", "sync", "--frozen")),)
    assert config.checks == {"unit": Check(("uv", "run", "pytest", "-q"))}
    assert config.roles["coder"] == Role(
        agent="claude",
        model="sonnet",
        options={
            "effort": "high",
            "temperature": "0.5",
            "since": "2026-01-01",
            "seed": "99999999999999999999",
            "nested": {"list": ["0.25", "07:32:00"]},
        },
    )
    assert config.roles["reviewer"] == Role(agent="scripted", script="demo.yaml", retries=0, seconds=30)
    assert (config.budget.micro_usd, config.budget.tokens, config.budget.turns) == (8_000_000, 3_000_000, 40)
    assert config.budget.seconds == 5_400
    assert config.unattended.on_limit == "wait"
    assert config.notify.webhook == "env:STEERSMAN_WEBHOOK"
    assert (config.rules.repeated_failure, config.rules.max_iterations) == ("same_failure", 5)


def test_least():
    """One line is enough, and leaves the defaults."""
    assert parse_config("version = 1", "x") == Config()
    assert Config().rules.max_iterations == 3
    assert Config().roles == {}


@for_each_case(
    ("usd", "micro"),
    [("8", 8_000_000), ("0.1", 100_000), ("0.50", 500_000), ("0.0000001", 1), ("1.0000001", 1_000_001), ("1e-3", 1_000),
     ("1_000.25", 1_000_250_000), ("0." + "3" * 90, 333_334), ("1000000", 10**12)],
)  # fmt: skip
def test_money(usd, micro):
    """Dollars become whole micro-dollars, rounded up, without a binary float in between."""
    assert parse_config(f"version = 1\n[budget]\nusd = {usd}", "x").budget.micro_usd == micro


@given(st.decimals(min_value="0.000000001", max_value="1000000", allow_nan=False, places=9))
def test_money_is_never_less(usd):
    """A budget is never rounded down, and never up by a whole micro-dollar."""
    micro = parse_config(f"version = 1\n[budget]\nusd = {usd:f}", "x").budget.micro_usd
    assert 0 <= Decimal(micro) - usd * 1_000_000 < 1


@for_each_case(
    "usd",
    ["0", "0.0", "-1", "nan", "inf", "-inf", "true", '"8"', "[8]", "1000000.01", "1e400", "1e" + "9" * 30],
)
def test_no_money(usd):
    """What is not an amount above nothing and within reason is refused by name."""
    assert "line 3: budget.usd: " in refused(f"version = 1\n[budget]\nusd = {usd}")


PROBLEMS = {
    "no version": ("", 1, "version: is missing; for example: version = 1"),
    "version": ("version = 2", 1, "version: "),
    "version text": ('version = "1"', 1, "version: "),
    "version bool": ("version = true", 1, "version: "),
    "syntax": ("version = 1\nbase = = 1", 2, "TOML 1.0"),
    "unclosed": ("version = 1\nbase = [", 2, "TOML 1.0"),
    "twice": ("version = 1\nversion = 1", 2, "TOML 1.0"),
    "digits": ("version = " + "1" * 5000, 1, "TOML 1.0"),
    "base": ("version = 1\nbase = 5", 2, 'base: 5 is not of type "string"; for example: base = "main"'),
    "base empty": ('version = 1\nbase = ""', 2, "base: "),
    "deliver": ('version = 1\ndeliver = "pr"', 2, 'deliver: "pr" is not one of'),
    "field": ('version = 1\ndelivr = "branch"', 2, "delivr: is not a known field; did you mean `deliver`?"),
    "far field": ("version = 1\nzzz = 1", 2, "zzz: is not a known field; known here are audit, base, budget"),
    "table field": ("version = 1\n[budget]\ntoken = 3", 3, "budget.token: is not a known field; did you mean `tokens`?"),
    "internal field": ("version = 1\n[budget]\nmicro_usd = 3", 3, "budget.micro_usd: is not a known field"),
    "budget": ("version = 1\nbudget = [1]", 2, "budget: "),
    "float": ("version = 1\n[budget]\ntokens = 1.5", 3, "budget.tokens: "),
    "whole float": ("version = 1\n[rules]\nmax_iterations = 3.0", 3, "rules.max_iterations: "),
    "huge": ("version = 1\n[budget]\ntokens = 99999999999999999999", 3, "budget.tokens: "),
    "iterations": ("version = 1\n[rules]\nmax_iterations = 51", 3, "rules.max_iterations: 51 is greater"),
    "no iterations": ("version = 1\n[rules]\nmax_iterations = 0", 3, "rules.max_iterations: 0 is less"),
    "repeated": ('version = 1\n[rules]\nrepeated_failure = "x"', 3, "rules.repeated_failure: "),
    "limit": ('version = 1\n[unattended]\non_limit = "go"', 3, "unattended.on_limit: "),
    "webhook": ('version = 1\n[notify]\nwebhook = "file:///x"', 3, "notify.webhook: "),
    "check text": ('version = 1\n[checks]\nunit = "pytest -q"', 3, 'checks.unit: "pytest -q" is not of type "array"'),
    "check empty": ("version = 1\n[checks]\nunit = []", 3, "checks.unit: "),
    "check blank": ('version = 1\n[checks]\nunit = [" "]', 3, "checks.unit[0]: is empty"),
    "check nul": ('version = 1\n[checks]\nunit = ["a\\u0000"]', 3, "checks.unit[0]: "),
    "check name": ('version = 1\n[checks]\n"a b" = ["x"]', 2, 'checks: "a b" does not match'),
    "setup": ('version = 1\n[worktree]\nsetup = ["uv sync"]', 3, "worktree.setup[0]: "),
    "setup blank": ('version = 1\n[worktree]\nsetup = [\n ["a"],\n [""]]', 3, "worktree.setup[1][0]: is empty"),
    "like no grammar": ('version = 1\n[commands.grammars.x]\nstart = ["x"]\nlike = "pytst"\nruns = ["pytest", "x", "y"]', 4, "commands.grammars.x.like: 'pytst' is no grammar"),
    "runs no grammar": ('version = 1\n[commands.grammars.x]\nstart = ["x"]\nruns = ["pytest", "x", "y"]', 4, "commands.grammars.x.runs[2]: 'y' is no grammar"),
    "no tests of none": ('version = 1\nno_tests = ["lint"]\n[checks]\nunit = ["x"]', 2, "no_tests[0]: 'lint' is no check: name one of [checks]"),
    "include": ('version = 1\n[worktree]\ninclude = ["a/../../x"]', 3, "worktree.include[0]: leaves"),
    "include root": ('version = 1\n[worktree]\ninclude = ["/etc/passwd"]', 3, "worktree.include[0]: leaves"),
    "roles": ("version = 1\nroles = 3", 2, "roles: "),
    "role": ("version = 1\n[roles]\ncoder = 3", 3, "roles.coder: "),
    "no agent": ("version = 1\n[roles.coder]\nmodel = 'x'", 2, 'roles.coder.agent: is missing; for example: agent = "claude"'),
    "near": ("version = 1\n[roles.coder]\nagent = 'x'\nmodle = 'x'", 4, "roles.coder.modle: is not a known field; did you mean `model`?"),
    "no script": ("version = 1\n[roles.coder]\nagent = 'scripted'", 2, "roles.coder.script: is missing"),
    "script": ("version = 1\n[roles.coder]\nagent = 'claude'\nscript = 'x'", 4, "roles.coder.script: needs agent"),
    "seconds": ("version = 1\n[roles.coder]\nagent = 'x'\nseconds = 0", 4, "roles.coder.seconds: "),
    "fraction": ("version = 1\nbase = 1.5", 2, "base: 1.5 does not belong here"),
    "fraction in a list": ("version = 1\nknown_failures = ['x', 1.5]", 2, "known_failures[1]: 1.5 does not belong here"),
    "fraction model": ("version = 1\n[roles.coder]\nagent = 'x'\nmodel = 4.5", 4, "roles.coder.model: 4.5 does not"),
    "fraction options": ("version = 1\n[roles.coder]\nagent = 'x'\noptions = 4.5", 4, "roles.coder.options: 4.5 does not"),
    "huge amount": ("version = 1\n[budget]\nusd = 99999999999999999999", 3, "budget.usd: "),
    "date": ("version = 1\nbase = 07:32:00", 2, "base: "),
}  # fmt: skip


@for_each_case(("text", "line", "said"), PROBLEMS.values())
def test_problems(text, line, said):
    """A problem names file, line, field and the fix."""
    message = refused(text)
    assert f"steersman.toml, line {line}: " in message
    assert said in message


def test_all_at_once():
    """All problems are told together, in the order of their lines."""
    message = refused(
        "version = 1\nbase = 5\ndelver = 1\n[roles.coder]\nagnet = 'x'\n[budget]\nusd = nan\nhours = 'x'\n"
    )
    lines = [line.split(":")[0] for line in message.splitlines()[1:]]
    assert lines == [f"steersman.toml, line {n}" for n in (2, 3, 4, 5, 7, 8)]


@pytest.mark.parametrize("text", ["a = " + "[" * 50_000, "a = " + "{a = " * 50_000, "a." * 50_000 + "b = 1"])
def test_depth(text):
    """However deep, it is refused and nothing overflows."""
    assert refused(text)


def test_found_up_to_the_top(tmp_path):
    """The nearest file counts, and nothing above the repository does."""
    repo = tmp_path / "outer" / "repo"
    deep = repo / "a" / "b"
    deep.mkdir(parents=True)
    (tmp_path / "outer" / "steersman.toml").write_text("version = 1")
    (repo / ".git").mkdir()
    assert find_config(deep) is None
    (repo / "steersman.toml").write_text("version = 1")
    assert find_config(deep) == repo / "steersman.toml"
    (repo / "a" / "steersman.toml").write_text("version = 1")
    assert find_config(deep) == repo / "a" / "steersman.toml"


def test_outside_a_repository(tmp_path):
    """Without a repository only the directory itself is looked at."""
    (tmp_path / "x").mkdir()
    (tmp_path / "steersman.toml").write_text("version = 1")
    assert find_config(tmp_path / "x") is None
    assert find_config(tmp_path) == tmp_path / "steersman.toml"


def test_digest(tmp_path):
    """The digest is that of the meaning: comments and order do not change it, a value does; no file is the defaults."""
    (tmp_path / ".git").mkdir()
    nothing = load_config(tmp_path)
    assert nothing.path is None
    assert nothing.config == Config()
    (tmp_path / "steersman.toml").write_text("# ours\nversion = 1\n")
    written = load_config(tmp_path)
    assert written.path == tmp_path / "steersman.toml"
    assert written.digest == nothing.digest
    (tmp_path / "steersman.toml").write_text("version = 1\n[rules]\nmax_iterations = 4\n")
    assert load_config(tmp_path).digest != nothing.digest
    assert len(nothing.digest) == 64


def test_unreadable(tmp_path):
    """A file that cannot be read is the person's to mend."""
    path = tmp_path / "steersman.toml"
    with pytest.raises(UserError, match="cannot read"):
        read_config(path)
    path.write_bytes(b"version = 1\n# \xff")
    with pytest.raises(UserError, match="line 2: not UTF-8"):
        read_config(path)
    path.write_bytes(b"#" * 300_000)
    with pytest.raises(UserError, match="longer than"):
        read_config(path)


def test_schema():
    """The schema is the file's, as people write it: closed, in dollars and hours."""
    parts = config_schema()["$defs"]
    assert sorted(parts["Budget"]["properties"]) == ["hours", "tokens", "turns", "usd"]
    assert all(
        part["additionalProperties"] is (name in ("Role", "ChatAgent")) for name, part in parts.items()
    )


PROJECTS = {
    "nothing": ({}, {}),
    "pytest table": ({"pyproject.toml": "[tool.pytest.ini_options]\n"}, {"pytest": "python -m pytest -q"}),
    "pytest dep": ({"pyproject.toml": "[project]\ndependencies = ['pytest>=8']\n"}, {"pytest": "python -m pytest -q"}),
    "pytest extra": ({"pyproject.toml": "[project.optional-dependencies]\ndev = ['ruff', 'pytest']\n"}, {"pytest": "python -m pytest -q"}),
    "pytest group": ({"pyproject.toml": "[dependency-groups]\ndev = ['pytest ; x', {include-group = 'a'}]\n"}, {"pytest": "python -m pytest -q"}),
    "pytest poetry": ({"pyproject.toml": "[tool.poetry.group.dev.dependencies]\npytest = '*'\n"}, {"pytest": "python -m pytest -q"}),
    "pytest ini": ({"pytest.ini": ""}, {"pytest": "python -m pytest -q"}),
    "pytest cfg": ({"setup.cfg": "[tool:pytest]\n"}, {"pytest": "python -m pytest -q"}),
    "no pytest": ({"pyproject.toml": "[project]\ndependencies = ['pytest-httpserver', 'mypytest']\n"}, {}),
    "odd pyproject": ({"pyproject.toml": "tool = 3\nproject = 4\n"}, {}),
    "broken pyproject": ({"pyproject.toml": "[[["}, {}),
    "unittest": ({"tests/test_a.py": "import unittest\n"}, {"unittest": "python -m unittest discover -q -s tests"}),
    "unittest package": ({"tests/test_a.py": "import unittest\n", "tests/__init__.py": ""}, {"unittest": "python -m unittest discover -q"}),
    "unittest at the top": ({"test_a.py": "import unittest\n"}, {"unittest": "python -m unittest discover -q"}),
    "a test without unittest": ({"test_a.py": "print(1)\n"}, {}),
    "pytest first": ({"tests/test_a.py": "import unittest\n", "tests/conftest.py": ""}, {"pytest": "python -m pytest -q"}),
    "npm": ({"package.json": '{"scripts": {"test": "node --test"}}'}, {"npm": "npm test"}),
    "npm init": ({"package.json": '{"scripts": {"test": "echo \\"Error: no test specified\\" && exit 1"}}'}, {}),
    "npm odd": ({"package.json": '{"scripts": {"test": 3}}'}, {}),
    "npm list": ({"package.json": "[]"}, {}),
    "npm broken": ({"package.json": "{"}, {}),
    "go": ({"go.mod": "module x\n"}, {"go": "go test ./..."}),
    "cargo": ({"Cargo.toml": ""}, {"cargo": "cargo test"}),
    "make": ({"Makefile": "all: x\ntest: x\n\ttrue\n"}, {"make": "make test"}),
    "make variable": ({"Makefile": "test := 1\ntests: x\n"}, {}),
    "make beside": ({"Makefile": "test:\n", "go.mod": "module x\n"}, {"go": "go test ./..."}),
    "two": ({"go.mod": "module x\n", "pytest.ini": ""}, {"pytest": "python -m pytest -q", "go": "go test ./..."}),
}  # fmt: skip


@pytest.mark.parametrize(("files", "expected"), PROJECTS.values(), ids=PROJECTS.keys())
def test_detect(tmp_path, files, expected):
    """Checks come from the project's own files, and a file that cannot be read names none."""
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    assert {name: " ".join(argv) for name, argv in detect_checks(tmp_path).items()} == expected


def test_render():
    """What init writes is read back as it was given."""
    checks = {
        "unit": Check(("python", "-m", "pytest", "-q")),
        "odd.name": Check(("sh", 'a "b" \\ \x7f é\n'), "a b", r"(?P<passed>\d+)"),
        "e2e": Check(("make",), exit_code_is_enough=True),
    }
    steps = (SetupStep(("npm", "ci")), SetupStep(("npm", "ci"), "docs"))
    given = Config(
        base="trunk", deliver="merge", checks=checks, worktree=Worktree(setup=steps), env={"CI": "true"},
        rules=Rules(check_seconds=30),
    )  # fmt: skip
    roles = {"coder": {"agent": "claude"}, "tester": {"agent": "scripted", "script": "x.yaml"}}
    config = parse_config(render_config(config=given, roles=roles, known_failures=["a::b", 'c "d"']), "x")
    assert (config.checks, config.worktree, config.env) == (checks, given.worktree, given.env)
    assert (config.known_failures, config.rules) == (("a::b", 'c "d"'), given.rules)
    assert config.roles["tester"].script == "x.yaml"
    assert (config.base, config.deliver) == ("trunk", "merge")


def test_render_least():
    """Without anything to say it is still a whole file, with everything else as comments to switch on."""
    text = render_config(config=Config(), roles={})
    assert parse_config(text, "x") == Config()
    on = "\n".join(
        line.removeprefix("# ") if " = " in line or "# [" in line else line for line in text.splitlines()
    )
    assert tomllib.loads(on)["budget"]["usd"] == 8
    assert parse_config(on, "x").unattended.on_limit == "wait"


@for_each_case(
    ("table", "told"),
    [
        ('[roles.coder]\nagent = "scritped"\nscript = "x.yaml"', "roles.coder.agent: 'scritped' is no agent; did you mean `scripted`?"),
        ('[roles.coder]\nagent = "scripted"\nscript = "x.yaml"\nroles = 5', "roles.coder.roles: is nothing the scripted agent takes"),
        ('[roles.cook]\nagent = "claude"', "roles.cook: is a role that no machine has; there are coder, tester"),
        ('[roles.codr]\nagent = "claude"', "roles.codr: is a role that no machine has; did you mean `coder`?"),
    ],
)  # fmt: skip
def test_a_slip_in_a_role_is_named_where_it_is(table, told):
    """Neither a wrong agent, nor an option nobody takes, nor a role nobody has passes or is blamed on another field."""
    with pytest.raises(UserError) as caught:
        parse_config(f"version = 1\n{table}\n", "x", ("coder", "tester"))
    assert told in str(caught.value)
    assert len(str(caught.value).splitlines()) == 2
