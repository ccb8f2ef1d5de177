"""The scripted agent: chosen by what is asked, real edits, real processes, whole scripts only."""

import asyncio
import json
import os
import sys
import time

import msgspec
import pytest
from tests.support.cases import for_each_case

from steersman.adapters.agents.scripted_agent import ScriptedAgent, load_script
from steersman.adapters.config.plain_yaml import read_plain_yaml
from steersman.adapters.process import program_runner
from steersman.contracts.agent import PROVIDER_CLASSES, AgentRequest
from steersman.contracts.script import script_schema
from steersman.errors import UserError
from steersman.judges.replies.agent_reply import (
    SHARED_REPLY_CONTRACTS,
    ParsedReply,
    RefusedReply,
    parse_reply,
)


@pytest.fixture
def tree(tmp_path):
    folder = tmp_path / "tree"
    folder.mkdir()
    (folder / "a.py").write_text("x = 1\ny = 1\n")
    return folder


@pytest.fixture
def agent(tmp_path):
    def make(text):
        path = tmp_path / "script.yaml"
        path.write_text(text)
        return ScriptedAgent(path)

    return make


def ask(agent, tree, **more):
    given = {
        "role": "coder", "mode": "implementation", "prompt": "p", "writes": True, "effect": "t:1:1",
        "nonce": "n-1",
    }  # fmt: skip
    return asyncio.run(agent.call(AgentRequest(workdir=str(tree), **{**given, **more})))


CHOICE = """
version: 1
coder:
  - say: any
  - {mode: proposal, say: mode}
  - {round: 2, say: round}
  - {mode: proposal, round: 2, say: mode and round}
  - {attempt: 2, say: attempt}
  - {mode: proposal, round: 3, attempt: 2, say: all}
"""


@pytest.mark.parametrize(
    ("mode", "round_", "attempt", "said"),
    [
        ("implementation", 1, 1, "any"),
        ("proposal", 1, 1, "mode"),
        ("implementation", 2, 1, "round"),
        ("proposal", 2, 1, "mode and round"),
        ("proposal", 2, 2, "attempt"),
        ("proposal", 3, 2, "all"),
        ("implementation", 9, 9, "any"),
    ],
)
def test_choice(agent, tree, mode, round_, attempt, said):
    """The most specific step wins: attempt over round over mode; asking again gives the same."""
    one = agent(CHOICE)
    for _ in range(3):
        reply = ask(one, tree, mode=mode, round=round_, attempt=attempt)
        assert reply.text == said
        assert reply.error is None
        assert reply.provider == "scripted"


@pytest.mark.parametrize("role", ["coder", "tester"])
def test_nothing_fits(agent, tree, role):
    """Where the script has nothing to say, the reply says what was looked for."""
    reply = ask(agent("version: 1\ncoder:\n  - {round: 7, say: x}\n"), tree, role=role, round=2)
    assert reply.error == "provider_invalid_request"
    assert f"role {role}, mode implementation, round 2, attempt 1" in reply.detail
    assert ("round 7" if role == "coder" else "nothing") in reply.detail


REPLIES = """
version: 1
reviewer:
  - reply: {decision: approve, summary: read, must_fix: [], nice_to_have: [], tests: [], security: []}
  - round: 2
    nonce: wrong
    reply: {decision: approve, summary: read, must_fix: [], nice_to_have: [], tests: [], security: []}
  - round: 3
    raw: "LGTM {"
tester:
  - reply:
      test_plan: yes
      commands: [[python, -m, pytest, -q], [make, test, "1"]]
      expected_results: [0]
  - round: 2
    json: '{"score": 75, "ok": true}'
"""


