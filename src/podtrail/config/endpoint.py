"""Endpoints: where a server listens and where a client connects to."""

import re
from ipaddress import ip_address
from typing import Annotated, Final, NamedTuple
from urllib.parse import urlsplit

from pydantic import AfterValidator

_HIGHEST_PORT: Final = 65_535
_HOST: Final = re.compile(r"[A-Za-z0-9_](?:[A-Za-z0-9_.-]*[A-Za-z0-9_.])?")
_IPV6: Final = re.compile(r"[0-9A-Fa-f:.]+(?:%[A-Za-z0-9_.-]+)?")
_EXAMPLE: Final = "write host:port, for example localhost:4317 or [::1]:4317"


def host_port(text: str) -> tuple[str, int]:
    """Split `host:port`; an IPv6 host stands in brackets and comes back without; an empty host means every interface.

    Port 0 lets the system choose.

    Raises:
        ValueError: with what would be right.
    """
    if "://" in text:
        raise ValueError(f"{text!r} has a scheme, but a listener takes none: {_EXAMPLE}")
    host, colon, port = text.rpartition(":")
    if not colon or text.endswith("]"):
        raise ValueError(f"{text!r} lacks a port: {_EXAMPLE}")
    return _host(host, text), _port(port, text)


def _host(host: str, text: str) -> str:
    if host.startswith("[") and host.endswith("]"):
        if not _IPV6.fullmatch(host[1:-1]) or ":" not in host:
            raise ValueError(f"{text!r} has no IPv6 address in its brackets: {_EXAMPLE}")
        return host[1:-1]
    if ":" in host:
        raise ValueError(f"{text!r} has too many colons; an IPv6 address stands in brackets: {_EXAMPLE}")
    if host and not _HOST.fullmatch(host):
        raise ValueError(f"{text!r} has no valid host: {_EXAMPLE}")
    return host


def _port(port: str, text: str) -> int:
    if not (port.isascii() and port.isdigit()) or int(port) > _HIGHEST_PORT:
        raise ValueError(f"{text!r} has no port from 0 to {_HIGHEST_PORT}: {_EXAMPLE}")
    return int(port)


def is_loopback(host: str) -> bool:
    """Tell whether a host, as `host_port` gives it, is beyond doubt this machine itself."""
    if host.lower() == "localhost":
        return True
    try:
        return ip_address(host.partition("%")[0]).is_loopback
    except ValueError:
        return False


class Target(NamedTuple):
    """Where a client connects to."""

    scheme: str
    """`http`, `https`, `unix`, `dns`, or empty when the endpoint names none."""
    host: str
    """Without brackets; empty for `unix`."""
    port: int
    """0 for `unix`."""
    path: str
    """URL path, or path of the socket for `unix`; often empty."""


_DEFAULT_PORTS: Final = {"http": 80, "https": 443}


def client_target(text: str) -> Target:
    """Read a client's endpoint: `host:port`, `http(s)://host[:port][/path]`, `dns:///host:port`, `unix:///path`.

    Raises:
        ValueError: with what would be right.
    """
    if not text:
        raise ValueError(f"is empty: {_EXAMPLE}")
    if text.startswith("unix:"):
        path = text.removeprefix("unix:").removeprefix("//")
        if not path:
            raise ValueError(f"{text!r} names no socket: write unix:///run/collector.sock")
        return Target("unix", "", 0, path)
    if text.startswith("dns:"):
        host, port = host_port(text.removeprefix("dns:").lstrip("/").rpartition("/")[2])
        return Target("dns", _required(host, text), port, "")
    if "://" not in text:
        host, port = host_port(text)
        return Target("", _required(host, text), port, "")
    return _url(text)


def _url(text: str) -> Target:
    if "@" in text.partition("://")[2].partition("/")[0]:
        raise ValueError("has a user name or password in it: put credentials into headers")
    try:
        url = urlsplit(text)
        port = url.port
    except ValueError as error:
        raise ValueError(f"{text!r} is not a URL: {error}") from None
    scheme = url.scheme.lower()
    if scheme not in _DEFAULT_PORTS:
        raise ValueError(f"{text!r} has the unknown scheme {url.scheme!r}: write http://host:port or https://host:port")
    if url.query or url.fragment:
        raise ValueError(f"{text!r} has a query or fragment, which an endpoint can't have")
    if port is None:
        port = _DEFAULT_PORTS[scheme]
    return Target(scheme, _required(url.hostname or "", text), port, url.path)


def _required(host: str, text: str) -> str:
    if not host:
        raise ValueError(f"{text!r} has no host to connect to: {_EXAMPLE}")
    return host


def _check_listener(text: str) -> str:
    host_port(text)
    return text


def _check_client(text: str) -> str:
    client_target(text)
    return text


Endpoint = Annotated[str, AfterValidator(_check_listener)]
"""Where a server listens: `host:port`, kept as written; `host_port` splits it."""

ClientEndpoint = Annotated[str, AfterValidator(_check_client)]
"""Where a client connects to, kept as written; `client_target` reads it."""
