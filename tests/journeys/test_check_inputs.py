"""`steersman check command|verdict|artifact`: one by one, by lines, over the corpus, and what an answer costs."""

import io
import json
import os
import subprocess
import sys
import tempfile
import time
import tracemalloc

import pytest
from tests.support.cases import for_each_case
from tests.support.command_launcher import FIXED_ENVIRONMENT, CommandCall
from tests.support.corpus_vectors import CorpusVector, expand_input, read_vectors, vector_line
from tests.support.sample_project import STEERSMAN_COMMAND, Project

from steersman.faces.cli import jsonl
from steersman.faces.cli.commands import check

KINDS = {"command": "commands", "verdict": "verdicts", "artifact": "artifacts"}
MIB = 1024 * 1024
CPU_SECONDS, MEMORY = 0.2, 32 * MIB
GOOD = '{"decision":"approve","summary":"ok","must_fix":[]}'
REPLY = {
    "nonce": "n-1", "decision": "approve", "summary": "read", "must_fix": [], "nice_to_have": [], "tests": [],
    "security": [],
}  # fmt: skip


@pytest.fixture
def place(tmp_path):
    """A folder with what the vectors speak of: links out of it, a loop, a pipe, a hard link."""
    here, out = tmp_path / "store", tmp_path / "out"
    here.mkdir()
    out.mkdir()
    (out / "secret").write_text("s")
    (here / "seed.txt").write_text("b\na\n")
    for name, target in {
        "link_out": out,
        "link": out,
        "loop": "loop",
        "dev": "/dev/zero",
        "gone": "x/y",
    }.items():
        (here / name).symlink_to(target)
    os.link(out / "secret", here / "hard")
    os.mkfifo(here / "fifo")
    return here


class Said:
    def __init__(self, done):
        self.code, self.out, self.err = done.returncode, done.stdout.decode(), done.stderr.decode()
        assert "Traceback" not in self.err, self.err

    def lines(self):
        return [json.loads(row) for row in self.out.splitlines()]


def call(place, *words, feed=b"", **env):
    home = {
        **FIXED_ENVIRONMENT, "PATH": os.environ["PATH"], "HOME": str(place.parent),
        "XDG_STATE_HOME": str(place.parent / "state"),
    }  # fmt: skip
    return Said(Project.launcher(CommandCall(("check", *words), place, home | env, feed)))


def judged(place, kind, inputs, *words):
    """Each input's result, all in one call."""
    feed = b"".join(vector_line(CorpusVector(str(n), value, "", "")) for n, value in enumerate(inputs))
    result = call(place, kind, "--jsonl", *words, feed=feed)
    assert result.code == 0
    return {value: answer["result"] for value, answer in zip(inputs, result.lines(), strict=True)}


# ── the corpus ──────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("kind", KINDS)
def test_the_corpus(kind, place):
    """No bad one is let through, no good one is refused, every line is answered, nothing is written."""
    wanted = read_vectors(KINDS[kind])
    before = sorted(place.iterdir())
    result = call(place, kind, "--jsonl", feed=b"".join(map(vector_line, wanted)))
    assert result.code == 0
    answers = result.lines()
    assert [a["id"] for a in answers] == [v.id for v in wanted]
    assert all(set(a) == {"id", "result", "reason"} and a["reason"] for a in answers)
    wrong = [
        (v.id, v.why, a["reason"])
        for v, a in zip(wanted, answers, strict=True)
        if v.expected not in ("safe", a["result"])
    ]
    assert wrong == []
    assert {v.expected for v in wanted} >= {"accept", "refuse"}
    assert sorted(place.iterdir()) == before


def judge_of(kind):
    """The judge behind a command line, as the command builds it, in an empty folder."""
    from steersman.faces.cli.context import CommandContext
    from steersman.wiring import SERVICES

    deck = CommandContext(SERVICES, tempfile.mkdtemp(), as_json=False)
    made = {
        "command": lambda: check._build_command_judge(deck, ()),
        "verdict": lambda: check._build_verdict_judge(None, None, None, None),
        "artifact": lambda: check._build_artifact_judge(deck, None),
    }
    return made[kind]()


