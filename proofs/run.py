"""Runs every proof in this folder and keeps its figures beside it.

    python proofs/run.py [--quick] [name …]

A proof is a module with `prove(quick) -> dict`; the dict says `ok` and goes to `<name>.json`. One that fails, or breaks,
fails the whole, after the others have run. A quick run keeps nothing: its figures are a sample.
"""

import argparse
import importlib
import json
import sys
import time
import traceback
from pathlib import Path
from types import ModuleType
from typing import Any

HERE = Path(__file__).parent


def proofs(names: list[str]) -> list[tuple[str, ModuleType]]:
    """The modules that prove something, by name; those asked for, or all."""
    sys.path.insert(0, str(HERE))
    found = [p.stem for p in sorted(HERE.glob("*.py")) if p.stem != "run"]
    unknown = sorted(set(names) - set(found))
    if unknown:
        sys.exit(f"there is no proof {', '.join(unknown)}")
    modules = [(name, importlib.import_module(name)) for name in found if not names or name in names]
    return [(name, module) for name, module in modules if hasattr(module, "prove")]


def run(name: str, module: ModuleType, *, quick: bool) -> bool:
    """Proves one thing, prints its figures, keeps them."""
    print(f"── {name}", flush=True)
    began = time.monotonic()
    try:
        result: dict[str, Any] = module.prove(quick)
    except Exception:
        traceback.print_exc()
        return False
    lines = (
        module.describe_result(result)
        if hasattr(module, "describe_result")
        else [json.dumps(result, indent=2)]
    )
    ok = result.get("ok") is True
    print(
        "\n".join([*lines, f"   {'holds' if ok else 'FAILS'}, {time.monotonic() - began:.0f} s"]), flush=True
    )
    if not quick:
        (HERE / f"{name}.json").write_text(json.dumps(result, indent=2) + "\n")
    return ok


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true", help="a sample of each")
    parser.add_argument("names", nargs="*")
    asked = parser.parse_args()
    results = [run(name, module, quick=asked.quick) for name, module in proofs(asked.names)]
    return 0 if results and all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
