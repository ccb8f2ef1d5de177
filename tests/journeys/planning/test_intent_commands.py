"""Intents from the command line: drafted from a real repository, checked whole, sealed (issue: intent tooling; 001 §2)."""

import hashlib
import json
import re

import pytest
import yaml
from tests.support.command_launcher import CommandCall

from steersman.kernel.canonical import canonical_bytes

GOAL = "Fix the discount in src/chandler/prices.py"


def new(project, goal=GOAL, *more, out="fix.yaml"):
    result = project.call("intent", "new", goal, "--out", out, *more)
    assert result.code == 0, result.err
    return project.repo / out


def edit(path, old, new_):
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new_, 1))


def test_new_check_seal(shop_project):
    """A draft is whole as it stands; an edit breaks its seal, and sealing it again mends that."""
    path = new(shop_project)
    assert shop_project.call("intent", "check", "fix.yaml").code == 0
    edit(path, "description: ''", "description: Ten pieces count already.  # as the page says")
    result = shop_project.call("intent", "check", "fix.yaml")
    assert result.code == 4
    assert "audit.checksum: is not the one of this document" in result.out
    assert re.search(r"line \d+: audit\.checksum: is not", result.out)
    sealed = shop_project.call("intent", "seal", "fix.yaml", "--json").json()
    assert shop_project.call("intent", "check", "fix.yaml").code == 0
    assert "# as the page says" in path.read_text()
    value = yaml.safe_load(path.read_text())
    checksum = value["audit"].pop("checksum")
    covered = canonical_bytes(value)
    assert (sealed["checksum"], sealed["bytes"]) == (checksum, len(covered))
    assert checksum == hashlib.sha256(covered).hexdigest()


def test_new_cites_what_is_there(shop_project):
    """Every piece of evidence leads to a fact of the scanned project; the file that the goal names is its scope."""
    value = shop_project.call("intent", "new", GOAL, "--json").json()["intent"]
    assert value["scope"]["targets"]["files"] == ["src/chandler/prices.py"]
    by_id = {c["command_id"]: c for c in value["planned_commands"]}
    assert "fact://test_command/pytest" in by_id["cmd_run_unit_tests"]["evidence_refs"]
    assert value["audit"]["created_by"] == "ann"
    assert value["selected_workflows"][0]["workflow_id"] == "wf_bug_fix"


def test_new_as_asked(shop_project):
    """Workflow, mode, files and areas as the person says; JSON where the file's name ends so; never over another file."""
    path = new(shop_project, "Say what prices are", "--workflow", "wf_documentation", "--mode", "full_auto", "--area", "docs", out="a.json")  # fmt: skip
    value = json.loads(path.read_text())
    assert value["interaction"] == {"mode": "full_auto", "question_budget": 0, "question_policy": "never"}
    assert value["selected_workflows"][0]["workflow_id"] == "wf_documentation"
    result = shop_project.call("intent", "new", GOAL, "--out", "a.json")
    assert (result.code, "there already" in result.err) == (2, True)
    assert shop_project.call("intent", "check", "a.json", "--policy", "full_auto").code == 0


def standing(project, folder, *words):
    """A command, typed in a folder of the repository."""
    done = project.launch(CommandCall(("intent", *words, "--json"), project.repo / folder, project.env))
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_a_file_that_is_not_there_is_remarked_on(shop_project):
    """A plan may make files, and a name may be a slip: `new` and `check` say which is not there, and refuse nothing."""
    assert shop_project.call("memory", "add", "Discounts count from ten pieces on.").code == 0
    path = new(shop_project, GOAL, "--file", "src/chandler/nosuch.py", "--file", "src/chandler", out="a.json")
    data = shop_project.call("intent", "check", "a.json", "--json").json()
    assert data["problems"] == []
    assert [(p["field"], p["message"].partition(": ")[0]) for p in data["remarks"]] == [
        ("scope.targets.files[0]", "src/chandler/nosuch.py is not there"),
        ("scope.targets.files[1]", "src/chandler is a folder"),
    ]
    result = shop_project.call("intent", "new", GOAL, "--file", "src/chandler/nosuch.py")
    assert (
        result.code,
        "note: the draft: scope.targets.files[0]: src/chandler/nosuch.py is not there" in result.err,
    ) == (0, True)
    (shop_project.repo / "src/chandler/nosuch.py").touch()
    value = json.loads(path.read_text())
    value["scope"]["targets"]["files"] = ["src/chandler/nosuch.py", "src/chandler/"]
    path.write_text(json.dumps(value))
    assert shop_project.call("intent", "seal", "a.json").code == 0
    assert shop_project.call("intent", "check", "a.json", "--json").json()["remarks"] == []


