"""The documents that one of the planner's effects works with: read when they are first asked for, kept as payloads.

**Invariant:** a document is decoded as its contract says, or the effect breaks; nothing is worked out here.
"""

import asyncio
from collections.abc import Awaitable, Callable
from functools import cached_property, lru_cache
from typing import Any, TypeVar, get_type_hints

import msgspec

from steersman import __version__
from steersman.contracts.planning.context import ContextBundle
from steersman.contracts.planning.decisions import RiskAssessment, RoutingAdvice, RuleDecision
from steersman.contracts.planning.graph import ExecutionGraph
from steersman.contracts.planning.intent import ExecutionIntent
from steersman.contracts.planning.policy import ExecutionPolicy
from steersman.contracts.planning.questions import AskedQuestion, QuestionPack, SettledQuestions
from steersman.contracts.planning.review import FailurePack
from steersman.engine.effects import EffectCall
from steersman.engine.ports import require_planning
from steersman.errors import JournalError, UserError
from steersman.judges.planning.intent import EffectiveAsking, resolve_effective_asking
from steersman.judges.planning.plan_inputs import PlanInputs, build_plan_lineage, derive_plan_id
from steersman.judges.planning.red_lines import reported_stated_risk
from steersman.judges.planning.registry import Registry
from steersman.judges.text import clip_text, printable_text
from steersman.kernel.canonical import canonical_bytes, sha256_hex
from steersman.kernel.tape import read_entry
from steersman.machines.coordinator import failure, uncertainties

COORDINATOR_NAME = f"steersman {__version__}"
GivenDocument = TypeVar("GivenDocument")
PlanningFacts = TypeVar("PlanningFacts", bound=msgspec.Struct)
MAX_CACHED_CHARS = 256 * 1024  # characters of a document that is remembered


def _decode_planning_payload(text: str, document_type: Any) -> Any:
    """Most documents are asked for by most effects; a plain value is never shared, for it could be changed."""
    if document_type is Any or len(text) > MAX_CACHED_CHARS:
        return msgspec.json.decode(text, type=document_type)
    return _decode_cached_payload(text, document_type)


@lru_cache(maxsize=16)
def _decode_cached_payload(text: str, document_type: Any) -> Any:
    return msgspec.json.decode(text, type=document_type)


