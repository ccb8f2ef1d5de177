"""Chooses a workflow for a goal by counting words of a table. A person can repeat the count by hand.

**Invariant:** no model takes part, and the score is the number of different words that match. The same goal has the same
answer.
"""

import re
from typing import NamedTuple, cast

from steersman.contracts.planning.content import Workflow
from steersman.contracts.planning.words import ProjectArea
from steersman.judges.planning.registry import Registry

# In the order in which they are taken where two fit equally well: the graver first. Several words are an order: they fit
# where a part of the sentence begins with them, so that a deploy that fails is a mistake, and to deploy it is a release.
WORKFLOW_WORDS: dict[str, tuple[str, ...]] = {
    "wf_incident": ("incident", "outage", "hotfix", "production", "down", "emergency", "故障"),
    "wf_security_fix": (
        "security", "vulnerability", "vulnerable", "cve", "injection", "xss", "csrf", "exploit", "leak", "secret",
        "password", "漏洞", "安全",
    ),
    "wf_data_migration": ("migration", "migrate", "schema", "database", "table", "column", "backfill", "迁移", "数据库"),
    "wf_release": (
        "release", "publish", "tag", "ship", "changelog", "production", "deploy to", "deploy the", "deploy a", "deploy it",
        "deploy version", "roll out", "发布", "部署到",
    ),
    "wf_dependency_upgrade": ("upgrade", "dependency", "dependencies", "bump", "package", "library", "outdated", "升级", "依赖"),
    "wf_refactor": ("refactor", "restructure", "simplify", "rename", "extract", "clean", "tidy", "split", "deduplicate", "重构"),
    "wf_documentation": ("document", "documentation", "doc", "readme", "guide", "tutorial", "docstring", "explain", "文档"),
    "wf_bug_fix": (
        "fix", "bug", "mend", "repair", "broken", "wrong", "fail", "failure", "error", "crash", "regression", "defect",
        "incorrect", "修复", "错误",
    ),
    "wf_feature": ("add", "feature", "implement", "support", "new", "introduce", "create", "build", "allow", "新增", "功能"),
}  # fmt: skip
DEFAULT_WORKFLOW = "wf_feature"

AREA_WORDS: dict[ProjectArea, tuple[str, ...]] = {
    "frontend": ("frontend", "ui", "css", "browser", "page", "button"),
    "backend": ("backend", "server", "api", "endpoint", "handler"),
    "infra": ("infra", "infrastructure", "terraform", "kubernetes", "helm", "docker", "container"),
    "docs": ("doc", "documentation", "readme", "guide", "tutorial", "文档"),
    "tests": ("test", "测试"),
    "ops": ("deploy", "deployment", "pipeline", "ci", "monitoring"),
    "security": ("security", "vulnerability", "cve", "password", "安全"),
    "data": ("database", "migration", "schema", "数据库"),
}

_GOAL_WORD = re.compile(r"[^\W\d_]+")
_GOAL_WORD_ENDINGS = ("", "s", "es", "d", "ed", "ing")
# A part of the sentence that names a file: no blank, and a folder or an ending of letters.
_GOAL_FILE = re.compile(r"(?<![\w/.~-])((?:[\w.-]+/)+[\w.-]*\w|[\w-]+\.[a-z]{1,5})(?![\w/])", re.ASCII)


class WorkflowChoice(NamedTuple):
    """A workflow, and why this one."""

    workflow: Workflow
    why: str


def choose_workflow(goal: str, registry: Registry) -> WorkflowChoice | None:
    """The usable workflow with the most words of the goal; None where the registry has none at all."""
    usable = {w.id: cast("Workflow", w) for w in registry.all_usable("workflow")}
    ranks = {id_: n for n, id_ in enumerate(WORKFLOW_WORDS)}
    fits = {
        id_: _matching_goal_words(goal, (*WORKFLOW_WORDS.get(id_, ()), *_workflow_name_words(id_)))
        for id_ in usable
    }
    best = min(usable, key=lambda id_: (-len(fits[id_]), ranks.get(id_, len(ranks)), id_), default=None)
    if best is None:
        return None
    if fits[best]:
        return WorkflowChoice(usable[best], f"the goal says {', '.join(fits[best])}")
    plain = usable.get(DEFAULT_WORKFLOW, usable[best])
    return WorkflowChoice(plain, "no word of the goal asks for another one")


def find_goal_areas(goal: str) -> tuple[ProjectArea, ...]:
    """The areas that the goal speaks of."""
    return tuple(area for area, words in AREA_WORDS.items() if _matching_goal_words(goal, words))


def find_goal_files(goal: str) -> tuple[str, ...]:
    """What the goal says that could be a file, in its order; whether there is such a file is for others to say."""
    return tuple(dict.fromkeys(match[1] for match in _GOAL_FILE.finditer(goal)))


def _workflow_name_words(id_: str) -> tuple[str, ...]:
    """The words of a workflow's own name, so that a project's workflows can be asked for too."""
    return tuple(word for word in id_.split("_") if len(word) > 3)


def _matching_goal_words(goal: str, words: tuple[str, ...]) -> list[str]:
    """The different words of a table that a goal has, with the usual endings; other scripts by their letters."""
    small = goal.casefold()
    goal_words = set(_GOAL_WORD.findall(small))
    return [w for w in dict.fromkeys(words) if _has_goal_word(w, goal_words, small)]


def _has_goal_word(word: str, words: set[str], goal: str) -> bool:
    if not word.isascii():
        return word in goal
    if " " in word:
        return re.search(rf"(?:^|[.,;:]|\b(?:and|then)\b)\s*{word}\b", goal) is not None
    stems = (word, word.removesuffix("e"))
    return any(
        stem + ending in words for stem in stems for ending in _GOAL_WORD_ENDINGS if stem == word or ending
    )
