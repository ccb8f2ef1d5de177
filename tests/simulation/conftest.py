"""Samples of the long proofs: the same code, fewer points."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "proofs"))
