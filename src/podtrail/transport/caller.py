"""Who calls a server: address, connection, and what its certificate says; from gRPC's words and from aiohttp's."""

from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from ipaddress import IPv6Address, ip_address
from typing import Any, Final, NamedTuple
from urllib.parse import unquote

from podtrail.config.printable import printable

_SITE: Final = 64
"""Bits of an IPv6 address that are one site's: each machine has as many addresses there as it likes."""

_REMEMBERED: Final = 4_096
"""Addresses and connections that need not be read again for the next request."""


class RemotePeer(NamedTuple):
    """The other side of a connection."""

    host: str
    """Its address; empty for a socket in the file system."""
    port: int
    names: tuple[str, ...]
    """What its certificate is made out to; empty without one."""
    header: Callable[[str], str | None]
    """Returns a header of its request by name in lower case, None when there is none."""

    @property
    def address(self) -> str:
        """What it is told apart by when it has no name: its address, of IPv6 the site's."""
        return _told_apart_by(self.host)

    def __str__(self) -> str:
        where = f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"
        shown = where if self.host else "a local socket"
        return f"{shown} ({printable(self.names[0])})" if self.names else shown


def connected_peer(host: str, port: int) -> RemotePeer:
    """Return who has connected, and has said nothing yet."""
    return RemotePeer(host, port, (), lambda _name: None)


def grpc_caller(context: Any, *, certified: bool) -> RemotePeer:
    """Return who called a method of grpcio's; `certified` where clients show certificates, which takes time to read."""
    host, port = _grpc_peer(context.peer())
    said = context.auth_context() if certified else {}
    names = said.get("x509_subject_alternative_name") or said.get("x509_common_name") or ()

    def header(name: str) -> str | None:
        for key, value in context.invocation_metadata() or ():
            if key == name:
                return value if isinstance(value, str) else None
        return None

    return RemotePeer(host, port, tuple(_text(name) for name in names), header)


def http_caller(request: Any) -> RemotePeer:
    """Return who sent a request of aiohttp's."""
    transport = request.transport
    peer = transport.get_extra_info("peername") if transport is not None else None
    certificate = transport.get_extra_info("peercert") if transport is not None else None
    host, port = (str(peer[0]), int(peer[1])) if isinstance(peer, tuple) else ("", 0)
    headers: Mapping[str, str] = request.headers
    return RemotePeer(host, port, certificate_names(certificate or {}), headers.get)


def certificate_names(certificate: Mapping[str, Any]) -> tuple[str, ...]:
    """Return what `ssl` says a certificate is made out to: its alternative names, else its common name."""
    alternative: Iterable[tuple[str, str]] = certificate.get("subjectAltName", ())
    names = tuple(value for kind, value in alternative if kind in ("DNS", "URI", "IP Address", "email"))
    if names:
        return names
    return tuple(value for part in certificate.get("subject", ()) for key, value in part if key == "commonName")


@lru_cache(_REMEMBERED)
def _told_apart_by(host: str) -> str:
    try:
        found = ip_address(host.partition("%")[0])
    except ValueError:
        return host or "unix"
    if not isinstance(found, IPv6Address):
        return str(found)
    if found.ipv4_mapped is not None:
        return str(found.ipv4_mapped)
    return str(IPv6Address(int(found) >> _SITE << _SITE)) + f"/{_SITE}" if found.is_global else str(found)


@lru_cache(_REMEMBERED)
def _grpc_peer(peer: str) -> tuple[str, int]:
    """Read `ipv4:10.0.0.1:5123` or `ipv6:%5B::1%5D:5123`; a socket in the file system has neither host nor port."""
    family, _, rest = peer.partition(":")
    if family not in ("ipv4", "ipv6"):
        return "", 0
    host, _, port = unquote(rest).rpartition(":")
    return host.strip("[]"), int(port) if port.isdecimal() else 0


def _text(name: bytes | str) -> str:
    return name if isinstance(name, str) else name.decode(errors="replace")
