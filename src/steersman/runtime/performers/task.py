"""What a task does with its files: lays documents down, looks at them, puts them back, takes a changed plan over.

What a document says is worked out in `judges.task`; here texts are fetched, handed on, written and kept.
**Invariant:** bytes on disk and the payload that holds them are the same; nothing is believed that was not read back.
"""

import asyncio
import json
from collections.abc import Callable
from hashlib import sha256
from typing import Any, Literal, TypeVar

import msgspec

from steersman.contracts.commands import CommandResult
from steersman.contracts.facts import CheckFacts
from steersman.contracts.task.documents import (
    Copies,
    Copy,
    Decision,
    Plan,
    PlanFiles,
    RevertRecord,
    Waived,
)
from steersman.contracts.task.facts import BaseFacts, RecordFacts
from steersman.contracts.task.replies import (
    CodeReviewerReply,
    PlanCommentReply,
    PlanReviewerReply,
    TaskPlannerReply,
)
from steersman.contracts.task.words import (
    CODE_REVIEW,
    COPIES,
    COPIES_LIST,
    DECISION,
    FILES,
    PATCH,
    PLAN,
    PLAN_REVIEW,
    REVERT,
    TESTS,
)
from steersman.contracts.workspace import Change, Touched
from steersman.errors import SteersmanError
from steersman.judges.artifact_names import name_problem
from steersman.judges.task import opinions
from steersman.judges.task.inspection import damage, folder_digest, told
from steersman.judges.task.plan import files_of, flaws, open_questions, plan_of, question_id
from steersman.judges.task.scope import outside
from steersman.judges.task.suites import test_report
from steersman.judges.text import clip, one_line
from steersman.kernel.canonical import canonical
from steersman.runtime.call import Call
from steersman.runtime.looking import digest_of, look
from steersman.runtime.projections import picture

Shape = TypeVar("Shape")
LARGEST = 4 * 1024 * 1024  # bytes of a copy


class Desk:
    """One effect's papers: what it was given, what it lays down."""

    def __init__(self, call: Call) -> None:
        self.call = call
        self.written: dict[str, str] = {}
        self.refs: dict[str, str] = {}
        self.told: list[str] = []

    def reply(self, ref: str, shape: type[Shape]) -> Shape:
        """An agent's reply as it was kept."""
        body = json.loads(self.call.payloads.get(ref))
        return msgspec.convert({"nonce": "", **body}, shape)

    def replies(self, name: str, shape: type[Shape]) -> dict[str, Shape]:
        return {role: self.reply(ref, shape) for role, ref in self.call.given(name, {}).items() if ref}

    def document(self, name: str, shape: type[Shape]) -> Shape | None:
        """A document that was laid down before, as it was recorded."""
        ref = self.call.given("documents", {}).get(name, "")
        return msgspec.json.decode(self.call.payloads.get(ref), type=shape) if ref else None

    def lay_down(self, name: str, document: msgspec.Struct) -> None:
        """Writes a document as people read it; what is a secret is hidden in the file too, and it can be read back."""
        hidden = self.call.payloads.hide(msgspec.json.format(canonical(document)).decode() + "\n")
        try:
            msgspec.json.decode(hidden, type=type(document))
        except msgspec.MsgspecError as error:
            raise ValueError(f"{name} cannot be laid down: {error}") from error
        self._keep(name, hidden)

    def lay_text(self, name: str, text: str) -> str:
        return self._keep(name, self.call.payloads.hide(text))

    def _keep(self, name: str, hidden: str) -> str:
        data = hidden.encode("utf-8", "backslashreplace")  # as a payload keeps it
        self.call.world.artifacts.write(self.call.run, name, data, durable=True)
        self.refs[name] = self.call.payloads.put_hidden(hidden)
        self.written[name] = sha256(data).hexdigest()
        return self.written[name]

    def take_away(self, name: str) -> None:
        """From here on nobody looks for it."""
        self.call.world.artifacts.remove(self.call.run, name)
        self.written[name] = ""

    def facts(self) -> RecordFacts:
        told = self.call.payloads.put("\n".join(self.told)) if self.told else ""
        return RecordFacts(written=self.written, refs=self.refs, told_ref=told)


