"""Ports that stay free until somebody listens on them."""

import socket
from contextlib import ExitStack, suppress
from random import SystemRandom

HOST = "127.0.0.1"
_FIRST, _END = 20_000, 30_000
"""Below what systems give to whoever connects: who is ended and started again on a port finds it free still."""


def free_ports(count: int) -> list[int]:
    """Return ports of the loopback that were free a moment ago, and that nobody gets who connects or asks for any."""
    found: list[int] = []
    with ExitStack() as stack:
        while len(found) < count:
            port = SystemRandom().randrange(_FIRST, _END)
            with suppress(OSError):
                stack.enter_context(socket.create_server((HOST, port)))
                found.append(port)
    return found
