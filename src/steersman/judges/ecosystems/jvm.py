"""JVM: Gradle and Maven, by their wrappers where the project has them.

Checks have no network, so setup downloads what they need, and they run offline.
"""

from steersman.contracts.config import Check, SetupStep
from steersman.judges.ecosystems.project import Plan, ProjectFiles, Proposal, check_name

GRADLE = ("build.gradle", "build.gradle.kts", "settings.gradle", "settings.gradle.kts")
MANIFESTS = (*GRADLE, "pom.xml")
READ: tuple[str, ...] = ()
# Runs no test, but loads everything that running one needs; `dependency:go-offline` leaves the test provider out.
_MAVEN_LOAD = (
    "test",
    "-Dtest=NoSuchTest",
    "-DfailIfNoTests=false",
    "-Dsurefire.failIfNoSpecifiedTests=false",
)


def propose_jvm(files: ProjectFiles) -> Proposal | None:
    """One proposal for a build with tests; a wrapper is preferred to a program of the machine."""
    if not any("/src/test/" in f"/{path}" for path in files.paths):
        return None
    folder = files.folder
    if any(name in files.paths for name in GRADLE):
        program = "./gradlew" if "gradlew" in files.paths else "gradle"
        steps = (SetupStep((program, "--no-daemon", "testClasses"), folder),)
        check = Check((program, "--no-daemon", "--offline", "test"), folder)
        return Proposal("jvm", folder, (Plan(steps, {check_name("gradle", folder): check}),))
    if "pom.xml" not in files.paths:
        return None
    program = "./mvnw" if "mvnw" in files.paths else "mvn"
    steps = (SetupStep((program, "-B", "-q", *_MAVEN_LOAD), folder),)
    check = Check((program, "-B", "-o", "test"), folder)
    return Proposal("jvm", folder, (Plan(steps, {check_name("maven", folder): check}),))