def _off_the_loop(work: Callable[[Call], Any]) -> Any:
    """Files are read and written beside the loop; what breaks is told."""

    async def perform(call: Call) -> Any:
        try:
            return await asyncio.to_thread(work, call)
        except (SteersmanError, OSError, msgspec.MsgspecError, ValueError) as error:
            return RecordFacts(error_ref=call.payloads.put(clip(one_line(str(error)), 4000)))

    return perform


# ── record ──────────────────────────────────────────────────────────────────────────────────────────────────────────


@_off_the_loop
def record(call: Call) -> RecordFacts:
    """The documents of the phase, made from what its agents said and its programs showed."""
    desk = Desk(call)
    _MAKERS[call.given("phase")](desk)
    return desk.facts()


def _plan(desk: Desk) -> None:
    call = desk.call
    before = desk.document(PLAN, Plan)
    asked = {q.id: q.text for q in before.questions} if before is not None else {}
    reply = desk.reply(call.given("draft"), TaskPlannerReply)
    comments = desk.replies("comments", PlanCommentReply)
    plan = plan_of(call.run, call.given("round"), reply, comments, _answers(call, before), asked)
    desk.lay_down(PLAN, plan)
    _scope(desk, plan)


def _scope(desk: Desk, plan: Plan) -> None:
    files = files_of(plan)
    desk.told += [f"{q.id}: {q.text}" for q in open_questions(plan)]
    if files is None:
        desk.take_away(FILES)
        return
    desk.lay_down(FILES, files)
    desk.told += [f"may touch: {f.path} ({f.intent})" for f in files.files]


def _answers(call: Call, before: Plan | None) -> dict[str, str]:
    """What people have answered, by question: a text that names none answers all that was open in the plan it is about."""
    questions = before.questions if before is not None else ()
    found = {q.id: q.answer for q in questions if q.answer}
    open_now = open_questions(before) if before is not None else ()
    for given in call.given("answers", ()):
        text = call.payloads.get(given["text"])
        asked = open_now if given["plan"] == call.given("artifacts").get(PLAN) else ()
        named = _by_id(text)
        found |= named if named is not None else {q.id: text for q in asked}
    return found


def _by_id(text: str) -> dict[str, str] | None:
    try:
        value = json.loads(text)
    except ValueError:
        return None
    fits = isinstance(value, dict) and value and all(isinstance(v, str) for v in value.values())
    return {k if k.startswith("q-") else question_id(k): v for k, v in value.items()} if fits else None


def _reviewed_plan(desk: Desk) -> None:
    call = desk.call
    plan, files = desk.document(PLAN, Plan), desk.document(FILES, PlanFiles)
    if plan is None:
        raise ValueError("there is no plan to review: plan first")
    beyond = _beyond(call, [f.path for f in files.files]) if files is not None else ()
    made = opinions.plan_review(
        call.run,
        call.given("round"),
        call.given("artifacts")[PLAN],
        desk.replies("opinions", PlanReviewerReply),
        call.given("providers"),
        flaws(plan, files, beyond),
    )
    desk.lay_down(PLAN_REVIEW, made)
    desk.told += [f"{i.id} {i.found_by}: {i.text}" for i in made.blocking_issues]
    desk.told += [f"{f.severity} {f.id}: {f.message}" for f in made.flaws]


def _beyond(call: Call, names: list[str]) -> tuple[str, ...]:
    """Those of some names that a frozen plan does not cover."""
    ref = call.given("bounds", "")
    if not ref:
        return ()
    from steersman.machines.coordinator.bounds import Bounds
    from steersman.machines.coordinator.bounds import outside as left

    of = msgspec.json.decode(call.payloads.get(ref), type=Bounds)
    return tuple(name for name in names if left(of, files=(name,)))


def _coded(desk: Desk) -> None:
    call = desk.call
    change = call.world.workspace(call.config).change(call.given("commit"), call.given("base"))
    lay_change(desk, change, call.given("base_tree"))


