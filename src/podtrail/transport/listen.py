"""Listening sockets, and clear words when there can be none."""

import errno
import socket

from podtrail.component import StartError
from podtrail.config.types import host_port

_FAMILY_MISSING = {errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT}
"""What binding says for an address of a family that the machine has switched off, as ::1 of localhost often is."""
_BACKLOG = 128
AT_ONCE = 1
"""The backlog to tell asyncio, which takes it for the number of connections to accept in a row as well.

Without file descriptors left it tries that often and plans as many tries for later, each of which does the same.
"""


class AddressInUse(StartError):
    """Somebody else listens there."""

    def __init__(self, endpoint: str, why: str) -> None:
        super().__init__(f"can't listen on {endpoint}: {why}")
        self.endpoint = endpoint


def in_use(error: BaseException) -> AddressInUse | None:
    """Return the address in use that an error comes from; None if it is another error."""
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, AddressInUse):
        cause = cause.__cause__
    return cause


def bind(endpoint: str) -> list[socket.socket]:
    """Return a listening socket for each address of `host:port`, all on one port.

    Connections wait in the system until somebody accepts them.

    Raises:
        AddressInUse: somebody else listens there.
        StartError: no such host, the port is not permitted; the text names the endpoint.
    """
    host, port = host_port(endpoint)
    bound: list[socket.socket] = []
    failure: OSError | None = None
    try:
        found = socket.getaddrinfo(host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        for family, _, _, _, address in dict.fromkeys(found):
            try:
                bound.append(_bind(family, (address[0], port, *address[2:])))
            except OSError as error:
                if error.errno not in _FAMILY_MISSING:
                    raise
                failure = error
            else:
                port = bound[-1].getsockname()[1]
        if not bound and failure is not None:
            raise failure
    except OSError as error:
        for listener in bound:
            listener.close()
        why = error.strerror or str(error)
        if error.errno == errno.EADDRINUSE:
            raise AddressInUse(endpoint, why) from error
        raise StartError(f"can't listen on {endpoint}: {why}") from error
    return bound


def widen(listener: socket.socket) -> None:
    """Let connections wait in the system again, after asyncio has begun to serve with `AT_ONCE`."""
    listener.listen(_BACKLOG)


def _bind(family: int, address: tuple[object, ...]) -> socket.socket:
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        listener.bind(address)
        listener.listen(_BACKLOG)
    except OSError:
        listener.close()
        raise
    return listener
