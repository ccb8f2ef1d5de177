"""One test for many cases of one claim: cheaper than a test for each of them, and a failure still names its case."""

import functools
import inspect
from collections.abc import Callable, Iterable, Sequence
from typing import Any


def for_each_case(
    names: str | Sequence[str], cases: Iterable[Any]
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Runs a test once per case, as `pytest.mark.parametrize` does, but in one test; its fixtures are shared."""
    wanted = [name.strip() for name in names.split(",")] if isinstance(names, str) else list(names)
    listed = list(cases)
    assert listed, f"there is no case of {names}"

    def decorate(test: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(test)
        def run_cases(*args: Any, **fixtures: Any) -> None:
            for case in listed:
                values = case if len(wanted) > 1 else (case,)
                try:
                    test(*args, **fixtures, **dict(zip(wanted, values, strict=True)))
                except BaseException as error:
                    error.add_note(f"the case: {case!r}")
                    raise

        signature = inspect.signature(test)
        left = [p for name, p in signature.parameters.items() if name not in wanted]
        run_cases.__signature__ = signature.replace(parameters=left)  # type: ignore[attr-defined]
        return run_cases

    return decorate
