"""Maven, Gradle and sbt projects."""

from collections.abc import Iterator

from steersman.judges.facts.finding import FactFinding, FactReader, ProjectSource, command_finding
from steersman.judges.facts.reading import MAX_LINE_WIDTH, parse_xml_elements
from steersman.judges.facts.stacks import dependency_findings
from steersman.judges.patterns import lazy_pattern

_GRADLE_PLUGIN = lazy_pattern(r"""\bid[ (]{1,3}["']([\w.-]{1,100})["']""")
_GRADLE_PROJECT_NAME = lazy_pattern(r"""rootProject\.name\s{0,5}=\s{0,5}["']([\w.-]{1,100})["']""")
_MAVEN_COORDINATES = lazy_pattern(r"""["']([\w.-]{1,100}):([\w.-]{1,100})(?::([\w.$\{\}-]{1,60}))?["']""")
_SBT_NAME = lazy_pattern(r"""\s{0,20}name\s{1,5}:=\s{1,5}"([\w.-]{1,100})\"""")


def _jvm_command_findings(
    source: ProjectSource, name: str, program: str, build: str, line: int
) -> Iterator[FactFinding]:
    test, make = (program, "test"), (program, build)
    yield command_finding(source, "test_command", name, test).at(line)
    yield command_finding(source, "build_command", name, make).at(line)


def read_maven_pom(source: ProjectSource) -> Iterator[FactFinding]:
    """A Maven project; coordinates of its own and of what it depends on."""
    elements = parse_xml_elements(source.text)
    if not any(element.path[0] == "project" for element in elements):
        return
    yield from _jvm_command_findings(
        source, "maven", "./mvnw" if source.has("mvnw") else "mvn", "package", source.line_with("<project")
    )
    elements_by_path = {
        element.path[1:]: element for element in reversed(elements)
    }  # the first of each stands
    if ("artifactId",) in elements_by_path:
        version = elements_by_path[("version",)].text if ("version",) in elements_by_path else ""
        yield FactFinding("package", elements_by_path[("artifactId",)].text, version, root=source.folder).at(
            elements_by_path[("artifactId",)].number
        )
    for element in elements:
        if element.path[-1] == "groupId" and element.path[-2] in ("dependency", "parent"):
            yield from dependency_findings(source, "jvm", element.text, "", element.number)


def read_gradle_build(source: ProjectSource) -> Iterator[FactFinding]:
    """A Gradle build: its plugins and dependencies."""
    is_top_build = source.has("settings.gradle", "settings.gradle.kts", "gradlew")
    if is_top_build:
        yield from _jvm_command_findings(
            source, "gradle", "./gradlew" if source.has("gradlew") else "gradle", "assemble", 0
        )
    for number, line in enumerate(source.lines, 1):
        for plugin in _GRADLE_PLUGIN.finditer(line[:MAX_LINE_WIDTH]):
            yield from dependency_findings(source, "jvm", plugin[1], "", number)
        for group, _, version in _MAVEN_COORDINATES.findall(line[:MAX_LINE_WIDTH]):
            yield from dependency_findings(source, "jvm", group, version, number)


def read_gradle_settings(source: ProjectSource) -> Iterator[FactFinding]:
    """The name of a Gradle build."""
    for number, line in enumerate(source.lines, 1):
        called = _GRADLE_PROJECT_NAME.search(line[:MAX_LINE_WIDTH])
        if called is not None:
            yield FactFinding("package", called[1], root=source.folder).at(number)


def read_sbt_build(source: ProjectSource) -> Iterator[FactFinding]:
    """A Scala build."""
    yield from _jvm_command_findings(source, "sbt", "sbt", "compile", 0)
    for number, line in enumerate(source.lines, 1):
        called = _SBT_NAME.match(line[:MAX_LINE_WIDTH])
        if called is not None:
            yield FactFinding("package", called[1], root=source.folder).at(number)


JVM_READERS = (
    FactReader("pom.xml", read_maven_pom),
    FactReader("build.gradle build.gradle.kts", read_gradle_build),
    FactReader("settings.gradle settings.gradle.kts", read_gradle_settings),
    FactReader("build.sbt", read_sbt_build),
)
