"""`steersman run`: a task for the crew. **Invariant:** there is no flag that approves."""

import asyncio
from typing import TYPE_CHECKING, Any

import click

from steersman.errors import UserError
from steersman.faces.deck import DONE, Deck, verb
from steersman.faces.issue_text import HELP, TASK, read_issue
from steersman.judges.text import visible

if TYPE_CHECKING:
    from steersman.runtime.start import Order


@verb(
    "run",
    'steersman run "Add a --verbose flag"',
    'steersman run "Fix the rounding bug" --mode implementation --max-iterations 5',
    'steersman run "Rewrite the parser" --dry',
    'steersman run "Make the failing tests pass" --fix-base',
    'steersman run "Port the tests" --detach',
    'steersman run "Fix the rounding bug" --as task --plan ../plan',
    'steersman run "Fix what this report describes" --issue report.md',
    "steersman run --issue report.md",
)
@click.argument("task", required=False, default="")
@click.option("--issue", default="", metavar="FILE", help=HELP)
@click.option("--mode", type=click.Choice(["proposal", "implementation"]), default="proposal", show_default=True,
              help="Discuss a proposal first and wait for your word, or go straight to work.")  # fmt: skip
@click.option(
    "--as",
    "machine",
    default="roundtable",
    show_default=True,
    metavar="MACHINE",
    help="Which machine drives it.",
)
@click.option(
    "--max-iterations",
    type=click.IntRange(1, 50),
    default=None,
    help="Rounds (default: steersman.toml, else 3).",
)
@click.option("--after", multiple=True, metavar="RUN", help="A task that comes first (task): begin when its change is in the branch.")  # fmt: skip
@click.option("--plan", default="", metavar="DIR", help="A frozen plan that bounds it (task): files and commands outside are refused.")  # fmt: skip
@click.option("--key", default="", metavar="FILE", help="The public key of whoever froze the plan, where it is not this project's.")  # fmt: skip
@click.option("--fix-base", is_flag=True, help="Start although checks fail before any change: this run has to make them pass.")  # fmt: skip
@click.option(
    "--dry", is_flag=True, help="Create nothing; show gates, the most agent calls, checks and budget."
)
@click.option(
    "--detach",
    is_flag=True,
    help="Create the run and drive it in the background; returns when its driver has started.",
)
@click.option(
    "--unattended", is_flag=True, help="First check everything that could stop it while nobody looks."
)
def run(
    deck: Deck,
    *,
    task: str,
    issue: str,
    machine: str,
    after: tuple[str, ...],
    plan: str,
    key: str,
    fix_base: bool,
    dry: bool,
    detach: bool,
    unattended: bool,
    **given: Any,
) -> int:
    """Give TASK to the crew and watch it work, until it waits for somebody or has its outcome."""
    issue_text = read_issue(issue)
    task = task if visible(task) or not issue_text else TASK
    if not visible(task):
        raise UserError('a run needs a task: steersman run "what to do"')
    from steersman.faces.outlook import machine_named, ready_alone, show_outlook

    if not machine_named(deck, machine).tree:
        raise UserError(f"{machine} plans and carries nothing out: use `{deck.me} plan`")
    config = deck.load_config(ask=not unattended).config
    options: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    roles: tuple[str, ...] = ()
    texts: dict[str, str] = {}
    if machine == "task":
        from steersman.faces.tasks import after_of, bounds_of, options_of, roles_of

        options = options_of(config, after=after_of(deck, after, config))
        roles = roles_of(options)
        texts = bounds_of(deck, plan, key, config)
    elif plan or key or after:
        raise UserError(f"{machine} takes no plan and comes after no task: use --as task")
    if fix_base:
        options["red_base"] = "fix"
    if dry:
        return show_outlook(deck, machine, config, options)
    from steersman.runtime.start import Order

    order = Order(machine, task, deck.person, config, options, texts, roles, issue_text)
    if unattended:
        ready_alone(deck, machine, config, options)
    told_dirty(deck, config)
    deck.new_bridge()
    return _detached(deck, order) if detach else _watched(deck, order)


def told_dirty(deck: Deck, config: Any) -> None:
    """Says what of the checkout the run does not use; where no run can start, no store is made."""
    from steersman.runtime.project_files import describe_differences

    workspace = deck.helm.open_world(deck.project, journal=None).workspace(config)
    problem = workspace.problem()
    if problem:
        raise UserError(problem)
    base = workspace.base(config.base or None)
    if base.dirty:
        deck.warn(
            f"note: your checkout has uncommitted changes; the run starts from commit {base.commit[:12]} without them",
            fg="yellow",
        )
    for told in describe_differences(workspace, config, base.commit):
        deck.warn(f"note: {told}", fg="yellow")


def _watched(deck: Deck, order: "Order") -> int:
    from steersman.faces.voyage import launch

    return launch(deck, order)


def _detached(deck: Deck, order: "Order") -> int:
    from steersman.faces.voyage import background

    _, lock, live = asyncio.run(deck.bridge.start(order))
    lock.release()
    log = background(deck, live.run)
    deck.say(f"{live.run}")
    deck.say(f"goes on in the background, log in {log}: {deck.me} watch {live.run}")
    deck.tell({"run": live.run, "log": log, "exit_code": DONE})
    return DONE
