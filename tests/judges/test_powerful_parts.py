"""Which parts of a repository's settings need trust, and how far limits let them go."""

import re
from pathlib import Path

import pytest
from msgspec.structs import replace

from steersman.contracts.config import (
    Budget,
    Chat,
    ChatAgent,
    Check,
    Config,
    Redact,
    Role,
    Rules,
    SandboxSettings,
    TaskRules,
)
from steersman.contracts.grammars import Commands
from steersman.contracts.limits import EnvLimits, LimitFile, SandboxLimits, SettingsLimits
from steersman.judges.config.limits import (
    HARMLESS_SETTINGS,
    compare_setting_lines,
    complete_own_limits,
    digest_setting_lines,
    find_limit_excesses,
    find_model_host,
    group_setting_lines,
    is_file_setting_line,
    list_powerful_lines,
    tighten_config,
)

WEAKENING = (
    Config(deliver="draft-pr"),
    Config(known_failures=("t",)),
    Config(no_tests=("lint",)),
    Config(redact=Redact(env=("PIN",))),
    Config(rules=Rules(changed_tests="show")),
    Config(rules=Rules(red_base="fix")),
    Config(task=TaskRules(code_reviewers=("friend",))),
    Config(env={"X": ""}),
    Config(commands=Commands(sets=())),
)


@pytest.mark.parametrize("config", WEAKENING, ids=lambda config: list_powerful_lines(config, {})[0][0])
def test_what_weakens_evidence_review_or_redaction_needs_trust(config):
    """Also where a field is emptied."""
    assert len(list_powerful_lines(config, {})) == 1


def test_the_page_lists_what_is_harmless():
    """Every field is powerful unless the how-to names it, field by field."""
    page = Path(__file__).parents[2] / "docs" / "how-to" / "trust-a-repository.md"
    rows = re.search(r"without a question:\n\n((?:- .*\n)+)", page.read_text())
    assert rows is not None
    assert re.findall(r"`([^`]+)`", rows[1]) == list(HARMLESS_SETTINGS)


def test_alike_lines_share_a_row_and_nothing_is_left_out():
    """Fields of one name and files of one folder are grouped; a name that could pose as two is quoted."""
    lines = (
        ("checks.a.run", '["x"]'),
        ("checks.b.run", '["x"]'),
        ('checks."c.d".run', '["y"]'),
        ("deliver", '"merge"'),
        ("env.A", '""'),
        (".steersman/registry/rules/a.yaml", "sha256 0"),
        (".steersman/registry/rules/b, c.yaml", "sha256 1"),
        (".steersman/registry/rules/l", "a link to 'x'"),
        (".worktreeinclude", '["x"]'),
    )
    assert group_setting_lines(lines) == [
        'env.A = ""', 'deliver = "merge"', '.worktreeinclude = ["x"]',
        """checks.*.run: a, b=["x"]; "c.d"=["y"]""",
        """.steersman/registry/rules/*: a.yaml, "b, c.yaml"=a file; l=a link to 'x'""",
    ]  # fmt: skip


def test_lines_hold_what_is_written_and_nothing_harmless():
    """Defaults, timeouts and budgets are left out; an agent's option counts also when it is false; names stay whole."""
    roles = {"coder": Role(agent="claude", seconds=5, options={"x": False, "settings": [{"a": 1}]})}
    chat = Chat(agents={"bob": ChatAgent(agent="codex", seconds=9)}, history=3)
    config = Config(checks={"a.b": Check(("true",))}, roles=roles, chat=chat, budget=Budget(turns=3))
    lines = list_powerful_lines(config, {".steersman/prompts/coder.md": "sha256 0"})
    assert lines == (
        ("chat.agents.bob.agent", '"codex"'),
        ('checks."a.b".run', '["true"]'),
        ("roles.coder.agent", '"claude"'),
        ("roles.coder.options.settings[0].a", "1"),
        ("roles.coder.options.x", "false"),
        (".steersman/prompts/coder.md", "sha256 0"),
    )
    assert [is_file_setting_line(line) for line in lines] == [False] * 5 + [True]
    assert list_powerful_lines(Config(), {}) == ()


def test_a_comparison_names_what_is_new_gone_or_different():
    """Each place once, with its old and its new value."""
    old, new = (("a", "1"), ("b", "2"), ("c", "3")), (("a", "1"), ("b", "9"), ("d", "4"))
    assert compare_setting_lines(old, new) == [("b", "2", "9"), ("d", None, "4"), ("c", "3", None)]
    assert digest_setting_lines(old) != digest_setting_lines(new)


