"""What the files of a project say about it: one module for each kind of project, tables and short readers.

**Invariant:** pure and total: a reader is given a path and a text written by strangers, answers with findings, and never
raises, whatever the text is.
"""
