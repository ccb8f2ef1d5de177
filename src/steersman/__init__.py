"""steersman keeps a crew of AI coding agents on a proven course.

The machine decides, agents propose, people approve, and everything is on tape.
"""

__version__ = "0.1.0"