def lay_change(desk: Desk, change: Change, base_tree: str) -> None:
    """The patch, a copy of every changed file, and the list of both, held against the scope."""
    call = desk.call
    patch = desk.lay_text(PATCH, change.patch)
    files = desk.document(FILES, PlanFiles)
    left = set(outside(files, change.touched)) if files is not None else {t.path for t in change.touched}
    left |= set(_beyond(call, [t.path for t in change.touched]))
    listed, kept = _copied(call, change)
    desk.written[COPIES] = folder_digest(kept)
    desk.lay_down(
        COPIES_LIST,
        Copies(
            task_id=call.run,
            base=base_tree,
            tree=change.tree,
            commit=change.commit,
            patch_digest=patch,
            files=tuple(listed),
            outside=tuple(sorted(left)),
        ),
    )
    desk.told += [f"outside the plan: {one_line(path)}" for path in sorted(left)]
    desk.told += [f"{c.change}: {one_line(c.path)}" for c in listed]


def _copied(call: Call, change: Change) -> tuple[list[Copy], dict[str, str]]:
    """Copies below code/files; what is no copy is taken away first, where a folder may have to be a file, or a file one."""
    artifacts, run = call.world.artifacts, call.run
    there = [t for t in change.touched if t.new]
    contents = call.world.workspace(call.config).contents(change.commit, [t.path for t in there])
    listed = [_copy(call, t, contents.get(t.path)) for t in change.touched]
    kept = {c.path: c.digest for c in listed if c.digest}
    for name in artifacts.names(run, COPIES):
        if name and name not in kept:
            artifacts.remove(run, f"{COPIES}/{name}")
    for path in kept:
        artifacts.write(run, f"{COPIES}/{path}", contents[path])
    return listed, kept


def _copy(call: Call, t: Touched, data: bytes | None) -> Copy:
    if not t.new:
        return Copy(path=t.path, change="deleted")
    how: Literal["created", "updated"] = "updated" if t.old else "created"
    if data is None:
        return Copy(path=t.path, change=how, kept=False, why="it is no plain file")
    why = _uncopied(call, t.path, data)
    if why:
        return Copy(path=t.path, change=how, kept=False, why=clip(one_line(why), 400))
    return Copy(path=t.path, change=how, digest=sha256(data).hexdigest())


def _uncopied(call: Call, path: str, data: bytes) -> str:
    """Why a file has no copy, or nothing."""
    if len(data) > LARGEST:
        return f"it is longer than {LARGEST} bytes"
    if call.payloads.hide(path) != path:
        return "its name holds a secret"
    return name_problem(f"{COPIES}/{path}") or ""


def _reviewed_code(desk: Desk) -> None:
    call = desk.call
    made = opinions.code_review(
        call.run,
        call.given("turn"),
        call.given("tree"),
        call.given("artifacts").get(PATCH, ""),
        desk.replies("opinions", CodeReviewerReply),
        call.given("providers"),
    )
    desk.lay_down(CODE_REVIEW, made)
    desk.told += [f"{i.id} {i.found_by}: {i.text}" for i in (*made.blocking_issues, *made.plan_issues)]


def _tested(desk: Desk) -> None:
    call = desk.call
    ref = call.given("results", "")
    results = msgspec.json.decode(call.payloads.get(ref), type=list[CommandResult]) if ref else []
    counted = msgspec.convert(call.given("checks"), CheckFacts)
    known = call.config.known_failures
    made = test_report(
        call.run, call.given("turn"), call.given("tree"), results, counted, call.config.no_tests, known
    )
    desk.lay_down(TESTS, made)
    desk.told += [
        f"{s.name}: {s.verdict}" + (f", {s.tests} tests" if s.tests is not None else "") for s in made.suites
    ]


def _decided(desk: Desk) -> None:
    call = desk.call
    desk.lay_down(
        DECISION,
        Decision(
            task_id=call.run,
            decision=call.given("decision"),
            decided_by=call.given("person") or "somebody",
            reason=clip(call.given("reason"), 4000),
            tree=call.given("tree"),
            artifacts={n: d for n, d in call.given("artifacts").items() if n != DECISION},
            overrides=_overrides(call),
        ),
    )


def _overrides(call: Call) -> tuple[Waived, ...]:
    """Every guard that was waived on the way here, as the tape says."""
    told = picture(call.world, call.run).status.overrides
    return tuple(
        Waived(
            source=o.source,
            to=o.to,
            person=o.person or "somebody",
            reason=clip(o.reason, 4000),
        )
        for o in told
    )


