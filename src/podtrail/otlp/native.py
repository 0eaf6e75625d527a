"""The wire in Rust, where the distribution `podtrail-native` is installed; else Python does the same, only slower.

The only module that knows of it. Its functions answer None for whatever is unusual, and always where there is no
extension: then the caller looks itself, in Python, which is the reference; but `find`, which always finds, is
`bytes.find` there. `PODTRAIL_NATIVE=off` does without it.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from types import ModuleType
from typing import Any, NamedTuple, cast

from podtrail.otlp.group import Group

SWITCH = "PODTRAIL_NATIVE"
"""The environment variable: a word of `_OFF` has Python do everything."""

_OFF = frozenset({"off", "0", "false", "no"})
"""In any case."""

_INTERFACE = 4
"""Of the extension that this podtrail calls: another one has other functions, or they answer otherwise."""


class Facts(NamedTuple):
    """What deciding asks of spans that all have a start, which is not 0, and an end, all below 2**63."""

    first: int
    """The earliest start, Unix nanoseconds."""
    last: int
    """The latest end."""
    statuses: Sequence[int]
    """The status codes there are: 0 unset, 1 ok, 2 error."""
    attributes: Sequence[bytes]
    """The KeyValue messages that have one of the keys asked for, in their order."""


def _extension() -> tuple[ModuleType | None, str]:
    """Return the extension, or None, and which code that makes run, in words."""
    if (switched := os.environ.get(SWITCH, "").strip()).lower() in _OFF:
        return None, f"Python ({SWITCH}={switched})"
    try:
        import podtrail_native
    except ModuleNotFoundError:
        return None, "Python (podtrail-native is not installed)"
    except ImportError as error:
        return None, f"Python (podtrail-native can't be loaded: {error})"
    if getattr(podtrail_native, "INTERFACE", 0) != _INTERFACE:  # the first one had none
        return None, f"Python (podtrail-native {podtrail_native.__version__} is for another podtrail)"
    return podtrail_native, f"podtrail-native {podtrail_native.__version__}"


def _look_yourself(*_: Any) -> None:
    return None


_loaded, RUNS = _extension()
"""`RUNS` says which code reads requests and scans traces."""
_cut: Callable[[bytes], tuple[list[Any], int] | None] = _loaded.check_and_cut if _loaded else _look_yourself
_scan: Callable[[bytes, Sequence[bytes]], tuple[int, int, int, list[bytes]] | None] = (
    _loaded.trace_facts if _loaded else _look_yourself
)
_find_root: Callable[[bytes], bool | None] = _loaded.has_root if _loaded else _look_yourself
_find: Callable[[bytes, bytes, int], int] = _loaded.find if _loaded else bytes.find
_list_linked: Callable[[bytes, int], list[bytes] | None] = _loaded.linked_traces if _loaded else _look_yourself
_hash: Callable[[bytes, int], int | None] = _loaded.fnv1a if _loaded else _look_yourself
_group_of = cast("Callable[[Any], Group]", partial(tuple.__new__, Group))
_STATUSES = tuple(tuple(code for code in (0, 1, 2) if mask >> code & 1) for mask in range(8))

IS_LOADED = _loaded is not None


@contextmanager
def in_python() -> Iterator[None]:
    """Have Python do everything in this process meanwhile: for those who compare."""
    here = globals()
    before = {name: here[name] for name in ("_cut", "_scan", "_find_root", "_list_linked", "_hash", "_find")}
    here.update(dict.fromkeys(before, _look_yourself), _find=bytes.find)
    try:
        yield
    finally:
        here.update(before)


def check_and_cut(request: bytes) -> tuple[list[Group], int] | None:
    """Return the groups of a serialized request, all of whose spans are valid, and how many tell no duration."""
    found = _cut(request)
    return None if found is None else ([*map(_group_of, found[0])], found[1])


def trace_facts(spans: bytes, keys: Sequence[bytes] = ()) -> Facts | None:
    """Return what is known of framed spans after one pass over them; `keys`: whose attributes are asked for."""
    found = _scan(spans, keys)
    return None if found is None else Facts(found[0], found[1], _STATUSES[found[2]], found[3])


def has_root(spans: bytes) -> bool | None:
    """Say whether one of framed spans has no parent, or one of zeros."""
    return _find_root(spans)


def find(spans: bytes, mark: bytes, start: int = 0) -> int:
    """Return where a mark stands first, at `start` or behind it; -1 where it does not.

    In Rust that takes a fifth of what `bytes.find` takes, which for marks of a few common characters is more than to
    read all of the spans.
    """
    return _find(spans, mark, start)


def has(spans: bytes, mark: bytes) -> bool:
    """Say whether a mark stands there."""
    return _find(spans, mark, 0) >= 0


def linked_traces(spans: bytes, most: int) -> Sequence[bytes] | None:
    """Return the ids of at most `most` traces that framed spans link to, found by what a link looks like."""
    return _list_linked(spans, most)


def fnv1a(data: bytes, state: int) -> int | None:
    """Return the FNV-1a hash of 64 bits; `state` is the hash of what stands before these bytes."""
    return _hash(data, state)
