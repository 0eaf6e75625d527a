"""Pickles in which the objects of a chain stand by their number, and from which only known classes can be made."""

import importlib
import pickle
import re
import sys
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from functools import reduce
from io import BytesIO
from ipaddress import IPv4Address, IPv6Address
from random import Random
from types import MappingProxyType
from typing import Any, Final
from uuid import UUID

from podtrail.pipeline.checkpoint.errors import CheckpointError
from podtrail.pipeline.checkpoint.kinds import keeps_nothing, name_of

_PROTOCOL: Final = 5
_OF_PYTHON: Final = frozenset(
    map(
        name_of,
        (
            *(
                Counter,
                OrderedDict,
                defaultdict,
                deque,
                Random,
                object,
                set,
                frozenset,
                bytearray,
                complex,
                range,
                slice,
            ),
            *(bool, int, float, str, bytes, list, dict, tuple, date, datetime, time, timedelta, timezone),
            *(Decimal, Fraction, UUID, IPv4Address, IPv6Address),
        ),
    )
)
_TAKES_APART: Final = MappingProxyType
_OURS: Final = "podtrail"
_PROCESSORS: Final = "podtrail_processors"
_HARMLESS: Final = frozenset(
    {"component", "config", "lru", "otlp", "pipeline", "pod_identity", "policy", "reconstruction", "story"}
)
"""Rooms of podtrail's in which nothing that is made opens a file, a socket or a process."""
_LONGEST_RANGE: Final = 1 << 20
_WHOLE: Final = re.compile(r"-?[0-9]+(/[0-9]+)?")


class Packages:
    """Where things are that a pickle names: podtrail's packages, those of a chain's processors, Python's values."""

    def __init__(self, modules: Iterable[str]) -> None:
        self._names = {module.partition(".")[0] for module in modules} - sys.stdlib_module_names
        self._of_constants: dict[type, bool] = {}
        """By class whether it makes constants of what modules have: ten thousand values, of a few hundred classes."""

    def _has(self, module: str) -> bool:
        package = module.partition(".")[0]
        return package == _OURS or package.startswith(f"{_OURS}_") or package in self._names

    def have(self, cls: type) -> bool:
        """Say whether objects of a class may be made."""
        return self._may_make(cls.__module__) or name_of(cls) in _OF_PYTHON

    def _may_make(self, module: str) -> bool:
        package, _, rest = module.partition(".")
        if package == _OURS:
            return rest.partition(".")[0] in _HARMLESS
        return package == _PROCESSORS or package in self._names

    def find(self, name: str) -> type:
        """Return a class by its name, `module:Class`.

        Raises:
            CheckpointError: there is none, or its objects may not be made.
        """
        if name not in _OF_PYTHON and not self._may_make(name.partition(":")[0]):
            raise CheckpointError(f"{name} is nothing of a processor's")
        found = self._find(name, within=name in _OF_PYTHON)
        if not isinstance(found, type):
            raise CheckpointError(f"{name} is no class")
        return found

    def constants(self) -> dict[str, Any]:
        """Return the constants of all modules, by `module:NAME`: who compares with `is` means these very objects."""
        of_constants = self._of_constants
        found: dict[int, tuple[str, Any]] = {}
        for module in sorted(filter(self._has, sys.modules.copy())):
            for name, value in vars(sys.modules[module]).copy().items():
                cls = type(value)
                if cls not in of_constants:
                    of_constants[cls] = self._is_of_constants(cls)
                if of_constants[cls]:
                    found.setdefault(id(value), (f"{module}:{name}", value))
        return dict(found.values())

    def constant(self, name: str) -> Any:
        """Return a constant by its name.

        Raises:
            CheckpointError: there is none.
        """
        found = self._find(name)
        if not self._is_of_constants(type(found)):
            raise CheckpointError(f"{name} is no constant")
        return found

    def _is_of_constants(self, cls: type) -> bool:
        """Say whether what a module has of a class is a constant."""
        return cls is object or (self._may_make(cls.__module__) and not issubclass(cls, type))

    def _find(self, name: str, *, within: bool = False) -> Any:
        module, _, path = name.partition(":")
        if not (within or self._has(module)) or "__main__" in module:  # which would run by being looked at
            raise CheckpointError(f"{name} is nothing of a processor's")
        try:
            return reduce(getattr, path.split("."), importlib.import_module(module))
        except (ImportError, AttributeError):
            raise CheckpointError(f"there is no {name} any more") from None


def stamp_of(cls: type) -> str:
    """Return what tells a class from another of its name whose objects are made up otherwise."""
    fields = getattr(cls, "_fields", getattr(cls, "__dataclass_fields__", ()))
    slots = [base.__dict__.get("__slots__") for base in cls.__mro__]
    code = getattr(getattr(cls, "__init__", None), "__code__", None)
    names = sorted({*code.co_names, *code.co_varnames}) if code else ()
    return repr(([name_of(base) for base in cls.__mro__], tuple(fields), slots, names))


