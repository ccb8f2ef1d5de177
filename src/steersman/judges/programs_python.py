"""Which parts of a Python file run when it is imported, and which when it is started as a program.

**Invariant:** pure; a name is followed inside its file, and no further.
"""

import ast
import re
from collections.abc import Iterator

_BEGINS = re.compile(r"_?(?:main|\w+_main|main_\w+|cli|run|entry_?point|\w*usage|\w*shutdown|cmd_\w+)")
_SET_UP = {"setup_module": "teardown_module", "setUpModule": "tearDownModule"}
_Functions = dict[str, ast.FunctionDef | ast.AsyncFunctionDef]


def begins(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Whether a program begins with this function: by its name, or as a command of a command line."""
    calls = [d.func if isinstance(d, ast.Call) else d for d in node.decorator_list]
    command = any(isinstance(d, ast.Attribute) and d.attr in ("command", "group") for d in calls)
    return command or _BEGINS.fullmatch(node.name) is not None


def says_failure(node: ast.expr) -> bool:
    """Whether an exit code is certainly none of a success: a number but zero, a text."""
    match node:
        case ast.Constant(value):
            return bool(value)
        case ast.JoinedStr() | ast.UnaryOp(op=ast.USub()) | ast.Call(func=ast.Name("str" | "repr")):
            return True
        case ast.BinOp(left=left):
            return isinstance(left, ast.Constant | ast.JoinedStr) and not isinstance(
                getattr(left, "value", ""), int
            )
        case _:
            return False


def run_at_import(tree: ast.Module, *, test: bool) -> frozenset[str]:
    """The functions of a file that run when it is imported: called at its top, or by one that is."""
    functions = {n.name: n for n in tree.body if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)}
    waiting = [name for node in tree.body for name in _called(node, functions)]
    if test:
        waiting += [up for up, down in _SET_UP.items() if up in functions and down not in functions]
    reached: set[str] = set()
    while waiting:
        name = waiting.pop()
        if name not in reached:
            reached.add(name)
            waiting += [n for child in functions[name].body for n in _called(child, functions)]
    return frozenset(reached)


def _called(node: ast.AST, functions: _Functions) -> Iterator[str]:
    """The functions that a statement calls; what it only defines, or runs as a program of its own, it does not call."""
    waiting = [node]
    while waiting:
        one = waiting.pop()
        if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            continue
        if isinstance(one, ast.Call) and isinstance(one.func, ast.Name) and one.func.id in functions:
            yield one.func.id
        waiting += [child for child in ast.iter_child_nodes(one) if not guards(one, child)]


def guards(node: ast.AST, child: ast.AST) -> bool:
    """Whether a node runs a part of it only as a program of its own, and this is that part."""
    match node:
        case ast.If(
            test=ast.Compare(ast.Name("__name__"), [ast.Eq()], [ast.Constant("__main__")]), body=body
        ) if child in body:
            return True
        case _:
            return False
