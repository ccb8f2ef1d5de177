"""Gate D of specification 001: the planner describes and can do nothing.

The import contract "Gate D" in pyproject.toml keeps everything that acts out of the planner's reach. Here a whole
plan is made under an audit hook, and the interpreter reports what happened.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


TRIED = """
import sys
sys.path[:0] = [{tests!r}]
from tests.support.planning_documents import (
    TRUSTED_KEY, frozen_files, make_decision, make_intent, make_plan_inputs, make_plan_outputs, make_registry, make_rule, plain_value, sign_files
)
from steersman.judges.planning.precheck import precheck_intent
from steersman.judges.planning.rulebook import compile_rules
from steersman.judges.planning.rules import adjudicate_planned_commands
from steersman.machines.coordinator.answers import find_answer_pack_problems
from steersman.machines.coordinator.bounds import read_plan_bounds
from steersman.machines.coordinator.failure import FailureSubject, precheck_failure
from steersman.machines.coordinator.graph import draft_plan_graph, questions_for_inputs
from steersman.machines.coordinator.uncertainties import choose_round_questions

def plan(title):
    i = make_plan_inputs(make_intent(title=title), ruled=(make_decision("edit_files", "require_review", "warn"),))
    report = precheck_intent(plain_value(i.intent), {{}}, make_registry())
    precheck_failure(FailureSubject(i.intent.id), report)
    adjudicate_planned_commands(i.intent, i.registry, i.bundle, compile_rules((make_rule("rule_story"),)), i.effective)
    chosen = choose_round_questions(questions_for_inputs(i), i.effective, i.bundle.policy, consumed=0, round_=1, plan_id=i.plan_id, intent=i.intent)
    find_answer_pack_problems(chosen.pack, {{"answers": 1}})
    draft_plan_graph(i)
    return read_plan_bounds(sign_files(frozen_files(make_plan_outputs(i))), TRUSTED_KEY).plan_id

heard = []
def hook(event, args):
    if not event.startswith(("object.__getattr__", "sys._getframe", "code.__new__", "gc.")):
        writes = event == "open" and (args[2] & 3 or str(args[1] or "r")[0] in "wax" or "+" in str(args[1]))
        heard.append("open to write" if writes else event)
sys.addaudithook(hook)
{first}
plan("A title to warm up with")
warm, heard = sorted({{*heard}} - {LOADS!r}), []
found = plan("A title for the gate")
{also}
told = list(heard)
print(found, warm, told)
"""
LOADS = {  # a late import
    "import", "open", "exec", "marshal.loads", "compile", "os.listdir", "os.scandir", "object.__setattr__",
}  # fmt: skip


@pytest.mark.parametrize(
    ("first", "also", "expected"),
    [
        ("", "", "[] []"),
        ("", "open('/dev/null')", "[] ['open']"),
        ("open('/dev/null', 'w')", "", "['open to write'] []"),
        ("import subprocess; subprocess.run(['true'])", "", "'subprocess.Popen'] []"),
        ("import socket; socket.socket()", "", "['socket.__new__'] []"),
    ],
)
def test_planning_touches_nothing(first, also, expected):
    """§Implementation Notes: from precheck to frozen files and bounds, the interpreter reports no open, process, socket or import, and the
    first time, when libraries are still loaded, none that writes or starts; it would."""
    tests = str(ROOT)
    script = TRIED.format(tests=tests, first=first, also=also, LOADS=LOADS)
    done = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
    )
    assert done.returncode == 0, done.stderr
    name, _, events = done.stdout.strip().partition(" ")
    assert name.startswith("plan_")
    assert events.endswith(expected)
    assert events == expected or first
