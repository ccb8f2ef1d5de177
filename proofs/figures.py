"""What every proof says about itself, and how it is started by hand."""

import argparse
import json
import platform
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import apsw

import steersman


def stamp(quick: bool, seed: int | str) -> dict[str, Any]:
    """When, with what, from which seed."""
    git = subprocess.run(["git", "--version"], capture_output=True, text=True, check=False).stdout.strip()
    return {
        "quick": quick,
        "seed": seed,
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
        "versions": {
            "steersman": getattr(steersman, "__version__", "0.1.0"),
            "python": platform.python_version(),
            "sqlite": apsw.sqlite_lib_version(),
            "git": git.removeprefix("git version "),
            "system": f"{platform.system()} {platform.machine()}",
        },
    }


def main(name: str) -> int:
    """`python proofs/<name>.py [--quick]`: proves, prints, keeps the figures of a whole proof."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true", help="a sample")
    module = sys.modules[name]
    result = module.prove(parser.parse_args().quick)
    print("\n".join([*module.describe_result(result), f"   {'holds' if result['ok'] else 'FAILS'}"]))
    if not result["quick"]:
        path = Path(module.__file__ or "").with_suffix(".json")
        path.write_text(json.dumps(result, indent=2) + "\n")
    return 0 if result["ok"] else 1
