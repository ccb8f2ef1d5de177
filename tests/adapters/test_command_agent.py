"""Any program as an agent, with real programs."""

import asyncio
import sys

import pytest

from steersman.adapters.agents.command import MAX_COMMAND_ANSWER_BYTES, CommandAgent, CommandOptions
from steersman.adapters.agents.registry import AgentSpec, make_agent
from steersman.adapters.sandbox.bubblewrap import OpenSandbox, probe_sandbox
from steersman.contracts.agent import AgentRequest, ProviderUsage
from steersman.contracts.config import Role
from steersman.errors import UserError

OPEN = OpenSandbox("not asked for")


def called(tmp_path, code, *words, sandbox=OPEN, prompt="What is it?", **more):
    """One call of a Python program."""
    tree = tmp_path / "tree"
    tree.mkdir(exist_ok=True)
    asked = AgentRequest(
        role="coder", mode="implementation", prompt=prompt, workdir=str(tree), writes=True,
        effect="command:1:1", nonce="n", permissions="shell", **{"seconds": 20, **more},
    )  # fmt: skip
    options = CommandOptions(command=(sys.executable, "-c", code, *words), model="m-1")
    return asyncio.run(CommandAgent(tmp_path / "homes", sandbox, options).call(asked))


def test_the_prompt_comes_on_standard_input(tmp_path):
    """A command without a place for a file reads its prompt from standard input; what it prints is the answer."""
    reply = called(tmp_path, "import sys; print(sys.stdin.read().upper())", prompt="grüße")
    assert (reply.text.strip(), reply.error, reply.provider) == ("GRÜSSE", None, "command")
    assert reply.usage == ProviderUsage()


def test_the_prompt_comes_in_a_file(tmp_path):
    """`{prompt_file}`, `{workdir}` and `{model}` are filled in, each word by itself; standard input is closed then."""
    code = "import sys; print(open(sys.argv[1]).read(), sys.argv[2:], repr(sys.stdin.read()))"
    reply = called(tmp_path, code, "{prompt_file}", "--in={workdir}", "{model}", "{other}")
    assert reply.text.strip() == f"What is it? ['--in={tmp_path / 'tree'}', 'm-1', '{{other}}'] ''"


def test_any_other_exit_code_is_a_crash(tmp_path):
    """What a program says is no answer when it then fails; its last words are kept."""
    reply = called(tmp_path, "import sys; print('done'); print('no disk', file=sys.stderr); sys.exit(3)")
    assert (reply.error, reply.detail, reply.text) == ("provider_crashed", "exit code 3: no disk", "")


def test_a_program_that_is_not_there(tmp_path):
    """A missing program is told as such."""
    agent = CommandAgent(tmp_path / "homes", OPEN, CommandOptions(command=("no-such-agent",)))
    asked = AgentRequest(
        role="r", mode="m", prompt="", workdir=str(tmp_path), writes=False, effect="e:1:1", nonce="n"
    )
    assert asyncio.run(agent.call(asked)).error == "provider_not_found"


def test_a_program_that_may_not_be_executed(tmp_path):
    """A file that is there and cannot be executed is a lack of permission, not a missing program."""
    (tmp_path / "agent").write_text("no program")
    agent = CommandAgent(tmp_path / "homes", OPEN, CommandOptions(command=(str(tmp_path / "agent"),)))
    asked = AgentRequest(
        role="r", mode="m", prompt="", workdir=str(tmp_path), writes=False, effect="e:1:1", nonce="n"
    )
    assert asyncio.run(agent.call(asked)).error == "provider_permission_denied"


def test_a_program_that_hangs(tmp_path):
    """A program that says nothing is stopped by its clock."""
    assert called(tmp_path, "import time; time.sleep(60)", start_seconds=1).error == "provider_timeout"


def test_an_answer_without_end(tmp_path):
    """A flood is stopped, and is no answer."""
    reply = called(
        tmp_path,
        f"print('x' * 1000 + '\\n', end='') or [print('y' * 9999) for _ in range({MAX_COMMAND_ANSWER_BYTES})]",
    )
    assert reply.error == "provider_protocol_error"


def test_a_session_cannot_be_continued(tmp_path):
    """A command has no sessions, and says so instead of beginning anew."""
    assert called(tmp_path, "print(1)", session="s-1").error == "provider_invalid_request"


def test_it_works_in_a_box(tmp_path):
    """In a box it reads its prompt from the file and writes its tree, and nothing beside it."""
    sandbox = probe_sandbox("auto")
    if not sandbox.isolated:
        pytest.skip(sandbox.why)
    precious = tmp_path / "precious.txt"
    code = (
        "import sys, pathlib\npathlib.Path('made.txt').write_text(open(sys.argv[1]).read())\n"
        f"try: pathlib.Path({str(precious)!r}).write_text('gone')\nexcept OSError: pass\nprint('ok')"
    )
    reply = called(tmp_path, code, "{prompt_file}", sandbox=sandbox)
    assert reply.text.strip() == "ok"
    assert (tmp_path / "tree" / "made.txt").read_text() == "What is it?"
    assert not precious.exists()


def _post(tmp_path, **role):
    return AgentSpec("coder", Role(**role), tmp_path, tmp_path / "homes", OPEN)


@pytest.mark.parametrize(
    ("role", "words"),
    [
        ({"agent": "command"}, "command is missing"),
        ({"agent": "acp"}, "command is missing"),
        ({"agent": "command", "options": {"command": ["x"], "colour": 1}}, "colour"),
        ({"agent": "opencode"}, "model is missing"),
        ({"agent": "opencode", "model": "nobody/m"}, "hosts is missing"),
        ({"agent": "gemini", "options": {"temperature": 1}}, "temperature"),
        ({"agent": "codex", "options": {"base_url": "ftp://x"}}, "base_url"),
    ],
)
def test_a_table_that_does_not_fit_is_refused(tmp_path, role, words):
    """A role's table is refused when the agent is made, with the field that is wrong."""
    with pytest.raises(UserError, match=words):
        make_agent(_post(tmp_path, **role))


def test_a_path_is_one_of_the_project(tmp_path):
    """A program that is named by a path is looked for from the top of the project."""
    made = make_agent(_post(tmp_path, agent="command", options={"command": ["tools/agent", "{prompt_file}"]}))
    assert made._options.command == (str(tmp_path / "tools/agent"), "{prompt_file}")
    named = make_agent(_post(tmp_path, agent="acp", options={"command": ["an-agent", "--acp"]}))
    assert named._options.command == ("an-agent", "--acp")
