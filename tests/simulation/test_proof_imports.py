"""The proofs start: they are run so seldom that a name they import can be gone for long."""

import importlib
from pathlib import Path

PROOFS = Path(__file__).parents[2] / "proofs"


def test_every_proof_finds_what_it_imports():
    """Every module of proofs/ is imported, and every one that proves something describes its result."""
    for path in sorted(PROOFS.glob("*.py")):
        module = importlib.import_module(path.stem)
        assert hasattr(module, "prove") <= hasattr(module, "describe_result"), path.stem
