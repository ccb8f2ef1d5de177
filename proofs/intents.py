"""Intent proof: of mutated intents, policies, answers and rules none makes the planner's judges raise, and no intent that
breaks a red line gets past the precheck.

    python proofs/intents.py [--quick]

Good documents are mutated once to four times by structure (fields dropped, renamed, retyped, nested, planted with payload
keys in many spellings, numbers, depth, Unicode) and half of the intents are sealed again afterwards, so that a wrong
checksum hides nothing. Others go through their file: bytes flipped, cut, doubled. Each intent is judged by the precheck, by
the coordinator's own naming of what the precheck brings back, and by an oracle that shares no code with them
(`intent_oracle.py`).
"""

import copy
import json
import random
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import intent_oracle as oracle
import msgspec
from figures import main, stamp

from steersman.adapters.config.plain_yaml import read_plain_yaml
from steersman.adapters.storage.documents import FileDocuments
from steersman.adapters.storage.registry_files import FileRegistries
from steersman.contracts.planning.context import (
    ContextBundle,
    FactPack,
    MemoryPack,
    ProjectFact,
    ScanBounds,
    ScanEvidence,
)
from steersman.contracts.planning.decisions import PrecheckReport
from steersman.contracts.planning.intent import ExecutionIntent
from steersman.contracts.planning.policy import POLICY_PRESETS
from steersman.contracts.planning.questions import (
    AnswerPack,
    AskedQuestion,
    DefaultAnswer,
    QuestionConstraints,
    QuestionImpact,
    QuestionPack,
    SuggestedAnswer,
)
from steersman.errors import ContractError, UserError
from steersman.judges.planning import goals
from steersman.judges.planning.answers import find_answer_pack_problems as answer_problems
from steersman.judges.planning.answers import weigh_round_answers
from steersman.judges.planning.drafting import IntentRequest, draft_intent
from steersman.judges.planning.intent import resolve_effective_asking
from steersman.judges.planning.items import ContentSource, parse_registry_items
from steersman.judges.planning.precheck import (
    collect_precheck_problems,
    count_precheck_facts,
    has_passed_precheck,
    precheck_intent,
    seal_intent,
)
from steersman.judges.planning.registry import Registry
from steersman.judges.planning.rule_evidence import compile_rules
from steersman.judges.planning.rules import decide_planned_commands
from steersman.judges.planning.semantics import find_intent_remarks
from steersman.kernel.canonical import plain_value
from steersman.kernel.step import name_facts
from steersman.machines.coordinator import MACHINE

