"""Renders the problems of a document."""

from collections.abc import Iterable

from steersman.contracts.planning.decisions import DocumentProblem


def document_problem_lines(problems: Iterable[DocumentProblem], file: str) -> list[str]:
    """Returns one line for each problem, in the order of the file."""
    return [_problem_line(problem, file) for problem in sorted(problems, key=lambda problem: problem.line)]


def _problem_line(problem: DocumentProblem, file: str) -> str:
    line = f", line {problem.line}" if problem.line else ""
    fix = f"; {problem.fix}" if problem.fix else ""
    return f"{file}{line}: {problem.field}: {problem.message}{fix}"
