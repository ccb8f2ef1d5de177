"""python-statemachine, with the hand-written table's INSERT for durability (it brings no store).

A machine object per run over a plain model, events sent by name, one callback after each transition.
"""

from peers._log import LogContender, Save
from statemachine import State, StateMachine
from workload import EMPTY, SCRIPT, check_end, fold


class Loop(StateMachine):
    new = State(initial=True)
    intake = State()
    plan = State()
    build = State()
    review = State()
    test = State()
    iterate = State()
    finalize = State(final=True)

    task_received = new.to(intake)
    implementation_confirmed = intake.to(plan)
    start_coder = plan.to(build) | iterate.to(build)
    start_reviewer = build.to(review)
    review_changes_requested = review.to(iterate)
    review_approved = review.to(test)
    tests_failed = test.to(iterate)
    tests_passed = test.to(finalize)

    def after_transition(self, name, payload) -> None:
        self.model.apply(name, payload)


class Run:
    """The model: the machine writes its state field."""

    def __init__(self, run: str, save: Save) -> None:
        self.run, self.seq, self.save = run, 0, save
        self.context = dict(EMPTY)
        self.state = None

    def apply(self, event, payload) -> None:
        self.seq += 1
        self.context.update(fold(self.context, event, payload))
        self.save(self.run, self.seq, self.state, self.context)


class PythonStatemachine(LogContender):
    name = "python-statemachine"
    import_line = "import statemachine, json, sqlite3"

    def drive(self, run: str, save: Save) -> int:
        model = Run(run, save)
        machine = Loop(model)
        for event, payload in SCRIPT:
            machine.send(event, name=event, payload=payload)
        return check_end(model.state, model.context)


CONTENDER = PythonStatemachine()
