"""Plans from the command line: a sealed intent, changed field by field, and a registry of the project's own."""

import json
from typing import Any

import yaml

from tests.support.sample_project import CommandResult, Project

PLAN_GOAL = "Fix the discount of large orders"
PLANNED_FILE = "src/chandler/prices.py"
COMMAND_BODY = {
    "version": "1.0.0", "status": "active", "description": "For a story.",
    "lineage": {"introduced_in": "story"},
}  # fmt: skip


class PlanProject:
    """A project in which something is remembered, and the intents that are planned in it."""

    def __init__(self, project: Project, *, remembers: bool = True) -> None:
        self.project = project
        if remembers:
            result = project.call("memory", "add", "Discounts count from ten pieces on.")
            assert result.code == 0, result.err

    def intent(self, *more: str, mode: str = "interactive", scoped: bool = True) -> dict[str, Any]:
        """A fresh draft for the goal, as a value."""
        scope = ("--file", PLANNED_FILE) if scoped else ()
        result = self.project.call("intent", "new", PLAN_GOAL, "--mode", mode, *scope, *more, "--json")
        assert result.code == 0, result.err
        return result.json()["intent"]

    def write(self, value: Any, *, seal: bool = True, name: str = "../intent.json") -> str:
        """An intent as a file beside the repository, sealed unless the story is about the seal."""
        (self.project.repo / name).write_text(json.dumps(value))
        if seal:
            result = self.project.call("intent", "seal", name)
            assert result.code == 0, result.err
        return name

    def content(self, kind: str, *items: dict[str, Any]) -> None:
        """What the project adds to the registry."""
        folder = self.project.repo / ".steersman" / "registry" / f"{kind}s"
        folder.mkdir(parents=True, exist_ok=True)
        for item in items:
            (folder / f"{item['id']}.yaml").write_text(
                yaml.safe_dump({**COMMAND_BODY, "title": item["id"], **item})
            )

    def rule(self, id_: str, decision: str, severity: str, when: str = "true", **more: Any) -> None:
        """A rule of the project about commands that write."""
        then = {"decision": decision, "reason": "a story says so"}
        self.content("rule", {
            "id": id_, "severity": severity, "scope": {"commands": ["cmd_edit_files"]}, "when": when, "then": then,
            "evidence_required": ["intent"], **more,
        })  # fmt: skip

    def policy(self, **changes: Any) -> str:
        """A policy in a file."""
        value = {"policy_id": "policy_story", "mode": "interactive", "question_budget": 20, **changes}
        (self.project.place / "policy.json").write_text(json.dumps(value))
        return "../policy.json"

    def plan(self, what: str, *more: str) -> "PlanResult":
        """Plans it, as programs do."""
        return PlanResult(self, self.project.call("plan", what, *more, "--json"))

    def answered(self, run: str, answer: str, **more: Any) -> "PlanResult":
        """Says the same to every question that waits."""
        pack = self.project.call("plan", "answer", run, "--template", "--json").json()
        pack.pop("exit_code", None)
        pack["answers"] = [
            {"question_id": a["question_id"], "answer": answer, **more} for a in pack["answers"]
        ]
        (self.project.place / "answers.json").write_text(json.dumps(pack))
        return PlanResult(self, self.project.call("plan", "answer", run, "../answers.json", "--json"))

    def defaults(self, run: str) -> "PlanResult":
        """Lets every question that waits take its default."""
        return PlanResult(self, self.project.call("plan", "answer", run, "--defaults", "--json"))

    def answers(self, run: str, **by_default: tuple[str, str]) -> "PlanResult":
        """Says to each question what is given for its default; a template leaves those empty that would stop the run."""
        pack = self.project.call("plan", "answer", run, "--template", "--json").json()
        pack.pop("exit_code", None)
        for one in pack["answers"]:
            one["answer"], one["text"] = by_default.get(one["answer"] or "stop", (one["answer"], ""))
        (self.project.place / "answers.json").write_text(json.dumps(pack))
        return PlanResult(self, self.project.call("plan", "answer", run, "../answers.json", "--json"))

    def say(self, run: str, pack: dict[str, Any], words: dict[str, str], text: str) -> "PlanResult":
        """Says a word to each question that is named, with `text` where the word takes one; the others stay silent."""
        answers = [{"question_id": q, "answer": w, "text": text * (w == "text")} for q, w in words.items()]
        given = {"question_pack_id": pack["question_pack_id"], "answers": answers}
        (self.project.place / "answers.json").write_text(json.dumps(given))
        return PlanResult(self, self.project.call("plan", "answer", run, "../answers.json", "--json"))


class PlanResult:
    """What came of it."""

    def __init__(self, plans: PlanProject, said: CommandResult) -> None:
        self.plans, self.said, self.code = plans, said, said.code
        self.told = said.json()

    def __getattr__(self, name: str) -> Any:
        return self.told[name]

    def tape(self) -> dict[str, Any]:
        """The run in the specification's form."""
        return self.plans.project.call("audit", "tape", self.run, "--as", "runtape", "--json").json()

    def states(self) -> list[str]:
        """The states that the run went through, in order."""
        return [s["to_state"] for s in self.tape()["states"]]

    def changes(self) -> set[str]:
        """The fields and things that a failure says to change."""
        return {r["change"] for r in self.failure["recovery_suggestions"]}
