"""C and C++ projects: CMake, Meson, Autotools."""

import re
from collections.abc import Iterator

from steersman.judges.facts.finding import (
    PROJECT_TOP,
    FactFinding,
    FactReader,
    ProjectSource,
    command_finding,
)
from steersman.judges.patterns import lazy_pattern

_PROJECT_CALL = lazy_pattern(r"\s{0,20}project\s{0,5}\(\s{0,5}[\"']?([\w.+-]{1,100})", re.IGNORECASE)
_CMAKE_TESTING = lazy_pattern(r"\s{0,40}(?:enable_testing|include\s{0,5}\(\s{0,5}CTest)\b", re.IGNORECASE)
_MESON_TEST_CALL = lazy_pattern(r"\s{0,40}test\s{0,5}\(")
_AUTOTOOLS_INIT = lazy_pattern(r"\s{0,20}AC_INIT\s{0,5}\(\s{0,5}\[?([\w .+-]{1,100}?)\]?\s{0,5},")
_MAX_C_CPP_LINE = 400


def _find_first_match(source: ProjectSource, pattern: "re.Pattern[str]") -> tuple[int, str]:
    """The first line of a shape, and what it names; line 0 where there is none."""
    for number, line in enumerate(source.lines, 1):
        match = pattern.match(line[:_MAX_C_CPP_LINE])
        if match is not None:
            return number, match[1] if match.lastindex else ""
    return 0, ""


def read_cmake(source: ProjectSource) -> Iterator[FactFinding]:
    """A project of CMake; what lies below another is a part of it."""
    line, name = _find_first_match(source, _PROJECT_CALL)
    if line:
        yield FactFinding("package", name, root=source.folder).at(line)
        argv = ("cmake", "--build", "build")
        yield command_finding(source, "build_command", "cmake", argv).at(line)
    tests, _ = _find_first_match(source, _CMAKE_TESTING)
    if tests:
        argv = ("ctest", "--test-dir", "build")
        yield command_finding(source, "test_command", "ctest", argv).at(tests)


def read_meson(source: ProjectSource) -> Iterator[FactFinding]:
    """A project of Meson."""
    line, name = _find_first_match(source, _PROJECT_CALL)
    if line:
        yield FactFinding("package", name, root=source.folder).at(line)
        argv = ("meson", "compile", "-C", "build")
        yield command_finding(source, "build_command", "meson", argv).at(line)
    tests, _ = _find_first_match(source, _MESON_TEST_CALL)
    if tests:
        argv = ("meson", "test", "-C", "build")
        yield (
            command_finding(source, "test_command", "meson", argv)
            ._replace(root=source.folder if line else PROJECT_TOP)
            .at(tests)
        )


def read_autotools(source: ProjectSource) -> Iterator[FactFinding]:
    """A project of Autotools: its Makefile is made, so its custom stands for its targets."""
    line, name = _find_first_match(source, _AUTOTOOLS_INIT)
    if line:
        yield FactFinding("package", name.strip(), root=source.folder).at(line)
        yield command_finding(source, "build_command", "autotools", ("make",)).at(line)
        yield command_finding(source, "test_command", "autotools", ("make", "check")).at(line)


def read_clang_tidy(source: ProjectSource) -> Iterator[FactFinding]:
    """clang-tidy over what was compiled."""
    argv = ("run-clang-tidy", "-p", "build")
    yield command_finding(source, "lint_command", "clang-tidy", argv)


C_CPP_READERS = (
    FactReader("cmakelists.txt", read_cmake),
    FactReader("meson.build", read_meson),
    FactReader("configure.ac configure.in", read_autotools),
    FactReader(".clang-tidy", read_clang_tidy),
)
