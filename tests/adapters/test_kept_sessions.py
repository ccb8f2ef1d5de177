"""Sessions that are kept between calls: what is told of them, what a later call is lent, how long they stay."""

import asyncio
import json
import os
import shutil
import sys
import time
from pathlib import Path

import pytest

from steersman.adapters.agents import claude
from steersman.adapters.agents.claude import ClaudeAgent, ClaudeOptions
from steersman.adapters.agents.codex import CodexAgent, CodexOptions
from steersman.adapters.agents.sessions import MAX_SESSION_DAYS, SessionStore, StoredSession
from steersman.adapters.sandbox.bubblewrap import OpenSandbox
from steersman.contracts.agent import AgentRequest, ProviderUsage

HERE = Path(__file__).parent
FIXTURES = HERE.parent / "agents" / "fixtures"
PEER = HERE.parent / "support" / "session_peer.py"
SESSION = "00000000-0000-4000-8000-000000000007"


class Cli:
    """One CLI with its calls in one project, in any number of working trees."""

    def __init__(self, root, agent, options, fixtures):
        self.root, self.agent, self.options = root, agent, options
        self.program = root / "program"
        self.program.write_text(f'#!/bin/sh\nexec {sys.executable} {PEER} {fixtures} "$@"\n')
        self.program.chmod(0o755)

    def ask(self, prompt, session=None, *, sessions=True, tree="tree-1", effect="r-1:4:1"):
        work = self.root / tree
        work.mkdir(exist_ok=True)
        options = self.options(program=str(self.program), sessions=sessions)
        asked = AgentRequest(
            role="coder", mode="implementation", prompt=prompt, workdir=str(work), writes=False,
            effect=effect, nonce="n", session=session,
        )  # fmt: skip
        agent = self.agent(self.root / "state" / "homes", OpenSandbox("a test"), options)
        return asyncio.run(agent.call(asked))

    @property
    def shelf(self):
        return SessionStore(self.root / "state" / "sessions")

    def said(self, name):
        """What was said in a kept session."""
        (record,) = self.shelf.find(name).folder.glob("*.jsonl")
        return record.read_text().split()


@pytest.fixture(params=["claude", "codex"])
def cli(request, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path / "user"))
    for name in ("ANTHROPIC_BASE_URL", "CLAUDE_CONFIG_DIR", "CODEX_HOME"):
        monkeypatch.delenv(name, raising=False)
    if request.param == "claude":
        fixtures, made = FIXTURES / "claude-2.1.197", (ClaudeAgent, ClaudeOptions)
    else:
        fixtures, made = FIXTURES / "codex-0.166.0", (CodexAgent, CodexOptions)
    copy = tmp_path / "fixtures"
    shutil.copytree(fixtures, copy)
    shutil.copyfile(fixtures / "429.json", copy / "broken.json")
    return Cli(tmp_path, *made, copy)


def test_a_session_is_told_only_when_it_is_kept(cli):
    """Without the role's word nothing is kept and nothing told; with it, what is told is what is kept."""
    quiet = cli.ask("one", sessions=False)
    assert (quiet.error, quiet.session) == (None, None)
    assert not cli.shelf.root.exists()
    kept = cli.ask("one")
    assert cli.said(kept.session) == ["one"]


def test_a_session_goes_on_in_another_tree(cli):
    """The next call has what was said before, wherever it works; what it makes of it is kept beside the first."""
    first = cli.ask("one").session
    second = cli.ask("two", first, tree="tree-2").session
    assert (cli.said(first), cli.said(second)) == (["one"], ["one", "two"])


def test_a_call_that_is_repeated_goes_on_where_the_first_did(cli):
    """A name means the session as it was: what a call that nobody acknowledged has said is not in it."""
    first = cli.ask("one").session
    cli.ask("lost", first)
    assert cli.said(cli.ask("again", first).session) == ["one", "again"]


def test_a_call_that_failed_leaves_no_session(cli):
    """What broke is neither told nor kept: the next call goes on from the last success."""
    first = cli.ask("one").session
    broken = cli.ask("break", first)
    assert (broken.error, broken.session) == ("provider_rate_limited", None)
    assert cli.said(first) == ["one"]
    assert [p.name for p in cli.shelf.root.glob("*/*")] == [first]


@pytest.mark.parametrize("lost", ["dropped", "never-there", "no-name", "other-program"])
def test_a_session_that_is_not_there_begins_anew(cli, lost):
    """Pruned, from another machine, or nothing a program can go on with: the call is made all the same, in a new one."""
    first = cli.ask("one").session
    match lost:
        case "dropped":
            cli.shelf.drop("r-1")
        case "never-there":
            first = f"{SESSION}.0123456789abcdef"
        case "no-name":
            first = "../../homes"
        case "other-program":
            for record in cli.shelf.find(first).folder.iterdir():
                record.unlink()
    reply = cli.ask("two", first)
    assert reply.error is None, reply.detail
    assert cli.said(reply.session) == ["two"]


