"""Continuous integration: which services run what a project's files say."""

from collections.abc import Iterator

from steersman.judges.patterns import later
from steersman.judges.planning.facts.finding import Finding, Reader, Source, at_top
from steersman.judges.planning.facts.reading import yaml_of

# Where each service looks, from the top of the project.
_PLACES = {
    ".gitlab-ci.yml": "gitlab-ci", ".gitlab-ci.yaml": "gitlab-ci", ".travis.yml": "travis-ci", "jenkinsfile": "jenkins",
    "azure-pipelines.yml": "azure-pipelines", "azure-pipelines.yaml": "azure-pipelines", "appveyor.yml": "appveyor",
    ".appveyor.yml": "appveyor", "bitbucket-pipelines.yml": "bitbucket-pipelines", ".drone.yml": "drone",
    ".cirrus.yml": "cirrus-ci", ".woodpecker.yml": "woodpecker", ".semaphore.yml": "semaphore", ".prow.yaml": "prow",
    "cloudbuild.yaml": "cloud-build", "cloudbuild.yml": "cloud-build", "codebuild.yml": "codebuild", "buildspec.yml": "codebuild",
}  # fmt: skip
_FOLDERS = {
    ".circleci": "circleci", ".buildkite": "buildkite", ".woodpecker": "woodpecker", ".semaphore": "semaphore",
    ".teamcity": "teamcity", ".tekton": "tekton", ".azure-pipelines": "azure-pipelines",
}  # fmt: skip
_STAGE = later(r"""\s{0,80}stage\s{0,5}\(\s{0,5}["']([^"']{1,80})["']""")


def workflow(source: Source) -> Iterator[Finding]:
    """A workflow of GitHub Actions, with its jobs."""
    jobs = [line for line in yaml_of(source.lines) if len(line.path) == 2 and line.path[0] == "jobs"]
    if jobs:
        said = ", ".join(line.path[1] for line in jobs)
        yield Finding(
            "ci", f"github-actions:{_stem(source.name)}", said, first=jobs[0].number, last=jobs[-1].number
        )


def service(source: Source) -> Iterator[Finding]:
    """A service that is known by the place of its file."""
    name = _PLACES.get(source.name.casefold()) or _FOLDERS[source.folder]
    stages = [found[1] for line in source.lines if (found := _STAGE.match(line[:400])) is not None]
    keys = [line.path[0] for line in yaml_of(source.lines) if len(line.path) == 1]
    yield Finding("ci", name, ", ".join(stages or keys))


def _stem(name: str) -> str:
    return name.rpartition(".")[0]


READERS = (
    Reader("*.yml *.yaml", workflow, at_top(".github/workflows")),
    Reader(" ".join(_PLACES), service, at_top()),
    Reader("*.yml *.yaml *.kts", service, at_top(*_FOLDERS)),
)