@pytest.mark.parametrize("kind", KINDS)
def test_no_input_is_costly(kind):
    """Each line of the corpus takes less than 200 ms of CPU and 32 MiB beyond what a small one takes."""
    judge = judge_of(kind)
    jsonl.answer_jsonl_stream(
        io.BytesIO(vector_line(CorpusVector("0", "x", "", ""))), io.StringIO(), judge
    )  # imports are not the input's
    costs = {v.id: cost(vector_line(v), judge) for v in read_vectors(KINDS[kind])}
    assert {i: c for i, c in costs.items() if c[0] > CPU_SECONDS or c[1] > MEMORY} == {}


def seconds_for(data, judge):
    """The least CPU of up to three times, and the answers: what this process has to do beside it, such as collecting garbage, only adds."""
    for _ in range(3):
        began, out = time.process_time(), io.StringIO()
        jsonl.answer_jsonl_stream(io.BytesIO(data), out, judge)
        took = time.process_time() - began
        if took < CPU_SECONDS:
            break
    return took, out.getvalue()


def cost(data, judge):
    seconds, _ = seconds_for(data, judge)
    tracemalloc.start()
    try:
        jsonl.answer_jsonl_stream(io.BytesIO(data), io.StringIO(), judge)
        return seconds, tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


HEAVY = [
    *(v for name in KINDS.values() for v in read_vectors(name) if isinstance(v.input, dict) and "$gen" in v.input),
    CorpusVector("deep", {"$gen": {"kind": "nest", "open": '{"a":', "close": "}", "depth": 100_000, "core": "1"}}, "", ""),
    CorpusVector("keys", {"$gen": {"kind": "keys", "count": 150_000}}, "", ""),
    CorpusVector("quotes", {"$gen": {"kind": "repeat", "unit": '""', "count": 500_000}}, "", ""),
    CorpusVector("digits", {"$gen": {"kind": "repeat", "prefix": '{"a":', "unit": "1", "count": 900_000, "suffix": "}"}}, "", ""),
    CorpusVector("fraction", {"$gen": {"kind": "repeat", "prefix": '{"a":0.', "unit": "1", "count": 900_000, "suffix": "}"}}, "", ""),
    CorpusVector("rockets", {"$gen": {"kind": "repeat", "prefix": '{"decision":"', "unit": "\U0001f680", "count": 250_000, "suffix": '"}'}}, "", ""),
    CorpusVector("fences", {"$gen": {"kind": "repeat", "unit": "```json\n", "count": 120_000}}, "", ""),
    CorpusVector("problems", {"$gen": {"kind": "repeat", "prefix": '{"must_fix":[', "unit": '"",', "count": 1_990, "suffix": '""]}'}}, "", ""),
    CorpusVector("words", {"$gen": {"kind": "repeat", "prefix": "pytest", "unit": " -q", "count": 2_700}}, "", ""),
    CorpusVector("path", {"$gen": {"kind": "repeat", "unit": "a/", "count": 4_000}}, "", ""),
    CorpusVector("spaces", {"$gen": {"kind": "repeat", "prefix": "pytest ", "unit": "a ", "count": 4_000}}, "", ""),
]  # fmt: skip


@for_each_case("kind", KINDS)
@for_each_case("vector", HEAVY)
def test_heavy_inputs_are_cheap_to_refuse(kind, vector):
    """Whatever is heavy for one judge is put before all of them: less than 200 ms of CPU each, none accepted."""
    judge = judge_of(kind)
    jsonl.answer_jsonl_stream(io.BytesIO(vector_line(CorpusVector("0", "{}", "", ""))), io.StringIO(), judge)
    seconds, answers = seconds_for(vector_line(vector), judge)
    assert json.loads(answers)["result"] == "refuse"
    assert seconds < CPU_SECONDS


def test_memory_stays_flat(place):
    """The whole command, fed the heaviest lines, needs at most 32 MiB more than when it is fed small ones.

    One of them is good and one is refused with its fields named: what is loaded to name them is not the input's.
    """
    small = [CorpusVector("0", GOOD, "", ""), CorpusVector("1", '{"must_fix":[""]}', "", "")]
    assert peak(place, "verdict", HEAVY) - peak(place, "verdict", small) < MEMORY