# ── the shelf ───────────────────────────────────────────────────────────────────────────────────────────────────────


def test_old_sessions_go_when_a_new_one_comes(tmp_path):
    """What nobody will continue does not stay for ever, and takes the folder of its run with it."""
    shelf = SessionStore(tmp_path / "sessions")
    shelf.root.mkdir()
    (shelf.root / "no-run").write_text("nobody's")
    old = shelf.find(shelf.keep("r-1:1:1", SESSION, {"s": b"old"}))
    young = shelf.find(shelf.keep("r-2:1:1", SESSION, {"s": b"young"}))
    for kept, days in ((old, MAX_SESSION_DAYS + 1), (young, MAX_SESSION_DAYS - 1)):
        then = time.time() - days * 86_400
        os.utime(kept.folder, (then, then))
    shelf.keep("r-3:1:1", SESSION, {"s": b"new"})
    assert sorted(p.name for p in shelf.root.iterdir()) == ["no-run", "r-2", "r-3"]
    assert (young.folder / "s").read_bytes() == b"young"


def test_a_run_is_forgotten_with_its_sessions(tmp_path):
    """Those of one run go, those of others stay; a name that is no run's is no path."""
    shelf = SessionStore(tmp_path / "sessions")
    mine, other = (shelf.keep(f"{run}:1:1", SESSION, {"s": run.encode()}) for run in ("r-1", "r-2"))
    for run in ("..", "", ".", "../sessions"):
        shelf.drop(run)
    shelf.drop("r-1")
    assert shelf.find(mine) is None
    assert shelf.find(other) == StoredSession(SESSION, tmp_path / "sessions" / "r-2" / other)


def test_the_same_session_twice_is_one(tmp_path):
    """Content is what names it; nothing half made is left."""
    shelf = SessionStore(tmp_path)
    names = {shelf.keep("r-1:1:1", SESSION, {"s": b"said"}) for _ in range(2)}
    assert [p.name for p in (tmp_path / "r-1").iterdir()] == [*names]


@pytest.mark.parametrize("session", ["", "../../x", "..", f"{SESSION}/..", SESSION.upper() + "Z", "*"])
def test_what_is_no_session_id_is_no_path(tmp_path, session):
    """An id comes from outside: whatever has not its form is neither kept nor looked for."""
    shelf = SessionStore(tmp_path / "sessions")
    assert shelf.keep("r-1:1:1", session, {"s": b"said"}) is None
    assert shelf.keep("../r:1:1", SESSION, {"s": b"said"}) is None
    assert shelf.find(session) is None
    assert not (tmp_path / "sessions").exists()


def test_nothing_is_kept_where_nothing_can_be_written(tmp_path):
    """A place that is no directory costs the session, not the call."""
    (tmp_path / "sessions").write_text("in the way")
    assert SessionStore(tmp_path / "sessions").keep("r-1:1:1", SESSION, {"s": b"said"}) is None


def held(projects, tree, text="said"):
    (projects / tree).mkdir(parents=True)
    (projects / tree / f"{SESSION}.jsonl").write_text(text)
    return projects


def test_what_a_session_of_claude_had_used_is_noted_beside_it(tmp_path):
    """The next call is given what was said and what it had cost; where nobody noted that, it is unknown."""
    shelf = SessionStore(tmp_path / "sessions")
    projects = held(tmp_path / "projects", "-the-tree")
    name = claude.keep_claude_session(shelf, "r-1:1:1", projects, SESSION, ProviderUsage(5, 7))
    kept = shelf.find(name)
    assert claude.restore_claude_session(kept, tmp_path / "a", "/no such tree") == ProviderUsage(5, 7)
    assert (tmp_path / "a" / "-no-such-tree" / f"{SESSION}.jsonl").read_text() == "said"
    (kept.folder / "told.json").write_text(json.dumps([]))
    assert claude.restore_claude_session(kept, tmp_path / "b", "/tree") == ProviderUsage()


def test_no_link_is_followed_out_of_a_home(tmp_path):
    """An agent that leaves links in its home gets nothing carried out for it."""
    secret, shelf = held(tmp_path / "secret", "tree", "secret"), SessionStore(tmp_path / "sessions")
    projects = tmp_path / "projects"
    projects.mkdir()
    (projects / "linked").symlink_to(secret / "tree")
    (projects / "real").mkdir()
    (projects / "real" / f"{SESSION}.jsonl").symlink_to(secret / "tree" / f"{SESSION}.jsonl")
    (tmp_path / "all").symlink_to(secret)
    for place in (projects, tmp_path / "all", tmp_path / "nowhere"):
        assert claude.keep_claude_session(shelf, "r-1:1:1", place, SESSION, ProviderUsage()) is None
    assert claude.keep_claude_session(shelf, "r-1:1:1", secret, None, ProviderUsage()) is None
    assert not shelf.root.exists()
