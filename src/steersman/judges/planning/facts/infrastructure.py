"""Infrastructure as code: Terraform, Kubernetes, Helm, Kustomize, Ansible, Pulumi and hosting services."""

from collections.abc import Iterator

from steersman.judges.patterns import later
from steersman.judges.planning.facts.finding import Finding, Reader, Source, below
from steersman.judges.planning.facts.reading import yaml_of

_BLOCK = later(r"""(?:provider|resource|module)[ \t]{1,5}"([\w-]{1,100})\"""")
_KNOWN = {
    "kustomization.yaml": "kustomize", "kustomization.yml": "kustomize", "ansible.cfg": "ansible", "pulumi.yaml": "pulumi",
    "cdk.json": "aws-cdk", "serverless.yml": "serverless", "serverless.yaml": "serverless", "template.yaml": "cloudformation",
    "fly.toml": "fly.io", "vercel.json": "vercel", "netlify.toml": "netlify", "procfile": "procfile", "app.yaml": "app-engine",
    "skaffold.yaml": "skaffold", "tiltfile": "tilt", "render.yaml": "render", "wrangler.toml": "cloudflare-workers",
    "firebase.json": "firebase", "nomad.hcl": "nomad", "vagrantfile": "vagrant", "flake.nix": "nix",
}  # fmt: skip
_MARKS = {"cloudformation": "AWSTemplateFormatVersion", "app-engine": "runtime:"}


def terraform(source: Source) -> Iterator[Finding]:
    """A folder of Terraform: what its first block is about."""
    for number, line in enumerate(source.lines, 1):
        found = _BLOCK.match(line)
        if found is not None:
            yield Finding("infrastructure", "terraform", found[1], root=source.folder).at(number)
            return


def helm(source: Source) -> Iterator[Finding]:
    """A chart."""
    for line in yaml_of(source.lines):
        if line.path == ("name",) and line.value:
            yield Finding("infrastructure", f"helm:{line.value}", "", root=source.folder).at(line.number)
            return


def manifest(source: Source) -> Iterator[Finding]:
    """An object of Kubernetes."""
    keys = {line.path: line for line in yaml_of(source.lines) if len(line.path) == 1}
    if ("apiVersion",) in keys and ("kind",) in keys:
        kind = keys["kind",]
        yield Finding("infrastructure", "kubernetes", kind.value, root=source.folder).at(kind.number)


def known(source: Source) -> Iterator[Finding]:
    """A file that one tool alone has; two of the names are common, and their content has to say so."""
    name = _KNOWN[source.name.casefold()]
    mark = _MARKS.get(name, "")
    line = source.line_with(mark) if mark else 0
    if not mark or line:
        yield Finding("infrastructure", name, root=source.folder).at(line)


READERS = (
    Reader("*.tf", terraform),
    Reader("chart.yaml", helm),
    Reader("*.yml *.yaml", manifest, below("k8s", "kubernetes", "manifests", "deploy", "deployment", "kube")),
    Reader(" ".join(_KNOWN), known),
)
