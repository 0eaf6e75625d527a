"""For edits in place: where values stand in a YAML text, by character, and texts that mean a value there."""

import json
from collections.abc import Iterator
from typing import NamedTuple

import yaml

from podtrail.config import ConfigError
from podtrail.config.nodes import ListNode, ScalarNode
from podtrail.config.reader import read_yaml


class Mark(NamedTuple):
    """A node's place, in characters of the text."""

    start: int
    end: int
    """Behind its last character."""
    style: str
    """`"`, `'`, `|` or `>` of a scalar, "" of a plain one."""
    flow: bool
    """Whether it is, or stands in, a collection in brackets."""


class Place(NamedTuple):
    """Where a node begins. A collection begins where its first key or item does."""

    line: int
    column: int
    collection: bool


def marks(text: str) -> dict[Place, Mark]:
    """Return the places of all values and keys by where they begin; lines and columns count from 1."""
    root = yaml.compose(text, Loader=yaml.CSafeLoader)
    return dict(_marks(root, flow=False)) if root is not None else {}


def _marks(node: yaml.Node, *, flow: bool) -> Iterator[tuple[Place, Mark]]:
    start = node.start_mark
    assert start is not None
    assert node.end_mark is not None
    if isinstance(node, yaml.ScalarNode):
        yield (
            Place(start.line + 1, start.column + 1, False),
            Mark(start.index, node.end_mark.index, node.style or "", flow),
        )
        return
    inside = flow or (isinstance(node, yaml.CollectionNode) and bool(node.flow_style))
    below = [one for pair in node.value for one in (pair if isinstance(pair, tuple) else (pair,))]
    found = [mark for one in below for mark in _marks(one, flow=inside)]
    # A collection in lines ends, says the parser, where the next thing begins: comments would be its own.
    end = node.end_mark.index if inside or not found else max(mark.end for _, mark in found)
    yield Place(start.line + 1, start.column + 1, True), Mark(start.index, end, "", inside)
    yield from found


def scalar(text: str, style: str = "", *, flow: bool = False) -> str:
    """Return YAML that means this text, quoted as it was before, plain where that is possible."""
    if style in ("", "|", ">"):
        try:
            node = read_yaml(f"[{text}]" if flow else f"- {text}", "")
        except ConfigError:
            node = None
        if isinstance(node, ListNode) and [n.value for n in node.items if isinstance(n, ScalarNode)] == [text]:
            return text
    if style == "'" and text.isprintable():
        return "'" + text.replace("'", "''") + "'"
    return json.dumps(text, ensure_ascii=not text.isprintable())
