"""The ports of an engine under test, all fakes; single ones can be replaced.

**Invariant:** nothing here reaches beyond the folder it is given.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from steersman.contracts.config import Check, Config, Role
from steersman.engine.ports import Ports
from steersman.kernel.machine import Machine
from steersman.testing.agent import FakeAgent, fake_reply
from steersman.testing.clock import FakeChance, FakeClock
from steersman.testing.files import MemoryArtifacts, ScriptedCommands, passing_judge
from steersman.testing.memory import MemoryJournal
from steersman.testing.ownership import FakeLocks, NoProcesses, SilentWakeup
from steersman.testing.workspace import FakeWorkspace


def fake_ports(
    root: Path, machines: Mapping[str, Machine], *, files: Mapping[str, str] | None = None, **instead: Any
) -> Ports:
    """Ports below `root` with which every agent says yes and every check passes, unless replaced.

    `agent` and `commands` may be given as the one object that serves every role and configuration.
    """
    workspace = FakeWorkspace(root / "repository", files or {"README": "hello\n"})
    agent = instead.pop("agent", None) or FakeAgent(lambda request: fake_reply(request, "yes"))
    commands = instead.pop("commands", None) or ScriptedCommands(passing_judge())
    ports: dict[str, Any] = {
        "journal": MemoryJournal(),
        "machines": machines,
        "clock": FakeClock(),
        "chance": FakeChance(),
        "locks": FakeLocks(),
        "processes": NoProcesses(),
        "bell": SilentWakeup(),
        "workspace": lambda _config: workspace,
        "commands": lambda _config: commands,
        "agent": lambda _role, _config: agent,
        "prompt": lambda machine, name: f"# {machine}: {name}",
        "artifacts": MemoryArtifacts(),
    }
    return Ports(**{**ports, **instead})


def fake_config(**more: Any) -> Config:
    """A configuration with a check and an agent for every role."""
    roles = {name: Role(agent="fake") for name in ("coder", "reviewer", "tester")}
    checks = {
        n: c if isinstance(c, Check) else Check(tuple(c))
        for n, c in more.pop("checks", {"unit": ["true"]}).items()
    }
    return Config(checks=checks, **{"roles": roles, **more})
