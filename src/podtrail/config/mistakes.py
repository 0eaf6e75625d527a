"""Several mistakes at once, each with its place: what a validator raises that reads more than one value."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import NamedTuple, TypeVar

from podtrail.config.model import WarningPath

T = TypeVar("T")
R = TypeVar("R")


class Mistake(NamedTuple):
    """What is wrong with one value."""

    path: WarningPath
    """Below the model that raises it."""
    message: str
    """What stands behind a semicolon says what would be right."""


class Mistakes(ValueError):
    """Raised by a validator with all that it found; each mistake is reported by itself, at its own key."""

    def __init__(self, found: Sequence[Mistake]) -> None:
        super().__init__("; ".join(dict.fromkeys(mistake.message for mistake in found)))
        self.found = found


@contextmanager
def below(*path: str | int) -> Iterator[None]:
    """Put a path before those of the mistakes that are found within.

    Raises:
        Mistakes: those found within, each below the path.
    """
    try:
        yield
    except Mistakes as error:
        raise Mistakes([mistake._replace(path=(*path, *mistake.path)) for mistake in error.found]) from None


def together(*makes: Callable[[], R]) -> list[R]:
    """Return what each makes.

    Raises:
        Mistakes: those of all of them, when one has any.
    """
    made: list[R] = []
    wrong: list[Mistake] = []
    for make in makes:
        try:
            made.append(make())
        except Mistakes as error:
            wrong += error.found
    if wrong:
        raise Mistakes(wrong)
    return made


def each(make: Callable[[T], R], values: Iterable[T]) -> list[R]:
    """Return what is made of each value. Mistakes for all of which nothing can be made, at their place in the list."""
    return together(*(partial(_at, at, make, value) for at, value in enumerate(values)))


def _at(at: int, make: Callable[[T], R], value: T) -> R:
    with below(at):
        try:
            return make(value)
        except Mistakes:
            raise
        except ValueError as error:
            raise Mistakes([Mistake((), str(error))]) from None
