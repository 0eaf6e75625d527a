"""Values of expressions: Python's None, bool, int, float, str, list and mapping, and these."""

import re
from dataclasses import dataclass
from functools import total_ordering
from typing import NamedTuple

from podtrail_scheduler.objects.quantities import NANO, nano_units

_VERSION = re.compile(
    r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(?:-([0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*))?(?:\+([0-9A-Za-z-.]+))?"
)


class CelError(Exception):
    """An expression that cannot be read, or that has no value."""


@total_ordering
@dataclass(frozen=True, slots=True)
class Quantity:
    """A Kubernetes quantity, in billionths."""

    billionths: int

    def __lt__(self, other: "Quantity") -> bool:
        return self.billionths < other.billionths

    @property
    def whole(self) -> bool:
        """Whether it is an integer."""
        return self.billionths % NANO == 0


@total_ordering
class Semver(NamedTuple):
    """A semantic version; what follows a plus sign does not count."""

    major: int
    minor: int
    patch: int
    prerelease: tuple[str, ...] = ()

    def __lt__(self, other: object) -> bool:
        assert isinstance(other, Semver)
        return self._rank < other._rank

    @property
    def _rank(self) -> tuple[tuple[int, int, int], bool, tuple[tuple[bool, int, str], ...]]:
        """A version comes after its pre-releases; their parts are compared as numbers before texts."""
        parts = tuple((not part.isdigit(), int(part) if part.isdigit() else 0, part) for part in self.prerelease)
        return self[:3], not self.prerelease, parts


class Optional(NamedTuple):
    """A value that may be absent."""

    present: bool
    value: object = None


NONE = Optional(present=False)


def quantity(text: object) -> Quantity:
    """The quantity that `text` writes.

    Raises:
        CelError: it is none.
    """
    if not isinstance(text, str):
        raise CelError("no such overload: quantity")
    try:
        return Quantity(nano_units(text))
    except ValueError as error:
        raise CelError(str(error)) from error


def semver(text: object) -> Semver:
    """The version that `text` writes.

    Raises:
        CelError: it is none.
    """
    match = _VERSION.fullmatch(text) if isinstance(text, str) else None
    if match is None:
        raise CelError(f"no semantic version: {text!r}")
    return Semver(int(match[1]), int(match[2]), int(match[3]), tuple(match[4].split(".")) if match[4] else ())


def kind_of(value: object) -> str:
    """The name of the value's type."""
    if isinstance(value, bool):
        return "bool"
    names = {int: "int", float: "double", str: "string", type(None): "null_type", list: "list", tuple: "list"}
    return names.get(type(value), type(value).__name__.lower())


def equal(left: object, right: object) -> bool:
    """Numbers compare across their types; values of other different types are different."""
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    if isinstance(left, (list, tuple)) and isinstance(right, (list, tuple)) and not isinstance(left, Semver):
        return len(left) == len(right) and all(equal(a, b) for a, b in zip(left, right, strict=True))
    return left == right
