"""JVM: Gradle and Maven, by their wrappers where the project has them.

Checks have no network, so setup downloads what they need, and they run offline.
"""

from steersman.contracts.config import Check, SetupStep
from steersman.judges.ecosystems.project import ProjectFiles, SetupPlan, SetupProposal, proposed_check_name

GRADLE_FILES = ("build.gradle", "build.gradle.kts", "settings.gradle", "settings.gradle.kts")
JVM_MANIFESTS = (*GRADLE_FILES, "pom.xml")
JVM_READ_FILES: tuple[str, ...] = ()
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
    if any(name in files.paths for name in GRADLE_FILES):
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
