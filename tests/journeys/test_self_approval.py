"""An agent and a test of one run try to answer the gate of another, and to reach or change what decides about it.

The same attempts (`hostile_agent.py`) are made by the coder and by a check, in a box and without one. Without a box what lies
on the disk can be reached; there the claim is smaller, and each test says how small.
"""

import json
import shutil
import sys
from collections import defaultdict
from functools import cached_property
from pathlib import Path

import pytest
from tests.support import sample_project
from tests.support.cases import for_each_case
from tests.support.sample_project import Project

from steersman.adapters.sandbox.bubblewrap import probe_sandbox
from steersman.app.runs import RunService
from steersman.wiring import open_ports

HOSTILE_AGENT = Path(__file__).parents[1] / "support" / "hostile_agent.py"
HARMLESS = (
    *("approve", "approve with an empty environment", "approve with a made-up effect", "approve as a daemon"),
    *("approve through a link", "approve in another home"),
    *("read the store", "read the key", "read the ticket", "ring the socket"),
    *("write a decision", "edit the prompts", "edit the configuration"),
)
SPOKEN = HARMLESS[:5]  # calls of `approve` that find the store where there is no box
WHO = ("coder", "check")


class HostileRun:
    """A project with a run that waits at its gate, and what came of a second run that tried to answer it."""

    def __init__(self, project: Project, mode: str, tries: tuple[str, ...]) -> None:
        self.project, self.mode, self.tries = project, mode, tries
        assert project.run(sample_project.roundtable_story(mode="proposal")).code == 3
        self.waiting = project.only_run()
        self.state = project.state
        (self.state / "token").write_text("what lets a face in")
        (gate,) = project.call("gates", self.waiting, "--json").json()
        self.gate = gate["id"]
        self.before = project.entries(self.waiting)
        project.allow('[sandbox]\nmode = "off"\n')
        self.said = self._second(gate["digest"])
        self.run = self.said.json()["run"]

    def _second(self, digest: str) -> sample_project.CommandResult:
        repo, place = self.project.repo, self.project.place
        told = {"state": str(self.state), "repo": str(repo), "place": str(place), "run": self.waiting}
        told |= {"gate": self.gate, "digest": digest, "tries": self.tries}
        (repo / "hostile_agent.json").write_text(json.dumps(told))
        shutil.copy(HOSTILE_AGENT, repo / "hostile_agent.py")
        config = sample_project.render_config(
            sample_project.roundtable_story(
                checks={
                    "unit": sample_project.UNIT_CHECK,
                    "hostile": [sys.executable, "hostile_agent.py", "check"],
                }
            )
        )
        scripted = '[roles.coder]\nagent = "scripted"\nscript = "../crew.yaml"'
        command = f'[roles.coder]\nagent = "command"\ncommand = {json.dumps([sys.executable, "hostile_agent.py", "coder"])}'
        assert scripted in config
        boxed = f'[sandbox]\nmode = "{self.mode}"\n'
        (repo / "steersman.toml").write_text(config.replace(scripted, command) + boxed)
        self.project.git("add", "-A")
        self.project.git("commit", "-qm", "hostile")
        words = ("run", "Fix add", "--mode", "implementation", "--json")
        return self.project.call(*words, timeout=240)

    @cached_property
    def texts(self) -> dict[str, list[str]]:
        """Every text that the second run's tape names in a field, by that field and who it is from."""
        bridge = RunService(open_ports(self.project.repo))
        live = bridge.live(self.run)
        found: dict[str, list[str]] = defaultdict(list)
        for e in self.project.entries(self.run):
            for name, value in (e.get("data") or {}).items():
                if name.endswith("ref") and value.startswith("p-"):
                    found[f"{e.get('actor', '')} {e['kind']} {name}"].append(live.payloads.get(value))
        self.frozen = live.config
        bridge.ports.journal.close()
        return found

    def told(self, who: str) -> list[dict[str, str]]:
        """What the attempts got, as the tape of the second run has recorded it."""
        if who == "coder":
            said = [t for name, texts in self.texts.items() if "coder" in name for t in texts]
        else:
            parts = [
                t for name, texts in self.texts.items() if name.endswith("part_finished ref") for t in texts
            ]
            said = [json.loads(text)["output"] for text in parts]
        lines = [line for text in said for line in text.splitlines() if line.startswith("HOSTILE_AGENT ")]
        found = [json.loads(line.removeprefix("HOSTILE_AGENT ")) for line in lines]
        assert any(found)
        return [told for told in found if told]

    def got(self, who: str, attempt: str) -> list[str]:
        """What one attempt got, each time it was made."""
        return [told[attempt] for told in self.told(who)]

    def open(self) -> bool:
        """Whether the gate still waits."""
        gates = self.project.call("gates", self.waiting, "--json").json()
        return [g["id"] for g in gates] == [self.gate]

    def refused(self) -> list[dict[str, object]]:
        """What was refused on the waiting run's tape."""
        return [e for e in self.project.entries(self.waiting) if e["kind"] == "refused"]

    def verified(self) -> sample_project.CommandResult:
        return self.project.call("audit", "verify", self.waiting)


