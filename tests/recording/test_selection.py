"""Which traces of a recording are meant."""

from collections.abc import Mapping

import pytest

from podtrail.otlp import Group, Intake, Link, Value, encode_span, frame, resource_header, scope_header
from podtrail.recording import Record
from podtrail.recording.record import RecordingPosition
from podtrail.recording.selection import FAILED, Criteria, Window, chosen, linked, meeting
from podtrail.testing.attempts import MadeAttempt

HEADERS = resource_header({"service.name": "s"}), scope_header("t")
ATTEMPT = MadeAttempt(uid="uid-1", namespace="shop", name="web-0", result="Unschedulable")


def group(trace: int, *spans: Mapping[str, Value], links: tuple[Link, ...] = ()) -> Group:
    trace_id = trace.to_bytes(16, "big")
    raw = [
        encode_span(
            trace_id=trace_id,
            span_id=at.to_bytes(8, "big"),
            name="n",
            start=1,
            end=2,
            attributes=attributes,
            links=links,
        )
        for at, attributes in enumerate(spans or ({},), 1)
    ]
    return Group(*HEADERS, trace_id, frame(raw), len(raw))


def record(arrival: int, *groups: Group) -> Record:
    intake = Intake(list(groups), 0, "")
    return Record(arrival, intake, RecordingPosition("r.otlp", arrival, "byte"), timed=True)


def criteria(**named: str) -> Criteria:
    return Criteria(**{kind: frozenset(names.split()) for kind, names in named.items()})


@pytest.mark.parametrize(
    ("asked", "meets"),
    [
        (criteria(pods="uid-1"), True),
        (criteria(pods="other/web-0 shop/web-0"), True),
        (criteria(pods="shop/web-1"), False),
        (criteria(namespaces="shop"), True),
        (criteria(namespaces="other"), False),
        (criteria(results="unschedulable error"), True),
        (criteria(results=FAILED), True),
        (criteria(results="success"), False),
        (criteria(pods="uid-1", namespaces="shop", results=FAILED), True),
        (criteria(pods="uid-1", namespaces="other"), False),
        (criteria(pods="uid-2", results=FAILED), False),
    ],
)
def test_an_attempt_is_meant_that_meets_all_kinds_named(asked: Criteria, *, meets: bool) -> None:
    assert asked.meets(ATTEMPT.groups()[0]) is meets


@pytest.mark.parametrize(
    ("asked", "meets"),
    [
        (criteria(clusters="east"), True),
        (criteria(clusters="west east", pods="shop/web-0", results=FAILED), True),
        (criteria(clusters="west"), False),
        (criteria(clusters="west", pods="shop/web-0"), False),
        (criteria(clusters="east", pods="shop/web-1"), False),
        (Criteria(clusters=frozenset({""})), False),
    ],
)
def test_what_says_its_cluster_is_meant_by_it_and_by_all_kinds_named(asked: Criteria, *, meets: bool) -> None:
    resource = resource_header({"k8s.cluster.name": "east"})
    assert asked.meets(ATTEMPT.groups()[0]._replace(resource=resource)) is meets


def test_what_says_no_cluster_is_meant_by_an_empty_name() -> None:
    assert Criteria(clusters=frozenset({""})).meets(group(1))
    assert not criteria(clusters="east").meets(group(1))


def test_a_success_is_no_failure() -> None:
    assert not criteria(results=FAILED).meets(MadeAttempt(result="Success").groups()[0])


NAMED = {"k8s.pod.uid": "uid-1", "k8s.namespace.name": "shop", "k8s.pod.name": "web-0"}


@pytest.mark.parametrize(
    ("asked", "meets"),
    [
        (criteria(pods="uid-1"), True),
        (criteria(pods="shop/web-0 shop/web-9"), True),
        (criteria(pods="other/web-0"), False),
        (criteria(namespaces="shop other"), True),
        (criteria(namespaces="web-0"), False),
        (criteria(pods="uid-1", namespaces="other"), False),
        (criteria(pods="uid-1", results=FAILED), False),
    ],
)
def test_any_span_that_names_the_pod_means_its_trace(asked: Criteria, *, meets: bool) -> None:
    assert asked.meets(group(1, {"a": "b"}, NAMED, {"a": "uid-1"})) is meets


def test_all_is_asked_of_the_same_span() -> None:
    apart = group(1, {"k8s.pod.uid": "uid-1", "k8s.pod.namespace": "x"}, {"k8s.pod.namespace": "shop"})
    assert not criteria(pods="uid-1", namespaces="shop").meets(apart)
    assert criteria(pods="uid-1", namespaces="x").meets(apart)


def test_nothing_asked_is_false() -> None:
    assert not Criteria()
    assert all([criteria(pods="a"), criteria(namespaces="a"), criteria(results="a")])


def test_traces_are_found_with_those_that_they_link_to() -> None:
    to_third = Link((3).to_bytes(16, "big"), bytes(8), {})
    records = [record(1, group(1, NAMED, links=(to_third,)), group(2, links=(to_third,))), record(2, group(4))]
    found = meeting(records, criteria(pods="uid-1"))
    assert found == {(1).to_bytes(16, "big")}
    assert linked(records, found) == {(1).to_bytes(16, "big"), (3).to_bytes(16, "big")}


@pytest.mark.parametrize(
    ("since", "until", "taken"),
    [(None, None, [1, 2, 3]), (2, None, [2, 3]), (None, 2, [1]), (2, 3, [2]), (3, 2, [])],
)
def test_a_window_takes_what_began_from_its_first_moment_to_before_its_last(
    since: int | None, until: int | None, taken: list[int]
) -> None:
    window = Window(since, until)
    assert [at for at in (1, 2, 3) if window.takes(bytes([at]), at)] == taken


def test_late_spans_stay_with_their_trace_until_it_is_forgotten() -> None:
    window = Window(2, None, most=2)
    assert not window.takes(b"a", 1)
    assert window.takes(b"b", 2)
    assert not window.takes(b"a", 3)
    assert window.forgotten == 0
    assert window.takes(b"c", 4)
    assert window.forgotten == 1
    assert window.takes(b"b", 1)
    assert window.takes(b"a", 5)


def test_of_requests_the_groups_that_are_meant_are_left() -> None:
    one, two = group(1), group(2)
    records = [record(1, one, two), record(2, one), record(3, two)]
    assert [(r.arrival, g) for r, g in chosen(records, Window(None, None), None)] == [
        (1, [one, two]),
        (2, [one]),
        (3, [two]),
    ]
    only = frozenset([two.trace_id])
    assert [(r.arrival, g) for r, g in chosen(records, Window(None, 3), only)] == [(1, [two]), (3, [two])]
    assert [(r.arrival, g) for r, g in chosen(records, Window(2, None), None)] == []
