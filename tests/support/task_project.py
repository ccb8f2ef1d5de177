"""Tasks for journeys: a crew that plans, reviews, codes, and goes astray where a story wants it to."""

import json
import re
from typing import Any

from tests.support.sample_project import RIGHT_CODE, UNIT_CHECK, Project

TASK_PLAN = {
    "title": "Fix add", "brief": "add must add", "requirements": ["add adds"], "in_scope": ["calc"],
    "out_of_scope": [], "steps": ["fix it"], "risks": [], "assumptions": [],
    "acceptance_criteria": ["the tests pass"],
    "files": [{"path": "calc.py", "intent": "update", "summary": "fix"}], "test_strategy": "unit",
    "test_cases": ["add"], "questions": [],
}  # fmt: skip
PLAN_ACCEPTED = {"decision": "accept", "summary": "fine", "blocking_issues": [], "suggestions": []}
CODE_APPROVED = {
    "decision": "approve", "summary": "ok", "blocking_issues": [], "plan_issues": [], "suggestions": [],
}  # fmt: skip
CODE_CHANGES_WANTED = {**CODE_APPROVED, "decision": "needs_changes", "blocking_issues": ["say why"]}
CODE_PLAN_FLAWED = {
    **CODE_APPROVED, "decision": "plan_flawed", "plan_issues": ["negative numbers are not planned"],
}  # fmt: skip
CODER_REPLY = {"status": "done", "summary": "done", "missing": []}
MULTIPLYING_CODE = "def add(a, b):\n    return a * b\n"
TASK_ROLES = ("planner", "coder", "reviewer", "tester")


def coder_step(text: str = RIGHT_CODE, path: str = "calc.py", **more: Any) -> dict[str, Any]:
    """A coder's step that leaves this file."""
    return {"mode": "implementation", "edit": [{"write": path, "text": text}], "reply": CODER_REPLY, **more}


def task_crew(**instead: Any) -> dict[str, Any]:
    """A crew that does it at once; `coder=[…]` and so on put other steps in place."""
    steps = {
        "planner": [{"mode": "proposal", "reply": TASK_PLAN}],
        "coder": [coder_step()],
        "reviewer": [
            {"mode": "proposal", "reply": PLAN_ACCEPTED},
            {"mode": "implementation", "reply": CODE_APPROVED},
        ],
    }
    return {"version": "1", **steps, **instead}


def detour_crew() -> dict[str, Any]:
    """The first change fails its tests, the second shows that the plan is wrong, the third is right."""
    reviewer = [
        {"mode": "proposal", "reply": PLAN_ACCEPTED},
        {"mode": "implementation", "round": "2", "reply": CODE_PLAN_FLAWED},
        {"mode": "implementation", "reply": CODE_APPROVED},
    ]
    return task_crew(coder=[coder_step(MULTIPLYING_CODE, round="1"), coder_step()], reviewer=reviewer)


DETOUR_PHASES = [
    *("planning", "plan_review", "codegen", "review", "test"),
    *("codegen", "review"),  # the tests failed
    *("planning", "plan_review", "codegen", "review", "test", "accept", "done"),  # the plan was wrong
]


def configure_tasks(
    project: Project, script: dict[str, Any], deliver: str = "branch", more: str = ""
) -> None:
    """Writes steersman.toml and commits it; the crew's script is beside the repository, so that it can change."""
    roles = "".join(
        f'[roles.{role}]\nagent = "scripted"\nscript = "../crew.yaml"\nretries = 0\n' for role in TASK_ROLES
    )
    told = f'version = 1\ndeliver = "{deliver}"\n[checks]\nunit = {json.dumps(UNIT_CHECK)}\n[rules]\nred_base = "fix"\n{roles}{more}'
    (project.repo / "steersman.toml").write_text(told, encoding="utf-8")
    write_crew(project, script)
    project.git("add", "-A")
    project.git("commit", "-q", "--allow-empty", "-m", "crew")
    project.trust()


def write_crew(project: Project, script: dict[str, Any]) -> None:
    """Another script for the crew, from the next call on."""
    (project.place / "crew.yaml").write_text(json.dumps(script), encoding="utf-8")


def task_phases(project: Project, run: str) -> list[str]:
    """The phases that a task went through."""
    kinds = ("created", "transition", "override")
    went = [e["to"] for e in project.entries(run) if e["kind"] in kinds]
    return [phase for n, phase in enumerate(went) if n == 0 or went[n - 1] != phase]


def read_document(project: Project, run: str, name: str) -> Any:
    """A document of a task as it is on disk."""
    return json.loads((project.repo / ".steersman" / "runs" / run / name).read_text(encoding="utf-8"))


def delivered_code(project: Project, run: str) -> str:
    """What a task's branch has in calc.py."""
    return project.git("show", f"steersman/{run}:calc.py")


def prompt_banners(out: str) -> list[str]:
    """What the prompt said each time, without the name of the run."""
    return re.findall(r"^\[\S+ (.*)\]$", out, re.MULTILINE)
