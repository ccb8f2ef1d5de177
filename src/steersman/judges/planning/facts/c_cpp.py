"""C and C++ projects: CMake, Meson, Autotools."""

import re
from collections.abc import Iterator

from steersman.judges.patterns import later
from steersman.judges.planning.facts.finding import TOP, Finding, Reader, Source, command

_PROJECT = later(r"\s{0,20}project\s{0,5}\(\s{0,5}[\"']?([\w.+-]{1,100})", re.IGNORECASE)
_TESTING = later(r"\s{0,40}(?:enable_testing|include\s{0,5}\(\s{0,5}CTest)\b", re.IGNORECASE)
_MESON_TEST = later(r"\s{0,40}test\s{0,5}\(")
_INIT = later(r"\s{0,20}AC_INIT\s{0,5}\(\s{0,5}\[?([\w .+-]{1,100}?)\]?\s{0,5},")
_LONGEST = 400


def _first(source: Source, shape: "re.Pattern[str]") -> tuple[int, str]:
    """The first line of a shape, and what it names; line 0 where there is none."""
    for number, line in enumerate(source.lines, 1):
        found = shape.match(line[:_LONGEST])
        if found is not None:
            return number, found[1] if found.lastindex else ""
    return 0, ""


def cmake(source: Source) -> Iterator[Finding]:
    """A project of CMake; what lies below another is a part of it."""
    line, name = _first(source, _PROJECT)
    if line:
        yield Finding("package", name, root=source.folder).at(line)
        argv = ("cmake", "--build", "build")
        yield command(source, "build_command", "cmake", argv).at(line)
    tests, _ = _first(source, _TESTING)
    if tests:
        argv = ("ctest", "--test-dir", "build")
        yield command(source, "test_command", "ctest", argv).at(tests)


def meson(source: Source) -> Iterator[Finding]:
    """A project of Meson."""
    line, name = _first(source, _PROJECT)
    if line:
        yield Finding("package", name, root=source.folder).at(line)
        argv = ("meson", "compile", "-C", "build")
        yield command(source, "build_command", "meson", argv).at(line)
    tests, _ = _first(source, _MESON_TEST)
    if tests:
        argv = ("meson", "test", "-C", "build")
        yield (
            command(source, "test_command", "meson", argv)
            ._replace(root=source.folder if line else TOP)
            .at(tests)
        )


def autotools(source: Source) -> Iterator[Finding]:
    """A project of Autotools: its Makefile is made, so its custom stands for its targets."""
    line, name = _first(source, _INIT)
    if line:
        yield Finding("package", name.strip(), root=source.folder).at(line)
        yield command(source, "build_command", "autotools", ("make",)).at(line)
        yield command(source, "test_command", "autotools", ("make", "check")).at(line)


def clang_tidy(source: Source) -> Iterator[Finding]:
    """clang-tidy over what was compiled."""
    argv = ("run-clang-tidy", "-p", "build")
    yield command(source, "lint_command", "clang-tidy", argv)


READERS = (
    Reader("cmakelists.txt", cmake),
    Reader("meson.build", meson),
    Reader("configure.ac configure.in", autotools),
    Reader(".clang-tidy", clang_tidy),
)
