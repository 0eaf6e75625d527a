"""Ids of components and pipelines: `type` or `type/name`."""

import re
from typing import Final, NamedTuple

_TYPE: Final = re.compile(r"[A-Za-z][0-9A-Za-z_]{0,62}")
_NAME: Final = re.compile(r"[^\s\x00-\x1f\x7f-\x9f]{1,1024}")


class Id(NamedTuple):
    """A type and, behind the slash, a name; the name is empty when there is none."""

    type: str
    name: str


def parse_id(text: str) -> Id:
    """Split an id at its first slash; white space around the parts does not count.

    Raises:
        ValueError: with what would be right.
    """
    kind, slash, name = (part.strip() for part in text.partition("/"))
    if not kind:
        raise ValueError(f"{text!r} is no id: the type is missing, write type or type/name")
    if slash and not name:
        raise ValueError(f"{text!r} is no id: the part after / is empty, write type or type/name")
    if not _TYPE.fullmatch(kind):
        raise ValueError(f"{text!r} is no id: a type is letters, digits and _ and begins with a letter")
    if slash and not _NAME.fullmatch(name):
        raise ValueError(f"{text!r} is no id: a name has no spaces")
    return Id(kind, name)
