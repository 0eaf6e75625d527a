"""Reading fields of the API's JSON; whatever has the wrong shape is told with its path."""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, TypeVar

from podtrail_scheduler.objects.quantities import nano_units

Json = Mapping[str, Any]
Made = TypeVar("Made")

NOTHING: Json = {}
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Misshapen(ValueError):
    """A value that scheduling needs and cannot read; the text has its path and what would be right."""

    def __init__(self, problem: str, *path: str) -> None:
        self.problem = problem
        self.path = tuple(part for part in path if part)
        super().__init__(f"{'.'.join(self.path)}: {problem}")

    def within(self, place: str) -> "Misshapen":
        """The same, told from `place` on."""
        return Misshapen(self.problem, place, *self.path)


def part(parent: Json, name: str, at: str = "") -> Json:
    """A mapping inside; empty when it is absent or null."""
    found = parent.get(name)
    if found is None:
        return NOTHING
    if not isinstance(found, dict):
        raise _wanted("a mapping", found, at, name)
    return found


def text(parent: Json, name: str, at: str = "", default: str = "") -> str:
    """A string."""
    found = parent.get(name)
    if found is None:
        return default
    if not isinstance(found, str):
        raise _wanted("a string", found, at, name)
    return found


def whole(parent: Json, name: str, at: str = "") -> int | None:
    """An integer, None when it is absent or null."""
    found = parent.get(name)
    if found is None or type(found) is int:
        return found
    raise _wanted("an integer", found, at, name)


def flag(parent: Json, name: str, at: str = "", *, default: bool = False) -> bool:
    """A boolean."""
    found = parent.get(name)
    if found is None:
        return default
    if not isinstance(found, bool):
        raise _wanted("true or false", found, at, name)
    return found


def texts(parent: Json, name: str, at: str = "") -> tuple[str, ...]:
    """A list of strings."""
    found = parent.get(name)
    if found is None:
        return ()
    if not isinstance(found, list) or not all(isinstance(each, str) for each in found):
        raise _wanted("a list of strings", found, at, name)
    return tuple(found)


def labels(parent: Json, name: str, at: str = "") -> Mapping[str, str]:
    """A mapping of strings to strings."""
    found = parent.get(name)
    if found is None:
        return {}
    if not isinstance(found, dict):
        raise _wanted("a mapping of strings", found, at, name)
    for key, value in found.items():
        if type(value) is not str:
            raise _wanted("a string", value, at, name, key)
    return found


def moment(parent: Json, name: str, at: str = "") -> int | None:
    """An RFC 3339 time in unix nanoseconds, None when it is absent or null."""
    found = parent.get(name)
    if found is None:
        return None
    try:
        since = datetime.fromisoformat(found) - _EPOCH
    except (TypeError, ValueError):
        raise _wanted("an RFC 3339 time such as 2026-11-22T12:00:00Z", found, at, name) from None
    return ((since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds) * 1_000


def quantities(parent: Json, name: str, at: str = "") -> dict[str, int]:
    """Resource names to amounts in billionths."""
    found = parent.get(name)
    if found is None:
        return {}
    if not isinstance(found, dict):
        raise _wanted("a mapping of resource names to quantities", found, at, name)
    try:
        return {key: nano_units(value) for key, value in found.items()}
    except (TypeError, ValueError):
        for key in found:
            quantity(found, key, f"{at}.{name}" if at else name)
        raise


def quantity(parent: Json, name: str, at: str = "") -> int | None:
    """One amount in billionths, None when it is absent or null."""
    found = parent.get(name)
    if found is None:
        return None
    try:
        return nano_units(found)
    except (TypeError, ValueError):
        raise _wanted("a quantity such as 2, 500m or 1Gi", found, at, name) from None


def items(parent: Json, name: str, make: Callable[[Json], Made], at: str = "") -> tuple[Made, ...]:
    """What `make` makes of each mapping of a list; its complaints get the path."""
    found = parent.get(name)
    if not found:
        return ()
    if not isinstance(found, list):
        raise _wanted("a list", found, at, name)
    made = []
    for index, each in enumerate(found):
        if not isinstance(each, dict):
            raise _wanted("a mapping", each, at, f"{name}[{index}]")
        try:
            made.append(make(each))
        except Misshapen as error:
            raise error.within(f"{at}.{name}[{index}]" if at else f"{name}[{index}]") from None
    return tuple(made)


def inner(parent: Json, name: str, make: Callable[[Json], Made], at: str = "") -> Made | None:
    """What `make` makes of a mapping, None when that is absent or null; its complaints get the path."""
    if parent.get(name) is None:
        return None
    found = part(parent, name, at)
    try:
        return make(found)
    except Misshapen as error:
        raise error.within(f"{at}.{name}" if at else name) from None


def _wanted(what: str, found: object, *path: str) -> Misshapen:
    return Misshapen(f"{found!r:.80} is not {what}", *path)
