"""Continuous integration: which services run what a project's files say."""

from collections.abc import Iterator

from steersman.judges.facts.finding import FactFinding, FactReader, ProjectSource, is_exactly_in
from steersman.judges.facts.reading import parse_yaml_lines
from steersman.judges.patterns import lazy_pattern

# Where each service looks, from the top of the project.
_CI_FILES = {
    ".gitlab-ci.yml": "gitlab-ci", ".gitlab-ci.yaml": "gitlab-ci", ".travis.yml": "travis-ci", "jenkinsfile": "jenkins",
    "azure-pipelines.yml": "azure-pipelines", "azure-pipelines.yaml": "azure-pipelines", "appveyor.yml": "appveyor",
    ".appveyor.yml": "appveyor", "bitbucket-pipelines.yml": "bitbucket-pipelines", ".drone.yml": "drone",
    ".cirrus.yml": "cirrus-ci", ".woodpecker.yml": "woodpecker", ".semaphore.yml": "semaphore", ".prow.yaml": "prow",
    "cloudbuild.yaml": "cloud-build", "cloudbuild.yml": "cloud-build", "codebuild.yml": "codebuild", "buildspec.yml": "codebuild",
}  # fmt: skip
_CI_DIRECTORIES = {
    ".circleci": "circleci", ".buildkite": "buildkite", ".woodpecker": "woodpecker", ".semaphore": "semaphore",
    ".teamcity": "teamcity", ".tekton": "tekton", ".azure-pipelines": "azure-pipelines",
}  # fmt: skip
_JENKINS_STAGE = lazy_pattern(r"""\s{0,80}stage\s{0,5}\(\s{0,5}["']([^"']{1,80})["']""")


def read_github_workflow(source: ProjectSource) -> Iterator[FactFinding]:
    """A workflow of GitHub Actions, with its jobs."""
    jobs = [line for line in parse_yaml_lines(source.lines) if len(line.path) == 2 and line.path[0] == "jobs"]
    if jobs:
        job_names = ", ".join(line.path[1] for line in jobs)
        yield FactFinding(
            "ci",
            f"github-actions:{_file_stem(source.name)}",
            job_names,
            first=jobs[0].number,
            last=jobs[-1].number,
        )


def read_ci_service(source: ProjectSource) -> Iterator[FactFinding]:
    """A service that is known by the place of its file."""
    name = _CI_FILES.get(source.name.casefold()) or _CI_DIRECTORIES[source.folder]
    stages = [match[1] for line in source.lines if (match := _JENKINS_STAGE.match(line[:400])) is not None]
    keys = [line.path[0] for line in parse_yaml_lines(source.lines) if len(line.path) == 1]
    yield FactFinding("ci", name, ", ".join(stages or keys))


def _file_stem(name: str) -> str:
    return name.rpartition(".")[0]


CI_READERS = (
    FactReader("*.yml *.yaml", read_github_workflow, is_exactly_in(".github/workflows")),
    FactReader(" ".join(_CI_FILES), read_ci_service, is_exactly_in()),
    FactReader("*.yml *.yaml *.kts", read_ci_service, is_exactly_in(*_CI_DIRECTORIES)),
)
