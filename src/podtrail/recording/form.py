"""What a recording's name says about its form, and one request in that form."""

from collections.abc import Iterable
from dataclasses import dataclass
from os import PathLike
from pathlib import PurePath
from typing import Literal, Self

from podtrail.otlp import Group, write_request
from podtrail.otlp.arrival import with_arrival, with_arrival_json
from podtrail.otlp.json import write_json_request

Compression = Literal["none", "gzip", "zstd"]
_JSON = {".jsonl": True, ".json": True, ".otlp": False}
_COMPRESSIONS: dict[str, Compression] = {".gz": "gzip", ".zst": "zstd"}


@dataclass(frozen=True, slots=True)
class RecordingForm:
    """How requests stand in a recording."""

    json: bool
    """OTLP JSON; else protobuf."""
    compression: Compression

    @classmethod
    def of(cls, path: str | PathLike[str]) -> Self:
        """Return the form that the ending of a name asks for.

        Raises:
            ValueError: it ends in none of them.
        """
        suffixes = PurePath(path).suffixes
        compression = _COMPRESSIONS.get(suffixes[-1], "none") if suffixes else "none"
        name = suffixes[-2:-1] if compression != "none" else suffixes[-1:]
        if not name or name[0] not in _JSON:
            raise ValueError(f"{path}: a recording ends in .jsonl or .otlp, or either with .gz or .zst behind")
        return cls(_JSON[name[0]], compression)

    def message(self, groups: Iterable[Group], arrival: int) -> bytes:
        """Return one request that arrived at `arrival`, Unix nanoseconds, without what parts it from the next."""
        if self.json:
            return with_arrival_json(write_json_request(groups), arrival)
        return with_arrival(write_request(groups), arrival)

    def framed(self, message: bytes) -> bytes:
        """Return a message as it stands in an uncompressed recording."""
        return message + b"\n" if self.json else len(message).to_bytes(4, "big") + message
