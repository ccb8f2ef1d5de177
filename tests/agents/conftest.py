"""The real CLIs, where `make test-agents` has installed them; without it nothing here is collected."""

import os
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE / "clis")]

collect_ignore_glob = [] if os.environ.get("STEERSMAN_TEST_AGENTS") else ["test_*.py"]


@pytest.fixture
def rig(tmp_path, monkeypatch):
    """A user's home, a working tree and something outside, all below one directory, and nothing of ours in the environment."""
    from tests.support.agent_matrix import Rig

    for name in list(os.environ):
        if name.startswith(
            ("ANTHROPIC_", "CLAUDE_", "OPENAI_", "CODEX_", "GEMINI_", "GOOGLE_", "OPENCODE_", "XDG_")
        ):
            monkeypatch.delenv(name)
    made = Rig(tmp_path, monkeypatch)
    monkeypatch.setenv("HOME", str(made.home))
    monkeypatch.setenv("XDG_STATE_HOME", str(made.state))
    yield made
    made.end()
