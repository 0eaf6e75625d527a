"""Ports for examples that listen."""

import socket
from contextlib import ExitStack

import pytest


@pytest.fixture
def free_ports() -> list[int]:
    """Some ports that were free a moment ago."""
    with ExitStack() as stack:
        listeners = [stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(4)]
        return [listener.getsockname()[1] for listener in listeners]