class PlanningDocuments:
    """The documents of one call, read when they are first asked for."""

    def __init__(self, call: EffectCall) -> None:
        self.call = call
        self.world = require_planning(call.world)

    def read(self, name: str, document_type: Any) -> Any:
        ref = self.call.given(name, "")
        return _decode_planning_payload(self.call.payloads.get(ref), document_type) if ref else None

    def read_given(self, name: str, document_type: type[GivenDocument]) -> GivenDocument:
        """A document that the machine's table gives to this effect."""
        document: GivenDocument = self.read(name, document_type)
        return document

    def keep(self, document: Any) -> tuple[str, str]:
        """A document's payload and the digest of its canonical bytes."""
        body = canonical_bytes(document)
        return self.call.payloads.add_text(body.decode()), sha256_hex(body)

    def why(self, has_failed: Any, build_pack: Callable[[], FailurePack]) -> str:
        """The payload that says why there is no plan, where something is wrong."""
        return self.keep(build_pack())[0] if has_failed else ""

    def left_ms(self) -> int:
        """What is left of the time for answers since the questions went out: who answers badly gains none."""
        rows = self.call.world.journal.rows(self.call.run)
        emitted_times = [read_entry(body).at for _, body, _ in rows if b'"questions_emitted"' in body]
        deadline = (emitted_times[-1] if emitted_times else 0) + int(self.call.given("wait_ms", 0))
        return max(1, deadline - self.call.world.clock.now())

    @cached_property
    def about(self) -> failure.FailureSubject:
        """The run that a failure is about, as far as it is known."""
        risk = self.read("risk", RiskAssessment)
        subject = self.stated(self.call.given("intent_id", ""), self.registry)
        plan_ref = self.call.given("plan", "")
        return subject._replace(plan_id=plan_ref, risk=subject.risk if risk is None else risk.overall_risk)

    def stated(self, intent_id: str, registry: Registry) -> failure.FailureSubject:
        """The same before the assessment: its risk is what intent and registry state."""
        return failure.FailureSubject(intent_id, risk=reported_stated_risk(self.raw, registry))

    @cached_property
    def raw(self) -> Any:
        return self.read("intent", Any)

    @cached_property
    def policy_raw(self) -> Any:
        return self.read("policy", Any)

    @cached_property
    def intent(self) -> ExecutionIntent:
        return self.read_given("intent", ExecutionIntent)

    @cached_property
    def policy(self) -> ExecutionPolicy:
        return self.read_given("policy", ExecutionPolicy)

    @cached_property
    def registry(self) -> Registry:
        """Returns the registry that the run read first. Later changes count for the next run."""
        digest = self.call.given("registry", "")
        stored_registry = self.world.registries.find_stored_registry(digest) if digest else None
        if stored_registry is None or stored_registry.digest != digest:
            raise UserError(f"the registry {digest[:12]} that this run began with is gone: plan again")
        return stored_registry

    @cached_property
    def bundle(self) -> ContextBundle:
        return self.read_given("bundle", ContextBundle)

    @cached_property
    def decisions(self) -> tuple[RuleDecision, ...]:
        return self.read_given("decisions", tuple[RuleDecision, ...])

    @cached_property
    def graph(self) -> ExecutionGraph:
        return self.read_given("graph", ExecutionGraph)

    @cached_property
    def routing(self) -> tuple[RoutingAdvice, ...]:
        return self.read_given("routing", tuple[RoutingAdvice, ...])

    @cached_property
    def settled(self) -> SettledQuestions | None:
        settled: SettledQuestions | None = self.read("settled", SettledQuestions)
        return settled

    @cached_property
    def pack(self) -> QuestionPack:
        return self.read_given("pack", QuestionPack)

    @cached_property
    def questions(self) -> tuple[AskedQuestion, ...]:
        return self.read_given("uncertainties", tuple[AskedQuestion, ...])

    @cached_property
    def effective(self) -> EffectiveAsking:
        return resolve_effective_asking(self.intent, self.policy)

    @cached_property
    def inputs(self) -> PlanInputs:
        plan_lineage = build_plan_lineage(self.intent, self.registry, self.bundle, COORDINATOR_NAME)
        return PlanInputs(
            intent=self.intent,
            registry=self.registry,
            bundle=self.bundle,
            decisions=self.decisions,
            risk=self.read("risk", RiskAssessment),
            plan_id=derive_plan_id(plan_lineage),
            lineage=plan_lineage,
            effective=self.effective,
        )

    def chosen(self, questions: tuple[AskedQuestion, ...]) -> uncertainties.ChosenQuestions:
        """What of some questions would be asked in the next round."""
        return uncertainties.choose_round_questions(
            questions,
            self.effective,
            self.policy,
            consumed=self.call.given("consumed", 0),
            round_=self.call.given("round", 1),
            plan_id=self.inputs.plan_id,
            intent=self.intent,
            settled=self.settled,
        )


def require_settled_answers(documents: PlanningDocuments) -> SettledQuestions:
    """What the run has settled; a UserError where it has settled nothing."""
    if documents.settled is None:
        raise UserError("the run has settled nothing: plan again")
    return documents.settled


def planning_performer(
    state: str,
) -> Callable[
    [Callable[[PlanningDocuments], PlanningFacts]], Callable[[EffectCall], Awaitable[PlanningFacts]]
]:
    """Planning computes and reads files, beside the loop; what breaks is a reason why there is no plan."""

    def decorate(
        work: Callable[[PlanningDocuments], PlanningFacts],
    ) -> Callable[[EffectCall], Awaitable[PlanningFacts]]:
        returns: type[PlanningFacts] = get_type_hints(work)["return"]

        def performed(call: EffectCall) -> PlanningFacts:
            try:
                return work(PlanningDocuments(call))
            except JournalError:
                raise
            except Exception as error:
                text = clip_text(printable_text(f"{type(error).__name__}: {error}"), 1800)
                subject = failure.FailureSubject(call.given("intent_id", ""), call.given("plan", ""))
                failure_pack = canonical_bytes(failure.broken_state_failure(subject, state, text)).decode()
                failure_refs = {
                    "detail_ref": call.payloads.add_text(text),
                    "failure_ref": call.payloads.add_text(failure_pack),
                }
                return returns(**failure_refs)

        async def perform(call: EffectCall) -> PlanningFacts:
            return await asyncio.to_thread(performed, call)

        return perform

    return decorate