def test_replies(agent, tree):
    """A reply is one JSON object with the nonce of the request; everything written in it stays text."""
    one = agent(REPLIES)
    reviewed = parse_reply(
        ask(one, tree, role="reviewer", writes=False).text, SHARED_REPLY_CONTRACTS["reviewer"], "n-1"
    )
    assert isinstance(reviewed, ParsedReply)
    tested = parse_reply(
        ask(one, tree, role="tester", writes=False).text, SHARED_REPLY_CONTRACTS["tester"], "n-1"
    )
    assert isinstance(tested, ParsedReply)
    assert tested.value.commands == (("python", "-m", "pytest", "-q"), ("make", "test", "1"))
    assert tested.value.test_plan == "yes"
    assert tested.value.expected_results == ("0",)


def test_other_replies(agent, tree):
    """A wrong nonce, garbage and an object with numbers can be scripted too."""
    one = agent(REPLIES)
    wrong = parse_reply(
        ask(one, tree, role="reviewer", round=2).text, SHARED_REPLY_CONTRACTS["reviewer"], "n-1"
    )
    assert wrong == RefusedReply(("nonce: is not the one given with this request",))
    assert ask(one, tree, role="reviewer", round=3).text == "LGTM {"
    assert json.loads(ask(one, tree, role="tester", round=2).text) == {
        "nonce": "n-1", "score": 75, "ok": True,
    }  # fmt: skip


EDITS = """
version: 1
coder:
  - edit:
      - {write: pkg/new.py, text: "n = 1\\n"}
      - {append: a.py, text: "z = 1\\n"}
      - {replace: a.py, find: "x = 1", with: "x = 2"}
      - {write: gone.py, text: ""}
      - {delete: gone.py}
    say: done
"""


@pytest.mark.parametrize("process", [False, True])
def test_edits(agent, tree, process):
    """Files are really written, appended, replaced and deleted, in this process or in a child."""
    text = EDITS + ("    process: yes\n" if process else "")
    reply = ask(agent(text), tree)
    assert (reply.error, reply.text, reply.detail) == (None, "done", "")
    assert (tree / "pkg/new.py").read_text() == "n = 1\n"
    assert (tree / "a.py").read_text() == "x = 2\ny = 1\nz = 1\n"
    assert sorted(p.name for p in tree.iterdir()) == ["a.py", "pkg"]


def test_mode_is_kept(agent, tree):
    """Writing over a program leaves it executable."""
    (tree / "run").write_text("#!/bin/sh\necho long text\n")
    (tree / "run").chmod(0o755)
    ask(agent("version: 1\ncoder:\n  - edit: [{write: run, text: '#!/bin/sh'}]\n"), tree)
    assert (tree / "run").read_text() == "#!/bin/sh"
    assert os.access(tree / "run", os.X_OK)


@pytest.mark.parametrize("process", ["no", "yes"])
def test_read_only(agent, tree, process):
    """A role that may not write is denied, and nothing is touched."""
    reply = ask(agent(EDITS + f"    process: {process}\n"), tree, writes=False)
    assert reply.error == "provider_permission_denied"
    assert reply.denied[0] == "write pkg/new.py"
    assert [p.name for p in tree.iterdir()] == ["a.py"]
    assert (tree / "a.py").read_text() == "x = 1\ny = 1\n"


def edit(agent, tree, text):
    return ask(agent(f"version: 1\ncoder:\n  - edit: [{text}]\n"), tree)


@pytest.mark.parametrize(
    "what", ["{write: out/x, text: t}", "{append: link, text: t}", "{write: link, text: t}", "{replace: link, find: o, with: t}",
             "{delete: out/secret}", "{replace: folder, find: a, with: b}", "{write: out, text: t}", "{append: pipe, text: t}", "{write: a.py/x, text: t}"]
)  # fmt: skip
def test_links(agent, tree, tmp_path, what):
    """No edit leaves the directory through a link, a pipe or a file taken for a folder."""
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret").write_text("o")
    (tree / "out").symlink_to(outside)
    (tree / "link").symlink_to(outside / "secret")
    os.mkfifo(tree / "pipe")
    (tree / "folder").mkdir()
    reply = edit(agent, tree, what)
    assert reply.error == "provider_permission_denied"
    assert (outside / "secret").read_text() == "o"
    assert [p.name for p in outside.iterdir()] == ["secret"]


