"""What a program that searches folders will read there: by its options, from the names alone.

**Invariant:** in doubt a file is read: what is told of the options may only leave out what the program surely leaves out.
"""

from fnmatch import fnmatchcase

import msgspec

from steersman.judges.secret_names import keeps_secrets


class Search(msgspec.Struct, frozen=True, kw_only=True):
    """Where it looks, and which names it takes in and leaves out."""

    roots: tuple[str, ...]
    only: tuple[str, ...] = ()
    without: tuple[str, ...] = ()
    without_folders: tuple[str, ...] = ()
    hidden: bool = True  # whether names with a dot in front are searched

    def reads(self, name: str) -> bool:
        """Whether a file of this name below a root may be opened."""
        *folders, last = name.split("/")
        if not self.hidden and any(part.startswith(".") for part in (*folders, last)):
            return False
        if any(fnmatchcase(part, glob) for part in folders for glob in self.without_folders):
            return False
        if any(fnmatchcase(last.casefold(), glob.casefold()) for glob in self.only):
            return True
        if any(fnmatchcase(last, glob) for glob in self.without):
            return False
        return not self.only or bool(self.without)

    def shows(self, root: str, name: str) -> bool:
        """Whether it would open a file below a root that looks like one with secrets."""
        return keeps_secrets(f"{root}/{name}") and self.reads(name)
