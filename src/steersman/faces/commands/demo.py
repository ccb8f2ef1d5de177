"""`steersman demo`: a whole run on a throw-away repository: real edits, real tests, a verified tape. No network."""

import os
import shutil
import subprocess
import sys
import tempfile
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from steersman.errors import UserError
from steersman.faces.deck import DONE, ENDED, WAITING, Deck, verb
from steersman.judges.text import count_of

if TYPE_CHECKING:
    from steersman.runtime.audit import Verdict

OPERATOR = "demo operator"
TASK = "A discount is taken off as cents; it has to be a percentage"
CONFIG = """version = 1

[checks]
unit = [{python}, "-m", "unittest", "-v"]

[roles.coder]
agent = "scripted"
script = "crew.yaml"
[roles.reviewer]
agent = "scripted"
script = "crew.yaml"
[roles.tester]
agent = "scripted"
script = "crew.yaml"

[budget]
tokens = 100_000
turns = 60
"""


@verb("demo", "steersman demo", "steersman demo --json", exits="0 approved, tested, verified · 1 not so")
@click.option("--keep-state", is_flag=True, help="Keep the store where other projects have theirs.")
def demo(deck: Deck, *, keep_state: bool) -> int:
    """A whole run in seconds: proposal, approval, two rounds, real tests, a delivered branch, a verified tape."""
    place = Path(tempfile.mkdtemp(prefix="steersman-demo-"))
    repo = place / "shop"
    if not keep_state:
        os.environ["XDG_STATE_HOME"] = str(place / "state")
    _project(repo)
    deck.say(f"a throw-away repository: {repo}", bold=True)
    deck.say("its own test fails, and shall pass at the end:")
    for line in _tests(repo)[-4:]:
        deck.say(f"    {line}")
    inner = Deck(deck.helm, str(repo), as_json=False, mute=deck.as_json)
    inner.me = f"{'' if keep_state else f'XDG_STATE_HOME={place}/state '}steersman --project {repo}"
    try:
        return _voyage(deck, inner)
    finally:
        inner.close()


def _voyage(deck: Deck, inner: Deck) -> int:
    from steersman.faces.trust import record_trust
    from steersman.faces.voyage import launch, spoken
    from steersman.runtime.audit import audited
    from steersman.runtime.start import Order

    loaded = inner.read_config()
    record_trust(inner, loaded, loaded.powerful)  # the demo has just written it
    config = loaded.config
    bridge = inner.new_bridge()
    deck.say("\nthe crew discusses a proposal:", bold=True)
    code = launch(inner, Order("roundtable", TASK, OPERATOR, config, {"red_base": "fix"}))
    if code != WAITING:
        return ENDED
    run = bridge.world.journal.heads()[0].run
    deck.say(
        f"\nthe demo plays the operator here and approves as {OPERATOR!r}; in your runs that is you:",
        bold=True,
    )
    code = spoken(inner, run, bridge.answer(bridge.gate(run), "approve", OPERATOR))
    verdict = audited(bridge.world, run)
    return _summed_up(deck, inner, run, code, verdict)


def _summed_up(deck: Deck, inner: Deck, run: str, code: int, verdict: "Verdict") -> int:
    context: Any = inner.bridge.live(run).snapshot.context
    good = (
        code == DONE
        and context.outcome == "approved"
        and context.tests > 0
        and verdict.ok
        and verdict.anchored
    )
    after = [
        f"git -C {inner.project} diff main steersman/{run}",
        *(f"{inner.me} {word} {run}" for word in ("show", "report", "audit tape", "audit verify")),
        f"{inner.me} machine show roundtable --format mermaid",
    ]
    deck.tell(
        {
            "run": run,
            "outcome": context.outcome,
            "tests": context.tests,
            "verified": verdict.ok,
            "anchored": verdict.anchored,
            "repository": str(inner.project),
            "next": after,
            "exit_code": DONE if good else ENDED,
        }
    )
    audit = "verified, and an anchor agrees" if verdict.ok and verdict.anchored else "NOT verified"
    deck.say(f"\n{context.outcome} · {count_of(context.tests, 'test')} really run · the tape of {verdict.entries} entries is {audit}",
             bold=True, fg="green" if good else "red")  # fmt: skip
    deck.say("look at it:")
    for command in after:
        deck.say(f"  {command}")
    return DONE if good else ENDED


def _project(repo: Path) -> None:
    import json

    repo.mkdir()
    ours = files("steersman.faces.demo")
    for name in ("prices.py", "test_prices.py"):
        (repo / name).write_text(ours.joinpath(f"{name}.txt").read_text(encoding="utf-8"), encoding="utf-8")
    crew = ours.joinpath("crew.yaml").read_text(encoding="utf-8")
    python = next((name for name in ("python3", "python") if shutil.which(name)), sys.executable)
    (repo / "crew.yaml").write_text(crew.replace("[[python3,", f"[[{python},"), encoding="utf-8")
    (repo / "steersman.toml").write_text(CONFIG.format(python=json.dumps(sys.executable)), encoding="utf-8")
    me = ["-c", f"user.name={OPERATOR}", "-c", "user.email=demo@localhost", "-c", "commit.gpgSign=false"]
    for words in (
        ["init", "-q", "-b", "main"],
        ["add", "-A"],
        [*me, "commit", "-q", "-m", "A shop with a wrong discount"],
    ):
        _git(repo, words)


def _git(repo: Path, words: list[str]) -> None:
    # Started from a hook, say, git would be told of another repository.
    env = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    try:
        done = subprocess.run(
            ["git", *words], cwd=repo, env=env, capture_output=True, check=False, timeout=60
        )
    except OSError:
        raise UserError("git was not found on PATH; install git 2.38 or newer and try again") from None
    if done.returncode:
        raise UserError(f"git {words[0]} said: {done.stderr.decode('utf-8', 'replace').strip()}")


def _tests(repo: Path) -> list[str]:
    argv = [sys.executable, "-m", "unittest", "-q"]
    env = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(argv, cwd=repo, capture_output=True, check=False, env=env, timeout=60)
    return [line for line in done.stderr.decode("utf-8", "replace").splitlines() if line.strip()]