@pytest.mark.parametrize(
    "what", ["{delete: none}", "{replace: none, find: a, with: b}", "{replace: a.py, find: q, with: b}",
             "{replace: a.py, find: '= 1', with: b}", "{write: pkg, text: t}", "{delete: none/x}"]
)  # fmt: skip
def test_impossible_edits(agent, tree, what):
    """What is not there, or there twice, is a broken request, not a guess."""
    (tree / "pkg").mkdir()
    reply = edit(agent, tree, what)
    assert reply.error == "provider_invalid_request"
    assert reply.detail


def test_workdir_gone(agent, tree):
    """A missing working directory is a fact in the reply, never an exception."""
    for process in ("no", "yes"):
        reply = ask(agent(EDITS + f"    process: {process}\n"), tree / "gone")
        assert reply.error == "provider_crashed"
        assert reply.detail


@for_each_case("error", PROVIDER_CLASSES)
def test_errors(agent, tree, error):
    """Every provider class can be scripted, with its detail."""
    reply = ask(agent(f"version: 1\ncoder:\n  - {{error: {error}, detail: because}}\n"), tree)
    assert (reply.error, reply.detail, reply.text, reply.reset_at) == (error, "because", "", None)


def test_reset(agent, tree):
    """A rate limit says when it passes, in milliseconds since the epoch."""
    reply = ask(agent("version: 1\ncoder:\n  - {error: provider_rate_limited, reset_in: 60}\n"), tree)
    assert 55_000 < reply.reset_at - time.time() * 1000 < 61_000


def test_edits_before_an_error(agent, tree):
    """An agent may fail after half its work, as real ones do."""
    reply = ask(agent(EDITS.replace("say: done", "error: provider_crashed")), tree)
    assert reply.error == "provider_crashed"
    assert (tree / "pkg/new.py").exists()


def test_usage(agent, tree):
    """Usage is what the step says; what it does not say is unknown, not zero."""
    one = agent("version: 1\ncoder:\n  - {tokens: 0, micro_usd: 12}\n  - {round: 2}\n")
    first, second = ask(one, tree).usage, ask(one, tree, round=2).usage
    assert (first.tokens, first.micro_usd) == (0, 12)
    assert (second.tokens, second.micro_usd) == (None, None)


def test_session_and_model(agent, tree):
    """The session goes on and the model is the role's."""
    reply = ask(agent("version: 1\ncoder: [{say: x}]\n"), tree, session="s1", options={"model": "m"})
    assert (reply.session, reply.model) == ("s1", "m")


@pytest.mark.parametrize("process", ["no", "yes"])
def test_timeout(agent, tree, process):
    """A sleep past the limit is a timeout, and nothing was edited."""
    reply = ask(agent(EDITS + f"    sleep: 30\n    process: {process}\n"), tree, seconds=1)
    assert reply.error == "provider_timeout"
    assert not (tree / "pkg").exists()


def test_sleep(agent, tree):
    """A step may take its time."""
    began = time.monotonic()
    assert ask(agent("version: 1\ncoder: [{sleep: 0.05, say: x}]\n"), tree).text == "x"
    assert time.monotonic() - began >= 0.05


def test_cancelled_child(agent, tree):
    """A cancelled call leaves no process of its effect behind."""
    one = agent("version: 1\ncoder: [{sleep: 60, process: yes}]\n")
    effect = f"scripted-{os.getpid()}:1:1"
    request = AgentRequest(
        role="coder", mode="m", prompt="", workdir=str(tree), writes=True, effect=effect, nonce="n"
    )

    async def story():
        task = asyncio.create_task(one.call(request))
        async with asyncio.timeout(50):
            while not program_runner.alive(effect):  # noqa: ASYNC110  processes ring no bell
                await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert program_runner.alive(effect) == []

    asyncio.run(story())


