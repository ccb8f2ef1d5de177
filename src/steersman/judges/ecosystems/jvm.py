"""JVM: Gradle and Maven, by their wrappers where the project has them.

Checks have no network, so setup downloads what they need, and they run offline.
"""

import re
from collections.abc import Iterator

from steersman.contracts.config import Check, SetupStep
from steersman.judges.ecosystems.ecosystem import COUNT_DIGITS, Ecosystem, FileNameRule, RunnerSummaryPattern
from steersman.judges.ecosystems.project import ProjectFiles, SetupPlan, SetupProposal, proposed_check_name
from steersman.judges.facts.finding import (
    FactFinding,
    FactReader,
    ProjectSource,
    command_finding,
    parse_known_dependencies,
)
from steersman.judges.facts.reading import MAX_LINE_WIDTH, find_xml_problem, parse_xml_elements
from steersman.judges.text import lazy_pattern

_KNOWN_DEPENDENCIES = parse_known_dependencies(
    frameworks="spring-boot org.springframework.boot=spring-boot io.quarkus=quarkus io.micronaut=micronaut "
    "io.micronaut.application=micronaut io.ktor=ktor io.ktor.plugin=ktor io.vertx=vert.x com.android.application=android "
    "com.android.library=android org.apache.spark=spark org.apache.kafka=kafka org.hibernate.orm=hibernate",
    databases="org.postgresql=postgresql com.mysql=mysql mysql com.h2database=h2 org.mongodb=mongodb redis.clients=redis "
    "org.flywaydb=flyway org.liquibase=liquibase",
)
_GRADLE_PLUGIN = lazy_pattern(r"""\bid[ (]{1,3}["']([\w.-]{1,100})["']""")
_GRADLE_PROJECT_NAME = lazy_pattern(r"""rootProject\.name\s{0,5}=\s{0,5}["']([\w.-]{1,100})["']""")
_MAVEN_COORDINATES = lazy_pattern(r"""["']([\w.-]{1,100}):([\w.-]{1,100})(?::([\w.$\{\}-]{1,60}))?["']""")
_SBT_NAME = lazy_pattern(r"""\s{0,20}name\s{1,5}:=\s{1,5}"([\w.-]{1,100})\"""")
_GRADLE_FILES = ("build.gradle", "build.gradle.kts", "settings.gradle", "settings.gradle.kts")
# Runs no test, but loads everything that running one needs; `dependency:go-offline` leaves the test provider out.
_MAVEN_LOAD_OPTIONS = (
    "test",
    "-Dtest=NoSuchTest",
    "-DfailIfNoTests=false",
    "-Dsurefire.failIfNoSpecifiedTests=false",
)


def propose_jvm(files: ProjectFiles) -> SetupProposal | None:
    """One proposal for a build with tests; a wrapper is preferred to a program of the machine."""
    if not any("/src/test/" in f"/{path}" for path in files.paths):
        return None
    folder = files.folder
    if any(name in files.paths for name in _GRADLE_FILES):
        program = "./gradlew" if "gradlew" in files.paths else "gradle"
        steps = (SetupStep((program, "--no-daemon", "testClasses"), folder),)
        check = Check((program, "--no-daemon", "--offline", "test"), folder)
        return SetupProposal(
            "jvm", folder, (SetupPlan(steps, {proposed_check_name("gradle", folder): check}),)
        )
    if "pom.xml" not in files.paths:
        return None
    program = "./mvnw" if "mvnw" in files.paths else "mvn"
    steps = (SetupStep((program, "-B", "-q", *_MAVEN_LOAD_OPTIONS), folder),)
    check = Check((program, "-B", "-o", "test"), folder)
    return SetupProposal("jvm", folder, (SetupPlan(steps, {proposed_check_name("maven", folder): check}),))


def _jvm_command_findings(
    source: ProjectSource, name: str, program: str, build: str, line: int
) -> Iterator[FactFinding]:
    yield command_finding(source, "test_command", name, (program, "test")).at(line)
    yield command_finding(source, "build_command", name, (program, build)).at(line)


