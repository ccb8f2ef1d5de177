"""Text from agents, tests, repositories and command lines, in every place where it is printed or written.

One run has every hostile string in every place that is not ours; each command that shows anything of it is called.
"""

import io
import json
import os
import re

import pytest
from rich.console import Console
from tests.support.cases import for_each_case
from tests.support.command_launcher import CommandCall
from tests.support.sample_project import (
    APPROVAL,
    CHANGE_REQUEST,
    RIGHT_CODE,
    WRONG_CODE,
    Project,
    render_config,
    roundtable_story,
)

from steersman.faces.cli.context import CommandContext
from steersman.faces.cli.live_pane import LivePane
from steersman.judges.replies.agent_reply import finding_id
from steersman.judges.text import printable_text

VECTORS = [
    "\x1b[31mred\x1b[0m", "FAILED\b\b\b\b\b\bPASSED", "FAILED\rPASSED", "\x1b]0;title\x1b\\",
    "\x1b]0;title\x07", "\x1b]8;;http://127.0.0.1:9\x1b\\click\x1b]8;;\x1b\\", "\x1b]52;c;dG91Y2ggeA==\x07",
    "\x1b]1337;File=name=eA==:AAAA\x07", "\x1b[6n\x1b[c", "\x1b[?1049h\x1b[?25l", "\x1b[8mhidden\x1b[0m",
    "\x1b[2J\x1b[1;1H\x1b[5A", "\x9b31m\x9d0;t\x9c", "\x1b(0lqqk\x1b(B\x1bc", "\x07" * 20,
    "\u202eevorppa\u202c\u2066x\u2069", "\u200b\u200c\u200d\u2060\ufeff", "\U000e0061\U000e0070",
    "e" + "\u0301" * 30, "\ufffd\x7f\x85\u2028", "[red]x[/red] [link=http://127.0.0.1:9]y[/link] [/]",
    "é 你好 🚀",
]  # fmt: skip
HOSTILE = " ".join(VECTORS)
LINES = f"{HOSTILE}\nrun 999999-forged: approved\n  next:\n  steersman approve forged\n"
NOISY = f"""import os, sys, unittest
class Noisy(unittest.TestCase):
    def test_noisy(self):
        os.write(2, {LINES.encode()!r} + b"\\xff\\x00\\x01")
        self.fail({HOSTILE!r})
"""
CREW = {
    "version": "1",
    "coder": [
        {"mode": "proposal", "say": LINES},
        {"mode": "implementation", "round": "1", "say": LINES, "edit": [
            {"write": "calc.py", "text": RIGHT_CODE}, {"write": "fi\u202ele\u200b <b>.txt", "text": LINES}]},
        {"mode": "implementation", "say": LINES, "edit": [{"append": "calc.py", "text": "# said why\n"}]},
    ],
    "reviewer": [
        {"mode": "proposal", "say": LINES},
        {"mode": "implementation", "round": "1", "reply": {
            **CHANGE_REQUEST, "summary": LINES, "must_fix": [LINES], "nice_to_have": [LINES], "tests": [LINES]}},
        {"mode": "implementation", "reply": {**APPROVAL, "summary": LINES, "fixed": [finding_id(LINES)]}},
    ],
    "tester": [
        {"mode": "proposal", "say": LINES},
        {"mode": "implementation", "reply": {
            "test_plan": LINES, "commands": [["python3", "-m", "unittest", HOSTILE], ["rm", HOSTILE]], "expected_results": [LINES]}},
    ],
}  # fmt: skip
PAIR = re.compile(r"\\u(d[89ab][0-9a-f]{2})\\u(d[c-f][0-9a-f]{2})")


def script() -> str:
    """The crew as YAML, which has its own escape for what JSON writes as a pair."""

    def one(pair: re.Match[str]) -> str:
        return f"\\U{0x10000 + ((int(pair[1], 16) - 0xD800) << 10) + int(pair[2], 16) - 0xDC00:08x}"

    return PAIR.sub(one, json.dumps(CREW))


