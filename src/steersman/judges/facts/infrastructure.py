"""Infrastructure as code: Terraform, Kubernetes, Helm, Kustomize, Ansible, Pulumi and hosting services."""

from collections.abc import Iterator

from steersman.judges.facts.finding import FactFinding, FactReader, ProjectSource, is_anywhere_below
from steersman.judges.facts.reading import parse_yaml_lines
from steersman.judges.patterns import lazy_pattern

_TERRAFORM_BLOCK = lazy_pattern(r"""(?:provider|resource|module)[ \t]{1,5}"([\w-]{1,100})\"""")
_INFRASTRUCTURE_FILES = {
    "kustomization.yaml": "kustomize", "kustomization.yml": "kustomize", "ansible.cfg": "ansible", "pulumi.yaml": "pulumi",
    "cdk.json": "aws-cdk", "serverless.yml": "serverless", "serverless.yaml": "serverless", "template.yaml": "cloudformation",
    "fly.toml": "fly.io", "vercel.json": "vercel", "netlify.toml": "netlify", "procfile": "procfile", "app.yaml": "app-engine",
    "skaffold.yaml": "skaffold", "tiltfile": "tilt", "render.yaml": "render", "wrangler.toml": "cloudflare-workers",
    "firebase.json": "firebase", "nomad.hcl": "nomad", "vagrantfile": "vagrant", "flake.nix": "nix",
}  # fmt: skip
_IDENTIFYING_TEXTS = {"cloudformation": "AWSTemplateFormatVersion", "app-engine": "runtime:"}


def read_terraform(source: ProjectSource) -> Iterator[FactFinding]:
    """A folder of Terraform: what its first block is about."""
    for number, line in enumerate(source.lines, 1):
        match = _TERRAFORM_BLOCK.match(line)
        if match is not None:
            yield FactFinding("infrastructure", "terraform", match[1], root=source.folder).at(number)
            return


def read_helm_chart(source: ProjectSource) -> Iterator[FactFinding]:
    """A chart."""
    for line in parse_yaml_lines(source.lines):
        if line.path == ("name",) and line.value:
            yield FactFinding("infrastructure", f"helm:{line.value}", "", root=source.folder).at(line.number)
            return


def read_kubernetes_manifest(source: ProjectSource) -> Iterator[FactFinding]:
    """An object of Kubernetes."""
    keys = {line.path: line for line in parse_yaml_lines(source.lines) if len(line.path) == 1}
    if ("apiVersion",) in keys and ("kind",) in keys:
        kind = keys["kind",]
        yield FactFinding("infrastructure", "kubernetes", kind.value, root=source.folder).at(kind.number)


def read_infrastructure_file(source: ProjectSource) -> Iterator[FactFinding]:
    """A file that one tool alone has; two of the names are common, and their content has to say so."""
    name = _INFRASTRUCTURE_FILES[source.name.casefold()]
    mark = _IDENTIFYING_TEXTS.get(name, "")
    line = source.line_with(mark) if mark else 0
    if not mark or line:
        yield FactFinding("infrastructure", name, root=source.folder).at(line)


INFRASTRUCTURE_READERS = (
    FactReader("*.tf", read_terraform),
    FactReader("chart.yaml", read_helm_chart),
    FactReader(
        "*.yml *.yaml",
        read_kubernetes_manifest,
        is_anywhere_below("k8s", "kubernetes", "manifests", "deploy", "deployment", "kube"),
    ),
    FactReader(" ".join(_INFRASTRUCTURE_FILES), read_infrastructure_file),
)