def _taken_back(desk: Desk) -> None:
    call = desk.call
    said = call.given("revert")
    desk.lay_down(
        REVERT,
        RevertRecord(
            task_id=call.run,
            status=said["status"],
            reason=clip(call.given("reason"), 4000),
            reverted_by=call.given("person") or "somebody",
            branch=call.given("target"),
            delivered=call.given("delivered"),
            commit=call.given("reverted"),
            detail=clip(call.payloads.get(said["detail"]), 4000),
        ),
    )


_MAKERS: dict[str, Callable[[Desk], None]] = {
    "planning": _plan,
    "plan_review": _reviewed_plan,
    "codegen": _coded,
    "review": _reviewed_code,
    "test": _tested,
    "accept": _decided,
    "revert": _taken_back,
}


# ── restore and adopt ───────────────────────────────────────────────────────────────────────────────────────────────


@_off_the_loop
def restore(call: Call) -> RecordFacts:
    """Every recorded document with its recorded bytes; copies come from the recorded tree."""
    recorded, refs = call.given("artifacts"), call.given("documents")
    for name, ref in refs.items():
        call.world.artifacts.write(call.run, name, call.payloads.get(ref).encode(), durable=True)
    if COPIES in recorded:
        workspace = call.world.workspace(call.config)
        _copied(call, workspace.change(call.given("commit"), call.given("base")))
    return RecordFacts(written=dict(recorded), refs=dict(refs), told_ref=call.given("told"))


@_off_the_loop
def adopt(call: Call) -> RecordFacts:
    """The plan as a person has left it on disk and was told about: read strictly, and laid down as it is read."""
    desk, recorded = Desk(call), call.given("artifacts")
    found = look(call.world.artifacts, call.run, [name for name in (PLAN, FILES) if name in recorded])
    seen = {name: digest_of(one) for name, one in found.items()}
    wrong = [damage(name, one, recorded[name], mine=True, task_id=call.run) for name, one in found.items()]
    unfit = [d for d in wrong if d is not None and not d.adoptable]
    if unfit:
        raise ValueError(told(unfit))
    if any(call.given("seen").get(name) != digest for name, digest in seen.items()):
        raise ValueError("the plan on disk was changed again since you were asked about it: look at it again")
    plan = msgspec.json.decode(found[PLAN].data, type=Plan)
    desk.lay_down(PLAN, plan)
    if seen.get(FILES) == recorded.get(FILES):
        _scope(desk, plan)
    else:
        files = msgspec.json.decode(found[FILES].data, type=PlanFiles)
        desk.lay_down(FILES, msgspec.structs.replace(files, inferred=False))
    return desk.facts()


# ── the branch it goes to ───────────────────────────────────────────────────────────────────────────────────────────


async def look_at_base(call: Call) -> BaseFacts:
    """Whether the branch has moved, and the change on top of where it is now."""
    return await asyncio.to_thread(_base, call)


def _base(call: Call) -> BaseFacts:
    if call.given("form") != "merge" or call.given("delivered") == "yes":
        return BaseFacts()
    workspace = call.world.workspace(call.config)
    label = f"rebased-{call.effect.split(':')[1]}"
    try:
        found = workspace.rebased(
            call.run, call.given("commit"), call.given("base"), call.given("target"), label
        )
    except SteersmanError as error:
        return BaseFacts(error="workspace", told_ref=call.payloads.put(str(error)))
    if not found.moved:
        return BaseFacts()
    if found.change is None:
        told = "\n".join(one_line(name) for name in found.conflicts)
        return BaseFacts(
            moved=True,
            conflicts=len(found.conflicts),
            base=found.base,
            base_tree=found.base_tree,
            told_ref=call.payloads.put(told),
        )
    desk = Desk(call)
    lay_change(desk, found.change, found.base_tree)
    return BaseFacts(
        moved=True,
        base=found.base,
        base_tree=found.base_tree,
        commit=found.change.commit,
        tree=found.change.tree,
        patch_ref=call.payloads.put(found.change.patch),
        written=desk.written,
        refs=desk.refs,
        told_ref=call.payloads.put("\n".join(desk.told)),
    )
