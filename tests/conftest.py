"""What every suite stands on: the interpreter that runs the tests is also the `python3` that checks find.

A version manager's stand-in for `python3` starts some thirty shells per call; that would be half of the suite's time.
"""

import os
import sys
from pathlib import Path

from hypothesis import settings

# How long an example takes says something about the machine, nothing about the code.
settings.register_profile("unhurried", deadline=None)
settings.load_profile("unhurried")
os.environ["PATH"] = f"{Path(sys.executable).resolve().parent}{os.pathsep}{os.environ['PATH']}"