# A program counts what the process that started it had in memory as its own, so a small one starts it.
STARTER = """
import os, subprocess, sys
child = subprocess.Popen(sys.argv[1:], stdout=subprocess.DEVNULL)
_, status, usage = os.wait4(child.pid, 0)
print(os.waitstatus_to_exitcode(status), usage.ru_maxrss * 1024)
"""


def peak(place, kind, wanted):
    """The largest resident size of the command, in bytes."""
    feed = place.parent / f"feed-{len(wanted)}.jsonl"
    with feed.open("wb") as out:
        out.writelines(map(vector_line, wanted))
    command = [sys.executable, "-c", STARTER, *STEERSMAN_COMMAND, "check", kind, "--jsonl"]
    with feed.open("rb") as stdin:
        told = subprocess.run(command, cwd=place, stdin=stdin, stdout=subprocess.PIPE, check=True).stdout
    code, size = map(int, told.split())
    assert code == 0
    return size


# ── lines ───────────────────────────────────────────────────────────────────────────────────────────────────────────

BROKEN = [
    (b"", None, "is empty"),
    (b"hello", None, "is not one JSON object"),
    (b"[1,2]", None, "is not a JSON object"),
    (b'{"id":"a"}', "a", 'has no "input"'),
    (b'{"id":"b","input":', "b", "is not one JSON object"),
    (b'{"id":"c","input":"pytest \xff"}', "c", "not UTF-8 at byte 27"),
    (b'{"id":"d","input":NaN}', "d", "is not JSON"),
    (b'{"id":"e","input":"pytest","input":"rm"}', "e", "duplicate key"),
    (b'{"id":"f","input":"\\ud800"}', "f", "lone surrogate"),
    (b'{"id":"g","input":"a\\u0000"}', "g", "NUL"),
    (b'{"id":"h","input":1e999}', "h", "finite"),
    (b'{"id":["x"],"input":7}', None, ""),
    (b'{"id":17,"input":7}', 17, ""),
    (b'{"input":"' + b"x" * 5 * MIB + b'","id":"last"}', "last", "longer than 4194304 bytes"),
    (b'{"id":"first","input":"' + b"x" * 5 * MIB + b'"}', "first", "longer than 4194304 bytes"),
    (b'{"input":"' + b"x" * 5 * MIB + b'\\"id\\":\\"no\\"}"}', None, "longer than"),
    (b'{"id":"\\ud800","input":7,}', "\\ud800", ""),
]


@pytest.mark.parametrize("kind", KINDS)
def test_every_line_is_answered(kind, place):
    """Broken, endless and odd lines are refused with a reason and the id where it can be seen, in order, exit code 0."""
    feed = (
        b"\n".join(text for text, _, _ in BROKEN)
        + b"\n"
        + vector_line(CorpusVector("end", None, "", "")).rstrip(b"\n")
    )
    result = call(place, kind, "--jsonl", feed=feed)
    assert result.code == 0
    answers = result.lines()
    assert len(answers) == len(BROKEN) + 1
    for (text, name, words), answer in zip(BROKEN, answers, strict=False):
        assert (answer["result"], answer["id"]) == ("refuse", name), text[:60]
        assert words in answer["reason"]
    assert answers[-1]["id"] == "end"
    assert answers[-1]["result"] == "refuse"


def test_a_closed_input_holds_nothing(place):
    """Without a standard input there are no lines to answer and no verdict to accept."""
    for words, code in ((("verdict", "--jsonl"), 0), (("verdict",), 4)):
        line_of = " ".join((*STEERSMAN_COMMAND, "check", *words))
        done = subprocess.run(
            ["sh", "-c", f"{line_of} <&-"], cwd=place, capture_output=True, check=False, timeout=60
        )
        assert (done.returncode, b"Traceback" in done.stderr) == (code, False)


def test_lines_from_a_file(place):
    """--jsonl takes a file too; without lines there is nothing to answer."""
    (place / "in.jsonl").write_bytes(vector_line(CorpusVector("a", "pytest -q", "", "")))
    result = call(place, "command", "--jsonl", "in.jsonl")
    assert [a["result"] for a in result.lines()] == ["accept"]
    assert (call(place, "command", "--jsonl").code, call(place, "command", "--jsonl").out) == (0, "")
    missing = call(place, "command", "--jsonl", "none.jsonl")
    assert missing.code == 2
    assert "cannot read none.jsonl" in missing.err
    assert call(place, "command", "--jsonl", "a", "b").code == 2