def test_child_cannot_be_shadowed(agent, tree):
    """A working tree that holds a module of ours, or of Python, does not take the child over."""
    (tree / "steersman").mkdir()
    (tree / "steersman/__init__.py").write_text("raise SystemExit(9)")
    (tree / "msgspec.py").write_text("raise SystemExit(9)")
    (tree / "json.py").write_text("raise SystemExit(9)")
    assert ask(agent("version: 1\ncoder: [{say: hello, process: yes}]\n"), tree).text == "hello"


@pytest.mark.parametrize(
    ("code", "error"),
    [("raise SystemExit(3)", "provider_crashed"), ("print('{')", "provider_protocol_error")],
)
def test_child_goes_wrong(agent, tree, monkeypatch, code, error):
    """A child that dies or babbles is a provider error of its own class."""
    monkeypatch.setattr(
        "steersman.adapters.agents.scripted_agent.SCRIPTED_CHILD_COMMAND", (sys.executable, "-c", code)
    )
    assert ask(agent("version: 1\ncoder: [{process: yes}]\n"), tree).error == error


BROKEN = {
    "not yaml": ("version: 1\ncoder: [\n", 3, "script.yaml"),
    "empty": ("", 1, "empty"),
    "text": ("hello", 1, "object"),
    "tab": ("version: 1\ncoder:\n\t- say: x\n", 3, "token"),
    "no version": ("coder: []\n", 1, "version: is missing"),
    "other version": ("version: 2\n", 1, "version"),
    "role name": ("version: 1\nCoder X: []\n", 2, "Coder X"),
    "no list": ("version: 1\ncoder: x\n", 2, "coder"),
    "no step": ("version: 1\ncoder:\n  - x\n", 3, "coder[0]"),
    "unknown field": ("version: 1\ncoder:\n  - say: x\n    sya: y\n", 4, "coder[0].sya: is not a known field"),
    "round": ("version: 1\ncoder:\n  - say: x\n    round: one\n", 4, "coder[0].round"),
    "round zero": ("version: 1\ncoder:\n  - round: 0\n", 3, "coder[0].round"),
    "round float": ("version: 1\ncoder:\n  - round: 1.0\n", 3, "coder[0].round"),
    "round octal": ("version: 1\ncoder:\n  - round: 0x1\n", 3, "coder[0].round"),
    "sleep": ("version: 1\ncoder:\n  - sleep: 1e3\n", 3, "coder[0].sleep"),
    "process": ("version: 1\ncoder:\n  - process: maybe\n", 3, "coder[0].process"),
    "error": ("version: 1\ncoder:\n  - error: oops\n", 3, "coder[0].error"),
    "detail": ("version: 1\ncoder:\n  - detail: x\n", 3, "coder[0].detail"),
    "reset": ("version: 1\ncoder:\n  - reset_in: 1\n", 3, "coder[0].reset_in"),
    "nonce": ("version: 1\ncoder:\n  - nonce: wrong\n", 3, "coder[0].nonce"),
    "two answers": ("version: 1\ncoder:\n  - say: x\n    raw: y\n", 4, "coder[0].raw"),
    "bad json": ("version: 1\ncoder:\n  - json: '[1]'\n", 3, "coder[0].json"),
    "twice": ("version: 1\ncoder:\n  - {round: 1}\n  - {round: 1}\n", 4, "coder[1]"),
    "duplicate key": ("version: 1\ncoder:\n  - say: x\n    say: y\n", 4, "given twice"),
    "duplicate role": ("version: 1\ncoder: []\ncoder: []\n", 3, "given twice"),
    "anchor": ("version: 1\ncoder: &a []\n", 2, "anchors"),
    "alias": ("version: 1\ncoder: *a\n", 2, "aliases"),
    "merge": ("version: 1\ncoder:\n  - <<: {say: x}\n", 3, "<<"),
    "tag": ("version: 1\ncoder:\n  - say: !!python/object/apply:os.system [x]\n", 3, "tags"),
    "include": ("version: 1\ncoder:\n  - say: !include x\n", 3, "tags"),
    "key": ("version: 1\n? [a]\n: b\n", 2, "key"),
    "key map": ("version: 1\n? {a: b}\n: b\n", 2, "key"),
    "documents": ("version: 1\n---\nversion: 1\n", 2, "more than one document"),
    "deep": ("version: 1\ncoder: " + "[" * 40 + "]" * 40, 2, "nested deeper than 32 levels"),
    "control": ("version: 1\ncoder: [{say: \x07}]\n", 2, "not allowed"),
    "edit none": ("version: 1\ncoder:\n  - edit:\n      - text: x\n", 4, "coder[0].edit[0]"),
    "edit two": ("version: 1\ncoder:\n  - edit: [{write: a, delete: a}]\n", 3, "exactly one"),
    "edit text": ("version: 1\ncoder:\n  - edit: [{write: a}]\n", 3, "edit[0].text: is missing"),
    "edit extra": ("version: 1\ncoder:\n  - edit: [{delete: a, find: b}]\n", 3, "edit[0].find: does not belong"),
    "edit find": ("version: 1\ncoder:\n  - edit: [{replace: a, find: '', with: b}]\n", 3, "edit[0].find"),
}  # fmt: skip