class ChainPickler(pickle.Pickler):
    """Writes objects; those that the reader has stand by their number."""

    def __init__(self, write: Callable[[bytes], object], has: Sequence[Any], packages: Packages) -> None:
        super().__init__(_Writer(write), _PROTOCOL)
        known = [_TAKES_APART, *has]
        self.memo = {id(obj): (at, obj) for at, obj in enumerate(known)}
        self._packages = packages
        self.classes: dict[type, None] = {}
        """Of which there are objects."""

    def reducer_override(self, obj: Any) -> Any:
        """Take note of an object's class, as `pickle` has it.

        Raises:
            CheckpointError: its like can't be kept.
        """
        cls = type(obj)
        if cls in self.classes:
            return NotImplemented
        if cls is MappingProxyType:
            return MappingProxyType, (dict(obj),)
        if isinstance(obj, Enum):
            return cls, (obj.value,)
        if cls is type or isinstance(obj, type):
            return self._note(obj)
        if keeps_nothing(obj):
            raise CheckpointError(f"it has a {name_of(cls)} that was not there when the chain was made")
        return self._note(cls)

    def _note(self, cls: type) -> Any:
        if not self._packages.have(cls):
            raise CheckpointError(f"it has a {name_of(cls)}, which can't be kept")
        self.classes[cls] = None
        return NotImplemented


class _Writer:
    def __init__(self, write: Callable[[bytes], object]) -> None:
        self.write = write


class ChainUnpickler(pickle.Unpickler):
    """Reads objects; those that the reader has are put in by their number."""

    def __init__(self, data: bytes, at: int, has: Sequence[Any], classes: Mapping[str, type]) -> None:
        """Read what begins at a place in the data."""
        self._has = [_TAKES_APART, *has]
        self._classes = classes
        self._reader = _Reader(_introduction(len(self._has)))
        super().__init__(self._reader)
        self.load()
        self._reader.go_on(data, at)

    def persistent_load(self, at: Any) -> Any:
        """Return an object that the reader has."""
        return self._has[at]

    def find_class(self, module: str, name: str) -> Any:
        """Return one of the classes that were checked, or what makes its objects where few bytes could ask for much.

        Raises:
            UnpicklingError: it is none of those.
        """
        found = self._classes.get(f"{module}:{name}")
        if found is None:
            raise pickle.UnpicklingError(f"{module}:{name} is not among its classes")
        return _WITHIN_REASON.get(found, found)


_LARGEST_EXPONENT: Final = 5_000
"""Of a decimal: to make an integer of one with an exponent of millions takes minutes."""


def _range(*bounds: int) -> range:
    made = range(*bounds)
    if not -_LONGEST_RANGE <= made.stop - made.start <= _LONGEST_RANGE:
        raise pickle.UnpicklingError(f"it has {made}")
    return made


def _fraction(*parts: Any) -> Fraction:
    if any(isinstance(part, str) and not _WHOLE.fullmatch(part) for part in parts):
        raise pickle.UnpicklingError(f"it has a fraction of {parts}")
    return Fraction(*parts)


def _decimal(*parts: Any) -> Decimal:
    made = Decimal(*parts)
    if made.is_finite() and abs(made.adjusted()) > _LARGEST_EXPONENT:
        raise pickle.UnpicklingError(f"it has a decimal with an exponent of {made.adjusted()}")
    return made


_WITHIN_REASON: Final[Mapping[type, Callable[..., Any]]] = {range: _range, Fraction: _fraction, Decimal: _decimal}


class _Reader:
    """A file of two parts, without a copy of either."""

    def __init__(self, first: bytes) -> None:
        self.go_on(first)

    def go_on(self, data: bytes, at: int = 0) -> None:
        self._file = BytesIO(data)
        self._file.seek(at)

    def read(self, size: int) -> bytes:
        return self._file.read(size)

    def readline(self) -> bytes:
        return self._file.readline()

    def readinto(self, room: bytearray) -> int:
        return self._file.readinto(room)


def _introduction(many: int) -> bytes:
    """Return a pickle that has its reader put so many objects into its memo, in order."""
    steps = b"".join(
        b"".join((pickle.BININT, at.to_bytes(4, "little"), pickle.BINPERSID, pickle.MEMOIZE, pickle.POP))
        for at in range(many)
    )
    body = steps + pickle.NONE + pickle.STOP
    return b"".join((pickle.PROTO, bytes([_PROTOCOL]), pickle.FRAME, len(body).to_bytes(8, "little"), body))
