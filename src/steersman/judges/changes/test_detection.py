"""Product code that asks in plain words whether it is being tested, or that is equal to everything.

The base's own tests cannot judge such code: it passes them and is wrong outside. A match that the base has too is none.
**Invariant:** pure; a match only asks a person, and its absence proves nothing (SECURITY.md).
"""

import ast
import re

DETECTS_TESTS_REASON = "the new code asks whether it is being tested"
ALWAYS_EQUAL_REASON = "the new code has a value that is equal to everything"

_TEST_DETECTION = re.compile(
    r"""
      \bPYTEST_(?:CURRENT_TEST|VERSION|XDIST_WORKER)\b | \bsys\.(?:modules|argv\[0\])[^\n]*(?:pytest|unittest)
    | ['"](?:_?pytest|unittest)['"]\s+(?:not\s+)?in\s+sys\.modules
    | \bNODE_TEST_CONTEXT\b | \bJEST_WORKER_ID\b | \bVITEST(?:_WORKER_ID|_POOL_ID)?\b
    | process\.(?:exec)?[aA]rgv[^\n]*['"`]--test | \.stack\b[^\n]{0,200}\btest
    | \btesting\.Testing\(\) | \bflag\.Lookup\(\s*"test\. | os\.Args\[0\][^\n]*\.test\b
    | \b(?:_getframe|currentframe|inspect\.stack|f_back|runtime\.Callers?)\b[\s\S]{0,300}?(?:['"]_?[tT]est|_test\.go)
    | \bMAKE(?:LEVEL|FLAGS)\b | \bRUST_TEST_THREADS\b | \bSTEERSMAN_(?:EFFECT|CALL|WITNESS)\b
    """,
    re.VERBOSE,
)


def find_test_detection(old: str, new: str) -> str | None:
    """Why a person should look at new product code, in one sentence; None where nothing of the kind was added."""
    if len(_TEST_DETECTION.findall(new)) > len(_TEST_DETECTION.findall(old)):
        return DETECTS_TESTS_REASON
    return ALWAYS_EQUAL_REASON if _count_blind_comparisons(new) > _count_blind_comparisons(old) else None


def _count_blind_comparisons(text: str) -> int:
    """Python's `__eq__` methods that never look at what they compare with."""
    try:
        nodes = list(ast.walk(ast.parse(text))) if "__eq__" in text else []
    except (SyntaxError, ValueError, RecursionError):  # another language, or no program at all
        return 0
    methods = [node for node in nodes if isinstance(node, ast.FunctionDef) and node.name == "__eq__"]
    return sum(not _uses_second_argument(method) for method in methods)


def _uses_second_argument(method: ast.FunctionDef) -> bool:
    names = [argument.arg for argument in (*method.args.posonlyargs, *method.args.args)][1:2]
    used = {node.id for part in method.body for node in ast.walk(part) if isinstance(node, ast.Name)}
    return not names or names[0] in used
