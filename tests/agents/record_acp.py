"""Records what the installed ACP agents say, case by case, into fixtures/<cli>-<version>/: by hand, when a version changes.

Each is called through its adapter, in a box; kept is what it told, in order, until it was stopped.
"""

import os
import re
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

import msgspec
from test_acp_agents import CLIS, SLOW
from tests.support.agent_matrix import AGENT_CASES, Rig, run_case

RECORDED = ("text", "edit", "denied tool", "401", "429", "500", "refused", "no key", "bad model", "dropped")
FOLDER = Path(__file__).parent / "fixtures"
WORK = "/tree"
_NOISE = ("available_commands_update", "config_option_update")
_TOLD = (
    "timestamp=",
    "Attempt ",
)  # of standard error; the rest are traces and lines of the program's own source


class Patch:
    """Sets the environment as the tests' fixture does."""

    def setenv(self, name, value):
        os.environ[name] = value


def tapped(cli, heard, status):
    """The CLI with an ear at both of its streams, and an eye on what its record says."""

    class Tapped(cli):
        def agent(self, place, sandbox, options):
            agent = super().agent(place, sandbox, options)
            made, maker = agent._build_invocation, agent._make_profile

            def kind(*args):
                found = maker(*args)
                return found._replace(status=lambda: status.append(found.status()) or status[-1])

            def invocation(*args):
                found = made(*args)
                feed, errors = found.reader.feed, found.errors
                found.reader.feed = lambda line: heard.append(["out", line]) or feed(line)
                return found._replace(errors=lambda line: heard.append(["err", line]) or errors(line))

            agent._build_invocation, agent._make_profile = invocation, kind
            return agent

    return Tapped()


def record(name, case):
    heard, status = [], []
    with tempfile.TemporaryDirectory() as root:
        rig = Rig(Path(root), Patch())
        os.environ.update({"HOME": str(rig.home), "XDG_STATE_HOME": str(rig.state)})
        row, _, _ = run_case(tapped(CLIS[name], heard, status), replace(AGENT_CASES[case], **SLOW), rig)
        lines = [[stream, _plain(line, rig)] for stream, line in heard if _worth(stream, line)]
    folder = FOLDER / f"{name}-{CLIS[name].version}"
    folder.mkdir(exist_ok=True)
    case_ = AGENT_CASES[case]
    told = msgspec.json.encode(
        {
            "class": row.got, "permissions": case_.permissions, "writes": case_.writes,
            "status": status[-1] if status else None, "heard": lines,
        },
    )  # fmt: skip
    (folder / f"{case.replace(' ', '-')}.json").write_bytes(msgspec.json.format(told, indent=1) + b"\n")
    print(name, case, row.got, len(lines))


def _worth(stream, line):
    if any(word.encode() in line for word in _NOISE):
        return False
    return stream == "out" or any(word.encode() in line for word in _TOLD)


def _plain(line, rig):
    said = line.decode("utf-8", "replace").replace(str(rig.work), WORK).replace(str(rig.root), "/rig")
    # A place inside opencode's program that looks like somebody's home.
    return re.sub(r"/\$bunfs/\w+/", "/$bunfs/", said)


if __name__ == "__main__":
    for cli in sys.argv[1:] or CLIS:
        for variable in [
            n for n in os.environ if n.startswith(("GEMINI_", "GOOGLE_", "ANTHROPIC_", "SCRIPTED_"))
        ]:
            del os.environ[variable]
        for chosen in RECORDED:
            os.environ.pop("GEMINI_API_KEY", None)
            os.environ.pop("SCRIPTED_API_KEY", None)
            os.environ.pop("ANTHROPIC_API_KEY", None)
            record(cli, chosen)
