"""Maven, Gradle and sbt projects."""

from collections.abc import Iterator

from steersman.judges.patterns import later
from steersman.judges.planning.facts.finding import Finding, Reader, Source, command
from steersman.judges.planning.facts.reading import WIDEST, xml_of
from steersman.judges.planning.facts.stacks import depends

_PLUGIN = later(r"""\bid[ (]{1,3}["']([\w.-]{1,100})["']""")
_CALLED = later(r"""rootProject\.name\s{0,5}=\s{0,5}["']([\w.-]{1,100})["']""")
_COORDINATES = later(r"""["']([\w.-]{1,100}):([\w.-]{1,100})(?::([\w.$\{\}-]{1,60}))?["']""")
_SBT_NAME = later(r"""\s{0,20}name\s{1,5}:=\s{1,5}"([\w.-]{1,100})\"""")


def _commands(source: Source, name: str, program: str, build: str, line: int) -> Iterator[Finding]:
    test, make = (program, "test"), (program, build)
    yield command(source, "test_command", name, test).at(line)
    yield command(source, "build_command", name, make).at(line)


def pom(source: Source) -> Iterator[Finding]:
    """A Maven project; coordinates of its own and of what it depends on."""
    elements = xml_of(source.text)
    if not any(element.path[0] == "project" for element in elements):
        return
    yield from _commands(
        source, "maven", "./mvnw" if source.has("mvnw") else "mvn", "package", source.line_with("<project")
    )
    said = {element.path[1:]: element for element in reversed(elements)}  # the first of each stands
    if ("artifactId",) in said:
        version = said[("version",)].text if ("version",) in said else ""
        yield Finding("package", said[("artifactId",)].text, version, root=source.folder).at(
            said[("artifactId",)].number
        )
    for element in elements:
        if element.path[-1] == "groupId" and element.path[-2] in ("dependency", "parent"):
            yield from depends(source, "jvm", element.text, "", element.number)


def gradle(source: Source) -> Iterator[Finding]:
    """A Gradle build: its plugins and dependencies."""
    top = source.has("settings.gradle", "settings.gradle.kts", "gradlew")
    if top:
        yield from _commands(
            source, "gradle", "./gradlew" if source.has("gradlew") else "gradle", "assemble", 0
        )
    for number, line in enumerate(source.lines, 1):
        for plugin in _PLUGIN.finditer(line[:WIDEST]):
            yield from depends(source, "jvm", plugin[1], "", number)
        for group, _, version in _COORDINATES.findall(line[:WIDEST]):
            yield from depends(source, "jvm", group, version, number)


def gradle_settings(source: Source) -> Iterator[Finding]:
    """The name of a Gradle build."""
    for number, line in enumerate(source.lines, 1):
        called = _CALLED.search(line[:WIDEST])
        if called is not None:
            yield Finding("package", called[1], root=source.folder).at(number)


def sbt(source: Source) -> Iterator[Finding]:
    """A Scala build."""
    yield from _commands(source, "sbt", "sbt", "compile", 0)
    for number, line in enumerate(source.lines, 1):
        called = _SBT_NAME.match(line[:WIDEST])
        if called is not None:
            yield Finding("package", called[1], root=source.folder).at(number)


READERS = (
    Reader("pom.xml", pom),
    Reader("build.gradle build.gradle.kts", gradle),
    Reader("settings.gradle settings.gradle.kts", gradle_settings),
    Reader("build.sbt", sbt),
)