SEED = 20_261_116
# how many of each, in a whole proof and in a sample
CASES = {"intents": 34_000, "files": 10_000, "policies": 6_000, "answers": 5_000, "rules": 5_000}
SAMPLE = {name: max(60, n // 100) for name, n in CASES.items()}
NOT_TRIED = (
    "documents of more than 1 MiB but for their refusal, which has a test",
    "runs as a whole: what is named here is the event that leaves PRECHECKED; the laws of the table say the rest",
    "rules whose condition compiles and then runs long: the bounds on conditions have tests of their own",
)

Mutation = Callable[[Any, random.Random], Any]


# ── good ones ───────────────────────────────────────────────────────────────────────────────────────────────────────


def _registry() -> Registry:
    """What is built in, with one workflow and one command that are deprecated."""
    built_in = FileRegistries(Path("/nowhere"), Path("/nowhere")).built_in().registry
    old = ("wf_incident", "cmd_read_logs")
    return Registry(
        tuple(
            i._replace(content=msgspec.structs.replace(i.content, status="deprecated"))
            if i.content.id in old
            else i
            for i in built_in.items
        )
    )


REGISTRY = _registry()
RISKS = {id_: item.content.risk_level for id_, item in REGISTRY.held["command"].items()}
KNOWN = {kind: set(items) for kind, items in REGISTRY.held.items()}
KINDS = ("language", "package", "test_command", "build_command", "lint_command", "format_command", "type_command", "ci", "lock_file", "database")  # fmt: skip
EVIDENCE = ScanEvidence(
    id="ev0123456789ab", source_file="a.toml", first_line=1, last_line=2, digest="0" * 64, snippet=""
)
FACTS = FactPack(
    project_id="shop",
    fingerprint="0" * 64,
    facts=tuple(ProjectFact(kind=kind, name="one", evidence=(EVIDENCE.id,)) for kind in KINDS),
    evidence=(EVIDENCE,),
    bounds=ScanBounds(files_seen=1, files_read=1, bytes_read=1, skipped=0, complete=True),
)
MODES = ("interactive", "semi_auto", "full_auto")


def _intents() -> list[dict[str, Any]]:
    found = []
    for workflow in REGISTRY.all_usable("workflow"):
        for mode in MODES:
            wish = IntentRequest(
                f"Try {workflow.id}", "shop", "ada", "2026-01-25T09:30:00Z", mode, ("src/a.py",)
            )
            found.append(
                draft_intent(wish, goals.WorkflowChoice(workflow, "asked for"), FACTS, REGISTRY).value
            )
    return found


INTENTS = _intents()
POLICIES = [plain_value(policy) for policy in POLICY_PRESETS.values()]
RULES = [plain_value(item.content) for item in REGISTRY.held["rule"].values()]
BUNDLE = ContextBundle(
    memory=MemoryPack(project_id="shop", query="", scopes=(), threshold=0, memories=()),
    facts=FACTS,
    policy=POLICY_PRESETS["interactive"],
    evidence_refs=tuple(sorted(f"fact://{kind}/one" for kind in KINDS)),
)
INTENT = msgspec.convert(INTENTS[0], ExecutionIntent)


def _question(n: int, level: Any) -> AskedQuestion:
    return AskedQuestion(
        question_id=f"q_{n:016x}",
        cause="requires_review",
        about="cmd_edit_files",
        type="blocker",
        blocking_level=level,
        question_text="Shall it be kept behind its review?",
        context="A rule wants it reviewed first.",
        evidence_refs=("rule://rule_one@1.0.0",),
        default_strategy=DefaultAnswer(strategy="exclude", reason="nobody said yes"),
        impact=QuestionImpact(scope="single_action", description="one action", affected_nodes=()),
        suggested_answers=tuple(
            SuggestedAnswer(answer=word, meaning=word, risk_change="same")
            for word in ("approve", "exclude", "stop")
        ),
    )


PACK = QuestionPack(
    pack_id=f"questions_{7:016x}",
    plan_id="plan_0",
    intent_id=INTENT.id,
    round=1,
    questions=tuple(_question(n, level) for n, level in enumerate(("critical", "high", "low"))),
    defaulted=(),
    policy_constraints=QuestionConstraints(
        execution_mode="interactive",
        question_budget=10,
        question_policy="conceptual_only",
        budget_consumed=3,
        budget_remaining=7,
    ),
    created_at=INTENT.created_at,
)
ANSWERS = {
    "schema_version": "0.9.2",
    "question_pack_id": PACK.pack_id,
    "answers": [
        {"question_id": q.question_id, "answer": "exclude", "provided_by": "human"} for q in PACK.questions
    ],
}

# ── payload keys, in many spellings ─────────────────────────────────────────────────────────────────────────────────

PAYLOADS = ("execute", "exec", "run", "shell", "bash", "sh", "python", "powershell", "subprocess", "command_line", "cmd", "script", "eval", "system", "popen")  # fmt: skip
PLANTED: set[str] = set()


def spelt(chance: random.Random) -> str:
    """A payload key as somebody would write it to get past a list of words."""
    word = chance.choice(PAYLOADS)
    for way in chance.choices(range(6), k=chance.choice((0, 1, 1, 2))):
        at = chance.randrange(len(word) + 1)
        match way:
            case 0:
                word = word.upper()
            case 1:
                word = "".join(chr(ord(c) + 0xFEE0) if "!" <= c <= "~" else c for c in word)
            case 2:
                word = (
                    word[:at] + chance.choice(("\u200b", "\u200d", "\u00ad", "\ufeff", "\u2060")) + word[at:]
                )
            case 3:
                word = word[:at] + chance.choice(("-", "_", ".", " ")) + word[at:]
            case 4:
                word = word.capitalize()
            case _:
                word = word + "s" if word in PAYLOADS else word
    PLANTED.add(word)
    return word


# ── what may happen to a document ───────────────────────────────────────────────────────────────────────────────────


def places(value: Any) -> list[tuple[Any, Any]]:
    """Every (container, key or index)."""
    found, waiting = [], [value]
    while waiting:
        here = waiting.pop()
        if isinstance(here, dict | list):
            parts = list(here.items()) if isinstance(here, dict) else list(enumerate(here))
            found += [(here, name) for name, _ in parts]
            waiting += [item for _, item in parts]
    return found


def groups(value: Any) -> list[dict[str, Any]]:
    return [value, *(box[name] for box, name in places(value) if isinstance(box[name], dict))]


def drop(value: Any, chance: random.Random) -> None:
    box, name = chance.choice(places(value))
    del box[name]


def rename(value: Any, chance: random.Random) -> None:
    group = chance.choice([g for g in groups(value) if g])
    old = chance.choice(list(group))
    other = chance.choice(
        (old.upper(), old + "s", old + "\u200b", "ｘ" + old, old.replace("e", "е"), spelt(chance), "")
    )
    group[other] = group.pop(old)


ODD: tuple[Any, ...] = (
    None, True, False, 0, -1, 1, 2**53, 10**40, -(10**40), 0.5, 1.0, float("inf"), "", " ", "\u200b", "true", "0", [], {}, [[]], [None],
    "\ud800", "\x00", "a\nb", "\u202eevil", "x" * 5000, {"a": {"b": [1]}}, ["x"] * 300, "../../etc", "/etc/passwd", "fact://", "file://x",
    "full_auto", "critical", "never", "forbidden", "1.0.0\n", "cmd_edit_files", "wf_incident", "0" * 64, "2026-02-31T00:00:00Z",
)  # fmt: skip


def retype(value: Any, chance: random.Random) -> None:
    box, name = chance.choice(places(value))
    box[name] = copy.deepcopy(chance.choice(ODD))


def plant(value: Any, chance: random.Random) -> None:
    chance.choice(groups(value))[spelt(chance)] = chance.choice(("ls", ["rm"], {"a": 1}, None))


def bury(value: Any, chance: random.Random) -> None:
    """A payload key deep inside."""
    inner: Any = {spelt(chance): "ls"}
    for n in range(chance.choice((1, 5, 20, 60, 70, 300))):
        inner = [inner] if n % 2 else {"a": inner}
    chance.choice(groups(value))["note"] = inner


def deepen(value: Any, chance: random.Random) -> None:
    box, name = chance.choice(places(value))
    for _ in range(chance.choice((1, 2, 40, 200))):
        box[name] = [box[name]]


def repeat(value: Any, chance: random.Random) -> None:
    lists = [box[name] for box, name in places(value) if isinstance(box[name], list) and box[name]]
    if lists:
        one = chance.choice(lists)
        one.append(copy.deepcopy(chance.choice(one)))


def swap(value: Any, chance: random.Random) -> None:
    (a, x), (b, y) = chance.choice(places(value)), chance.choice(places(value))
    one, other = copy.deepcopy(a[x]), copy.deepcopy(b[y])
    a[x] = other
    if y in b if isinstance(b, dict) else y < len(b):
        b[y] = one


def garble(value: Any, chance: random.Random) -> None:
    """A text with something in it that nobody sees, or that looks like something else."""
    texts = [(box, name) for box, name in places(value) if isinstance(box[name], str)]
    if texts:
        box, name = chance.choice(texts)
        at = chance.randrange(len(box[name]) + 1)
        odd = chance.choice(
            (
                "\u200b",
                "\u202e",
                "\n",
                "\x1b[2J",
                "é",
                "\ud83d",
                "\U000e0041",
                "　",
                "\u0661",
                "#",
                ": ",
                "&a ",
            )
        )
        box[name] = box[name][:at] + odd + box[name][at:]


def _set(value: Any, path: tuple[Any, ...], to: Any) -> None:
    here = value
    for name in path[:-1]:
        here = here.get(name) if isinstance(here, dict) else None
    if isinstance(here, dict):
        here[path[-1]] = to


def alone(value: Any, chance: random.Random) -> None:
    """full_auto, with or without what belongs to it."""
    _set(value, ("interaction", "mode"), "full_auto")
    if chance.random() < 0.5:
        _set(value, ("interaction", "question_budget"), chance.choice((0, 0, 1, False, "0")))
        _set(value, ("interaction", "question_policy"), chance.choice(("never", "never", "blockers_only")))


def endanger(value: Any, chance: random.Random) -> None:
    _set(value, ("risk", "overall"), chance.choice(("high", "critical", "low", "HIGH")))


def command(value: Any, chance: random.Random) -> None:
    """Another command, perhaps talked down, perhaps with nothing that speaks for it, perhaps of nobody."""
    planned = value.get("planned_commands")
    if isinstance(planned, list):
        planned.append(
            {
                "command_id": chance.choice((*RISKS, "cmd_nowhere", "cmd_read_logs", "Cmd", 7)),
                "intent": "to try",
                "effects": chance.choice((["read"], ["write"], ["deploy", "network"])),
                "risk_level": chance.choice(("low", "medium", "high", "critical")),
                "evidence_refs": chance.choice(
                    (["fact://language/one"], ["fact://language/one"], [], [""], ["x"])
                ),
            }
        )


def promise(value: Any, chance: random.Random) -> None:
    name = chance.choice(("execution", "no_fabrication", "registry_only"))
    _set(value, ("constraints", name), chance.choice((False, 1, "true", "allowed", None, True, "forbidden")))


STRUCTURE: tuple[Mutation, ...] = (
    drop, drop, rename, rename, retype, retype, retype, plant, plant, bury, deepen, repeat, swap, garble, garble,
)  # fmt: skip
MEANING: tuple[Mutation, ...] = (alone, alone, endanger, endanger, command, command, promise)


def changed(value: Any, chance: random.Random, ways: tuple[Mutation, ...], kinds: Counter[str]) -> Any:
    now = copy.deepcopy(value)
    for way in chance.choices(ways, k=chance.choice((1, 1, 1, 2, 2, 3, 4))):
        if places(now):
            way(now, chance)
            kinds[way.__name__] += 1
    return now


def bytes_changed(data: bytes, chance: random.Random) -> bytes:
    """One to three accidents of a file."""
    now = bytearray(data)
    for _ in range(chance.choice((1, 1, 2, 3))):
        at = chance.randrange(len(now) + 1)
        match chance.randrange(7):
            case 0 if now:
                now[at % len(now)] ^= 1 << chance.randrange(8)
            case 1:
                now[at:at] = chance.choice(
                    (
                        b"\x00",
                        b"\xff",
                        b"\xef\xbb\xbf",
                        b"&a ",
                        b"*a",
                        b"!!x ",
                        b"\n---\n",
                        b"{",
                        b'"',
                        b"\t",
                        b"\xc2\x85",
                        b": ",
                        b"- ",
                    )
                )
            case 2:
                del now[at : at + chance.choice((1, 1, 10, 400))]
            case 3:
                now[at:at] = now[at : at + 200]
            case 4:
                del now[at:]
            case 5:
                now[at:at] = json.dumps({spelt(chance): 1}).encode()[1:-1] + b","
            case _:
                now[at : at + 1] = bytes((chance.randrange(256),))
    return bytes(now)


# ── judging ─────────────────────────────────────────────────────────────────────────────────────────────────────────


class _At(NamedTuple):
    """As much of a run as a naming looks at."""

    context: Any
    counts: dict[str, int]


class _Mode(NamedTuple):
    mode: str


def judge_intent(raw: Any, policy: Any) -> str:
    """What the precheck and the machine make of an intent, held against the oracle."""
    report = precheck_intent(raw, policy, REGISTRY)
    told = count_precheck_facts(report, raw, policy)
    collect_precheck_problems(report)
    again = msgspec.json.decode(msgspec.json.encode(report), type=PrecheckReport)
    if again != report:
        return "report_unfit"
    if isinstance(raw, dict) and report.schema_valid:
        find_intent_remarks(raw, REGISTRY)
    event = name_facts(MACHINE, _At(_Mode(told.mode), {}), "precheck", told).event.name  # type: ignore[arg-type]
    found = {c.red_line for c in report.red_lines if not c.passed}
    expected = oracle.broken(raw, policy, RISKS, KNOWN, PLANTED)
    if expected - found:
        return "red_line_missed"
    through = event == "validation_passed"
    if through and (expected or not oracle.is_sealed(raw)):
        return "wrongly_passed"
    if through != has_passed_precheck(report):
        return "naming_differs"
    if PLANTED.intersection(oracle.keys(raw)) and event != "red_line_crossed":
        return "not_aborted"
    return "passed" if through else {"red_line_crossed": "aborted"}.get(event, "blocked")


def an_intent(chance: random.Random, kinds: Counter[str]) -> str:
    ways = (*STRUCTURE, *MEANING, *MEANING)
    raw = changed(chance.choice(INTENTS), chance, ways, kinds)
    if chance.random() < 0.5:
        raw = seal_intent(raw, REGISTRY)
    policy = chance.choice(POLICIES)
    return judge_intent(raw, policy if chance.random() < 0.8 else changed(policy, chance, STRUCTURE, kinds))


def a_file(chance: random.Random, kinds: Counter[str]) -> str:
    """An intent through its file."""
    documents = FileDocuments()
    value = chance.choice(INTENTS)
    if chance.random() < 0.3:
        value = changed(value, chance, (*MEANING, repeat, plant), kinds)
    form = chance.choice(("json", "yaml"))
    data = bytes_changed(documents.render(value, form).encode("utf-8", "replace"), chance)
    kinds[f"bytes of {form}"] += 1
    try:
        read = documents.parse(data, "f", "execution_intent")
    except ContractError as error:
        return "unread" if error.problems and all("line" in p for p in error.problems) else "unexplained"
    raw = (
        seal_intent(read.value, REGISTRY)
        if isinstance(read.value, dict) and chance.random() < 0.5
        else read.value
    )
    return judge_intent(raw, chance.choice(POLICIES))


def a_policy(chance: random.Random, kinds: Counter[str]) -> str:
    """A mutated policy beside a good intent."""
    policy = changed(chance.choice(POLICIES), chance, STRUCTURE, kinds)
    return judge_intent(chance.choice(INTENTS), policy)


def some_answers(chance: random.Random, kinds: Counter[str]) -> str:
    raw = changed(ANSWERS, chance, STRUCTURE, kinds)
    wrong = answer_problems(PACK, raw)
    if wrong:
        return "refused" if all(p.message for p in wrong) else "unexplained"
    answers = msgspec.convert(raw, AnswerPack)
    weigh_round_answers(PACK, answers.answers, POLICY_PRESETS["interactive"], lambda _: {})
    ids = [a.question_id for a in answers.answers]
    fits = (
        answers.question_pack_id == PACK.pack_id
        and len(set(ids)) == len(ids)
        and set(ids) <= {q.question_id for q in PACK.questions}
        and PACK.questions[0].question_id in ids
    )
    return "passed" if fits else "wrongly_passed"


TOKENS = ("&&", "||", "!", "(", ")", "[", "]", "command.risk", "intent.mode", "facts.kinds", "nobody", "1", "'x'", "in", "==", ".all(x, x)", "null", "\u200b", "+", "-9223372036854775809")  # fmt: skip


def a_rule(chance: random.Random, kinds: Counter[str]) -> str:
    raw = copy.deepcopy(chance.choice(RULES))
    if chance.random() < 0.6 and isinstance(raw.get("when"), str):
        at = chance.randrange(len(raw["when"]) + 1)
        raw["when"] = (
            raw["when"][:at] + chance.choice(TOKENS) + raw["when"][at + chance.choice((0, 0, 1, 5)) :]
        )
        kinds["condition"] += 1
    else:
        raw = changed(raw, chance, STRUCTURE, kinds)
    lines: dict[Any, int] = {}
    if chance.random() < 0.3:
        data = bytes_changed(FileDocuments().render(raw, "yaml").encode("utf-8", "replace"), chance)
        try:
            raw, lines, _ = read_plain_yaml(data, "f")
        except UserError:
            return "unread"
    items, wrong = parse_registry_items(raw, lines, (), ContentSource("f", "rule", "project"))
    if not items:
        return "refused" if wrong and all(p.message for p in wrong) else "unexplained"
    rule_set = compile_rules(tuple(i.content for i in items))
    decisions = decide_planned_commands(
        INTENT, REGISTRY, BUNDLE, rule_set, resolve_effective_asking(INTENT, BUNDLE.policy)
    )
    return "passed" if len(decisions) == len(INTENT.planned_commands) else "unexplained"


JUDGES: dict[str, Callable[[random.Random, Counter[str]], str]] = {
    "intents": an_intent,
    "files": a_file,
    "policies": a_policy,
    "answers": some_answers,
    "rules": a_rule,
}
WRONG = (
    "raised",
    "wrongly_passed",
    "red_line_missed",
    "naming_differs",
    "not_aborted",
    "unexplained",
    "report_unfit",
)


# ── the proof ───────────────────────────────────────────────────────────────────────────────────────────────────────


def prove(quick: bool) -> dict[str, Any]:
    """Mutates, judges, counts."""
    began = time.monotonic()
    told = judged(SAMPLE if quick else CASES, SEED)
    counts = told["found"]
    wrong = sum(tally.get(name, 0) for tally in counts.values() for name in WRONG)
    alive = all(counts["intents"].get(name, 0) for name in ("passed", "blocked", "aborted"))
    return {
        "proof": "intents",
        "ok": wrong == 0 and alive,
        **stamp(quick, SEED),
        **told,
        "seconds": round(time.monotonic() - began),
        "not_tried": list(NOT_TRIED),
    }


def judged(cases: dict[str, int], seed: int) -> dict[str, Any]:
    """That many of each kind."""
    kinds: Counter[str] = Counter()
    found: dict[str, dict[str, int]] = {}
    examples: list[str] = []
    for name, judge in JUDGES.items():
        chance, tally = random.Random(f"{seed} {name}"), Counter[str]()  # noqa: S311  a proof repeats itself
        for number in range(cases[name]):
            before = chance.getstate()
            try:
                verdict = judge(chance, kinds)
            except Exception:
                verdict = "raised"
            tally[verdict] += 1
            if verdict in WRONG and len(examples) < 10:
                examples.append(f"{name} {number}: {verdict}{_why(judge, before)}")
        found[name] = dict(sorted(tally.items()))
    return {
        "mutated": sum(cases.values()),
        "found": found,
        "payload_spellings": len(PLANTED),
        "mutations": dict(sorted(kinds.items())),
        "examples": examples,
    }


def _why(judge: Any, state: Any) -> str:
    chance = random.Random()  # noqa: S311  the same again
    chance.setstate(state)
    try:
        judge(chance, Counter())
    except Exception:
        return f"\n{traceback.format_exc(limit=-4)}"
    return ""


def describe_result(result: dict[str, Any]) -> list[str]:
    """The figures in words."""
    lines = [
        f"   {result['mutated']} mutated documents, {result['payload_spellings']} spellings of payload keys"
    ]
    lines += [
        f"   {name}: {', '.join(f'{n} {what}' for what, n in tally.items())}"
        for name, tally in result["found"].items()
    ]
    return [*lines, *(f"   {line}" for line in result["examples"])]


if __name__ == "__main__":
    sys.exit(main(__name__))
