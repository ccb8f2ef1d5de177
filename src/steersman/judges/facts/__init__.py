"""What the files of a project say about it: one module for each ecosystem, with tables and short readers.

**Invariant:** pure and total. A reader gets a path and an untrusted text, returns findings, and never raises.
"""
