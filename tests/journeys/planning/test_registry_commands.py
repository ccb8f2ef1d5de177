"""The registry from the command line: listed, shown, checked, and held against what an intent was sealed with."""

import pytest

COMMAND = """\
id: cmd_lint
version: 1.1.0
status: active
title: "Lint \\e[31mred\\nrule rule_forged 1.0.0 (active, built-in)"
description: Lint it here.
lineage:
  introduced_in: ours
  supersedes: [cmd_lint@1.0.0]
effects: [read, network]
risk_level: low
phases: [implementation, validation]
"""
RULE = """\
- id: rule_ours
  version: 1.0.0
  status: active
  title: Ours
  description: Ours.
  lineage:
    introduced_in: ours
  severity: warn
  scope:
    commands: [cmd_lint, cmd_nowhere]
  when: comand.id == 3
  then:
    decision: warn
    reason: because
  evidence_required: [intent]
"""


def put(project, name, text):
    path = project.repo / ".steersman" / "registry" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def test_list_and_show(shop_project):
    """Everything is listed by kind and status, and shown whole with the pin that an intent would have."""
    every = shop_project.call("registry", "list", "--json").json()
    assert {e["kind"] for e in every} == {"workflow", "agent", "command", "rule"}
    rules = shop_project.call("registry", "list", "rule")
    assert rules.out.startswith("rules: ")
    assert "rule_release_needs_ci" in rules.out
    assert shop_project.call("registry", "list", "--status", "draft", "--json").json() == []
    shown = shop_project.call("registry", "show", "cmd_deploy_production", "--json").json()
    assert shown["content"]["risk_level"] == "critical"
    assert shown["pin"] == f"registry://command/cmd_deploy_production@1.0.0#{shown['digest'][:12]}"
    for name in ("wf_release", "agent_coder", "rule_release_needs_ci"):
        assert f"pin: registry://{'workflow' if name[0] == 'w' else name.partition('_')[0]}/{name}@" in shop_project.call("registry", "show", name).out  # fmt: skip
    missing = shop_project.call("registry", "show", "cmd_deploy_prod")
    assert (missing.code, "did you mean cmd_deploy_production?" in missing.err) == (2, True)
    variables = shop_project.call("registry", "variables", "--json").json()
    assert {"name": "command.id", "type": "string", "meaning": "the planned command"} in variables


def test_check(shop_project):
    """What is built in has no problems; what a project adds is told whole, with file, line, field and fix."""
    fine = shop_project.call("registry", "check")
    assert (fine.code, "no problems" in fine.out) == (0, True)
    put(shop_project, "rules/ours.yaml", RULE)
    put(shop_project, "commands/broken.yaml", "id: [")
    wrong = shop_project.call("registry", "check", "--json")
    found = {(p["field"].rpartition("/")[2], p["line"]): p["fix"] for p in wrong.json()["problems"]}
    assert wrong.code == 1
    assert set(found) == {
        ("broken.yaml", 2),
        ("ours.yaml: rule_ours.scope.commands[1]", 10),
        ("ours.yaml: rule_ours.when", 11),
    }
    assert found["ours.yaml: rule_ours.when", 11] == "did you mean command.id?"
    listed = shop_project.call("registry", "list")
    assert (listed.code, "registry check" in listed.err) == (0, True)
    assert shop_project.call("registry", "check", "nowhere").code == 2


def test_check_another_folder(shop_project, tmp_path):
    """A folder of somebody else is checked before it is taken over."""
    other = tmp_path / "theirs"
    (other / "rules").mkdir(parents=True)
    (other / "rules" / "ours.yaml").write_text(RULE)
    assert shop_project.call("registry", "check", str(other)).code == 1
    assert shop_project.call("registry", "check").code == 0


def test_nothing_forged(shop_project):
    """Content is shown, never obeyed: no escape reaches the terminal, no line poses as another."""
    put(shop_project, "commands/lint.yaml", COMMAND)
    for words in (["list", "command"], ["show", "cmd_lint"], ["diff"]):
        result = shop_project.call("registry", *words)
        assert "\x1b" not in result.out
        assert not any(line.lstrip().startswith("rule rule_forged") for line in result.out.splitlines())
        assert "\\x1b[31m" in result.out


def test_diff_of_registries(shop_project):
    """What a project changes of what is built in, and what changed since a registry that was kept."""
    assert (
        shop_project.call(
            "intent", "new", "Fix the discount in src/chandler/prices.py", "--out", "fix.json"
        ).code
        == 0
    )
    assert shop_project.call("intent", "seal", "fix.json").code == 0
    assert shop_project.call("registry", "diff").code == 0
    put(shop_project, "commands/lint.yaml", COMMAND)
    ours = shop_project.call("registry", "diff", "--json").json()
    assert [d["id"] for d in ours["differences"]] == ["cmd_lint"]
    kept = shop_project.call("registry", "diff", ours["old"][:12], "--json")
    assert (kept.code, [d["id"] for d in kept.json()["differences"]]) == (1, ["cmd_lint"])


def test_diff_of_a_pinned_command(shop_project):
    """What an intent was sealed with is kept: a pinned command that changed is told down to the field."""
    assert (
        shop_project.call(
            "intent", "new", "Fix the discount in src/chandler/prices.py", "--out", "fix.json"
        ).code
        == 0
    )
    assert shop_project.call("intent", "seal", "fix.json").code == 0
    assert shop_project.call("registry", "diff", "fix.json").code == 0
    edit = COMMAND.replace("cmd_lint", "cmd_edit_files").replace("[read, network]", "[read, write]")
    put(shop_project, "commands/edit.yaml", edit)
    result = shop_project.call("registry", "diff", "fix.json", "--json")
    (drifted,) = result.json()["drifted"]
    assert (result.code, drifted["id"], drifted["found"], drifted["kept"]) == (
        1, "cmd_edit_files", "drifted", True,
    )  # fmt: skip
    assert ["risk_level", "medium", "low"] in drifted["fields"]
    people = shop_project.call("registry", "diff", "fix.json").out
    assert "risk_level: medium → low" in people
    assert "1 of what fix.json pins has changed" in people


@pytest.mark.parametrize("name", ["nope", "0" * 64, "a/../../b"])
def test_diff_of_nothing(shop_project, name):
    """A name that is no registry is told."""
    result = shop_project.call("registry", "diff", name)
    assert (result.code, "is neither built-in" in result.err) == (2, True)