# ── one by one ──────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_command(place):
    """One line or its words; 0 and the grammar it fits, or 4 and why not."""
    result = call(place, "command", "pytest -q", "--json")
    assert result.code == 0
    assert json.loads(result.out) == {
        "input": ["pytest -q"], "result": "accept", "reason": "fits pytest (set tests), proves tests",
        "exit_code": 0,
    }  # fmt: skip
    assert call(place, "command", "--", "pytest", "-k", "a and not b").code == 0
    refused = call(place, "command", "pytest -p evil")
    assert refused.code == 4
    assert "`evil` is not a value for `-p`" in refused.out
    assert call(place, "command").code == 2


def test_a_command_that_leaves_the_tree_by_a_link(place):
    """A path that is a link out of the tree, or no file at all, is refused; one that is not there yet is fine."""
    names = ("link_out", "link_out/x.py", "loop", "gone/x", "fifo", "dev")
    results = judged(place, "command", [f"pytest {name}" for name in names])
    assert [text for text, result in results.items() if result == "accept"] == ["pytest gone/x"]
    assert call(place, "command", "pytest link_out").code == 4


def test_a_command_by_the_projects_own_rules(place):
    """With a steersman.toml a command is judged as a run here would: its checks, sets, scripts and grammars."""
    (place / "steersman.toml").write_text(
        'version = 1\n[checks]\nunit = ["uv", "run", "pytest", "-q"]\nodd = ["./odd", "*"]\n[commands]\nsets = ["tests"]\n'
        'scripts = ["lint"]\ntargets = ["verify"]\n[commands.grammars.php]\nstart = ["vendor/bin/phpunit"]\n'
        'flags = ["--stop-on-failure"]\nvalues = {"--filter" = "name", "--order" = ["random", "default"]}\noperands = "path"\n'
    )
    good = (
        "uv run pytest -q tests/a.py", "npm run lint", "make verify",
        "vendor/bin/phpunit --filter=Cart --order random tests", "./odd '*'",
    )  # fmt: skip
    bad = ("find . -name x", "poetry run pytest", "npm run build", "vendor/bin/phpunit --order=x", "./odd x")
    assert set(judged(place, "command", good).values()) == {"accept"}
    assert set(judged(place, "command", bad).values()) == {"refuse"}
    off = call(place, "command", "poetry run pytest")
    assert "add 'poetry' to sets under [commands]" in off.out
    assert call(place, "command", "--set", "poetry", "poetry run pytest").code == 0
    assert call(place, "command", "--set", "nothing", "x").code == 2


def test_a_bad_section_is_told(place):
    """[commands] is held against its schema: file, line, field."""
    (place / "steersman.toml").write_text('version = 1\n[commands]\nsets = ["everything"]\nprogram = "rm"\n')
    result = call(place, "command", "pytest")
    assert result.code == 2
    assert "line 3: commands.sets[0]" in result.err
    assert "commands.program" in result.err


def test_a_verdict(place):
    """From a file or standard input, in the plainest form, by a role or by a schema."""
    (place / "reply.txt").write_text(f"```json\n{GOOD}\n```\n")
    assert call(place, "verdict", "reply.txt").code == 0
    assert call(place, "verdict", feed=GOOD.encode()).code == 0
    refused = call(place, "verdict", "--json", feed=b'{"decision":"approve","must_fix":["x"],"actor":"me"}')
    assert refused.code == 4
    for words in ("summary: is missing", "actor: is not a known field", "decision: approve contradicts"):
        assert words in json.loads(refused.out)["reason"]
    assert call(place, "verdict", feed=b"\xff" + GOOD.encode()).code == 4
    assert call(place, "verdict", feed=GOOD.encode() + b" " * MIB).code == 4
    assert call(place, "verdict", "nowhere.txt").code == 2


