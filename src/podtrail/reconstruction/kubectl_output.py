"""Reads objects from what kubectl and the API server print: JSON on one line or many, YAML, lists and watches."""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

import yaml

from podtrail.reconstruction.calendar import rfc3339
from podtrail.reconstruction.json_documents import JsonDocuments

_YAML = re.compile(rb"(?:---\s*$|%YAML|(?:apiVersion|kind|items|metadata|spec|status):)")
_ITEM = re.compile(rb"( *)- ")
_CHANGES: Final = ("ADDED", "MODIFIED", "DELETED")
_TIME = re.compile(r"\d{4}-\d\d-\d\dT")
_DEEPEST: Final = 8


class _Loader(yaml.CSafeLoader):
    """Reads times as text, as they are in JSON."""


def _as_text(loader: _Loader, node: Any) -> Any:  # noqa: ARG001 - PyYAML's signature
    return node.value


_Loader.add_constructor("tag:yaml.org,2002:timestamp", _as_text)


class YamlDocuments:
    """Returns the documents of YAML, and each item of a list, so that memory holds one item."""

    def __init__(self, longest: int) -> None:
        """`longest` is the size in bytes up to which a document is read."""
        self._longest = longest
        self._lines: list[bytes] = []
        self._size = 0
        self._items: int | None = None
        """By how many spaces the items are indented; -1 before the first one, None outside a list."""
        self.open = False

    def opens(self, line: bytes) -> bool:
        """Return True if a document begins with this line."""
        return _YAML.match(line) is not None

    def take(self, line: bytes) -> list[str]:
        """Return the documents that a line ends."""
        self.open = True
        if line.startswith(b"---"):
            return self.end(is_open=True)
        if line.rstrip() == b"items:":
            ended, self._items = self._flush(), -1
            return ended
        if self._items is not None and (found := _ITEM.match(line)) and self._items in (-1, len(found[1])):
            ended, self._items = self._flush(), len(found[1])
            self._keep(line)
            return ended
        if self._items is not None and line[:1] not in (b" ", b"", b"-"):
            ended, self._items = self._flush(), None
            self._keep(line)
            return ended
        self._keep(line)
        return []

    def end(self, *, is_open: bool = False) -> list[str]:
        """Return the last document."""
        self.open = is_open
        self._items = None
        return self._flush()

    def _keep(self, line: bytes) -> None:
        self._size += len(line) + 1
        if self._size <= self._longest:
            self._lines.append(line)

    def _flush(self) -> list[str]:
        lines, whole = self._lines, self._size <= self._longest
        self._lines, self._size = [], 0
        return [b"\n".join(lines).decode("utf-8", "replace")] if lines and whole else []


class KubectlOutput:
    """Takes lines; returns the objects that they complete, as lists and events of a watch."""

    def __init__(self, longest: int) -> None:
        """`longest` is the size in bytes up to which an object is read."""
        self._json = JsonDocuments(longest)
        self._yaml = YamlDocuments(longest)

    @property
    def open(self) -> bool:
        """Whether a document has begun that goes on."""
        return self._json.open or self._yaml.open

    def take(self, line: bytes) -> list[Mapping[str, Any]] | None:
        """Return the objects that a line completes; None if it belongs to no document."""
        if self._json.open and not self._json.takes(line):
            self._json.abandon()
        if self._yaml.open or (not self._json.open and self._yaml.opens(line)):
            return [one for text in self._yaml.take(line) for one in _objects(read_yaml(text))]
        if self._json.open or self._json.opens(line):
            return [one for text in self._json.take(line) for one in _objects(_from_json(text))]
        return None

    def end(self) -> list[Mapping[str, Any]]:
        """Return the objects of the last document."""
        return [one for text in self._yaml.end() for one in _objects(read_yaml(text))]


def as_listed(told: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return an object without a time of arrival as a list or an event of a watch; None if it is none."""
    if told.get("type") in _CHANGES and isinstance(told.get("object"), dict):
        return {"event": told}
    if isinstance(told.get("items"), list):
        return {"list": told}
    if isinstance(told.get("metadata"), dict) and (kind := kind_of(told)) and not kind.endswith("List"):
        return {"list": {"items": [told]}}
    return None


def kind_of(item: Mapping[str, Any]) -> str:
    """Return the kind of an object; items of a list need not have it."""
    kind = item.get("kind")
    if isinstance(kind, str) and kind:
        return kind
    if isinstance(item.get("involvedObject") or item.get("regarding"), dict):
        return "Event"
    spec = item.get("spec")
    return "Pod" if isinstance(spec, dict) and isinstance(spec.get("containers"), list) else ""


def latest_time(value: Any, depth: int = 0) -> int:
    """Return the latest time in an object, Unix nanoseconds: it was read then or later. 0 if it has none."""
    if isinstance(value, str):
        return (rfc3339(value) or 0) if _TIME.match(value) else 0
    if depth > _DEEPEST:
        return 0
    if isinstance(value, dict):
        return max((latest_time(one, depth + 1) for one in value.values()), default=0)
    if isinstance(value, list):
        return max((latest_time(one, depth + 1) for one in value), default=0)
    return 0


def _objects(told: Any) -> Iterator[Mapping[str, Any]]:
    for one in told if isinstance(told, list) else [told]:
        if isinstance(one, dict) and (found := as_listed(one)) is not None:
            yield found


def _from_json(text: bytes) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def read_yaml(text: str) -> Any:
    """Return the value of a YAML document, times as text; None if it is none."""
    try:
        return yaml.load(text, _Loader)  # noqa: S506 - a safe loader
    except (yaml.YAMLError, ValueError, RecursionError):
        return None
