"""Replies and documents of a task that every test here begins with."""

from steersman.machines.task import replies as r
from steersman.machines.task.documents import schemas as d


def sample_draft(**changed):
    """A planner's reply that is complete."""
    words = {
        "nonce": "n", "title": "Add a total", "brief": "A receipt has no total.",
        "requirements": ("a total",), "in_scope": ("receipts",), "out_of_scope": ("taxes",),
        "steps": ("write it", "test it"), "risks": ("rounding",), "assumptions": ("one currency",),
        "acceptance_criteria": ("the total is the sum",), "files": (sample_file("src/receipt.py"),),
        "test_strategy": "by example", "test_cases": ("an empty receipt",), "questions": (),
    }  # fmt: skip
    return r.TaskPlannerReply(**{**words, **changed})


def sample_file(path, intent="update", summary="the sum"):
    return r.ProposedFile(path=path, intent=intent, summary=summary)


def sample_question(text, *, blocking=True):
    return r.ProposedQuestion(text=text, blocking=blocking)


def sample_comment(*questions, ready=True, concerns=()):
    return r.PlanCommentReply(nonce="n", ready=ready, comment="read", concerns=concerns, questions=questions)


def sample_plan(*files, **changed):
    """A plan without a flaw; files as (path, intent)."""
    words = {
        "task_id": "261116-abc123",
        "round": 1,
        "title": "Add a total",
        "brief": "A receipt has no total.",
        "requirements": ("a total",),
        "acceptance_criteria": (d.AcceptanceCriterion(id="AC1", description="the total is the sum"),),
        "file_plan": tuple(sample_planned_file(*f) for f in files or [("src/receipt.py",)]),
        "test_plan": d.TestPlan(strategy="by example"),
    }
    return d.TaskPlan(**{**words, **changed})


def sample_planned_file(path, intent="update", summary=""):
    return d.PlannedFile(path=path, intent=intent, summary=summary)


def sample_scope(*files):
    return d.PlanFiles(
        task_id="261116-abc123", inferred=True, files=tuple(sample_planned_file(*f) for f in files)
    )
