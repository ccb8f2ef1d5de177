"""`steersman report`: a run as Markdown."""

import click

from steersman.errors import UserError
from steersman.faces.cli.context import CommandContext, define_command


@define_command(
    "report",
    "steersman report 261116-abc",
    "steersman report 261116-abc --out report.md",
    exits="0 done · 2 wrong usage · 5 store trouble",
)
@click.argument("run")
@click.option("--out", metavar="FILE", default=None, help="Write to this file instead of standard output.")
def report_command(context: CommandContext, *, run: str, out: str | None) -> None:
    """Print a report on RUN: what was asked, decided, changed and proven, and by whom."""
    import msgspec

    from steersman.engine.projections import read_run_view, render_view_report
    from steersman.views.reviews import find_recorded_reviews

    run_id = context.read_only_runs.find(run)
    run_view = read_run_view(context.read_only_runs.ports, run_id)
    report_text = render_view_report(context.read_only_runs.ports, run_view)
    review_fields = msgspec.to_builtins(find_recorded_reviews(run_view.entries, run_view.text))
    context.set_result({"run": run_id, "report": report_text, "reviews": review_fields, "file": out})
    if out is None:
        context.print(report_text.rstrip("\n"))
        return
    try:
        with open(out, "w", encoding="utf-8") as file:
            file.write(report_text)
    except OSError as error:
        raise UserError(f"cannot write {out}: {error.strerror}; choose another --out") from None
    context.print(f"written to {out}")
