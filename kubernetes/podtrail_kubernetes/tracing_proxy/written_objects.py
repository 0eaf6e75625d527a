"""Which objects a client has written, as the API server's answers to its requests tell."""

import json
import re
import zlib
from collections.abc import Mapping
from datetime import datetime
from email.utils import parsedate_to_datetime
from typing import Any, NamedTuple
from urllib.parse import unquote, urlsplit

from podtrail_kubernetes.object_meta import metadata_of

MAX_ANSWER = 4 << 20
"""Bytes: etcd takes objects of 1.5 MiB, JSON makes them longer."""

_WRITES = ("POST", "PUT", "PATCH")
_OBJECT = re.compile(r"/(?:api/v1|apis/[^/]+/[^/]+)(?:/namespaces/[^/]+)?/([^/]+)(/[^/]+)?/?")
"""A collection or an object in it; not a subresource, whose path is longer."""


class WrittenObject(NamedTuple):
    """An object that a request created or changed."""

    created: bool
    collection: str
    """The path of the collection that it is in."""
    object: Mapping[str, Any]
    """As the answer has it."""
    at: datetime | None
    """When the answer was given, by the API server's clock, in whole seconds."""

    @property
    def kind(self) -> str:
        """What it is."""
        return str(self.object.get("kind", ""))

    @property
    def namespace(self) -> str:
        """Empty where it has none."""
        return str(metadata_of(self.object).get("namespace") or "")

    @property
    def name(self) -> str:
        """What it is called."""
        return str(metadata_of(self.object).get("name") or "")

    @property
    def uid(self) -> str:
        """Which one it is."""
        return str(metadata_of(self.object).get("uid") or "")


class AnswerReader:
    """Keeps a copy of an answer that may tell of a written object; bounded."""

    def __init__(self, collection: str, at: datetime | None, *, created: bool, compressed: bool) -> None:
        self._collection = collection
        self._at = at
        self._created = created
        self._unzip = zlib.decompressobj(wbits=31) if compressed else None
        self._kept = bytearray()
        self._readable = True

    def feed(self, data: bytes) -> None:
        """Takes the next piece of the answer's body."""
        if not self._readable:
            return
        try:
            self._kept += self._unzip.decompress(data, MAX_ANSWER + 1) if self._unzip else data
        except zlib.error:
            self._readable = False
        if len(self._kept) > MAX_ANSWER:
            self._readable = False
        if not self._readable:
            self._kept.clear()

    def read(self) -> WrittenObject | None:
        """Returns what the whole answer tells of; None for what is no object that is kept, such as a review."""
        try:
            read = json.loads(self._kept) if self._readable else None
        except (ValueError, RecursionError):
            return None
        if not isinstance(read, dict) or read.get("kind") in (None, "Status", "Table"):
            return None
        metadata = metadata_of(read)
        if not all(isinstance(metadata.get(key), str) for key in ("uid", "name")):
            return None
        return WrittenObject(self._created, self._collection, read, self._at)


def writes_object(method: str, target: str) -> bool:
    """Whether a request may create or change an object."""
    parts = urlsplit(target)
    return method in _WRITES and _OBJECT.fullmatch(parts.path) is not None and "dryRun" not in parts.query


def readable_answer(accept: str) -> str:
    """Returns an `Accept` that leaves of what a client takes only JSON, where it takes that: it is read here, too."""
    taken = [each.strip() for each in accept.split(",")]
    of_json = [each for each in taken if each.startswith("application/json")]
    return ", ".join(of_json) or ("application/json" if any(each.startswith("*/*") for each in taken) else accept)


def answer_reader(method: str, target: str, status: int, headers: Mapping[str, str]) -> AnswerReader | None:
    """Returns what reads an answer that may tell of a written object; None for all others."""
    parts = urlsplit(target)
    found = _OBJECT.fullmatch(parts.path)
    if found is None or not writes_object(method, target) or not 200 <= status < 300:
        return None
    collection = unquote(parts.path.rstrip("/"))
    if found[2]:
        collection = collection.rpartition("/")[0]
    compressed = headers.get("Content-Encoding", "").lower() == "gzip"
    return AnswerReader(collection, _date(headers.get("Date", "")), created=status == 201, compressed=compressed)


def _date(header: str) -> datetime | None:
    try:
        return parsedate_to_datetime(header)
    except ValueError:
        return None
