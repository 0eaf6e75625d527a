"""Requests that are none of an API server's: nothing of them gets through, and nothing but the report is printed."""

import json
import sys
from collections.abc import Callable

import pytest

from tests.cli.trace.conftest import Done

pytestmark = pytest.mark.control_plane
Trace = Callable[..., Done]
SENDS = """
import base64, json, os, socket, ssl, sys
config = json.load(open(os.environ["KUBECONFIG"]))
cluster, token = config["clusters"][0]["cluster"], config["users"][0]["user"]["token"]
tls = ssl.create_default_context(cadata=base64.b64decode(cluster["certificate-authority-data"]).decode())
port = int(cluster["server"].rpartition(":")[2])
head = f"Host: 127.0.0.1:{port}\\r\\nAuthorization: Bearer {token}\\r\\nConnection: close\\r\\n"
for first, rest in json.loads(sys.argv[1]):
    with tls.wrap_socket(socket.create_connection(("127.0.0.1", port)), server_hostname="127.0.0.1") as connection:
        connection.sendall(f"{first}\\r\\n{head}{rest}\\r\\n".replace("LONG", "a" * 300_000).encode())
        print(connection.makefile("rb").read().partition(b"\\r\\n\\r\\n")[2].decode().splitlines())
"""


def answers(trace: Trace, *requests: tuple[str, str]) -> tuple[list[str], str]:
    """The bodies of what is answered, and what is told."""
    done = trace("--", sys.executable, "-c", SENDS, json.dumps(requests))
    assert done.code == 0, done.told
    return done.out.splitlines(), done.told


def test_a_target_that_names_a_server_of_its_own_is_refused(trace: Trace) -> None:
    """Behind the API server's URL it would name another host, which would get the user's credentials."""
    lines = ["GET http://evil.example/api HTTP/1.1", "GET m://evil.example/ HTTP/1.1", "OPTIONS * HTTP/1.1"]
    said, told = answers(trace, *((line, "") for line in [*lines, "CONNECT evil.example:443 HTTP/1.1"]))
    assert len(said) == 4
    for each in said:
        assert "podtrail trace: only paths of the API server are passed on" in each
    assert "Traceback" not in told
    assert "4 requests in" in told


def test_what_is_no_http_is_refused_and_said_in_a_line(trace: Trace) -> None:
    both = "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n"
    said, told = answers(
        trace, ("POST /api HTTP/1.1", both), ("GET /api HTTP/1.1", "X: LONG\r\n"), ("G@T / HTTP/9", "")
    )
    assert len(said) == 3
    for each in said:
        assert "podtrail trace: not an HTTP request" in each
    assert told.startswith("podtrail: trace ")
    assert "3 requests that are no HTTP refused" in told


def test_paths_pass_as_they_are_and_http_1_0_is_answered(trace: Trace) -> None:
    lines = ["GET /api/v1/..;/x HTTP/1.1", "GET //evil.example/api HTTP/1.1", "GET /api/%2e%2e/version HTTP/1.0"]
    said, told = answers(trace, *((line, "") for line in lines))
    assert all("podtrail trace" not in each for each in said)
    assert len(said) == 3
    assert "Traceback" not in told
