"""Lives of made-up Pods: what is late, twice, recycled, forged, too much, or never gets anywhere."""

from collections.abc import Sequence

import pytest
from podtrail_processors.link_stitching.config import Config
from podtrail_processors.link_stitching.lifecycle.config import LifecycleSettings
from podtrail_processors.link_stitching.lifecycle.ids import trace_id_of
from podtrail_processors.link_stitching.processor import LinkStitching
from pydantic import ValidationError

from podtrail.component import Context, Ledger
from podtrail.config.types import MINUTE, SECOND
from podtrail.otlp import (
    Batch,
    Group,
    SpanView,
    Status,
    Value,
    encode_span,
    frame,
    resource_header,
    scope_header,
    split,
)
from podtrail.testing.attempts import START, MadeAttempt
from tests.sizes import large

UID = "1f3c0a52-0000-4000-8000-000000000001"
KUBELET = resource_header({"service.name": "kubelet", "host.name": "node-1"})
BACK_OFF = 'failed to "StartContainer" for "main" with CrashLoopBackOff: "back-off 10s restarting failed container"'
LIFECYCLE = Config(mode="lifecycle")


def sync(at: int, uid: str = UID, name: str = "syncPod", error: str = "", calls: Sequence[str] = ()) -> Group:
    """A sync of the kubelet's with calls of the runtime."""
    trace = at.to_bytes(16)
    told: dict[str, Value] = {"k8s.pod.uid": uid, "k8s.pod.name": "web-0", "k8s.namespace.name": "default"}
    status = Status(2, error) if error else None
    spans = [
        encode_span(
            trace_id=trace,
            span_id=(number + 2).to_bytes(8),
            parent_span_id=(1).to_bytes(8),
            name=f"runtime.v1.RuntimeService/{call}",
            kind=3,
            start=at + number,
            end=at + number + 1,
        )
        for number, call in enumerate(calls)
    ]
    root = encode_span(
        trace_id=trace, span_id=(1).to_bytes(8), name=name, start=at, end=at + SECOND, attributes=told, status=status
    )
    return Group(KUBELET, scope_header("kubelet"), trace, frame([*spans, root]), len(spans) + 1)


class Told:
    """A processor that is driven, and the spans of lifecycles that left it."""

    def __init__(self, config: Config = LIFECYCLE) -> None:
        self.context = Context(id="link_stitching", ledger=Ledger())
        self.stitching = LinkStitching(config, self.context)
        self.spans: list[SpanView] = []

    def at(self, now: int, *groups: Group, drain: bool = False) -> list[str]:
        """Let time pass, and groups come then; return the names of the spans that this brought."""
        before = len(self.spans)
        while (due := self.stitching.deadline()) is not None and due <= now:
            self._left(self.stitching.expire(due, 1000))
        self._left(self.stitching.add(Batch(groups, now), now).out)
        if drain:
            self._left(self.stitching.drain(now))
        return [span.name for span in self.spans[before:]]

    def _left(self, batches: Sequence[Batch]) -> None:
        lives = [group for batch in batches for group in batch.groups if b"podtrail.link_stitching" in group.scope]
        views = [SpanView(raw) for group in lives for raw in split(group.spans)]
        self.spans += [view for view in views if view.name != "podtrail.amendment"]

    def count(self, metric: str, **labels: str) -> float:
        key = ",".join(f"{name}={value}" for name, value in sorted({"processor": "link_stitching", **labels}.items()))
        return self.context.metrics.snapshot()[f"otelcol_processor_link_stitching_{metric}"].get(key, 0)


def test_a_pod_that_never_starts_is_told_at_the_timeout_with_why() -> None:
    told = Told()
    message = "0/5 nodes are available: 5 Insufficient cpu."
    attempt = MadeAttempt(uid=UID, result="Unschedulable", message=message, stitched=False)
    told.at(START, *attempt.groups())
    assert told.at(START + 10 * MINUTE - 1) == []
    assert told.at(START + 10 * MINUTE) == ["queued", "attempt", "PodLifecycle"]
    root = told.spans[-1]
    assert root.attributes["podtrail.lifecycle.state"] == "timeout"
    assert (root.status.code, root.status.message) == (2, message)


def test_what_comes_after_the_root_follows_under_it_and_nothing_is_told_twice() -> None:
    told = Told()
    started = sync(START, calls=["RunPodSandbox", "CreateContainer", "StartContainer"])
    told.at(START + SECOND, started)
    first = ["sandbox", "container created", "container started", "PodLifecycle"]
    assert told.at(START + 12 * SECOND) == first
    told.at(START + MINUTE, started, sync(START + MINUTE, error=BACK_OFF), sync(START + MINUTE, error=BACK_OFF))
    assert told.at(START + 2 * MINUTE) == ["failed start"]
    told.at(START + 3 * MINUTE, sync(START + 3 * MINUTE, name="syncTerminatedPod"))
    assert told.at(START + 4 * MINUTE) == ["terminated"]
    assert len({span.span_id for span in told.spans}) == len(told.spans) == 6
    (root,) = [span for span in told.spans if span.name == "PodLifecycle"]
    assert {span.parent_span_id for span in told.spans} == {b"", root.span_id}
    assert told.context.ledger.created == 6