PERSON = f"an\u202en {VECTORS[0]} [b]"
REASON = LINES
READING = [
    ("runs",), ("runs", "--all"), (), ("show", "RUN"), ("why", "RUN"), ("report", "RUN"), ("gates",), ("gates", "RUN", "--full"),
    ("audit", "tape", "RUN"), ("audit", "verify", "RUN"), ("audit", "replay", "RUN"), ("watch", "RUN", "--for", "1"),
]  # fmt: skip
ENCODINGS = [
    {},
    {"LANG": "C", "LC_ALL": "C"},
    {"PYTHONIOENCODING": "ascii"},
    {"PYTHONIOENCODING": "latin-1", "LANG": "POSIX"},
]


def call(project: Project, *words: str, **env: str) -> tuple[int, bytes, bytes]:
    order = CommandCall(words, project.repo, {**project.env, "STEERSMAN_PERSON": PERSON, **env}, timeout=90)
    done = project.launch(order)
    return done.returncode, done.stdout, done.stderr


def harmless(data: bytes, encoding: str = "utf-8") -> str:
    """Output that a terminal shows as it is: nothing in it is obeyed, nothing reorders or hides."""
    text = data.decode(encoding)
    assert printable_text(text) == text
    assert not {*range(0x20), *range(0x7F, 0xA0)} - {0x0A, 0x09} & set(map(ord, text))
    return text


def no_forged_lines(text: str) -> None:
    """What comes from outside never begins a line."""
    for line in text.splitlines():
        assert not line.startswith(("run 999999-forged", "  steersman approve forged", "  next:")), line


@pytest.fixture(scope="module")
def parked(projects):
    """A run that waits at its gate with hostile words in its title, its proposal and its notes, on an odd branch."""
    project = projects()
    (project.repo / "test_noisy.py").write_text(NOISY)
    (project.repo / "steersman.toml").write_text(render_config(roundtable_story()))
    (project.place / "crew.yaml").write_text(script())
    project.git("add", "-A")
    project.git("commit", "-qm", "crew")
    project.git("checkout", "-qb", "fea\u202eture-<b>`x`")
    code, out, err = call(project, "run", HOSTILE, "--mode", "proposal", "--max-iterations", "2")
    assert code == 3, err
    return project, json.loads(call(project, "runs", "--json")[1])[0]["run"], out, err


@pytest.fixture(scope="module")
def over(parked):
    """The same run after a person's hostile reason, a hostile review, and a noisy failing check."""
    project, run, _, _ = parked
    code, out, err = call(project, "approve", run, "--reason", REASON)
    for _ in range(3):  # whatever asks for a person's eyes on the way
        if code == 3:
            code, out, err = call(project, "approve", run, "--reason", REASON)
    return project, run, out, err


def test_a_run_tells_nothing_but_text(parked):
    """The title, the steps and the gate's texts."""
    _, _, out, err = parked
    text = harmless(out)
    harmless(err)
    no_forged_lines(text)
    assert "\\x1b]52;c;dG91Y2ggeA==\\x07" in text
    assert "│ run 999999-forged: approved" in text
    assert "[red]x[/red]" in text
    assert "é 你好 🚀" in text


@for_each_case("words", READING)
@for_each_case("more", [(), ("--json",)])
def test_every_reading_command(over, words, more):
    """In words and in JSON, while it is a pipe."""
    project, run, _, _ = over
    if not words and more:
        return  # plain steersman has no --json
    code, out, err = call(project, *(run if w == "RUN" else w for w in words), *more)
    assert code in (0, 1, 3), err
    text = harmless(out)
    harmless(err)
    if more:
        for line in text.splitlines():
            json.loads(line)
    else:
        no_forged_lines(text)


