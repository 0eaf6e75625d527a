"""What the objects of a chain are: values, state that changes, or wiring that whoever makes a chain makes anew."""

import random
from array import array
from collections import deque
from collections.abc import Iterator, KeysView
from enum import Enum
from functools import cached_property
from types import (
    BuiltinFunctionType,
    CellType,
    EllipsisType,
    FunctionType,
    MappingProxyType,
    MethodDescriptorType,
    MethodType,
    MethodWrapperType,
    ModuleType,
    NoneType,
    WrapperDescriptorType,
)
from typing import Any, Final

from pydantic import BaseModel

_ATOMS: Final = (bool, int, float, complex, str, bytes, range, NoneType, EllipsisType, Enum)
_CONTAINERS: Final = (list, dict, set, deque, bytearray, array, random.Random, CellType)
_WIRING: Final = ("component", "config", "otlp", "pipeline", "recording", "service", "transport")
_STATE: Final = frozenset({"podtrail.pipeline.chain", "podtrail.pipeline.containment"})
_TOOLS: Final = frozenset(
    {"functools", "google", "logging", "operator", "pydantic", "re", "re2", "struct", "types", "typing"}
)
"""Packages whose objects hold no spans and nothing of them."""
_FIXED: Final = (
    *(type, ModuleType, BaseModel, tuple, frozenset, property, KeysView, MappingProxyType),
    *(FunctionType, BuiltinFunctionType, MethodType, MethodWrapperType, MethodDescriptorType, WrapperDescriptorType),
    *(staticmethod, classmethod, BaseException),
)
"""What never holds anything but what it was made with."""


def name_of(cls: type) -> str:
    """Return what a class is called, with its module: `package.module:Class`."""
    return f"{cls.__module__}:{cls.__qualname__}"


def is_value(obj: Any) -> bool:
    """Say whether an object is nothing but its content, which never changes."""
    return isinstance(obj, _ATOMS) or (isinstance(obj, tuple | frozenset) and all(map(is_value, obj)))


def is_state(obj: Any) -> bool:
    """Say whether an object may come to hold something that is to be kept."""
    if isinstance(obj, _CONTAINERS):
        return True
    if isinstance(obj, _FIXED) or is_wiring(type(obj).__module__) or keeps_nothing(obj):
        return False
    return says_its_state(type(obj)) or hasattr(obj, "__dict__") or next(_slots_of(type(obj)), None) is not None


def is_understood(obj: Any) -> bool:
    """Say whether it is known of an object what it holds, or that this need not be known."""
    cls = type(obj)
    return is_state(obj) or isinstance(obj, _FIXED) or is_wiring(cls.__module__) or cls is object or keeps_nothing(obj)


def says_its_state(cls: type) -> bool:
    """Say whether a class tells by a `__getstate__` of its own what there is to be kept of its objects."""
    for base in cls.__mro__[:-1]:
        if "__getstate__" in base.__dict__:
            return "__dataclass_fields__" not in base.__dict__
    return False


def keeps_nothing(obj: Any) -> bool:
    """Say whether there is nothing in an object to be kept, as its `__getstate__` tells by returning None."""
    return says_its_state(type(obj)) and obj.__getstate__() is None


def is_wiring(module: str) -> bool:
    """Say whether what is defined in a module holds nothing of spans."""
    package, _, rest = module.partition(".")
    if package == "podtrail":
        return rest.partition(".")[0] in _WIRING and module not in _STATE
    return package in _TOOLS


def attributes_of(obj: Any) -> dict[str, Any]:
    """Return the attributes of an object by name, those left out that a `cached_property` works out when asked."""
    cls = type(obj)
    found = {
        name: value
        for name, value in getattr(obj, "__dict__", {}).items()
        if not isinstance(getattr(cls, name, None), cached_property)
    }
    for name in _slots_of(cls):
        if hasattr(obj, name):
            found[name] = getattr(obj, name)
    return found


def _slots_of(cls: type) -> Iterator[str]:
    for base in cls.__mro__:
        slots = base.__dict__.get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            if name not in ("__dict__", "__weakref__"):
                private = name.startswith("__") and not name.endswith("__")
                yield f"_{base.__name__.lstrip('_')}{name}" if private else name


def described(obj: Any) -> str:
    """Return what a value, a configuration or a tool is, the same in every process; "" where only its type is known."""
    if isinstance(obj, Enum):
        return f"{name_of(type(obj))}.{obj.name}"
    if isinstance(obj, BaseModel):
        return f"{name_of(type(obj))}{described(vars(obj))}"
    if isinstance(obj, _ATOMS):
        return repr(obj)
    if isinstance(obj, list | tuple):
        return f"({','.join(map(described, obj))})"
    if isinstance(obj, set | frozenset):
        return f"{{{','.join(sorted(map(described, obj)))}}}"
    if isinstance(obj, dict):
        return f"{{{','.join(sorted(f'{described(key)}:{described(value)}' for key, value in obj.items()))}}}"
    if isinstance(obj, type):
        return name_of(obj)
    if isinstance(obj, FunctionType):
        return f"{obj.__module__}:{obj.__qualname__}"
    return ""