def test_a_kubelet_that_restarts_begins_no_second_life() -> None:
    told = Told()
    told.at(START, sync(START, calls=["RunPodSandbox", "StartContainer"]))
    told.at(START + MINUTE, sync(START + MINUTE), sync(START + MINUTE + SECOND))
    told.at(START + 2 * MINUTE, drain=True)
    assert [span.name for span in told.spans].count("PodLifecycle") == 1


def test_two_pods_of_one_name_have_two_lives() -> None:
    told, other = Told(), UID[:-1] + "2"
    told.at(START, sync(START, calls=["StartContainer"]))
    told.at(START + SECOND, sync(START + SECOND, uid=other, calls=["StartContainer"]))
    told.at(START + MINUTE)
    assert {span.trace_id for span in told.spans} == {trace_id_of(UID), trace_id_of(other)}


@pytest.mark.parametrize(
    "forged",
    [
        "main_web-0_default_extra_" + UID + "_0",
        "web-0_default_" + UID + "_0",
        "main_web-0_default__0",
        "main_web-0_default_" + "x" * 200 + "_0",
        "main_web-0_default_" + UID + "_no",
    ],
)
def test_names_that_no_kubelet_writes_tell_no_pod(forged: str) -> None:
    raw = encode_span(
        trace_id=b"t" * 16,
        span_id=b"spanspan",
        name="runtime.v1.RuntimeService/CreateContainer",
        kind=2,
        start=START,
        end=START,
        attributes={"container.name": forged, "container.id": "c"},
    )
    told = Told()
    told.at(START, Group(resource_header({}), scope_header("c"), b"t" * 16, frame([raw]), 1), drain=True)
    assert told.spans == []
    assert told.count("lifecycle_remembered", pipeline="", what="call") == 1


def test_many_pods_churn_takes_bounded_room_and_each_is_told() -> None:
    settings = LifecycleSettings(max_pods=100, timeout=10 * MINUTE)
    told = Told(Config(mode="lifecycle", lifecycle=settings, max_pods=100, max_traces=100))
    churned = large(600, 2000)
    for number in range(churned):
        at = START + number * SECOND
        told.at(at, sync(at, uid=f"{number:08x}-0000-4000-8000-000000000000", error=BACK_OFF))
        assert told.count("lifecycle_remembered", pipeline="", what="pod") <= 100
        assert told.count("lifecycle_remembered", pipeline="", what="due") <= 300
    assert told.count("lifecycle_forgotten", what="pod", reason="full") == churned - 100
    assert told.count("lifecycles", state="forgotten") == churned - 100
    told.at(START + churned * SECOND, drain=True)
    assert [span.name for span in told.spans].count("PodLifecycle") == churned


def test_what_one_pod_does_beyond_its_bound_is_counted() -> None:
    told = Told(Config(mode="lifecycle", lifecycle=LifecycleSettings(max_parts_per_pod=8)))
    for number in range(30):
        at = START + number * MINUTE
        told.at(at, sync(at, calls=["StartContainer"]))
    told.at(START + 31 * MINUTE, drain=True)
    assert [span.name for span in told.spans].count("container started") == 8
    assert told.count("lifecycle_forgotten", what="part", reason="full") == 22


def test_a_successor_tells_what_its_predecessor_has_learned_and_no_root_twice() -> None:
    first, second = Told(), Told()
    first.at(START, sync(START, calls=["StartContainer"]))
    second.stitching.take_over(first.stitching, START + SECOND)
    assert second.at(START + 11 * SECOND) == ["container started", "PodLifecycle"]
    third = Told()
    third.stitching.take_over(second.stitching, START + 12 * SECOND)
    third.at(START + 13 * SECOND, sync(START + 13 * SECOND, error=BACK_OFF))
    assert third.at(START + MINUTE) == ["failed start"]


def test_a_trace_id_is_the_uid_where_that_is_a_uuid() -> None:
    assert trace_id_of(UID).hex() == UID.replace("-", "")
    for other in ("", UID.upper(), "00000000-0000-0000-0000-000000000000", "web-0"):
        assert len(trace_id_of(other)) == 16
        assert any(trace_id_of(other))


def test_a_memory_that_forgets_before_the_timeout_is_refused() -> None:
    with pytest.raises(ValidationError, match="ttl must be longer than lifecycle::timeout"):
        Config(mode="lifecycle", ttl=10 * MINUTE)


def test_the_root_of_a_pod_that_lives_for_longer_than_is_remembered_is_sent_once() -> None:
    told = Told()
    told.at(START, sync(START, calls=["StartContainer"]))
    assert told.at(START + MINUTE)[-1] == "PodLifecycle"
    for later in range(5, 180, 5):
        told.at(START + later * MINUTE, sync(START + later * MINUTE, uid="2f3c0a52-0000-4000-8000-000000000002"))
    end = START + 180 * MINUTE
    assert told.at(end, sync(end, name="syncTerminatedPod")) == []
    successor = Told()
    successor.stitching.take_over(told.stitching, end)
    assert successor.at(end + MINUTE) == ["terminated"]
