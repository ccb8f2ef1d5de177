"""The documents that one of the planner's effects works with: read when they are first asked for, kept as payloads.

**Invariant:** a document is decoded as its contract says, or the effect breaks; nothing is worked out here.
"""

from collections.abc import Callable
from functools import cached_property, lru_cache
from typing import Any

import msgspec

from steersman import __version__
from steersman.contracts.planning.context import ContextBundle
from steersman.contracts.planning.decisions import RiskAssessment, RoutingAdvice, RuleDecision
from steersman.contracts.planning.graph import ExecutionGraph
from steersman.contracts.planning.intent import ExecutionIntent
from steersman.contracts.planning.policy import ExecutionPolicy
from steersman.contracts.planning.questions import AskedQuestion, QuestionPack, Settled
from steersman.contracts.planning.review import FailurePack
from steersman.errors import UserError
from steersman.judges.planning.intent import Effective, effective
from steersman.judges.planning.red_lines import claimed_risk
from steersman.judges.planning.registry import Registry
from steersman.kernel.canonical import canonical, digest
from steersman.kernel.tape import read
from steersman.machines.coordinator import failure, uncertainties
from steersman.machines.coordinator.inputs import Inputs, lineage, plan_id
from steersman.runtime.call import Call
from steersman.runtime.planning import Planning

COORDINATOR = f"steersman {__version__}"
SMALL = 256 * 1024  # characters of a document that is remembered


def _decoded(text: str, shape: Any) -> Any:
    """Most documents are asked for by most effects; a plain value is never shared, for it could be changed."""
    if shape is Any or len(text) > SMALL:
        return msgspec.json.decode(text, type=shape)
    return _remembered(text, shape)


@lru_cache(maxsize=16)
def _remembered(text: str, shape: Any) -> Any:
    return msgspec.json.decode(text, type=shape)


class Table:
    """The documents of one call, read when they are first asked for."""

    def __init__(self, call: Call) -> None:
        self.call = call
        if call.world.planning is None:
            raise UserError("nothing here can plan: registry, scanner and memory are not wired")
        self.world: Planning = call.world.planning()

    def read(self, name: str, shape: Any) -> Any:
        ref = self.call.given(name, "")
        return _decoded(self.call.payloads.get(ref), shape) if ref else None

    def keep(self, document: Any) -> tuple[str, str]:
        """A document's payload and the digest of its canonical bytes."""
        body = canonical(document)
        return self.call.payloads.put(body.decode()), digest(body)

    def why(self, wrong: Any, pack: Callable[[], FailurePack]) -> str:
        """The payload that says why there is no plan, where something is wrong."""
        return self.keep(pack())[0] if wrong else ""

    def left_ms(self) -> int:
        """What is left of the time for answers since the questions went out: who answers badly gains none."""
        rows = self.call.world.journal.rows(self.call.run)
        out = [read(body).at for _, body, _ in rows if b'"questions_emitted"' in body]
        end = (out[-1] if out else 0) + int(self.call.given("wait_ms", 0))
        return max(1, end - self.call.world.clock.now())

    @cached_property
    def about(self) -> failure.About:
        """The run that a failure is about, as far as it is known."""
        risk = self.read("risk", RiskAssessment)
        about = self.stated(self.call.given("intent_id", ""), self.registry)
        plan = self.call.given("plan", "")
        return about._replace(plan_id=plan, risk=about.risk if risk is None else risk.overall_risk)

    def stated(self, intent_id: str, registry: Registry) -> failure.About:
        """The same before anything was assessed: of its risk is told what intent and registry state."""
        return failure.About(intent_id, risk=claimed_risk(self.raw, registry))

    @cached_property
    def raw(self) -> Any:
        return self.read("intent", Any)

    @cached_property
    def policy_raw(self) -> Any:
        return self.read("policy", Any)

    @cached_property
    def intent(self) -> ExecutionIntent:
        return self.read("intent", ExecutionIntent)

    @cached_property
    def policy(self) -> ExecutionPolicy:
        return self.read("policy", ExecutionPolicy)

    @cached_property
    def registry(self) -> Registry:
        """The registry that was looked at first: what changes meanwhile is for the next run."""
        wanted = self.call.given("registry", "")
        found = self.world.registries.kept(wanted) if wanted else None
        if found is None or found.digest != wanted:
            raise UserError(f"the registry {wanted[:12]} that this run began with is gone: plan again")
        return found

    @cached_property
    def bundle(self) -> ContextBundle:
        return self.read("bundle", ContextBundle)

    @cached_property
    def decisions(self) -> tuple[RuleDecision, ...]:
        return self.read("decisions", tuple[RuleDecision, ...])

    @cached_property
    def graph(self) -> ExecutionGraph:
        return self.read("graph", ExecutionGraph)

    @cached_property
    def routing(self) -> tuple[RoutingAdvice, ...]:
        return self.read("routing", tuple[RoutingAdvice, ...])

    @cached_property
    def settled(self) -> Settled | None:
        return self.read("settled", Settled)

    @cached_property
    def pack(self) -> QuestionPack:
        return self.read("pack", QuestionPack)

    @cached_property
    def questions(self) -> tuple[AskedQuestion, ...]:
        return self.read("uncertainties", tuple[AskedQuestion, ...])

    @cached_property
    def effective(self) -> Effective:
        return effective(self.intent, self.policy)

    @cached_property
    def inputs(self) -> Inputs:
        made_from = lineage(self.intent, self.registry, self.bundle, COORDINATOR)
        return Inputs(
            intent=self.intent,
            registry=self.registry,
            bundle=self.bundle,
            decisions=self.decisions,
            risk=self.read("risk", RiskAssessment),
            plan_id=plan_id(made_from),
            lineage=made_from,
            effective=self.effective,
        )

    def chosen(self, questions: tuple[AskedQuestion, ...]) -> uncertainties.Chosen:
        """What of some questions would be asked in the next round."""
        return uncertainties.choose(
            questions,
            self.effective,
            self.policy,
            consumed=self.call.given("consumed", 0),
            round_=self.call.given("round", 1),
            plan_id=self.inputs.plan_id,
            intent=self.intent,
            settled=self.settled,
        )