def read_maven_pom(source: ProjectSource) -> Iterator[FactFinding]:
    """A Maven project; coordinates of its own and of what it depends on."""
    elements = parse_xml_elements(source.text)
    if not any(element.path[0] == "project" for element in elements):
        return
    yield from _jvm_command_findings(
        source, "maven", "./mvnw" if source.has("mvnw") else "mvn", "package", source.line_with("<project")
    )
    first_by_path = {element.path[1:]: element for element in reversed(elements)}
    name, version = first_by_path.get(("artifactId",)), first_by_path.get(("version",))
    if name is not None:
        version_text = version.text if version is not None else ""
        yield FactFinding("package", name.text, version_text, root=source.folder).at(name.number)
    for element in elements:
        if element.path[-1] == "groupId" and element.path[-2] in ("dependency", "parent"):
            yield from _KNOWN_DEPENDENCIES.findings(source, element.text, "", element.number)


def read_gradle_build(source: ProjectSource) -> Iterator[FactFinding]:
    """A Gradle build: its plugins and dependencies."""
    is_top_build = source.has("settings.gradle", "settings.gradle.kts", "gradlew")
    if is_top_build:
        yield from _jvm_command_findings(
            source, "gradle", "./gradlew" if source.has("gradlew") else "gradle", "assemble", 0
        )
    for number, line in enumerate(source.lines, 1):
        for plugin in _GRADLE_PLUGIN.finditer(line[:MAX_LINE_WIDTH]):
            yield from _KNOWN_DEPENDENCIES.findings(source, plugin[1], "", number)
        for group, _, version in _MAVEN_COORDINATES.findall(line[:MAX_LINE_WIDTH]):
            yield from _KNOWN_DEPENDENCIES.findings(source, group, version, number)


def read_gradle_settings(source: ProjectSource) -> Iterator[FactFinding]:
    """The name of a Gradle build."""
    yield from _named_line_findings(source, _GRADLE_PROJECT_NAME)


def read_sbt_build(source: ProjectSource) -> Iterator[FactFinding]:
    """A Scala build."""
    yield from _jvm_command_findings(source, "sbt", "sbt", "compile", 0)
    yield from _named_line_findings(source, _SBT_NAME)


def _named_line_findings(source: ProjectSource, pattern: "re.Pattern[str]") -> Iterator[FactFinding]:
    for number, line in enumerate(source.lines, 1):
        match = pattern.search(line[:MAX_LINE_WIDTH])
        if match is not None:
            yield FactFinding("package", match[1], root=source.folder).at(number)


JVM = Ecosystem(
    name="jvm",
    manifests=(*_GRADLE_FILES, "pom.xml"),
    propose=propose_jvm,
    fact_readers=(
        FactReader("pom.xml", read_maven_pom, None, find_xml_problem),
        FactReader("build.gradle build.gradle.kts", read_gradle_build),
        FactReader("settings.gradle settings.gradle.kts", read_gradle_settings),
        FactReader("build.sbt", read_sbt_build),
    ),
    preferred_runners=(("maven", "gradle", "sbt"),),
    lock_files="gradle.lockfile",
    install_inputs="build.gradle* settings.gradle* gradle.properties gradle-wrapper.properties libs.versions.toml pom.xml maven-wrapper.properties",
    installed_entries=".gradle .mvn",
    decisive_files=(
        FileNameRule(
            "gradle or maven executes it",
            "*.gradle *.gradle.kts gradlew gradlew.bat gradle.properties *.versions.toml pom.xml mvnw mvnw.cmd extensions.xml "
            "junit-platform.properties testng*.xml", folders="gradle buildsrc .mvn", about="dependencies"),
    ),
    test_files="*test.java *tests.java *testcase.java *test.kt *tests.kt *spec.kt *test.groovy *spec.groovy *spec.scala "
    "*test.scala",
    runner_summaries=(
        RunnerSummaryPattern("maven", rf"^(?:\[\w+\] )?Tests run: (?P<ran>{COUNT_DIGITS}), Failures: (?P<failures>{COUNT_DIGITS}), Errors: (?P<errors>{COUNT_DIGITS}), Skipped: (?P<skipped>{COUNT_DIGITS})$"),
        RunnerSummaryPattern("maven without tests", r"^(?:\[\w+\] )?No tests to run\.$"),
        RunnerSummaryPattern("gradle", r"^\S.{0,300} > .{1,300} (?P<one>PASSED|FAILED)$"),
        RunnerSummaryPattern("gradle without tests", r"^> Task \S{0,200}[tT]est\w* NO-SOURCE$"),
    ),
    toolchain_variables="JAVA_HOME SDKMAN_DIR MAVEN_HOME GRADLE_HOME",
    cache_directories={"GRADLE_USER_HOME": ".gradle"},
)  # fmt: skip
