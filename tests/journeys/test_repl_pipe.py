"""A sitting from a pipe, with wrong words in it: what is said, what is done all the same, and the exit code."""

import json

import pytest
from tests.support.command_launcher import CommandCall
from tests.support.sample_project import CommandResult, Project
from tests.support.task_project import TASK_PLAN, configure_tasks, task_crew

from steersman.errors import UserError
from steersman.faces.cli.context import CommandContext
from steersman.faces.repl.run_actions import WordPerformer
from steersman.faces.repl.session import ReplSession
from steersman.wiring import SERVICES


def fed(project: Project, lines: bytes, *words: str) -> CommandResult:
    """A sitting over these bytes."""
    done = project.launch(CommandCall(("repl", *words), project.repo, project.env, lines))
    return CommandResult(done.returncode, done.stdout.decode(), done.stderr.decode())


@pytest.fixture
def task(project: Project) -> Project:
    """A task that waits after planning."""
    configure_tasks(project, task_crew())
    assert project.call("tasks", "new", "Fix add", "--step").code == 3
    return project


def test_a_pipe_tells_by_its_exit_code_what_was_not_done(task: Project):
    """The code is that of the first entry that was refused or not understood; the others are done, unless it is strict."""
    assert fed(task, b"/tasks\n\n/status").code == 0
    wrong = fed(task, b"/nonsense\n/codegen\n/review plan\n")
    assert (wrong.code, "plan_review:ready" in wrong.out) == (2, True), wrong
    assert fed(task, b"/review code\n/nonsense\n").code == 4
    assert fed(task, b'/next --override "\xe2\x80\x8b"\n').code == 4
    strict = fed(task, b"/test\n/codegen\n", "--strict")
    assert (strict.code, "codegen:ready" in strict.out) == (4, False), strict
    told = [
        json.loads(line) for line in fed(task, b"/test\n/tasks\n/show nothing\n", "--json").out.splitlines()
    ]
    assert [t["exit_code"] for t in told if "error" in t] == [4, 2]
    assert told[1][0]["phase"] == "plan_review"


def test_words_that_are_none(task: Project):
    """The nearest one is named; a command without its slash is not told to the planner; whatever bytes come, it goes on."""
    lines = (
        b"/statsu", b"next", b"/", b"/ next", b"/\xff\x1b[2J", b"/redo plannning", b"/redo done",
        b"/raise turns", b"/next\t", b"/review\tplan",
    )  # fmt: skip
    before = len(task.entries(task.only_run()))
    said = fed(task, b"\n".join(lines[:-2]))
    assert (said.code, len(task.entries(task.only_run()))) == (2, before), said
    for words in (
        "there is no /statsu: did you mean /status?",
        "did you mean /next?",
        "there is no /:",
        "there is no /\\xff\\x1b[2J",
        "there is no phase 'plannning' to do again",
        "there is no phase 'done' to do again",
        "raise what?",
    ):
        assert words in said.err, words
    assert fed(task, b"/next\t\n").code == 0


def test_what_waits_at_the_budget(project: Project):
    """`/raise` and `/stop` are what the prompt offers there, and what can be typed."""
    configure_tasks(project, task_crew(), more="[budget]\nturns = 1\n")
    said = fed(project, b"/plan Fix add\n/next\n/raise turns 1\n/raise turns 9\n/stop\n")
    assert "/raise /stop" in said.out
    assert "the limit is there already" in said.err
    assert "plan_review:ready" in said.out
    assert said.code == 2


def test_an_ended_task_offers_nothing(task: Project):
    """Nothing is legal, and a follow-up is not suggested to a machine that has none."""
    said = fed(task, b"/abort\n/next\n/abort\n/tasks\n")
    assert "(canceled) · /status /new /switch" in said.out
    assert "legal now: nothing: it has ended for good" in said.err
    assert "followup" not in said.out
    assert "words_given" not in said.out + said.err
    assert said.code == 4


@pytest.fixture
def here(task: Project, monkeypatch: pytest.MonkeyPatch) -> Project:
    """The same project, in this process."""
    for name in ("XDG_STATE_HOME", "STEERSMAN_PERSON", "HOME"):
        monkeypatch.setenv(name, task.env[name])
    return task


def deck(project: Project) -> CommandContext:
    return CommandContext(SERVICES, str(project.repo), as_json=False, mute=True)


def test_nobody_answers_what_he_has_not_seen(here: Project):
    """Two prompts at one run: when the other has gone on, a word that was meant for the old gate does nothing."""
    mine, other = ReplSession(deck(here)), WordPerformer(deck(here), here.only_run())
    seen = mine.banner()
    assert other.perform("next") == 3
    for text in (
        "/next",
        "/review plan",
        "use the decimal module",
        '/next --override "why not"',
        "/redo planning",
    ):
        with pytest.raises(UserError, match="has moved since the prompt appeared, so nothing was done"):
            mine.entry(text)
    assert mine.entry("/status") == 0
    assert mine.banner() != seen
    assert mine.entry("/review plan") == 3
    assert mine.banner().split()[1] == "plan_review:ready"
    for one in (mine.context, other.context):
        one.close()


def test_every_word_that_is_offered_can_be_typed(project: Project, monkeypatch: pytest.MonkeyPatch):
    """At every stop of a task and of a roundtable: what the prompt offers is known, completed, and in its help."""
    for name in ("XDG_STATE_HOME", "STEERSMAN_PERSON", "HOME"):
        monkeypatch.setenv(name, project.env[name])
    asks = {**TASK_PLAN, "questions": [{"text": "Negative numbers too?", "blocking": True}]}
    planner = [
        {"mode": "proposal", "round": "1", "json": json.dumps(asks)},
        {"mode": "proposal", "reply": TASK_PLAN},
    ]
    configure_tasks(project, task_crew(planner=planner))
    sitting = ReplSession(deck(project))
    offered = set()
    for text in ("/plan Fix add", "yes", "/next", "/next", "/next", "/next", "/accept", "/abort"):
        sitting.entry(text)
        offered |= _offered(sitting)
    assert {"answer", "next", "redo", "accept", "codegen", "review", "plan", "revert"} <= offered
    sitting.context.close()


def _offered(sitting: ReplSession) -> set[str]:
    now = sitting.now()
    assert now is not None
    sitting.banner()
    words = {way.word.split()[0] for way in now.next} - {"say"}
    assert words <= set(sitting.commands())
    assert {f"/{word}" for word in words} <= set(sitting.completions("/"))
    return words