WIDE = Config(
    sandbox=SandboxSettings(mode="off", reads=("/opt/sdk", "/opt/sdk/../../root"), network=True),
    env={"A": "env:MINE", "B": "plain"},
    roles={"coder": Role(agent="acp", options={"hosts": ["h:1"], "environment": ["KEY"], "key_env": 3})},
)


def test_a_silent_file_of_the_persons_own_allows_nothing_wide():
    """Without a word of the person's, mode off, reads, network, variables and hosts are too much."""
    silent = complete_own_limits(LimitFile("c.toml", SettingsLimits(), own=True))
    fields = [str(problem).split(":")[0] for problem in find_limit_excesses(WIDE, silent)]
    assert fields == [
        *("sandbox.mode", "sandbox.reads[0]", "sandbox.reads[1]", "sandbox.network", "env.A"),
        *("roles.coder.hosts", "roles.coder.environment"),
    ]
    assert (
        find_limit_excesses(WIDE, LimitFile("p.toml", SettingsLimits())) == []
    )  # a silent policy limits nothing
    assert tighten_config(WIDE, [LimitFile("p.toml", SettingsLimits())]) == (WIDE, [])


def test_a_models_address_is_a_host():
    """An address in an agent's options, at any depth, opens its host and port; one line allows them all."""
    provider = {"baseURL": "https://evil.example/v1", "x": [1]}
    options = {"base_url": "http://A.example:8000/v1", "settings": {"provider": provider}}
    config = Config(roles={"coder": Role(agent="codex", options=options)})
    silent = complete_own_limits(LimitFile("c.toml", SettingsLimits(), own=True))
    lines = [str(p).rpartition("c.toml: ")[2] for p in find_limit_excesses(config, silent)]
    hosts = 'hosts = ["a.example:8000", "evil.example:443"]'
    assert lines == [f"sandbox.{hosts}  (or in its table [sandbox]: {hosts})"] * 2
    plain = Config(roles={"coder": Role(agent="codex", options={"base_url": "http://a.example"})})
    assert '"a.example:80"' in str(find_limit_excesses(plain, silent)[0])


@pytest.mark.parametrize(
    "address",
    [
        *(
            "https://evil.example:443?@good.example:443/",
            "https://me@good.example:443/",
            "https://good.example:443/#x",
        ),
        *(
            "https://good.example:443\\@evil.example/",
            "https://good.example:x/",
            "ftp://good.example:443",
            "https://",
        ),
        *("https://good.exa\tmple:443/", "https://good.example:443/ x", "https://[good"),
    ],
)
def test_an_address_that_programs_read_differently_is_refused(address):
    """User, query, fragment, backslash or what is not printed: no limit allows it, and no host is opened for it."""
    assert find_model_host(address) == ""
    own = SettingsLimits(sandbox=SandboxLimits(hosts=("good.example:443", "evil.example:443")))
    config = Config(roles={"coder": Role(agent="codex", options={"base_url": address})})
    (problem,) = find_limit_excesses(config, complete_own_limits(LimitFile("c.toml", own, own=True)))
    assert str(problem).startswith(
        "roles.coder.base_url: is not a plain address: write https://host:port/path"
    )


def test_what_the_person_allows_passes_and_nothing_beside_it():
    """Places include all below them, but no way out again."""
    box = SandboxLimits(mode="off", reads=("/opt/",), network=True, hosts=("h:1",))
    own = SettingsLimits(sandbox=box, env=EnvLimits(names=("MINE", "KEY")))
    problems = find_limit_excesses(WIDE, complete_own_limits(LimitFile("c.toml", own, own=True)))
    assert [problem.path for problem in problems] == [("sandbox", "reads", 1)]


@pytest.mark.parametrize(
    ("asked", "ceiling", "result"), [(None, 5, 5), (9, 5, 5), (3, 5, 3), (3, None, 3), (None, None, None)]
)
def test_a_policy_tightens_what_is_left_open(asked, ceiling, result):
    """The stricter mode and the smaller budget hold, and what changed is said."""
    policy = SettingsLimits(
        agents=("codex",), sandbox=SandboxLimits(mode="required"), budget=Budget(turns=ceiling)
    )
    config, changes = tighten_config(Config(budget=Budget(turns=asked)), [LimitFile("p.toml", policy)])
    assert (config.sandbox.mode, config.budget.turns) == ("required", result)
    assert len(changes) == 1 + (asked != result)
    problems = find_limit_excesses(replace(WIDE, sandbox=SandboxSettings()), LimitFile("p.toml", policy))
    assert [str(p) for p in problems] == [
        'roles.coder.agent: p.toml does not allow this. Take it out, or have the policy changed: agents = ["codex", "acp"]'
    ]
