"""`steersman report`: a run as Markdown."""

import click

from steersman.errors import UserError
from steersman.faces.cli.context import CommandContext, define_command, is_output_terminal


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

    from steersman.app.runs import read_run_report

    runs = context.read_only_runs
    report = read_run_report(runs.ports, runs.find(run))
    context.set_result({**msgspec.to_builtins(report), "file": out})
    if out is None:
        print_report(context, report.report)
        return
    try:
        with open(out, "w", encoding="utf-8") as file:
            file.write(report.report)
    except OSError as error:
        raise UserError(f"cannot write {out}: {error.strerror}; choose another --out") from None
    context.print(f"written to {out}")


def print_report(context: CommandContext, report_text: str) -> None:
    """Prints a report: its Markdown for a file or a pipe, rendered for a terminal."""
    if context.as_json or not is_output_terminal():
        context.print(report_text.rstrip("\n"))
        return
    from rich.console import Console
    from rich.markdown import Markdown

    from steersman.judges.text import printable_text

    Console().print(Markdown(printable_text(report_text), hyperlinks=False))
