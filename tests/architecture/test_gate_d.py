"""Gate D of specification 001: the planner describes and can do nothing.

The import contract "Gate D" in pyproject.toml keeps everything that acts out of the planner's reach. Here a child
process makes a whole plan under an audit hook that refuses files, programs and connections.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = """
import sys
from tests.support.planning_documents import (
    TRUSTED_KEY, frozen_files, make_decision, make_intent, make_plan_inputs, make_plan_outputs, make_registry, make_rule, plain_value, sign_files
)
from steersman.judges.planning.precheck import precheck_intent
from steersman.judges.planning.rule_evidence import compile_rules
from steersman.judges.planning.rules import decide_planned_commands
from steersman.judges.planning.answers import find_answer_pack_problems
from steersman.judges.planning.plan_bounds import read_plan_bounds
from steersman.machines.coordinator.failure import FailureSubject, precheck_failure
from steersman.machines.coordinator.graph import draft_plan_graph, questions_for_inputs
from steersman.machines.coordinator.uncertainties import choose_round_questions

def plan(title):
    i = make_plan_inputs(make_intent(title=title), ruled=(make_decision("edit_files", "require_review", "warn"),))
    report = precheck_intent(plain_value(i.intent), {}, make_registry())
    precheck_failure(FailureSubject(i.intent.id), report)
    decide_planned_commands(i.intent, i.registry, i.bundle, compile_rules((make_rule("rule_story"),)), i.effective)
    chosen = choose_round_questions(questions_for_inputs(i), i.effective, i.bundle.policy, consumed=0, round_=1, plan_id=i.plan_id, intent=i.intent)
    find_answer_pack_problems(chosen.pack, {"answers": 1})
    draft_plan_graph(i)
    return read_plan_bounds(sign_files(frozen_files(make_plan_outputs(i))), TRUSTED_KEY).plan_id

def refuse_acts(event, args):
    if event in ("open", "import") or event.startswith(("os.", "subprocess.", "socket.", "shutil.", "ctypes.")):
        raise PermissionError(event)

plan("loads the libraries that are imported late")
sys.addaudithook(refuse_acts)
print(plan("planned under the hook"))
"""


@pytest.mark.parametrize(
    ("act", "refused"),
    [
        ("", ""),
        ("open('/dev/null')", "open"),
        ("__import__('subprocess').run(['true'])", "import|subprocess.Popen"),
        ("__import__('socket').socket()", "import|socket.__new__"),
    ],
)
def test_planning_touches_nothing(act, refused):
    """§Implementation Notes: from precheck to frozen files and bounds, planning opens, starts and connects nothing; the
    hook refuses whatever does."""
    result = subprocess.run(
        [sys.executable, "-c", SCRIPT + act],
        capture_output=True,
        text=True,
        check=False,
        env={
            **os.environ,
            "PYTHONDONTWRITEBYTECODE": "1",
            "PYTHONPATH": str(Path(__file__).resolve().parents[2]),
        },
    )
    assert result.stdout.startswith("plan_"), result.stderr
    last_line = result.stderr.strip().rpartition("\n")[2]
    assert (
        last_line in {f"PermissionError: {event}" for event in refused.split("|")}
        if refused
        else not last_line
    )