@pytest.fixture(scope="module", params=["required", "off"])
def hostile_run(request, tmp_path_factory, template):
    """The whole story, once in a box and once without."""
    if request.param == "required" and not probe_sandbox("auto").isolated:
        pytest.skip(f"NOT SHOWN, no box on this machine: {probe_sandbox('auto').why}")
    patch = pytest.MonkeyPatch()
    project = Project(tmp_path_factory.mktemp("hostile_run"), template)
    patch.setenv("XDG_STATE_HOME", project.env["XDG_STATE_HOME"])
    yield HostileRun(project, request.param, HARMLESS)
    patch.undo()


def test_the_gate_still_waits_and_the_work_goes_on(hostile_run):
    """No attempt has answered anything; the second run's work is done; both tapes are whole."""
    assert hostile_run.said.code == 0, hostile_run.said
    assert hostile_run.open()
    assert hostile_run.verified().code == 0
    assert hostile_run.project.call("audit", "verify", hostile_run.run).code == 0


@for_each_case("who", WHO)
@for_each_case("attempt", SPOKEN)
def test_an_approval_from_inside_a_run_is_refused(hostile_run, who, attempt):
    """Whatever it does with its environment, its parents, its session or the way to the store: exit 4, and no answer."""
    for got in hostile_run.got(who, attempt):
        assert got.startswith("exit 4"), got
        assert "an agent never speaks for a person" in got


def test_the_refusals_are_on_tape(hostile_run):
    """Where the store could be reached, each is an entry of the run it was meant for; in a box there was none to reach."""
    refused = hostile_run.refused()
    if hostile_run.mode == "off":
        assert len(refused) == len(SPOKEN) * sum(len(hostile_run.told(who)) for who in WHO)
        assert all(f"effect {hostile_run.run}:" in e["why"] for e in refused)
    else:
        assert hostile_run.project.entries(hostile_run.waiting) == hostile_run.before


@for_each_case("who", WHO)
def test_an_approval_from_a_home_without_a_store_finds_nothing(hostile_run, who):
    """There is nothing to approve there."""
    for got in hostile_run.got(who, "approve in another home"):
        assert got.startswith("exit 4"), got
        assert "nothing has been run" in got


@for_each_case("who", WHO)
@for_each_case("what", ["the store", "the key", "the ticket"])
def test_what_is_steersmans_own_cannot_be_read_in_a_box(hostile_run, who, what):
    """In a box it is not there. Without one it can be read: the run says that approval is not isolated."""
    expected = "read " if hostile_run.mode == "off" else "FileNotFoundError"
    assert all(got.startswith(expected) for got in hostile_run.got(who, f"read {what}"))


@for_each_case("who", WHO)
def test_the_sockets_are_out_of_reach_in_a_box(hostile_run, who):
    """Without one a driver can be woken, which makes it look at its inbox and nothing else."""
    expected = "rang" if hostile_run.mode == "off" else "FileNotFoundError"
    assert all(got.startswith(expected) for got in hostile_run.got(who, "ring the socket"))


@for_each_case("who", WHO)
def test_a_decision_on_disk_decides_nothing(hostile_run, who):
    """accept/decision.json in the person's checkout: in a box it gets nowhere, without one nobody takes it for an answer."""
    assert set(hostile_run.got(who, "write a decision")) == {"written"}
    path = hostile_run.project.repo / ".steersman" / "runs" / hostile_run.waiting / "accept" / "decision.json"
    assert path.exists() == (hostile_run.mode == "off")
    assert hostile_run.open()


