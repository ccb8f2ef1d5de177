"""steersman drives AI coding agents through explicit, guarded state machines.

The machine decides, agents propose, people approve, and everything is on tape.
"""

__version__ = "0.1.0"
