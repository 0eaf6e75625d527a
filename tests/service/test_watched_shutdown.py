"""Pages that listen delay no end: a process that is told to stop ends their streams in order, and then itself."""

import http.client
import signal
import socket
from typing import Any

from tests.service.conftest import Start
from tests.service.toolbox import PATIENCE, free_port


def test_sigterm_ends_the_streams_of_all_who_watch_in_order(start: Start, otlp_to_file: dict[str, Any]) -> None:
    port = free_port()
    otlp_to_file["extensions"] = {"viewer": {"endpoint": f"127.0.0.1:{port}", "otlp_endpoint": "127.0.0.1:0"}}
    otlp_to_file["service"]["extensions"] = ["viewer"]
    process = start(otlp_to_file).ready()
    watching = [_watch(port) for _ in range(20)]
    with socket.create_connection(("127.0.0.1", port)) as deaf:
        deaf.sendall(b"GET /api/v1/live HTTP/1.1\r\nHost: localhost\r\n\r\n")
        process.tell(signal.SIGTERM)
        # A stream that was cut off when the grace was over would be incomplete: IncompleteRead.
        assert [answer.read() for answer in watching] == [b""] * len(watching)
        assert process.end() == 0


def _watch(port: int) -> http.client.HTTPResponse:
    """Return a stream behind its first event."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    connection.request("GET", "/api/v1/live")
    answer = connection.getresponse()
    while answer.readline() != b"\n":
        pass
    return answer
