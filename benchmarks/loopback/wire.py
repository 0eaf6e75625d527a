"""The method that everyone here speaks, and how raw requests are kept in a file."""

import struct
from collections.abc import Iterator, Sequence
from pathlib import Path

SERVICE = "opentelemetry.proto.collector.trace.v1.TraceService"
METHOD = "Export"
LARGEST = 64 << 20
_LENGTH = struct.Struct("<I")


def write_requests(path: Path, requests: Sequence[bytes]) -> None:
    """Write requests, each behind its length."""
    with path.open("wb") as file:
        for request in requests:
            file.write(_LENGTH.pack(len(request)))
            file.write(request)


def read_requests(path: Path) -> Iterator[bytes]:
    """Yield the requests of a file."""
    with path.open("rb") as file:
        while head := file.read(_LENGTH.size):
            yield file.read(_LENGTH.unpack(head)[0])
