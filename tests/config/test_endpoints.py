"""Endpoints of servers and clients."""

import pytest

from podtrail.config.types import Target, client_target, host_port


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("localhost:4317", ("localhost", 4317)),
        ("127.0.0.1:0", ("127.0.0.1", 0)),
        ("[::1]:4317", ("::1", 4317)),
        ("[fe80::1%eth0]:1", ("fe80::1%eth0", 1)),
        (":4317", ("", 4317)),
        ("otel-collector.observability.svc:65535", ("otel-collector.observability.svc", 65535)),
    ],
)
def test_a_listener_is_host_and_port(text: str, expected: tuple[str, int]) -> None:
    assert host_port(text) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("localhost", "lacks a port"),
        ("[::1]", "lacks a port"),
        ("::1:4317", "an IPv6 address stands in brackets"),
        ("[zz]:1", "no IPv6 address in its brackets"),
        ("localhost:65536", "no port from 0 to 65535"),
        ("localhost:x", "no port from 0 to 65535"),
        ("localhost:", "no port from 0 to 65535"),
        ("http://localhost:1", "has a scheme, but a listener takes none"),
        ("a b:1", "no valid host"),
        ("", "lacks a port"),
    ],
)
def test_a_listener_that_is_wrong_is_explained(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        host_port(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("localhost:4317", Target("", "localhost", 4317, "")),
        ("http://localhost:4318", Target("http", "localhost", 4318, "")),
        ("https://backend.example/otlp", Target("https", "backend.example", 443, "/otlp")),
        ("http://[::1]:4318/", Target("http", "::1", 4318, "/")),
        ("dns:///backend:4317", Target("dns", "backend", 4317, "")),
        ("unix:///run/collector.sock", Target("unix", "", 0, "/run/collector.sock")),
    ],
)
def test_a_client_may_name_a_scheme(text: str, expected: Target) -> None:
    assert client_target(text) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is empty"),
        (":4317", "no host to connect to"),
        ("ftp://x:1", "unknown scheme 'ftp'"),
        ("http://user:secret@x:1", "has a user name or password in it"),
        ("http://user:secret@x:port", r"^has a user name or password in it: put credentials into headers$"),
        ("http://x:99999", "is not a URL"),
        ("http://x?y", "query or fragment"),
        ("unix://", "names no socket"),
    ],
)
def test_a_client_endpoint_that_is_wrong_is_explained(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        client_target(text)
