""".NET solutions and projects."""

from collections.abc import Iterator

from steersman.contracts.planning.context import FactKind
from steersman.judges.facts.finding import FactFinding, FactReader, ProjectSource, command_finding
from steersman.judges.facts.reading import XmlElement, parse_xml_elements
from steersman.judges.facts.stacks import dependency_findings

_TEST_SDK_PACKAGE = "Microsoft.NET.Test.Sdk"
_DOTNET_COMMANDS: tuple[tuple[FactKind, str], ...] = (("test_command", "test"), ("build_command", "build"))


def read_dotnet_solution(source: ProjectSource) -> Iterator[FactFinding]:
    """A solution is built and tested as a whole."""
    for kind, word in _DOTNET_COMMANDS:
        argv = ("dotnet", word, source.name)
        yield command_finding(source, kind, "dotnet", argv)


def read_dotnet_project(source: ProjectSource) -> Iterator[FactFinding]:
    """A project: its kind, its packages, and whether it holds tests."""
    elements = parse_xml_elements(source.text)
    root = next((element for element in elements if element.path == ("Project",)), None)
    name = source.name.rpartition(".")[0]
    yield FactFinding("package", name, _find_element_text(elements, "Version"), root=source.folder)
    if root is not None:
        yield from dependency_findings(source, "dotnet", root.given.get("Sdk", ""), "", root.number)
    if _find_element_text(elements, "OutputType").casefold() in {"exe", "winexe"}:
        yield FactFinding("entry_point", name, root=source.folder).at(source.line_with("<OutputType>"))
    for element in elements:
        if element.path[-1] in {"PackageReference", "FrameworkReference"}:
            package = element.given.get("Include", "")
            yield from dependency_findings(
                source, "dotnet", package, element.given.get("Version", ""), element.number
            )
            if package == _TEST_SDK_PACKAGE:
                argv = ("dotnet", "test", source.name)
                yield command_finding(source, "test_command", f"dotnet:{name}", argv).at(element.number)


def _find_element_text(elements: list[XmlElement], tag: str) -> str:
    return next((element.text for element in elements if element.path[-1] == tag), "")


DOTNET_READERS = (
    FactReader("*.sln *.slnx", read_dotnet_solution),
    FactReader("*.csproj *.fsproj *.vbproj", read_dotnet_project),
)