@pytest.mark.parametrize(("text", "line", "said"), BROKEN.values(), ids=BROKEN.keys())
def test_broken_scripts(tmp_path, text, line, said):
    """A broken script is refused as a whole, with file, line and field."""
    path = tmp_path / "script.yaml"
    path.write_text(text)
    with pytest.raises(UserError) as caught:
        ScriptedAgent(path)
    assert said in str(caught.value)
    assert f"{path}, line {line}: " in str(caught.value)


@pytest.mark.parametrize(
    "path",
    ["/etc/x", "../x", "a/../../x", "./a", "a//b", "", ".git/config", "a/.GIT/hooks", "a\x00b", "x" * 300],
)
def test_paths(tmp_path, path):
    """A path that is not plainly below the working directory is refused when the script is read."""
    script = tmp_path / "s.yaml"
    script.write_text("version: 1\ncoder:\n  - edit:\n    - delete: " + json.dumps(path) + "\n")
    with pytest.raises(UserError, match=r"line 4: coder\[0\].edit\[0\].delete"):
        load_script(script)


def test_all_problems(tmp_path):
    """All problems are told at once."""
    path = tmp_path / "s.yaml"
    path.write_text("version: 1\ncoder:\n  - round: x\n    foo: 1\ntester:\n  - error: y\n")
    with pytest.raises(UserError) as caught:
        load_script(path)
    for said in ("line 3: coder[0].round", "line 4: coder[0].foo", "line 6: tester[0].error"):
        assert said in str(caught.value)


def test_unreadable(tmp_path):
    """A missing file, bytes that are not UTF-8 and a file too long are the person's to mend."""
    with pytest.raises(UserError, match="cannot read the script"):
        load_script(tmp_path / "none.yaml")
    path = tmp_path / "s.yaml"
    path.write_bytes(b"version: 1\n# \xff\n")
    with pytest.raises(UserError, match="line 2: not UTF-8"):
        load_script(path)
    path.write_bytes(b"version: 1\n#" + b"x" * 1024 * 1024)
    with pytest.raises(UserError, match="longer than"):
        load_script(path)


@for_each_case(
    "word", ["no", "on", "null", "~", "1.0", "0x10", "12:30", "2026-02-28", "1_000", ".inf", "True", "<<"]
)
def test_words_stay_words(word):
    """No scalar becomes anything but the text that was written."""
    assert read_plain_yaml(f"a: {word}\n{word}: [{word}]".encode(), "x").value == {"a": word, word: [word]}


def test_schema():
    """The schema is closed and can be shown to an editor."""
    schema = script_schema()
    assert schema["additionalProperties"] is False
    assert schema["$defs"]["ScriptStep"]["additionalProperties"] is False
    assert msgspec.json.encode(schema)
