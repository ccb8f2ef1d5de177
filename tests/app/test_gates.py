"""Gates by name, answers that count once, and the digest that an approval of evidence has to name."""

import pytest
from tests.support.small_machines import ErrandContext, ErrandRequest, fake_ports_with_machines, play_run

from steersman.app.gates import (
    AnswerNotTakenError,
    AnswerRequest,
    NoOpenGateError,
    check_answer,
    find_open_gate,
    list_open_gates,
    post_answer,
)
from steersman.app.principal import Principal
from steersman.app.runs import RunBusy, RunService
from steersman.errors import ContractError, UserError
from steersman.kernel.build import machine
from steersman.kernel.definition import (
    Choice,
    Events,
    GateAnswer,
    Origin,
    State,
    do,
    event,
    final,
    gate,
    naming,
    otherwise,
    row,
    state,
    table,
)
from steersman.testing import fake_ports

ANN, BOB = Principal("ann"), Principal("bob")
DIGEST = "0123456789abcdef"
APPROVE = AnswerRequest(choice="approve")


def _asking_machine(job, choices):
    """A machine that asks one question about `DIGEST` and ends with the answer."""
    question = gate(job, asks="Is it good?", choices=choices)
    shown = {"digest": DIGEST, "choices": ["approve", "reject"], "shown": {"questions": ""}}

    class States(State):
        asking = state("A person is asked.", do(question, lambda _: shown), initial=True)
        over = final("It is over.")

    class Happenings(Events):
        asked = event("A question.", Origin.PERSON, ErrandRequest)
        answered = event("An answer.", Origin.GATE, GateAnswer)

    return machine(
        "asking",
        "One question.",
        states=States,
        events=Happenings,
        rows=table(
            row(None, Happenings.asked, otherwise, States.asking, None, "ask", "test"),
            row(States.asking, Happenings.answered, otherwise, States.over, None, "end", "test"),
        ),
        context=ErrandContext,
        namings=(naming(question, (otherwise, Happenings.answered)),),
        folds=(),
        successes=(),
        begin=lambda request: (
            Happenings.asked,
            ErrandRequest(),
            ErrandContext(task_ref=request["task_ref"]),
        ),
    )


def _open_asking_run(tmp_path, job="verdict", choices=None):
    ports = fake_ports(tmp_path, {"asking": _asking_machine(job, choices or {})})
    return RunService(ports), play_run(ports, "asking").run


@pytest.fixture
def asked(tmp_path):
    """A run of `watch` at its gate."""
    ports = fake_ports_with_machines(tmp_path)
    return RunService(ports), play_run(ports, "watch", after=0).run


# ── finding ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_gate_has_three_names(asked):
    """Its run, a unique beginning of the run, and its own id all name the open gate."""
    runs, run = asked
    gate_id = runs.ports.journal.gates(run)[0].id
    names = (run, run[:-2], gate_id, f"{run[:-2]}:{gate_id.partition(':')[2]}")
    assert {find_open_gate(runs, ANN, name).id for name in names} == {gate_id}


def test_a_gate_that_is_not_there_is_named(asked):
    """The error lists the gates that the run asks at."""
    runs, run = asked
    with pytest.raises(UserError, match=f"has no open gate {run}:99:1. Its open gates: {run}:"):
        find_open_gate(runs, ANN, f"{run}:99:1")


def test_an_answered_gate_says_who_was_first(asked):
    """The error has exit code 4, the name of the person and the caller's own command."""
    runs, run = asked
    post_answer(runs, ANN, check_answer(runs, ANN, run, APPROVE))
    caller = Principal("bob", command_prefix="steersman --project /x")
    with pytest.raises(NoOpenGateError, match=r"ann chose approve\. See `steersman --project /x why") as late:
        find_open_gate(runs, caller, run)
    assert late.value.exit_code == 4


def test_open_gates_are_listed_until_they_are_answered(asked):
    """Each comes with its texts; an answered one is gone from the list."""
    runs, run = asked
    assert [shown.gate.run for shown in list_open_gates(runs.ports, "steersman")] == [run]
    post_answer(runs, ANN, check_answer(runs, ANN, run, APPROVE))
    assert list_open_gates(runs.ports, "steersman", run) == []


