"""The parts of the tracing proxy that need no API server: trace contexts, headers, and what an answer tells."""

import gzip
import json
from typing import Any

import pytest
from multidict import CIMultiDict, CIMultiDictProxy
from podtrail_kubernetes.tracing_proxy.forwarded_headers import to_api_server, to_client, upgrade_of
from podtrail_kubernetes.tracing_proxy.request_trace import new_span_id, read_traceparent
from podtrail_kubernetes.tracing_proxy.written_objects import (
    MAX_ANSWER,
    WrittenObject,
    answer_reader,
    readable_answer,
)

TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
POD = {"kind": "Pod", "metadata": {"name": "web", "namespace": "shop", "uid": "u"}}


@pytest.mark.parametrize("header", [f"00-{TRACE}-{SPAN}-00", f" 00-{TRACE}-{SPAN}-01 ", f"cc-{TRACE}-{SPAN}-01-more"])
def test_a_valid_traceparent_is_read(header: str) -> None:
    assert read_traceparent(header) == (TRACE, SPAN)


@pytest.mark.parametrize(
    "header",
    [
        None,
        "",
        f"00-{'0' * 32}-{SPAN}-01",
        f"00-{TRACE}-{'0' * 16}-01",
        f"ff-{TRACE}-{SPAN}-01",
        f"00-{TRACE}-{SPAN}-01-more",
        f"00-{TRACE.upper()}-{SPAN}-01",
        f"00-{TRACE}-{SPAN}",
    ],
)
def test_an_invalid_traceparent_is_none(header: str | None) -> None:
    assert read_traceparent(header) is None


def test_span_ids_differ_and_are_valid() -> None:
    made = {new_span_id() for _ in range(1000)}
    assert len(made) == 1000
    assert all(read_traceparent(f"00-{TRACE}-{each}-01") for each in made)


def headers(*pairs: tuple[str, str]) -> CIMultiDictProxy[str]:
    return CIMultiDictProxy(CIMultiDict(pairs))


def test_headers_of_the_connection_and_the_runs_token_stay_behind_all_else_passes() -> None:
    given = headers(
        ("Host", "127.0.0.1:1"),
        ("Authorization", "Bearer of-this-run"),
        ("Connection", "keep-alive, X-Hop"),
        ("X-Hop", "1"),
        ("Transfer-Encoding", "chunked"),
        ("Impersonate-Group", "a"),
        ("Impersonate-Group", "b"),
        ("tracestate", "a=b"),
        ("Accept", "application/json;as=Table"),
    )
    passed = to_api_server(given, {"authorization": "Bearer real"}, "tp", own=False)
    assert sorted(passed.items()) == [
        ("Accept", "application/json;as=Table"),
        ("Impersonate-Group", "a"),
        ("Impersonate-Group", "b"),
        ("authorization", "Bearer real"),
        ("traceparent", "tp"),
    ]
    assert to_api_server(given, {}, "tp", own=True)["tracestate"] == "a=b"
    assert list(to_client(headers(("Keep-Alive", "x"), ("Audit-Id", "1")))) == ["Audit-Id"]


def test_an_upgrade_is_one_only_when_the_connection_says_so() -> None:
    assert upgrade_of(headers(("Connection", "Upgrade"), ("Upgrade", "SPDY/3.1"))) == "SPDY/3.1"
    assert upgrade_of(headers(("Connection", "keep-alive, upgrade"), ("Upgrade", "websocket"))) == "websocket"
    assert upgrade_of(headers(("Upgrade", "websocket"))) is None


def told(method: str, target: str, body: Any, status: int = 201, *, encoding: str = "") -> WrittenObject | None:
    reader = answer_reader(method, target, status, {"Content-Encoding": encoding})
    if reader is None:
        return None
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    for start in range(0, len(raw), 1000):
        reader.feed(raw[start : start + 1000])
    return reader.read()


@pytest.mark.parametrize(
    ("method", "target", "collection"),
    [
        ("POST", "/api/v1/namespaces/shop/pods?fieldManager=x", "/api/v1/namespaces/shop/pods"),
        ("PATCH", "/api/v1/namespaces/shop/pods/web?force=true", "/api/v1/namespaces/shop/pods"),
        ("PUT", "/apis/apps/v1/namespaces/shop/deployments/web", "/apis/apps/v1/namespaces/shop/deployments"),
        ("POST", "/apis/example.com/v1/things", "/apis/example.com/v1/things"),
    ],
)
def test_answers_to_writes_tell_of_objects(method: str, target: str, collection: str) -> None:
    found = told(method, target, POD)
    assert found is not None
    assert (found.kind, found.namespace, found.name, found.uid) == ("Pod", "shop", "web", "u")
    assert (found.collection, found.created) == (collection, True)


@pytest.mark.parametrize(
    ("method", "target", "body", "status"),
    [
        ("GET", "/api/v1/namespaces/shop/pods/web", POD, 200),
        ("POST", "/api/v1/namespaces/shop/pods?dryRun=All", POD, 201),
        ("POST", "/api/v1/namespaces/shop/pods", POD, 409),
        ("POST", "/api/v1/namespaces/shop/pods/web/binding", POD, 201),
        ("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", {"kind": "X", "metadata": {}}, 201),
        ("POST", "/api/v1/namespaces/shop/pods", {"kind": "Status", "metadata": {}}, 201),
        ("POST", "/api/v1/namespaces/shop/pods", b"k8s\0protobuf", 201),
        ("POST", "/api/v1/namespaces/shop/pods", b"[" * 100_000, 201),
        ("POST", "/api/v1/namespaces/shop/pods", b" " * (MAX_ANSWER + 1), 201),
    ],
)
def test_all_else_tells_of_none(method: str, target: str, body: Any, status: int) -> None:
    assert told(method, target, body, status) is None


def test_a_compressed_answer_is_read_and_a_bomb_is_not() -> None:
    assert (
        told("POST", "/api/v1/namespaces/shop/pods", gzip.compress(json.dumps(POD).encode()), encoding="gzip")
        is not None
    )
    assert told("POST", "/api/v1/namespaces/shop/pods", gzip.compress(b" " * (64 << 20)), encoding="gzip") is None
    assert told("POST", "/api/v1/namespaces/shop/pods", b"no gzip", encoding="gzip") is None


@pytest.mark.parametrize(
    ("accept", "asked"),
    [
        ("application/vnd.kubernetes.protobuf,application/json", "application/json"),
        ("application/cbor, application/json;q=0.9", "application/json;q=0.9"),
        ("application/vnd.kubernetes.protobuf, */*", "application/json"),
        ("application/vnd.kubernetes.protobuf", "application/vnd.kubernetes.protobuf"),
        ("application/json", "application/json"),
    ],
)
def test_who_takes_json_besides_is_answered_in_json(accept: str, asked: str) -> None:
    assert readable_answer(accept) == asked
