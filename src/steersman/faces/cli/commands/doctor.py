"""`steersman doctor`: checks this machine and says how to fix each problem. It changes nothing."""

from steersman.app.doctor import DoctorSubject, examine_project
from steersman.faces.cli.context import EXIT_DONE, EXIT_ENDED, EXIT_STORE, CommandContext, define_command
from steersman.faces.cli.trust_prompt import open_settings_trust


@define_command(
    "doctor",
    "steersman doctor",
    exits="0 no problem · 1 there are problems · 2 wrong usage · 5 store trouble",
)
def doctor_command(context: CommandContext) -> int:
    """Check this machine and say how to fix each problem: Python, git, SQLite, store, memories, disk, steersman.toml, sandbox, agents, delivery, broken runs and overdue timers."""
    context.quiet = True
    findings = list(examine_project(_describe_subject(context)))
    context.set_result(findings)
    for finding in findings:
        context.print(
            f"{'ok ' if finding.ok else 'FIX'}  {finding.what}: {finding.told}",
            fg=None if finding.ok else "red",
        )
        if finding.fix and not finding.ok:
            context.print(f"     {finding.fix}")
    if any(finding.store and not finding.ok for finding in findings):
        return EXIT_STORE
    return EXIT_ENDED if any(not finding.ok for finding in findings) else EXIT_DONE


def _describe_subject(context: CommandContext) -> DoctorSubject:
    return DoctorSubject(
        ports=context.ports,
        open_journal=(lambda: context.journal) if context.has_store() else None,
        read_settings=lambda: open_settings_trust(context, context.read_config()),
        state_directory=str(context.services.project_state_directory(context.project)),
        sqlite_version=context.services.sqlite_version(),
        command_prefix=context.command_prefix,
    )