# ── answering ───────────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_first_of_two_racing_answers_counts(asked):
    """Both were checked while the gate was open; the second is refused with the name of the first person."""
    runs, run = asked
    first, second = (
        check_answer(runs, ANN, run, APPROVE),
        check_answer(runs, BOB, run, AnswerRequest(choice="reject")),
    )
    posted = post_answer(runs, ANN, first)
    with pytest.raises(RunBusy, match="ann chose approve"):
        post_answer(runs, BOB, second)
    assert (posted.run, runs.ports.journal.gates(run)[0].person) == (run, "ann")


def test_an_answer_to_something_else_does_not_count(asked):
    """A digest that is not the gate's refuses the answer."""
    runs, run = asked
    answer = check_answer(runs, ANN, run, AnswerRequest(choice="approve", digest="another"))
    with pytest.raises(ContractError, match="is now about d, not another"):
        post_answer(runs, ANN, answer)


def test_a_gate_offers_its_own_choices(asked):
    """Another choice is refused with the choices that there are."""
    runs, run = asked
    with pytest.raises(UserError, match=r"has no choice 'maybe'. Choose one of approve, reject"):
        post_answer(runs, ANN, check_answer(runs, ANN, run, AnswerRequest(choice="maybe")))


def test_limits_go_with_raise(asked):
    """An approval takes no limits."""
    runs, run = asked
    with pytest.raises(UserError, match="limits go with `raise`, not with `approve`"):
        check_answer(runs, ANN, run, AnswerRequest(choice="approve", limits={"tokens": 5}))


def test_a_rejection_asks_the_run_to_stop(asked):
    """The caller learns that the end of the run was wanted."""
    runs, run = asked
    assert post_answer(runs, ANN, check_answer(runs, ANN, run, AnswerRequest(choice="reject"))).wants_end


@pytest.mark.parametrize("reason", ["", " \u200b"])
def test_a_choice_may_need_a_reason(tmp_path, reason):
    """Words that a person cannot see are no reason; a visible one is taken."""
    choices = {"approve": Choice("yes", "say yes", required="a yes needs a reason")}
    runs, run = _open_asking_run(tmp_path, choices=choices)
    with pytest.raises(AnswerNotTakenError, match="a yes needs a reason"):
        check_answer(runs, ANN, run, AnswerRequest(choice="approve", reason=reason))
    assert check_answer(runs, ANN, run, AnswerRequest(choice="approve", reason="seen")).word == "approve"


# ── evidence ────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("prefix", [None, "", DIGEST[:7], "deadbeef", DIGEST + "0"])
def test_evidence_needs_the_digest_that_was_looked_at(tmp_path, prefix):
    """An approval without at least eight characters of the digest answers nothing and says where to look."""
    runs, run = _open_asking_run(tmp_path, "evidence")
    with pytest.raises(AnswerNotTakenError, match=f"Read it with `steersman gates {run}`") as refused:
        check_answer(runs, ANN, run, AnswerRequest(choice="approve", digest_prefix=prefix))
    assert refused.value.exit_code == 4
    assert runs.ports.journal.gates(run)[0].answer == ""


def test_at_a_prompt_the_hint_has_the_words_of_the_prompt(tmp_path):
    """The face of the caller decides how the next step is written."""
    runs, run = _open_asking_run(tmp_path, "evidence")
    with pytest.raises(AnswerNotTakenError, match=f"/accept-evidence {DIGEST[:8]}"):
        check_answer(runs, Principal("ann", "repl"), run, APPROVE)


@pytest.mark.parametrize("length", [8, len(DIGEST)])
def test_the_beginning_of_the_digest_accepts_evidence(tmp_path, length):
    """The answer is bound to the whole digest."""
    runs, run = _open_asking_run(tmp_path, "evidence")
    answer = check_answer(runs, ANN, run, AnswerRequest(choice="approve", digest_prefix=DIGEST[:length]))
    assert (answer.word, answer.request.digest) == ("accept-evidence", DIGEST)
    post_answer(runs, ANN, answer)
    assert runs.ports.journal.gates(run)[0].answer == "approve"


def test_only_an_evidence_gate_takes_a_digest_prefix(tmp_path):
    """Elsewhere the error names the commands that answer the gate."""
    runs, run = _open_asking_run(tmp_path)
    with pytest.raises(AnswerNotTakenError, match=f"Answer it with steersman approve {run}"):
        check_answer(runs, ANN, run, AnswerRequest(choice="approve", digest_prefix=DIGEST[:8]))
