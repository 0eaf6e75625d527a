"""Fields of objects that are misspelt, and those that this release does not know."""

import json
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from functools import cache
from importlib.resources import files
from typing import NamedTuple

from podtrail_scheduler.configuration.document import Located

_CLOSE = 0.75


class UnknownField(NamedTuple):
    """A field that the API of Kubernetes 1.37 does not have there."""

    path: str
    place: Located
    meant: str
    """The field that it resembles; "": none."""


def unknown_fields(item: Located, kind: str) -> Iterator[UnknownField]:
    """Yield the fields of an object that the API does not have, at all depths."""
    yield from _unknown(item, kind, "")


def _unknown(item: Located, type: str, path: str) -> Iterator[UnknownField]:
    if isinstance(item.value, list):
        for number, each in enumerate(item.value):
            yield from _unknown(each, type, f"{path}[{number}]")
        return
    known = _types().get(type)
    if not isinstance(item.value, dict) or known is None:
        return
    for name, inner in item.value.items():
        below = f"{path}.{name}" if path else name
        if name not in known:
            alike = {each.lower(): each for each in known}
            close = get_close_matches(name.lower(), alike, 1, _CLOSE)
            yield UnknownField(below, inner, alike[close[0]] if close else "")
        elif known[name]:
            yield from _unknown(inner, known[name], below)


@cache
def _types() -> Mapping[str, Mapping[str, str]]:
    """By type the fields, each with the type of its values; written by `tools.object_fields`."""
    read: Mapping[str, Mapping[str, str]] = json.loads(files(__package__).joinpath("object_fields.json").read_text())
    return read
