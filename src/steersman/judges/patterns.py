"""Patterns that are compiled when they are first asked: all of them together cost more than most commands do.

**Invariant:** what is asked of one is answered by the compiled pattern itself.
"""

import re
from typing import Any, cast

_PATTERN_METHODS = ("search", "match", "fullmatch", "findall", "finditer", "split", "sub", "subn")


class _LazyPattern:
    def __init__(self, pattern: str, flags: int) -> None:
        self.pattern, self.flags = pattern, flags

    def __getattr__(self, name: str) -> Any:
        """Only reached for what is not there yet."""
        if name not in _PATTERN_METHODS:
            raise AttributeError(name)
        compiled = re.compile(self.pattern, self.flags)
        vars(self).update({method: getattr(compiled, method) for method in _PATTERN_METHODS})
        return vars(self)[name]


def lazy_pattern(pattern: str, flags: int = 0) -> re.Pattern[str]:
    """The pattern, compiled when it is first asked."""
    return cast("re.Pattern[str]", _LazyPattern(pattern, flags))
