"""Compares the refs that a run left in git with its tape.

A store that was rolled back together with its anchors is consistent in itself, but git still has the later refs. Refs
below refs/steersman/ are ours, so the tape must explain each one. Branches belong to the person: a moved one is
reported and is no finding.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping

from steersman.contracts.config import Config
from steersman.contracts.workspace import RecordedRef
from steersman.engine.audit.verdict import AuditFindings
from steersman.engine.ports import Ports
from steersman.errors import SteersmanError
from steersman.kernel.snapshot import JobItem, Snapshot, runtime_field
from steersman.kernel.tape import Entry

PINNED_PREFIX, BRANCH_PREFIX = "refs/steersman/", "refs/heads/steersman/"
VARIANT_LABELS = ("old-tests", "new-tests")
RefsReader = Callable[[], Mapping[str, RecordedRef]]


def make_refs_reader(ports: Ports, run: str) -> RefsReader:
    """Returns a reader of a run's refs; the audit calls it after it has read the head, so that it notices movement."""
    return lambda: ports.workspace(Config()).recorded_refs(run)


def find_unknown_runs(ports: Ports, known_runs: list[str]) -> tuple[str, ...]:
    """Describes runs that git has refs of and this store does not know."""
    try:
        refs = ports.workspace(Config()).recorded_refs()
    except SteersmanError:
        return ()
    runs = {
        ref.removeprefix(PINNED_PREFIX).removeprefix(BRANCH_PREFIX).split("/")[0]: ref for ref in sorted(refs)
    }
    return tuple(
        f"run {run}: git has {ref}, and this store does not know the run: it is of another state directory, or the store was rolled back"
        for run, ref in runs.items()
        if run not in known_runs
    )


