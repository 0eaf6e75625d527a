"""Results that are remembered, in a bounded size: `lru_cache` bounds their number only."""

from collections.abc import Callable
from functools import lru_cache, wraps
from typing import Concatenate, ParamSpec, TypeVar, cast

V = TypeVar("V")
P = ParamSpec("P")
Text = TypeVar("Text", str, bytes)


def remembering(
    most: int, longest: int = 4_096
) -> Callable[[Callable[Concatenate[Text, P], V]], Callable[Concatenate[Text, P], V]]:
    """Return a decorator that has a function remember its last results, as `lru_cache` does, in a bounded size.

    Args:
        most: how many results are remembered.
        longest: what is asked about longer texts is not remembered: senders choose how long they are.
    """

    def decorated(function: Callable[Concatenate[Text, P], V]) -> Callable[Concatenate[Text, P], V]:
        known = lru_cache(most)(function)

        @wraps(function)
        def remembered(text: Text, *args: P.args, **kwargs: P.kwargs) -> V:
            if len(text) > longest or (
                args and any(isinstance(arg, str | bytes) and len(arg) > longest for arg in args)
            ):
                return function(text, *args, **kwargs)
            return known(text, *args, **kwargs)  # type: ignore[arg-type]

        return cast("Callable[Concatenate[Text, P], V]", remembered)

    return decorated
