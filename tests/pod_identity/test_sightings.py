"""Which Pod a span is about, and which of several Pods of one name is meant."""

import pytest

from podtrail.otlp import SpanView, Value, encode_span
from podtrail.pod_identity import CREATE, Places, Sighting, sighting_of

SECOND = 1_000_000_000
AT = 1_790_000_000 * SECOND
AUDIT = "3b3e6f30-0d6c-4f0b-8a51-0f3a61a6a0c1"
SERVER = 2


def sighting(span: str = "span", kind: int = 1, **attributes: Value) -> Sighting | None:
    dotted = {key.replace("__", ".").replace("audit_id", "audit-id"): value for key, value in attributes.items()}
    raw = encode_span(trace_id=b"t" * 16, span_id=b"s" * 8, name=span, start=AT, end=AT, kind=kind, attributes=dotted)
    return sighting_of(SpanView(raw))


def test_a_uid_says_it_with_the_name_if_that_is_there() -> None:
    assert sighting(k8s__pod__uid="u") == Sighting("u", "", AT)
    expected = Sighting("u", "ns/web-0", AT)
    assert sighting(k8s__pod__uid="u", k8s__namespace__name="ns", k8s__pod__name="web-0") == expected
    assert sighting(k8s__pod__uid="u", k8s__pod__namespace="ns", k8s__pod__name="web-0") == expected


@pytest.mark.parametrize(
    ("path", "place", "action"),
    [
        ("/api/v1/namespaces/ns/pods/web-0", "ns/web-0", ""),
        ("/api/v1/namespaces/ns/pods/web-0/binding", "ns/web-0", "binding"),
        ("/api/v1/namespaces/ns/pods/web-0/status?force=true", "ns/web-0", "status"),
    ],
)
def test_a_request_says_it_in_its_path(path: str, place: str, action: str) -> None:
    expected = Sighting("", place, AT, action, AUDIT)
    assert sighting(kind=SERVER, url__path=path, audit_id=AUDIT) == expected
    assert sighting(kind=SERVER, http__target=path, audit_id=AUDIT) == expected
    assert sighting(url=path, audit_id=AUDIT) == expected, "a span within the request"


def test_a_creation_says_it_in_the_key_in_etcd_and_its_request_by_the_audit_id() -> None:
    assert sighting("Create etcd3", key="/pods/ns/web-0", audit_id=AUDIT) == Sighting("", "ns/web-0", AT, CREATE, AUDIT)
    assert sighting("txn", compare_first_key="/registry/pods/ns/web-0") == Sighting("", "ns/web-0", AT)
    path = "/api/v1/namespaces/ns/pods"
    assert sighting(kind=SERVER, url__path=path, audit_id=AUDIT) == Sighting("", "", AT, "", AUDIT)


@pytest.mark.parametrize(
    "attributes",
    [
        {},
        {"url__path": "/api/v1/namespaces/ns/services/web-0", "audit_id": AUDIT},
        {"url__path": "/api/v1/namespaces/ns/pods/web-0/proxy/a/b", "audit_id": AUDIT},
        {"url__path": "/api/v1/namespaces/ns/pods/" + "x" * 300},
        {"key": "/configmaps/ns/pods/a"},
        {"k8s__pod__uid": 7},
        {"k8s__pod__uid": "u" * 500},
    ],
)
def test_other_spans_are_about_no_pod(attributes: dict[str, Value]) -> None:
    assert sighting("GET", SERVER, **attributes) is None


def test_pods_of_one_name_are_told_apart_by_the_time() -> None:
    places = Places(10)
    places.note("ns/web-0", "first", AT)
    places.note("ns/web-0", "second", AT + 100 * SECOND)
    assert places.uid_at("ns/web-0", AT - 10 * SECOND, created=True) == "first"
    assert places.uid_at("ns/web-0", AT + 50 * SECOND) == "first"
    assert places.uid_at("ns/web-0", AT + 50 * SECOND, created=True) == "second"
    assert places.uid_at("ns/web-0", AT + 150 * SECOND) == "second"
    assert places.uid_at("ns/web-0", AT - 10 * SECOND) == ""
    assert places.uid_at("ns/other", AT) == ""


def test_places_are_bounded() -> None:
    places = Places(3)
    for number in range(10):
        places.note(f"ns/{number}", "u", AT)
        for generation in range(20):
            places.note("ns/again", f"u-{generation}", AT + generation)
    assert len(places) == 3
    assert places.uid_at("ns/again", AT, created=True) == "u-12", "of one place the latest eight"