def test_a_file_is_named_from_where_one_stands(shop_project):
    """In a folder, `--file` is taken as git takes it, and the document has the name from the top."""
    named = ("chandler/prices.py", "chandler/", "../docs/prices.md", "./chandler/orders.py")
    told = standing(shop_project, "src", "new", GOAL, *(word for name in named for word in ("--file", name)))
    assert told["intent"]["scope"]["targets"]["files"] == [
        "src/chandler/prices.py", "src/chandler/", "docs/prices.md", "src/chandler/orders.py",
    ]  # fmt: skip
    assert told["remarks"] == []
    whole = str(shop_project.repo / "src/chandler/prices.py")
    for given, name in (
        (".", "src/"),
        ("..", "."),
        ("chandler/.", "src/chandler/"),
        (whole, "src/chandler/prices.py"),
    ):
        for more in ((), ("--project", "..")):
            told = standing(shop_project, "src", "new", GOAL, *more, "--file", given)
            assert told["intent"]["scope"]["targets"]["files"] == [name]
    told = standing(
        shop_project,
        "..",
        "new",
        GOAL,
        "--project",
        str(shop_project.repo / "src"),
        "--file",
        "chandler/prices.py",
    )
    assert told["intent"]["scope"]["targets"]["files"] == ["src/chandler/prices.py"]
    told = standing(
        shop_project, "..", "new", GOAL, "--project", str(shop_project.repo), "--file", str(shop_project.repo)
    )
    assert told["intent"]["scope"]["targets"]["files"] == ["."]
    outside = shop_project.launch(
        CommandCall(("intent", "new", GOAL, "--file", "../../x"), shop_project.repo / "src", shop_project.env)
    )
    assert (outside.returncode, b"leaves the repository" in outside.stderr) == (2, True)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("new", "\u200b "), "a goal is missing"),
        (("new", "Fix it\x1b[31m", "--out", "x.yaml"), "the goal contains characters that are invisible"),
        (("new", "Fix \u202eit", "--out", "x.yaml"), "the goal contains characters that are invisible"),
        (("new", "Fix\u200bit", "--out", "x.yaml"), "Fix\\u200bit"),
        (("new", "Fix it", "--file", "src/*.py", "--out", "x.yaml"), "`*`"),
        (("new", "Fix it", "--file", "", "--out", "x.yaml"), "--file is given without a name"),
        (("new", "Fix it", "--file", "/etc/passwd", "--out", "x.yaml"), "leaves the repository"),
        (("new", "Fix it", "--file", "src/a\u200d.py", "--out", "x.yaml"), "U+200D"),
        (("new", "Fix it", "--workflow", "wf_none"), "there is no workflow 'wf_none'"),
        (("new", "Fix it", "--from-agent", "poet"), "no agent has the role poet"),
        (("check",), "a file with an intent is missing"),
        (("check", "none.yaml"), "cannot read none.yaml"),
        (("check", "--policy", "none.yaml"), "there is no policy"),
        (("seal", "none.yaml"), "cannot read none.yaml"),
    ],
)
def test_wrong_usage(shop_project, words, told):
    """What cannot be done as asked says so, in one line, with exit code 2."""
    result = shop_project.call("intent", *words)
    assert (result.code, told in result.err) == (2, True), result.err
    assert not (shop_project.repo / "x.yaml").exists()


