""".NET solutions and projects."""

from collections.abc import Iterator

from steersman.contracts.planning.context import FactKind
from steersman.judges.planning.facts.finding import Finding, Reader, Source, command
from steersman.judges.planning.facts.reading import Element, xml_of
from steersman.judges.planning.facts.stacks import depends

_TESTS = "Microsoft.NET.Test.Sdk"
_COMMANDS: tuple[tuple[FactKind, str], ...] = (("test_command", "test"), ("build_command", "build"))


def solution(source: Source) -> Iterator[Finding]:
    """A solution is built and tested as a whole."""
    for kind, word in _COMMANDS:
        argv = ("dotnet", word, source.name)
        yield command(source, kind, "dotnet", argv)


def project(source: Source) -> Iterator[Finding]:
    """A project: its kind, its packages, and whether it holds tests."""
    elements = xml_of(source.text)
    root = next((element for element in elements if element.path == ("Project",)), None)
    name = source.name.rpartition(".")[0]
    yield Finding("package", name, _said(elements, "Version"), root=source.folder)
    if root is not None:
        yield from depends(source, "dotnet", root.given.get("Sdk", ""), "", root.number)
    if _said(elements, "OutputType").casefold() in {"exe", "winexe"}:
        yield Finding("entry_point", name, root=source.folder).at(source.line_with("<OutputType>"))
    for element in elements:
        if element.path[-1] in {"PackageReference", "FrameworkReference"}:
            wanted = element.given.get("Include", "")
            yield from depends(source, "dotnet", wanted, element.given.get("Version", ""), element.number)
            if wanted == _TESTS:
                argv = ("dotnet", "test", source.name)
                yield command(source, "test_command", f"dotnet:{name}", argv).at(element.number)


def _said(elements: list[Element], tag: str) -> str:
    return next((element.text for element in elements if element.path[-1] == tag), "")


READERS = (Reader("*.sln *.slnx", solution), Reader("*.csproj *.fsproj *.vbproj", project))