def test_a_verdict_of_a_role(place):
    """--role asks for the role's own contract; the nonce counts when it is given."""
    reply = json.dumps(REPLY).encode()
    without = json.dumps({k: v for k, v in REPLY.items() if k != "nonce"}).encode()
    tester = {"nonce": "n", "test_plan": "x", "commands": [["pytest"]], "expected_results": []}
    assert call(place, "verdict", "--role", "reviewer", feed=reply).code == 0
    assert call(place, "verdict", "--role", "reviewer", feed=without).code == 0
    assert call(place, "verdict", "--role", "reviewer", "--nonce", "n-1", feed=reply).code == 0
    assert call(place, "verdict", "--role", "reviewer", "--nonce", "n-1", feed=without).code == 4
    assert call(place, "verdict", "--role", "reviewer", "--nonce", "n-2", feed=reply).code == 4
    assert call(place, "verdict", "--role", "reviewer", feed=GOOD.encode()).code == 4
    assert call(place, "verdict", "--role", "tester", feed=json.dumps(tester).encode()).code == 0
    coder = {"status": "scope_mismatch", "summary": "x", "missing": []}
    assert call(place, "verdict", "--role", "task_coder", feed=json.dumps(coder).encode()).code == 4
    refused = call(place, "verdict", "--role", "poet", feed=reply)
    assert refused.code == 2
    assert "reviewer, tester, planner, task_planner" in refused.err
    assert call(place, "verdict", "--nonce", "x", feed=reply).code == 2


def test_a_verdict_by_a_schema(place):
    """Any JSON Schema, with the same strict reading; a schema that refers elsewhere or is none is told."""
    (place / "s.json").write_text('{"type":"object","required":["a"],"properties":{"a":{"type":"integer"}}}')
    (place / "far.json").write_text('{"$ref":"https://example.com/s.json"}')
    (place / "file.json").write_text('{"$ref":"file:///etc/passwd"}')
    (place / "none.json").write_text('{"type":"nonsense"}')
    (place / "twice.json").write_text('{"type":"object","type":"object"}')
    assert call(place, "verdict", "--schema", "s.json", feed=b'{"a":1}').code == 0
    for bad in (b'{"a":"x"}', b'{"a":1,"a":2}', b"{}", b'{"a":1} x', b"[1]"):
        assert call(place, "verdict", "--schema", "s.json", feed=bad).code == 4, bad
    for name in ("far.json", "file.json", "none.json", "twice.json", "missing.json"):
        assert call(place, "verdict", "--schema", name, feed=b'{"a":1}').code == 2, name
    both = call(place, "verdict", "--schema", "s.json", "--role", "tester", feed=b"{}")
    assert both.code == 2


def test_an_artifact(place):
    """A plain name passes; a link, a pipe, a second name, another spelling and another's file do not."""
    (place / "readme.md").write_text("x")
    (place / "deep").mkdir()
    good = ("claims.json", "deep/x.md", "new/deep/x.md", "seed.txt")
    bad = (
        "README.md", "link/x", "loop", "dev", "hard", "fifo", "deep", "Deep/x", "seed.txt/x", "state.json",
        "../x",
    )  # fmt: skip
    assert set(judged(place, "artifact", good).values()) == {"accept"}
    assert set(judged(place, "artifact", bad).values()) == {"refuse"}
    assert "opens a gate: pytest loads it" in call(place, "artifact", "code/files/conftest.py").out
    assert call(place, "artifact", "--", "-rf").code == 4
    assert call(place, "artifact").code == 2
    assert call(place, "artifact", "--beneath", "nowhere", "link/x").code == 0
    assert call(place, "artifact", "--beneath", "seed.txt", "x").code == 4


def test_expansion_of_generated_inputs():
    """Each kind of generated input is what it says."""
    gen = lambda **g: expand_input({"$gen": g})  # noqa: E731  a short name for a short form
    assert gen(kind="repeat", prefix="a", unit="b", count=3, suffix="c") == "abbbc"
    assert gen(kind="list", item="x", count=2) == ["x", "x"]
    assert gen(kind="nest", open="[", close="]", depth=2, core="1") == "[[1]]"
    assert json.loads(gen(kind="keys", count=2, tail=',"z":0')) == {"k0": 1, "k1": 1, "z": 0}
    assert gen(kind="hex", hex="7b 80") == b"{\x80"
    assert gen(kind="join", parts=["a", {"$gen": {"kind": "repeat", "unit": "b", "count": 2}}]) == "abb"
    assert expand_input({"cmd": "x"}) == {"cmd": "x"}
