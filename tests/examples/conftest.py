"""Ports for examples that listen."""

import socket
from contextlib import ExitStack, suppress
from random import SystemRandom

import pytest


@pytest.fixture
def free_ports() -> list[int]:
    """Some ports that were free a moment ago, none of which the system gives to whoever connects or asks for any."""
    with ExitStack() as stack:
        found: list[int] = []
        while len(found) < 4:
            port = SystemRandom().randrange(10_000, 30_000)
            with suppress(OSError):
                stack.enter_context(socket.create_server(("127.0.0.1", port)))
                found.append(port)
        return found