@for_each_case("env", ENCODINGS[1:])
def test_whatever_the_terminal_speaks(over, env):
    """No encoding is too narrow; what it has no letters for is written out."""
    project, run, _, _ = over
    code, out, err = call(project, "show", run, **env)
    assert code == 0, err
    encoding = env.get("PYTHONIOENCODING", "utf-8")
    harmless(out, encoding)
    harmless(err, encoding)


def test_the_end_of_the_run_tells_nothing_but_text(over):
    """Failing checks, findings and reasons."""
    project, run, out, err = over
    no_forged_lines(harmless(out))
    harmless(err)
    shown = json.loads(call(project, "show", run, "--json")[1])
    assert shown["outcome"] in ("max_iterations_reached", "tester_command_blocked", "repeated_test_failure")
    told = harmless(call(project, "show", run)[1])
    assert "\\x1b[6n" in told


def test_nothing_is_lost_in_what_is_kept(over):
    """The transcript has every letter an agent said; the export is canonical and harmless all the same."""
    project, run, _, _ = over
    _, out, _ = call(project, "audit", "export", run, "--payloads")
    harmless(out)
    import base64

    lines = [json.loads(line) for line in out.splitlines()]
    texts = [
        line.get("text", "") or base64.b64decode(line.get("base64", "")).decode()
        for line in lines
        if "payload" in line
    ]
    assert LINES in texts
    assert any("\\xff\x00\x01" in text or "\\xff\\u0000\\u0001" in text for text in texts)


def test_files_people_read(over):
    """Every artifact but the patch, which is data for git, can be looked at with `cat`."""
    project, run, _, _ = over
    looked = []
    for path in (project.repo / ".steersman" / "runs" / run).rglob("*"):
        if path.is_file() and path.name != "diff.patch":
            harmless(path.read_bytes())
            looked.append(path.name)
    assert {"state.json", "report.md", "transcript.jsonl", "timeline.json", "test-results.json"} <= set(
        looked
    )
    assert (
        json.loads((project.repo / ".steersman" / "runs" / run / "state.json").read_text())["findings"][0][
            "text"
        ]
        == LINES
    )


@for_each_case(
    "words",
    [
        (HOSTILE,),
        ("--" + HOSTILE,),
        ("show", HOSTILE),
        ("show", "RUN", "--" + HOSTILE),
        ("send", "RUN", LINES),
        ("send", "RUN", "aborted_by_operator", "--data", HOSTILE),
        ("send", "RUN", "aborted_by_operator", "--data", json.dumps({"choice": HOSTILE, HOSTILE: 1})),
        ("answer", "RUN", HOSTILE),
        ("followup", "RUN", "--" + HOSTILE),
        ("watch", "RUN", "--for", HOSTILE),
        ("run", "x", "--as", HOSTILE),
        ("run", "x", "--mode", HOSTILE),
        ("--project", "/" + HOSTILE, "runs"),
        ("report", "RUN", "--out", f"/{HOSTILE}/x"),
        ("machine", "show", LINES),
        ("audit", HOSTILE),
        ("chat", "send", "@" + HOSTILE),
        ("show", "a\nsteersman: forged"),
        ("a\nsteersman: forged",),
        ("show", os.fsdecode(b"\xff\xfe")),
        ("approve", os.fsdecode(b"\xff\xfe")),
        ("audit", "verify", os.fsdecode(b"\xff\xfe")),
        ("send", "RUN", os.fsdecode(b"\xff\xfe")),
        ("send", "RUN", "x", "--data", os.fsdecode(b'{"a": "\xff"}')),
        ("chat", "show", os.fsdecode(b"\xff\xfe")),
        ("--project", os.fsdecode(b"/\xff"), "runs"),
    ],
)
@for_each_case("more", [(), ("--json",)])
def test_errors_about_the_command_line(over, words, more):
    """What was typed is quoted in an error of one line, which no newline in it can forge, in a narrow encoding too."""
    project, run, _, _ = over
    narrow = words[0] == HOSTILE and not more
    for env in ENCODINGS[: 3 if narrow else 1 : 2]:
        code, out, err = call(project, *(run if w == "RUN" else w for w in words), *more, **env)
        assert code in (2, 4), (code, err)
        encoding = env.get("PYTHONIOENCODING", "utf-8")
        text = harmless(err, encoding)
        assert "Traceback" not in text
        harmless(out, encoding)
        assert sum(line.startswith(("steersman: ", "refused: ")) for line in text.splitlines()) == 1
        assert "steersman: forged" not in text.splitlines()