def test_all_problems_at_once_with_line_and_field(shop_project):
    """Form, sense, red line and reference: each is told with the line it stands on."""
    path = new(shop_project)
    edit(path, "max_files: 16", "max_files: many")
    edit(path, "status: draft", "status: superseded\nshell: rm")
    edit(path, "command_id: cmd_lint", "command_id: cmd_lintt")
    lines = path.read_text().splitlines()
    result = shop_project.call("intent", "check", "fix.yaml")
    assert result.code == 4
    for text, told in (
        ("max_files: many", 'budgets.max_files: "many" is not of type "integer"'),
        ("status: superseded", "status: an intent that is superseded cannot be planned"),
        ("shell: rm", "shell: is not a known field"),
        ("shell: rm", "shell: 'shell' names something to execute, and an intent must not carry that (I1)"),
        ("command_id: cmd_lintt", "].command_id: cmd_lintt is no command of the registry (I5)"),
    ):
        at = next(n for n, line in enumerate(lines, 1) if text in line)
        assert f"fix.yaml, line {at}: " in result.out
        assert told in result.out, result.out
    assert "max_files" in path.read_text()  # looked at, never changed
    answer = shop_project.call("intent", "check", "fix.yaml", "--json").json()
    assert answer["result"] == "refuse"
    assert {p["field"] for p in answer["problems"]} >= {
        "budgets.max_files", "status", "shell", "audit.checksum",
    }  # fmt: skip


def test_notes_do_not_refuse(shop_project):
    """A command that is talked down is noted; the plan counts with the registry's word."""
    path = new(shop_project)
    edit(path, "risk_level: medium", "risk_level: low")
    shop_project.call("intent", "seal", "fix.yaml")
    result = shop_project.call("intent", "check", "fix.yaml")
    assert (result.code, "note: fix.yaml, line" in result.out) == (0, True), result.out


def test_unreadable(shop_project):
    """What is no document is refused with file and line, exit code 4."""
    (shop_project.repo / "bad.yaml").write_text("id: x\nid: y\n")
    result = shop_project.call("intent", "check", "bad.yaml")
    assert (result.code, "bad.yaml, line 2: 'id' is given twice" in result.err) == (4, True)


def test_seal_refuses_what_is_not_whole(shop_project):
    """Only a whole intent is sealed; nothing is written."""
    path = new(shop_project)
    edit(path, "type: execution_intent", "type: plan")
    before = path.read_text()
    result = shop_project.call("intent", "seal", "fix.yaml")
    assert (result.code, 'is not one of "execution_intent"' in result.out) == (4, True)
    assert path.read_text() == before
    (shop_project.repo / "list.yaml").write_text("- a\n")
    assert shop_project.call("intent", "seal", "list.yaml").code == 2


def test_drift(shop_project):
    """001 §2 "Version drift detection": content that a project replaces after sealing is told, and seal takes it over."""
    new(shop_project)
    folder = shop_project.repo / ".steersman" / "registry" / "commands"
    folder.mkdir(parents=True)
    (folder / "read.yaml").write_text(
        "id: cmd_read_code\nversion: 2.0.0\nstatus: active\ntitle: Read\ndescription: Read files.\n"
        "lineage: {introduced_in: here, supersedes: [cmd_read_code@1.0.0]}\n"
        "effects: [read]\nrisk_level: low\nphases: [analysis]\n"
    )
    result = shop_project.call("intent", "check", "fix.yaml")
    assert result.code == 4, result.err
    assert "planned_commands[0].command_id: cmd_read_code: this command is 2.0.0#" in result.out
    assert shop_project.call("intent", "seal", "fix.yaml", "--out", "again.yaml").code == 0
    assert shop_project.call("intent", "check", "again.yaml").code == 0


def test_policies(shop_project):
    """A policy is looked at with the intent, or alone; its lines are its own file's."""
    new(shop_project)
    (shop_project.repo / "team.yaml").write_text(
        "policy_id: policy_team\nmode: full_auto\nquestion_budget: 3\nconstraints:\n  forbidden_operations: [deploi]\n"
    )
    for words in (("check", "fix.yaml", "--policy", "team.yaml"), ("check", "--policy", "team.yaml")):
        result = shop_project.call("intent", *words)
        assert result.code == 4
        assert "team.yaml, line 3: question_budget: is not 0" in result.out
        assert "team.yaml, line 5: constraints.forbidden_operations[0]: deploi is neither" in result.out
    assert shop_project.call("intent", "check", "--policy", "semi_auto").code == 0


CREW = """version: 1
coder:
  - mode: draft
    attempt: 1
    say: I think it is fine.
  - mode: draft
    attempt: 2
    reply: {reply}
"""
REPLY = {
    "title": "Ten pieces are cheaper", "description": "The page says ten.", "success_criteria": ["a test with ten pieces passes"],
    "non_goals": [], "files": ["src/chandler/prices.py", "../../etc/passwd"], "areas": ["backend"], "risk_drivers": ["people see prices"],
    "requires_review": ["cost"], "leave_out": ["cmd_build"],
}  # fmt: skip


