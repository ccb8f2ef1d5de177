"""Puts the pinned agent CLIs into a cache of their own and says where; nothing is done when they are there.

The cache is `.cache/agents/<digest of the lock>` of the checkout, or `$STEERSMAN_AGENT_CLIS`.
**Invariant:** install scripts of the packages are not run; what is installed is what package-lock.json names.
"""

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]
NPM = ("npm", "install", "--ignore-scripts", "--omit-lockfile-registry-resolved", "--no-audit", "--no-fund")
# The native programs, not the scripts that start them: a killed wrapper leaves its program behind.
PROGRAMS = {
    "claude": "@anthropic-ai/claude-code-{system}-{machine}/claude",
    "codex": "@openai/codex-{system}-{machine}/vendor/{triple}/bin/codex",
    "gemini": "@google/gemini-cli/bundle/gemini.js",
    "opencode": "opencode-{system}-{machine}/bin/opencode",
    "claude-acp": "@agentclientprotocol/claude-agent-acp/dist/index.js",
}
_MACHINES = {"x86_64": "x64", "aarch64": "arm64", "arm64": "arm64"}
_TRIPLES = {"linux": "unknown-linux-musl", "darwin": "apple-darwin"}


def cache() -> Path:
    """Where the CLIs of this lock belong."""
    if chosen := os.environ.get("STEERSMAN_AGENT_CLIS"):
        return Path(chosen)
    digest = hashlib.sha256((HERE / "package-lock.json").read_bytes()).hexdigest()
    return ROOT / ".cache" / "agents" / digest[:16]


def program(name: str) -> Path | None:
    """The installed program of a CLI, or None."""
    machine = os.uname().machine
    triple = f"{machine.replace('arm64', 'aarch64')}-{_TRIPLES.get(sys.platform, '')}"
    inside = PROGRAMS[name].format(
        system=sys.platform, machine=_MACHINES.get(machine, machine), triple=triple
    )
    found = cache() / "node_modules" / inside
    return found if found.is_file() else None


def install() -> Path:
    """Makes the cache whole, or leaves none."""
    place = cache()
    if all(program(name) for name in PROGRAMS):
        return place
    place.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=place.parent) as draft:
        for name in ("package.json", "package-lock.json"):
            shutil.copy(HERE / name, draft)
        subprocess.run(NPM, cwd=draft, check=True, stdin=subprocess.DEVNULL)
        shutil.rmtree(place, ignore_errors=True)
        shutil.move(draft, place)
        os.mkdir(draft)  # what removes the draft expects one
    missing = [name for name in PROGRAMS if program(name) is None]
    if missing:
        raise SystemExit(f"installed, but not found in {place}: {', '.join(missing)}")
    return place


if __name__ == "__main__":
    print(install())