class RefComparison:
    """Compares the refs of a run with its entries, one entry after the other.

    **Invariant:** memory grows with the refs, not with the tape. A delivery or attempt that failed half-way leaves a ref
    that no entry describes: only its name is checked.
    """

    def __init__(self, run: str, read_refs: RefsReader) -> None:
        self._run, self._under = run, f"{PINNED_PREFIX}{run}/"
        self.unread = ""
        try:
            refs = read_refs()
        except SteersmanError as error:
            refs, self.unread = {}, str(error)
        self._branch = refs.get(f"{BRANCH_PREFIX}{run}")
        self._refs = {n.removeprefix(self._under): r for n, r in refs.items() if n.startswith(self._under)}
        self._asked = {ref.entry for ref in refs.values()}
        start_commits = {r.commit for label, r in self._refs.items() if label.startswith("start-")}
        other_commits = {r.commit for label, r in self._refs.items() if not label.startswith("start-")}
        self._named = start_commits | other_commits
        # Commits that no entry has named so far.
        self._unnamed = {commit.encode() for commit in start_commits - other_commits}
        self._items: dict[int, dict[str, JobItem]] = {}  # planned items of the entries that refs name
        # Label, or entry of a delivery -> the commit or tree that the tape says.
        self._made: dict[str, str] = {}
        self._lost: list[str] = []  # the first commit of an agent that no ref names any more
        self._lost_count = 0

    def note_entry(self, body: bytes, entry: Entry) -> None:
        """Notes what an entry asks for and what it says was made."""
        if self._unnamed:
            self._unnamed -= {commit for commit in self._unnamed if commit in body}
        if entry.planned and entry.seq in self._asked:
            self._items[entry.seq] = {i.id: i for i in entry.planned if i.kind == "effect"}
        for item in entry.held:
            if item.id in (items := self._items.get(_asking_entry(item.id), {})):
                items[item.id] = item
        if isinstance(entry.data, dict) and (asking_seq := _asking_entry(entry.cause)):
            self._note_made(asking_seq, entry)
            self._note_lost(entry)

    def _note_made(self, asking_seq: int, entry: Entry) -> None:
        data, item = entry.data, self._items.get(asking_seq, {}).get(entry.cause)
        if item is None:
            return
        if entry.kind == "part_finished":
            self._made[f"{str(data.get('variant', '')).replace(' ', '-')}-{asking_seq}"] = data.get(
                "tree", ""
            )
            return
        commit = data.get("commit", "")
        # An attempt whose tree could not be recorded names the commit that it began with.
        if "mode" in item.input and commit != item.input.get("commit"):
            self._made[_agent_label(item, item.attempt)] = commit
        self._made[f"rebased-{asking_seq}"], self._made[f"whole-{asking_seq}"] = commit, data.get("base", "")
        if data.get("done"):
            self._made[f"delivery {asking_seq}"] = commit

    def _note_lost(self, entry: Entry) -> None:
        commit = entry.data.get("commit") if entry.actor.startswith("agent:") else ""
        if commit and commit not in self._named:
            self._lost = self._lost or [f"the tree {commit[:12]} that entry {entry.seq} recorded"]
            self._lost_count += 1

    def report_unexplained_refs(self, snapshot: Snapshot, findings: AuditFindings) -> tuple[str, ...]:
        """Adds a finding for every ref that the tape does not explain; returns what git no longer has of the run."""
        if not runtime_field(snapshot.context, "base_commit"):
            return ()  # it never worked on a tree
        if self.unread:
            findings.unseen.append(f"its branches and refs in git: {self.unread}")
            return ()
        delivered = Counter(r.commit for label, r in self._refs.items() if label.startswith("delivery-") and r.entry)  # fmt: skip
        for label, ref in self._refs.items():
            if not self._is_explained(label, ref) or delivered[ref.commit] > 1:
                findings.add(_ref_problem(f"{self._under}{label}", ref))
        if self._branch is not None and self._branch.entry > snapshot.seq:
            findings.add(_ref_problem(f"{BRANCH_PREFIX}{self._run}", self._branch))
        return tuple(self._list_missing_refs(snapshot))

    def _is_explained(self, label: str, ref: RecordedRef) -> bool:
        """Whether the tape explains this ref and names no other commit for it."""
        kind, _, suffix = label.rpartition("-")
        if not ref.tree:
            return False  # it names no commit
        if kind == "start":
            return (
                ref.commit.startswith(suffix)
                and len(suffix) == 16
                and ref.commit.encode() not in self._unnamed
            )
        items = self._items.get(ref.entry, {})
        if kind == "delivery":  # commits of earlier versions do not say which entry asked for them
            commit = self._made.get(f"delivery {ref.entry}")
            return (
                ref.run == self._run and (not ref.entry or bool(items)) and commit in (None, "", ref.commit)
            )
        agent_labels = {_agent_label(i, n) for i in items.values() if "mode" in i.input for n in range(1, i.attempt + 1)}  # fmt: skip
        has_own_effect = any("mode" not in i.input for i in items.values())
        possible = label in agent_labels or (has_own_effect and kind in ("rebased", "whole", *VARIANT_LABELS))
        return possible and self._made.get(label) in (
            None,
            "",
            ref.tree if kind in VARIANT_LABELS else ref.commit,
        )

    def _list_missing_refs(self, snapshot: Snapshot) -> Iterator[str]:
        """Yields refs that the tape names and git does not have; a person or `git gc` may have removed them."""
        context, branch = snapshot.context, f"steersman/{self._run}"
        if runtime_field(context, "delivered_ref").endswith(branch):
            if self._branch is None:
                yield f"the branch {branch} that it delivered"
            elif self._branch.commit != (commit := runtime_field(context, "delivered_commit")):
                yield f"branch {branch} is no longer at the delivered commit {commit}"
        if runtime_field(context, "commit") and not self._refs:
            yield f"its recorded trees below {self._under}"
        elif self._lost:
            more_note = f", and {self._lost_count - 1} more" if self._lost_count > 1 else ""
            yield f"{self._lost[0]}{more_note}"


def _asking_entry(item: str) -> int:
    """Returns the entry that planned an effect, from its id `<run>:<seq>:<n>`."""
    parts = item.split(":")
    return int(parts[1]) if len(parts) == 3 and parts[1].isdecimal() else 0


def _agent_label(item: JobItem, attempt: int) -> str:
    return f"{item.input['mode']}-{item.input.get('round', 1)}-{attempt}-{_asking_entry(item.id)}"


def _ref_problem(name: str, ref: RecordedRef) -> str:
    """Returns the finding about a ref; one wording for all causes, because a person accepts a finding by its words."""
    return f"{name} names {ref.commit[:12]}, which this tape has not made: the store was rolled back, its end was cut off, or the ref was moved"