def test_an_agent_proposes(shop_project):
    """A reply that does not fit is asked for again; what fits becomes a draft that nobody has sealed."""
    (shop_project.repo / "crew.yaml").write_text(CREW.replace("{reply}", json.dumps(REPLY)))
    (shop_project.repo / "steersman.toml").write_text(
        'version = 1\n[roles.coder]\nagent = "scripted"\nscript = "crew.yaml"\nretries = 1\n'
    )
    result = shop_project.call("intent", "new", GOAL, "--from-agent", "coder", "--out", "fix.yaml")
    assert result.code == 0, result.err
    assert "it is not sealed" in result.out
    assert "scope.targets.files[1]: leaves the repository" in result.out
    value = yaml.safe_load((shop_project.repo / "fix.yaml").read_text())
    assert value["title"] == "Ten pieces are cheaper"
    assert value["risk"]["requires_review"] == ["architecture", "cost"]
    assert "cmd_build" not in [c["command_id"] for c in value["planned_commands"]]
    assert shop_project.call("intent", "check", "fix.yaml").code == 4
    assert shop_project.git("status", "--porcelain", "src") == ""


@pytest.mark.parametrize("out", ["fix.yaml", "fix.json", ""])
def test_an_agents_secret_is_in_no_draft(shop_project, out):
    """What has the shape of a secret, or is one that is known here, is taken out before anything is written or shown."""
    token, known = "ghp_" + "a1B2c3D4e5" * 4, "orange-harbour-seventeen"
    reply = {**REPLY, "description": f"Log in with {token}.", "risk_drivers": [f"{known} is in the file"]}
    (shop_project.repo / "crew.yaml").write_text(CREW.replace("{reply}", json.dumps(reply)))
    (shop_project.repo / "steersman.toml").write_text(
        'version = 1\n[redact]\nenv = ["CHART"]\n[roles.coder]\nagent = "scripted"\nscript = "crew.yaml"\nretries = 1\n'
    )
    more = ("--out", out) if out else ("--json",)
    result = shop_project.call("intent", "new", GOAL, "--from-agent", "coder", *more, CHART=known)
    written = (shop_project.repo / out).read_text() if out else result.out
    assert (result.code, "a secret was taken out of what the agent said" in result.err) == (0, True), (
        result.err
    )
    assert "Log in with [redacted:github]." in written
    assert "[redacted:known] is in the file" in written
    assert not [word for word in (token, known) if word in written + result.out + result.err]


def test_an_agents_reply_of_nothing_but_secrets(shop_project):
    """What does not fit any more without them is no proposal: nothing is written."""
    known = "harbour-17"
    reply = {**REPLY, "success_criteria": [" ".join([known] * 36)]}
    (shop_project.repo / "crew.yaml").write_text(CREW.replace("{reply}", json.dumps(reply)))
    (shop_project.repo / "steersman.toml").write_text(
        'version = 1\n[redact]\nenv = ["CHART"]\n[roles.coder]\nagent = "scripted"\nscript = "crew.yaml"\nretries = 1\n'
    )
    result = shop_project.call(
        "intent", "new", GOAL, "--from-agent", "coder", "--out", "fix.yaml", CHART=known
    )
    assert (result.code, "does not fit without it" in result.err) == (2, True), result.err
    assert known not in result.err + result.out
    assert not (shop_project.repo / "fix.yaml").exists()


def test_an_agent_that_never_fits(shop_project):
    """Nothing is written."""
    (shop_project.repo / "crew.yaml").write_text("version: 1\ncoder:\n  - mode: draft\n    say: fine\n")
    (shop_project.repo / "steersman.toml").write_text(
        'version = 1\n[roles.coder]\nagent = "scripted"\nscript = "crew.yaml"\nretries = 0\n'
    )
    result = shop_project.call("intent", "new", GOAL, "--from-agent", "coder", "--out", "fix.yaml")
    assert (result.code, "gave no proposal, nothing was written" in result.err) == (2, True), result.err
    assert not (shop_project.repo / "fix.yaml").exists()
