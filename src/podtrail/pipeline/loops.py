"""A configuration that sends or writes to what it reads would feed itself for ever, or destroy a recording."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple, Protocol, runtime_checkable

from podtrail.config.problem import Path
from podtrail.config.types import host_port, is_loopback

_EVERY_INTERFACE: Final = frozenset({"", "0.0.0.0", "::"})  # noqa: S104 - recognised, not bound


@runtime_checkable
class Listens(Protocol):
    """A receiver's configuration that names addresses to listen on."""

    def listens(self) -> Mapping[Path, str]:
        """Return the addresses, `host:port`, by the path of the key that names them."""


@runtime_checkable
class Sends(Protocol):
    """An exporter's configuration that names an address to send to."""

    def sends_to(self) -> tuple[str, str, int]:
        """Return the key that names it, host and port; port 0 when it is no such address."""


class Loop(NamedTuple):
    """An exporter that reaches a receiver of its own pipeline."""

    exporter: Path
    """Path of the key that names where it sends."""
    receiver: Path
    """Path of the key that names where it listens."""
    endpoint: str


def loops(receivers: Mapping[str, Any], exporters: Mapping[str, Any]) -> Iterator[Loop]:
    """Yield the loops between the configurations of one pipeline, by id."""
    for exporter, sender in exporters.items():
        if not isinstance(sender, Sends):
            continue
        key, host, port = sender.sends_to()
        for receiver, listener in receivers.items():
            for below, endpoint in listener.listens().items() if isinstance(listener, Listens) else ():
                if port and reaches(host.lower(), port, *host_port(endpoint.lower())):
                    yield Loop(("exporters", exporter, key), ("receivers", receiver, *below), endpoint)


def reaches(host: str, port: int, listening: str, on: int) -> bool:
    """Tell whether somebody who sends to a host and port gets to a listener at another, both in small letters."""
    if port != on:
        return False
    here = is_loopback(host) or host in _EVERY_INTERFACE
    return host == listening or (here and (is_loopback(listening) or listening in _EVERY_INTERFACE))


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


@runtime_checkable
class LocksFolders(Protocol):
    """An extension's configuration that names a folder which one process has at a time."""

    def locks(self) -> tuple[str, str, str]:
        """Return the key that names it, the folder, and the name of the file in it that is locked."""


def overwritten(readers: Mapping[str, Any], writers: Mapping[str, Any]) -> Iterator[tuple[Path, str]]:
    """Yield what is wrong between configurations that are used, by id: the path of a key, and a message."""
    reading: Sequence[tuple[str, ReadsFiles]] = [(id, c) for id, c in readers.items() if isinstance(c, ReadsFiles)]
    for exporter, config in writers.items():
        for key, path in config.writes().items() if isinstance(config, WritesFiles) else ():
            for receiver, source in reading:
                if source.reads(path):
                    yield ("exporters", exporter, key), f"writes to {path}, which receiver {receiver!r} reads"
