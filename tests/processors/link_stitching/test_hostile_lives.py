"""Lives of Pods of which somebody tells nonsense: texts without end, traces about two, more than anybody has."""

import sys
from collections.abc import Mapping

import pytest
from podtrail_processors.link_stitching.config import Config
from podtrail_processors.link_stitching.lifecycle.config import LifecycleSettings
from podtrail_processors.link_stitching.lifecycle.reading import told_in

from podtrail.config.types import MINUTE
from podtrail.otlp import Group, Status, Value, encode_span, frame, resource_header, scope_header
from podtrail.testing.attempts import START
from tests.processors.link_stitching.test_lives import UID, Told

OTHER = "2f3c0a52-0000-4000-8000-000000000002"


def group(trace: bytes, *spans: bytes) -> Group:
    return Group(resource_header({"service.name": "any"}), scope_header("any"), trace, frame(spans), len(spans))


def attempt(trace: bytes, span: bytes, uid: str = UID, told: Mapping[str, Value] | None = None) -> bytes:
    attributes: Mapping[str, Value] = {"k8s.pod.uid": uid, **(told or {})}
    return encode_span(
        trace_id=trace, span_id=span, name="SchedulePod", start=START, end=START + 1, attributes=attributes
    )


def call(name: str, span: bytes, container: str = "", trace: bytes = b"c" * 16) -> Group:
    told: dict[str, Value] = {"container.name": container} if container else {}
    raw = encode_span(
        trace_id=trace,
        span_id=span,
        parent_span_id=b"p" * 8,
        name=f"runtime.v1.RuntimeService/{name}",
        kind=2,
        start=START,
        end=START + 1,
        attributes=told,
    )
    return group(trace, raw)


@pytest.mark.parametrize("waited", [(1 << 63) - 1, 1 << 62])
def test_a_pod_that_waited_for_longer_than_there_is_time_waited_since_the_beginning_of_time(waited: int) -> None:
    told = Told()
    told.at(START, group(b"a" * 16, attempt(b"a" * 16, b"a" * 8, told={"scheduler.queue_wait_ms": waited})))
    assert told.at(START + 10 * MINUTE) == ["queued", "attempt", "PodLifecycle"]
    assert [span.start for span in told.spans if span.name == "queued"] == [0]


def test_dues_of_lives_that_had_to_go_are_forgotten_behind_one_that_stays() -> None:
    told = Told(Config(mode="lifecycle", lifecycle=LifecycleSettings(max_pods=10)))
    for number in range(1, 1000):
        trace = number.to_bytes(16)
        told.at(START, group(b"a" * 16, attempt(b"a" * 16, b"a" * 8)))
        told.at(START, group(trace, attempt(trace, b"b" * 8, f"uid-{number}")))
    gauge = told.context.metrics.snapshot()["otelcol_processor_link_stitching_lifecycle_remembered"]
    dues = [count for labels, count in gauge.items() if "what=due" in labels]
    assert len(dues) == 1
    assert dues[0] <= 100


def test_work_grows_as_the_number_of_attempts_in_one_trace_does() -> None:
    def steps(number: int) -> int:
        many = [
            attempt(b"a" * 16, one.to_bytes(8), told={"scheduler.result": "Unschedulable"})
            for one in range(1, number + 1)
        ]
        whole = group(b"a" * 16, *many)
        count = 0

        def step(*_: object) -> None:
            nonlocal count
            count += 1

        before = sys.getprofile()
        sys.setprofile(step)
        try:
            assert len(list(told_in(whole))) == number
        finally:
            sys.setprofile(before)
        return count

    assert steps(80) < 12 * steps(10)


def test_a_call_in_a_trace_about_two_pods_is_of_neither() -> None:
    told = Told()
    told.at(START, call("CreateContainer", b"span-one", f"main_web-0_default_{UID}_0"))
    told.at(START, call("CreateContainer", b"span-two", f"main_web-1_default_{OTHER}_0"))
    told.at(START, call("StartContainer", b"span-six"))
    told.at(START, call("CreateContainer", b"span-ten", f"main_web-0_default_{UID}_0"), call("PullImage", b"span-300"))
    told.at(START + MINUTE, drain=True)
    assert sorted((span.name, span.attributes["k8s.pod.uid"]) for span in told.spans if span.parent_span_id) == [
        ("container created", UID),
        ("container created", OTHER),
    ]
    assert told.count("lifecycle_forgotten", what="call", reason="ambiguous") == 2


def test_what_is_remembered_of_a_part_is_bounded_whatever_it_says() -> None:
    told = Told()
    endless = "x" * 20_000
    for kind in ("waiting", "terminated", "gated"):
        attributes: dict[str, Value] = {
            "k8s.pod.uid": UID,
            "podtrail.pod.transition": kind,
            "podtrail.pod.reason": endless,
            "podtrail.pod.message": endless,
            "k8s.container.name": endless,
            "k8s.pod.scheduling_gates": [endless] * 100,
            "podtrail.inferred": {endless: endless},
        }
        raw = encode_span(
            trace_id=b"w" * 16,
            span_id=kind.encode()[:5] + b"-xx",
            name="pod",
            start=START,
            end=START,
            attributes=attributes,
            status=Status(2, endless),
        )
        told.at(START, group(b"w" * 16, raw))
    long = attempt(b"a" * 16, b"a" * 8, told={"scheduler.profile": endless, "scheduler.result": endless})
    told.at(START, group(b"a" * 16, long))
    told.at(START + MINUTE, drain=True)
    assert [span.name for span in told.spans].count("failed start") == 1
    assert {len(span.raw) < 20_000 for span in told.spans} == {True}


def test_two_containers_whose_endless_names_begin_alike_are_two_parts() -> None:
    told = Told()
    for last in ("a", "b"):
        attributes: dict[str, Value] = {
            "k8s.pod.uid": UID,
            "podtrail.pod.transition": "waiting",
            "podtrail.pod.reason": "ErrImagePull",
            "k8s.container.name": "x" * 2000 + last,
        }
        span = last.encode() * 8
        raw = encode_span(trace_id=b"w" * 16, span_id=span, name="pod", start=START, end=START, attributes=attributes)
        told.at(START, group(b"w" * 16, raw))
    told.at(START + MINUTE, drain=True)
    assert [span.name for span in told.spans].count("failed start") == 2
