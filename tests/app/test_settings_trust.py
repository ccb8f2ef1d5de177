"""What a person has not trusted yet of a repository's settings, and a yes to exactly those lines."""

from pathlib import Path

import pytest

from steersman.app.principal import AgentCallerError, Principal
from steersman.app.trust import SettingsTrust
from steersman.contracts.config import Config
from steersman.contracts.limits import LoadedConfig

ANN = Principal("ann")
AGENT = Principal("ann", effect="261116-abc123:4:1")
UNIT, LINT = ("checks.unit.run", '["pytest"]'), ("checks.lint.run", '["ruff"]')


class RememberedTrust(dict):
    """Records of trust that are kept in memory."""

    read, record = dict.get, dict.__setitem__

    def revoke(self, name):
        return self.pop(name, None) is not None


def settings(records, *lines):
    """The settings file of a repository that needs trust in these lines."""
    return SettingsTrust(
        records, "/repo", LoadedConfig(Config(), Path("/repo/app/steersman.toml"), "", lines)
    )


def test_only_the_lines_that_differ_are_asked_about():
    """A yes covers the lines as they were; a line that changes or comes later needs another."""
    records = RememberedTrust()
    first = settings(records, UNIT)
    assert (first.is_trusted, first.describe_state()) == (
        False,
        "app/steersman.toml is new here, with 1 line to read",
    )
    first.record(ANN)
    assert first.is_trusted
    later = settings(records, ("checks.unit.run", '["tox"]'), LINT)
    assert not later.is_trusted
    assert sorted(later.changes) == [
        ("checks.lint.run", None, '["ruff"]'),
        ("checks.unit.run", '["pytest"]', '["tox"]'),
    ]
    assert later.digest != first.digest
    assert later.revoke(ANN)
    assert settings(records, UNIT).trusted_lines is None


def test_an_agent_neither_trusts_nor_revokes():
    """Nothing that works for a run changes what a person trusts."""
    records = RememberedTrust()
    trust = settings(records, UNIT)
    with pytest.raises(AgentCallerError):
        trust.record(AGENT)
    trust.record(ANN)
    with pytest.raises(AgentCallerError):
        trust.revoke(AGENT)
    assert records["app/steersman.toml"].person == "ann"


def test_settings_without_powerful_lines_need_no_trust():
    """What can start nothing is data, and nobody is asked about it."""
    assert settings(RememberedTrust()).is_trusted
