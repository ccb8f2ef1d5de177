"""Public fakes of everything outside, and the suites that every adapter of a port has to pass.

The suites (`conformance_*`) need pytest and are imported by their modules' names.
"""

from steersman.testing.agent import FakeAgent, fake_reply
from steersman.testing.clock import FakeChance, FakeClock
from steersman.testing.fake_ports import fake_config, fake_ports
from steersman.testing.files import MemoryArtifacts, ScriptedCommands
from steersman.testing.memory import MemoryJournal
from steersman.testing.ownership import FakeLocks, NoProcesses, SilentWakeup
from steersman.testing.workspace import FakeWorkspace

__all__ = [
    "FakeAgent",
    "FakeChance",
    "FakeClock",
    "FakeLocks",
    "FakeWorkspace",
    "MemoryArtifacts",
    "MemoryJournal",
    "NoProcesses",
    "ScriptedCommands",
    "SilentWakeup",
    "fake_config",
    "fake_ports",
    "fake_reply",
]
