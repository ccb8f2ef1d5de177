"""What steersman adds to a call of a real agent CLI, and what many agents at once cost: `python bench/agents.py`.

The same program with the same words, environment and input is called directly and through its adapter (own home, box,
supervisor, reader), in turn and in turned order, against the scripted model on loopback. The ratio is the median of the
ratios of neighbours. Figures go to bench/results/agents.json with --keep.
"""

import argparse
import asyncio
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests/agents"), str(ROOT / "tests/agents/clis")]

from test_claude import Claude  # noqa: E402  after the path that finds them
from test_codex import Codex  # noqa: E402  after the path that finds them
from tests.support.agent_matrix import AGENT_CASES, Rig, case_request  # noqa: E402  the tests' own way to the CLIs
from tests.support.model_server import MODEL_SERVER_KEY, ModelServer  # noqa: E402  after the path that finds them
from tests.support.model_server.cases import answer_with_text  # noqa: E402  after the path that finds them

from steersman.adapters.agents.call_home import open_call_home  # noqa: E402  after the path that finds them
from steersman.adapters.agents.headless import AgentInvocation, agent_environment  # noqa: E402  after the path that finds them
from steersman.adapters.agents.scripted_agent import ScriptedAgent  # noqa: E402  after the path that finds them
from steersman.adapters.sandbox.bubblewrap import probe_sandbox  # noqa: E402  after the path that finds them
from steersman.contracts.agent import AgentRequest  # noqa: E402  after the path that finds them

MOST = 1.15  # times a direct call
AT_ONCE, EACH, WITHIN = 16, 1.0, 1.2  # agents, seconds, seconds
CLIS = {"claude": Claude, "codex": Codex}


class Patch:
    """Sets the environment as the tests' fixture does, for the life of this process."""

    def setenv(self, name: str, value: str) -> None:
        os.environ[name] = value


def overhead(name: str, n: int) -> dict[str, Any]:
    """Direct and through steersman, n times each."""
    cli = CLIS[name]()
    with tempfile.TemporaryDirectory() as root, ModelServer(answer_with_text) as server:
        rig = Rig(Path(root), Patch())
        os.environ.update(
            {
                "HOME": str(rig.home),
                "XDG_STATE_HOME": str(rig.state),
                **cli.environment(server.url, MODEL_SERVER_KEY),
            }
        )
        options = cli.options(server.url)
        agent = cli.agent(rig.place, probe_sandbox("required"), options)
        asked = case_request(AGENT_CASES["text"], rig, options)
        ways = {"direct": lambda: _direct(agent, asked, rig), "steersman": lambda: _through(agent, asked)}
        for way in ways.values():
            way()  # the program is in the machine's memory from here on
        took: dict[str, list[float]] = {way: [] for way in ways}
        for turn in range(n):
            for way in list(ways)[:: 1 if turn % 2 else -1]:
                took[way].append(_timed(ways[way]))
    ratio = _ratio(took)
    return {
        "version": cli.version,
        "n": n,
        "seconds": _middle(took),
        "ratio": ratio,
        "most": MOST,
        "ok": ratio <= MOST,
        "load": round(os.getloadavg()[0], 1),
    }


def _middle(found: dict[str, list[float]]) -> dict[str, float]:
    return {way: round(statistics.median(each), 4) for way, each in found.items()}


def _ratio(found: dict[str, list[float]]) -> float:
    pairs = zip(found["direct"], found["steersman"], strict=True)
    return round(statistics.median(b / a for a, b in pairs), 3)


def _timed(way: Any) -> float:
    began = time.perf_counter()
    way()
    return time.perf_counter() - began


def _through(agent: Any, asked: AgentRequest) -> None:
    reply = asyncio.run(agent.call(asked))
    assert reply.error is None, reply.detail


def _direct(agent: Any, asked: AgentRequest, rig: Rig) -> None:
    """The program alone, with the same words; a fresh home is its own to make, as it is ours."""
    with open_call_home(rig.root / "direct") as home:
        found: AgentInvocation = agent._invocation(asked, home)  # noqa: SLF001  the same call, without us around it
        done = subprocess.run(
            found.argv,
            cwd=asked.workdir,
            env=agent_environment(found),
            input=found.stdin,
            capture_output=True,
            check=False,
        )
    assert done.returncode == 0, done.stderr


def at_once(n: int) -> dict[str, Any]:
    """Many agents of one second each in one process; the slowest of n times counts."""
    with tempfile.TemporaryDirectory() as root:
        script = Path(root, "crew.yaml")
        script.write_text(f'version: 1\ncoder:\n  - {{say: done, sleep: "{EACH}"}}\n')
        agent = ScriptedAgent(script)
        worst = max(_timed(lambda: asyncio.run(_crowd(agent, root))) for _ in range(n))
    return {
        "agents": AT_ONCE,
        "each": EACH,
        "n": n,
        "seconds": round(worst, 3),
        "most": WITHIN,
        "ok": worst <= WITHIN,
    }


async def _crowd(agent: ScriptedAgent, workdir: str) -> None:
    asked = [
        AgentRequest(
            role="coder",
            mode="implementation",
            prompt="",
            workdir=workdir,
            writes=False,
            effect=f"bench:1:{n}",
            nonce="n",
        )
        for n in range(AT_ONCE)
    ]
    replies = await asyncio.gather(*map(agent.call, asked))
    assert all(reply.text == "done" for reply in replies)


def main() -> int:
    """Prints every figure; 1 when one is over its bound."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--n", type=int, default=15, help="calls each way")
    parser.add_argument("--only", choices=[*CLIS, "at-once"], help="one measurement")
    parser.add_argument("--keep", action="store_true", help="write bench/results/agents.json")
    chosen = parser.parse_args()
    found = {name: overhead(name, chosen.n) for name in CLIS if chosen.only in (None, name)}
    if chosen.only in (None, "at-once"):
        found["at once"] = at_once(5)
    for name, figures in found.items():
        print(name, json.dumps(figures))
    if chosen.keep:
        system = f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores"
        stamp = {
            "date": datetime.now(UTC).strftime("%Y-%m-%d"),
            "python": platform.python_version(),
            "system": system,
        }
        (ROOT / "bench/results/agents.json").write_text(json.dumps({**stamp, **found}, indent=1) + "\n")
    return 0 if all(figures["ok"] for figures in found.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
