"""A configuration that writes to what it reads would destroy a recording, or feed itself for ever."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

from podtrail.config.problem import Path


@runtime_checkable
class ReadsFiles(Protocol):
    """A receiver's configuration that names files."""

    def reads(self, path: str) -> bool:
        """Say whether a file is one of those."""


@runtime_checkable
class WritesFiles(Protocol):
    """An exporter's configuration that names files."""

    def writes(self) -> Mapping[str, str]:
        """Return the files, by the key that names them."""


def overwritten(readers: Mapping[str, Any], writers: Mapping[str, Any]) -> Iterator[tuple[Path, str]]:
    """Yield what is wrong between configurations that are used, by id: the path of a key, and a message."""
    reading: Sequence[tuple[str, ReadsFiles]] = [(id, c) for id, c in readers.items() if isinstance(c, ReadsFiles)]
    for exporter, config in writers.items():
        for key, path in config.writes().items() if isinstance(config, WritesFiles) else ():
            for receiver, source in reading:
                if source.reads(path):
                    yield ("exporters", exporter, key), f"writes to {path}, which receiver {receiver!r} reads"
