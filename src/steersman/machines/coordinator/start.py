"""How a planning run begins: its documents word for word, how much it may ask, and where its plan goes."""

import json
from collections.abc import Mapping
from typing import Any

from steersman.engine.machine_package import StartOptions, StartPlan
from steersman.engine.ports import require_planning
from steersman.errors import UserError
from steersman.judges.planning.red_lines import find_stricter_mode

DEFAULT_WAIT_SECONDS = 604_800
PLAN_OPTIONS = frozenset({"intent", "policy", "out"})  # two documents, and the folder of the frozen plan


def start_planning(start: StartOptions) -> StartPlan:
    """What is fixed when a planning run begins; a folder that cannot hold its plan is refused."""
    intent, policy, out = start.given["intent"], start.given["policy"], start.given.get("out", "")
    problem = require_planning(start.ports).plans.find_directory_problem(out) if out else None
    if problem:
        raise UserError(problem)
    rules = policy if isinstance(policy, Mapping) else {}
    seconds = rules.get("timeout_seconds", DEFAULT_WAIT_SECONDS)
    is_usable = type(seconds) is int and 0 < seconds < 10**8
    options = {
        "mode": find_stricter_mode(intent, policy) or "interactive",
        "fallback": "stop" if rules.get("auto_fallback") is False else "defaults",
        "wait_ms": (seconds if is_usable else DEFAULT_WAIT_SECONDS) * 1000,
    }
    texts = {"intent": _encode_plan_text(intent), "policy": _encode_plan_text(policy)}
    return StartPlan(options, {**texts, **({"out": out} if out else {})})


def _encode_plan_text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True)