@pytest.mark.parametrize(
    "text",
    [
        f'version = 1\n"{VECTORS[15]}\\u001b[2J" = 1\n',
        f'version = 1\nbase = "{VECTORS[16]}\\u001b"\n',
        "version = 1\n\x1b[2J",
    ],
)
def test_errors_about_the_configuration(projects, text):
    """A repository's own steersman.toml is quoted, too."""
    project = projects()
    (project.repo / "steersman.toml").write_text(text)
    code, _, err = call(project, "run", "x")
    assert code == 2
    harmless(err)


def test_a_hostile_repository_path(tmp_path, template):
    """The directory's own name is outside text."""
    import shutil

    place = tmp_path / "re\x1b[2Jpo\u202e [b]"
    shutil.copytree(template, place)
    project = Project.__new__(Project)
    project.place, project.repo = tmp_path, place
    project.env = {
        "PATH": os.environ["PATH"], "HOME": str(tmp_path), "XDG_STATE_HOME": str(tmp_path / "state"),
        "LANG": "C.UTF-8",
    }  # fmt: skip
    for words in ((), ("runs",), ("doctor",), ("init",), ("run", "x")):
        _, out, err = call(project, *words)
        harmless(out)
        harmless(err)


def test_the_log_of_a_run_in_the_background(projects):
    """What a driver without a terminal says is in a file, as harmless as on a screen."""
    project = projects()
    (project.repo / "steersman.toml").write_text(render_config(roundtable_story()))
    (project.place / "crew.yaml").write_text(script())
    project.git("add", "-A")
    project.git("commit", "-qm", "crew")
    code, out, err = call(project, "run", HOSTILE, "--detach", "--json")
    assert code == 0, err
    data = json.loads(out)
    log = project.read_log(data["log"], f" reject {data['run']}\n")  # the last line of its gate
    assert "proposal" in log
    no_forged_lines(harmless(log.encode()))


def test_the_live_pane_shows_markup_as_text(over):
    """Rich interprets nothing from outside and raises nothing; the colours are its own."""
    project, run, _, _ = over
    from steersman.engine.projections import read_run_view
    from steersman.wiring import SERVICES

    os.environ["XDG_STATE_HOME"], before = project.env["XDG_STATE_HOME"], os.environ.get("XDG_STATE_HOME")
    try:
        deck = CommandContext(SERVICES, str(project.repo), as_json=False)
        view = read_run_view(deck.runs.ports, run)
        pane = LivePane(deck, keys="x")
        pane.show(view.status, view.entries)
        pane.note(HOSTILE)
        for encoding in ("utf-8", "ascii"):
            raw = io.BytesIO()
            out = io.TextIOWrapper(raw, encoding=encoding, errors="backslashreplace")
            Console(file=out, force_terminal=True, color_system=None, width=100).print(pane._draw())
            out.flush()
            harmless(raw.getvalue(), encoding)
            assert b"[red]x[/red]" in raw.getvalue()
        deck.quiet = True
        deck.close()
    finally:
        if before is None:
            del os.environ["XDG_STATE_HOME"]
        else:
            os.environ["XDG_STATE_HOME"] = before


def test_the_story_is_what_it_says(over):
    """The crew was really heard: its words, its file, its noisy check."""
    project, run, _, _ = over
    events = [
        e.get("event") for e in map(json.loads, call(project, "audit", "tape", run, "--json")[1].splitlines())
    ]
    assert "review_changes_requested" in events
    assert "tester_replied" in events
    assert (project.repo / "calc.py").read_text() == WRONG_CODE