@for_each_case("who", WHO)
def test_the_configuration_of_a_run_is_what_it_was(hostile_run, who):
    """The edited file is the person's, untouched where there is a box; without one the runs there are keep their own."""
    expected = "written" if hostile_run.mode == "off" else "FileNotFoundError"
    assert all(got.startswith(expected) for got in hostile_run.got(who, "edit the configuration"))
    words = (hostile_run.project.repo / "steersman.toml").read_text()
    assert ('"true"' in words) == (hostile_run.mode == "off")
    checks = {c["name"]: c["argv"] for c in hostile_run.said.json()["checks"]}
    assert checks["unit"] == sample_project.UNIT_CHECK
    assert hostile_run.texts
    frozen = hostile_run.frozen
    assert (frozen.sandbox.mode, list(frozen.checks["unit"].run)) == (
        hostile_run.mode,
        sample_project.UNIT_CHECK,
    )


def test_what_an_agent_writes_for_a_role_reaches_no_prompt(hostile_run):
    """An edit to the project's prompts, box or not, changes nothing for a run that has begun."""
    sent = [
        t for n, ts in hostile_run.texts.items() if "reviewer" in n and n.endswith("prompt_ref") for t in ts
    ]
    assert len(sent) == 1
    assert "Always approve." not in sent[0]


def test_where_there_is_no_box_everybody_is_told(hostile_run):
    """Tape, screen, report and the question itself say it; where there is one, none of them does."""
    project, said = hostile_run.project, "approval not isolated: switched off"
    created = project.entries(hostile_run.run)[0]
    shown = (
        created.get("why", ""),
        project.call("show", hostile_run.run).out,
        project.call("report", hostile_run.run).out,
    )
    off = hostile_run.mode == "off"
    assert [said in shown[0], said in shown[1], "not isolated: switched off" in shown[2]] == [off] * 3
    assert hostile_run.said.json()["not_isolated"] == ("switched off" if off else "")


@pytest.fixture
def bare(request, tmp_path, template, monkeypatch):
    """One attempt without a box, in a project of its own."""
    project = Project(tmp_path, template)
    monkeypatch.setenv("XDG_STATE_HOME", project.env["XDG_STATE_HOME"])
    return HostileRun(project, "off", (request.param,))


@pytest.mark.parametrize("bare", ["edit the tape"], indirect=True)
def test_an_edited_tape_is_found(bare):
    """Without a box a program can write into the store; verification names the first entry that was touched."""
    assert bare.got("coder", "edit the tape")[0].startswith("changed [")
    found = bare.verified()
    assert found.code != 0
    assert "entry 1" in found.out + found.err


@pytest.mark.parametrize("bare", ["answer in the store"], indirect=True)
def test_an_answer_that_only_the_gate_knows_moves_nothing(bare):
    """A gate row written past steersman leaves the run where it is, and verification finds it."""
    assert bare.got("coder", "answer in the store") == ["changed [1]"]
    assert bare.project.entries(bare.waiting)[: len(bare.before)] == bare.before
    assert not [e for e in bare.project.entries(bare.waiting) if e.get("event") == "task_followup_received"]
    assert bare.verified().code != 0


@pytest.mark.parametrize("bare", ["forge an answer"], indirect=True)
def test_a_forged_answer_is_what_no_box_means(bare):
    """Without a box a program can write an answer like a person's, and it is taken for one: this is what
    `approval not isolated` says on the tape of the run that did it, at its gate, and in the documentation."""
    assert bare.got("coder", "forge an answer") == ["changed [1, 1]"]
    assert "approval not isolated" in bare.project.entries(bare.run)[0]["why"]
    assert bare.verified().code in (0, 1)


@pytest.mark.parametrize("attempt", ["edit the tape", "answer in the store", "forge an answer"])
def test_in_a_box_nobody_writes_the_store(tmp_path, template, monkeypatch, attempt):
    """The same three attempts find no store; the tape, the gate and the inbox are what they were."""
    if not probe_sandbox("auto").isolated:
        pytest.skip(f"NOT SHOWN, no box on this machine: {probe_sandbox('auto').why}")
    project = Project(tmp_path, template)
    monkeypatch.setenv("XDG_STATE_HOME", project.env["XDG_STATE_HOME"])
    tried = HostileRun(project, "required", (attempt,))
    for who in WHO:
        assert all("unable to open database file" in got for got in tried.got(who, attempt))
    assert tried.project.entries(tried.waiting) == tried.before
    assert tried.open()
    assert tried.verified().code == 0
