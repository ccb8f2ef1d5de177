"""Where the effects of a task lay its documents down: the plan, the reports, a change with a copy of every file.

What a document says is worked out in `judges.task`; here texts are written and kept.
**Invariant:** bytes on disk and the payload that holds them are the same, and a document that is laid down can be read back.
"""

import asyncio
import json
from collections.abc import Callable, Collection
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import msgspec

from steersman.contracts.task.documents import Copies, Copy, PlanFiles
from steersman.contracts.task.facts import RecordFacts
from steersman.contracts.task.words import COPIES, COPIES_LIST, FILES, PATCH
from steersman.contracts.workspace import Change, Touched
from steersman.errors import SteersmanError
from steersman.judges.artifact_names import name_problem
from steersman.judges.task.inspection import folder_digest
from steersman.judges.task.scope import otherwise_planned, outside, untouched
from steersman.judges.text import clip, one_line
from steersman.kernel.canonical import canonical
from steersman.runtime.call import Call
from steersman.runtime.performers.bounds import bounds_of, commands_beyond, files_beyond

if TYPE_CHECKING:
    from steersman.machines.coordinator.bounds import Bounds

Shape = TypeVar("Shape")
LARGEST = 4 * 1024 * 1024  # bytes of a copy


class Desk:
    """One effect's papers: what it was given, what it lays down."""

    def __init__(self, call: Call) -> None:
        self.call = call
        self.written: dict[str, str] = {}
        self.refs: dict[str, str] = {}
        self.told: list[str] = []
        self.beyond: list[str] | None = None  # of a change: what is outside the frozen plan, in words
        self.suspects: dict[str, Any] = {}  # of a crew's change

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
        put = self.call.payloads.put
        beyond = self.beyond
        held = {} if beyond is None else {"beyond": len(beyond), "beyond_ref": put("\n".join(beyond))}
        told = put("\n".join(self.told))
        return RecordFacts(written=self.written, refs=self.refs, told_ref=told, **held, **self.suspects)


def off_the_loop(work: Callable[[Call], Any]) -> Any:
    """Files are read and written beside the loop; what breaks is told."""

    async def perform(call: Call) -> Any:
        try:
            return await asyncio.to_thread(work, call)
        except (SteersmanError, OSError, msgspec.MsgspecError, ValueError) as error:
            return RecordFacts(error_ref=call.payloads.put(clip(one_line(str(error)), 4000)))

    return perform


# ── a change ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def lay_change(desk: Desk, change: Change, base_tree: str) -> None:
    """The patch, a copy of every changed file, and the list of both, held against the scope."""
    call = desk.call
    patch = desk.lay_text(PATCH, change.patch)
    of = bounds_of(call)
    left, beyond = strays(desk, change, of)
    wanted = call.payloads.get(call.given("commands", "")).splitlines()
    listed, kept = copied(call, change)
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
            held_to=of.plan_id if of is not None else "",
            commands=tuple(clip(one_line(script), 400) for script in wanted[:100]),
        ),
    )
    found = [*dict.fromkeys(beyond.values()), *commands_beyond(of, wanted)]
    desk.beyond = found
    desk.told += [one_line(told) for told in found]
    files = desk.document(FILES, PlanFiles)
    meant = otherwise_planned(files, change.touched) if files is not None else {}
    desk.told += [_strayed(path, meant.get(path, "")) for path in sorted(left - beyond.keys())]
    desk.told += [f"{c.change}: {one_line(c.path)}" for c in listed]
    left_out = untouched(files, [c.path for c in listed]) if files is not None else []
    desk.told += [f"planned, and not in the change: {one_line(path)}" for path in left_out]


def _strayed(path: str, meant: str) -> str:
    return f"outside the plan: {one_line(path)}" + (f" ({meant})" if meant else "")


def strays(desk: Desk, change: Change, of: "Bounds | None") -> tuple[set[str], dict[str, str]]:
    """Every changed file outside the scope, and of these with why those outside the frozen plan."""
    files, names = desk.document(FILES, PlanFiles), [t.path for t in change.touched]
    again = bool(desk.call.given("deliveries"))
    left = set(outside(files, change.touched, again=again)) if files is not None else set(names)
    beyond = files_beyond(of, names)
    return left | beyond.keys(), beyond


def copied(call: Call, change: Change, stay: Collection[str] = ()) -> tuple[list[Copy], dict[str, str]]:
    """Copies below code/files; what is no copy is taken away first, where a folder may have to be a file, or a file one;
    but for what has to `stay`, because it could not be kept elsewhere."""
    artifacts, run = call.world.artifacts, call.run
    there = [t for t in change.touched if t.new]
    contents = call.world.workspace(call.config).contents(change.commit, [t.path for t in there])
    listed = [_copy(call, t, contents.get(t.path)) for t in change.touched]
    kept = {c.path: c.digest for c in listed if c.digest}
    for name in artifacts.names(run, COPIES):
        if name and name not in kept and f"{COPIES}/{name}" not in stay:
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
