"""Links are resolved both ways, and marked when they lead nowhere."""

from collections.abc import Mapping, Sequence

import pytest
from podtrail_processors.link_stitching.config import Config
from podtrail_processors.link_stitching.processor import LinkStitching

from podtrail.component import Context
from podtrail.config.types import SECOND
from podtrail.otlp import (
    Batch,
    Group,
    Link,
    SpanView,
    Value,
    Verdict,
    encode_span,
    frame,
    read_attempt,
    resource_attributes,
    resource_header,
    scope_header,
    split,
)
from podtrail.testing.attempts import MS, START, MadeAttempt

CREATE = "POST /api/v1/namespaces/{:namespace}/pods"
BIND = "POST /api/v1/namespaces/{:namespace}/pods/{:name}/binding"
ONLY = "web-7f7644db44-dsw5v"
"""A generated name: no other Pod ever had it."""
TO_CREATION = Link(b"c" * 16, b"creation", {"podtrail.link.source": "annotation"}, flags=769)


def span(
    trace: bytes,
    span_id: bytes,
    name: str,
    *,
    service: str = "apiserver",
    start: int = START,
    kind: int = 2,
    attributes: Mapping[str, Value] | None = None,
    links: Sequence[Link] = (),
) -> Group:
    raw = encode_span(
        trace_id=trace * 16,
        span_id=span_id,
        name=name,
        start=start,
        end=start + MS,
        kind=kind,
        attributes=attributes,
        links=links,
    )
    return Group(resource_header({"service.name": service}), scope_header("test"), trace * 16, frame([raw]), 1)


def creation() -> Group:
    return span(b"c", b"creation", CREATE, attributes={"url.path": "/api/v1/namespaces/default/pods"})


def binding(start: int = START + 8 * MS, place: str = "default/web-0", links: Sequence[Link] = ()) -> Group:
    namespace, name = place.split("/")
    path = f"/api/v1/namespaces/{namespace}/pods/{name}/binding"
    return span(b"b", b"binding1", BIND, start=start, attributes={"url.path": path}, links=links)


def sync(start: int, trace: bytes = b"k", uid: str = MadeAttempt().uid) -> Group:
    return span(trace, b"syncPod1", "syncPod", service="kubelet", start=start, kind=1, attributes={"k8s.pod.uid": uid})


class Stitched:
    """A processor in use, and all that came out of it."""

    def __init__(self, **config: Value) -> None:
        self.context = Context(id="link_stitching")
        self.processor = LinkStitching(Config.model_validate(config), self.context)
        self.out: list[Group] = []
        self.now = START

    def add(self, *groups: Group, verdicts: Sequence[Verdict] = ()) -> None:
        for batch in self.processor.add(Batch(groups, self.now, verdicts), self.now).out:
            self.out += batch.groups

    def wait(self, nanoseconds: int = 6 * SECOND) -> None:
        self.now += nanoseconds
        for batch in self.processor.expire(self.now, 1000):
            self.out += batch.groups

    def drain(self) -> None:
        for batch in self.processor.drain(self.now):
            self.out += batch.groups

    def named(self, name: str) -> list[SpanView]:
        return [view for group in self.out for view in map(SpanView, split(group.spans)) if view.name == name]

    def root(self) -> SpanView:
        (root,) = self.named("SchedulePod")
        return root


def told(span: SpanView) -> list[tuple[bytes, Value, Value]]:
    return [
        (link.span_id, link.attributes.get("podtrail.link.type"), link.attributes["podtrail.link.resolved"])
        for link in span.links
    ]


def test_a_creation_link_is_typed_and_resolved_and_keeps_what_it_had() -> None:
    run = Stitched()
    run.add(creation())
    run.add(*MadeAttempt(links=[TO_CREATION]).groups())
    run.drain()
    (link,) = run.root().links
    assert link.attributes == {
        "podtrail.link.source": "annotation",
        "podtrail.link.type": "creation",
        "podtrail.link.evidence": "trace-context",
        "podtrail.link.resolved": True,
    }
    assert link.flags == 769


def test_a_span_that_has_left_is_told_by_an_amendment_in_its_trace() -> None:
    run = Stitched()
    run.add(creation())
    attempt = MadeAttempt(links=[TO_CREATION])
    run.add(*attempt.groups())
    run.drain()
    (amendment,) = run.named("podtrail.amendment")
    assert (amendment.trace_id, amendment.parent_span_id) == (b"c" * 16, b"creation")
    assert (amendment.start, amendment.end) == (START, START)
    (link,) = amendment.links
    assert (link.trace_id, link.span_id) == (attempt.trace_id, attempt.root_id)
    assert link.attributes == {
        "podtrail.link.type": "creation",
        "podtrail.link.evidence": "trace-context",
        "podtrail.link.resolved": True,
        "podtrail.link.back": True,
    }
    assert run.context.ledger.created == 1
    assert run.context.metrics.snapshot()["otelcol_processor_link_stitching_amendments"] == {
        "processor=link_stitching": 1
    }
    assert resource_attributes(run.out[-1].resource) == {"service.name": "podtrail"}


@pytest.mark.parametrize(("happened", "told_at"), [(START, START), (0, START + 20 * SECOND)])
def test_an_amendment_has_the_time_of_its_trace_or_of_who_tells(happened: int, told_at: int) -> None:
    run = Stitched()
    run.add(span(b"c", b"creation", CREATE, start=happened))
    run.add(span(b"c", b"etcdspan", "etcdserverpb.KV/Txn", start=START + 10 * SECOND))
    run.add(*MadeAttempt(links=[TO_CREATION], start=START + 20 * SECOND).groups())
    run.drain()
    (amendment,) = run.named("podtrail.amendment")
    assert amendment.start == told_at


def test_amendments_of_a_trace_leave_as_one_group_of_it() -> None:
    run = Stitched()
    run.add(creation())
    for trace in (b"o", b"p"):
        run.add(span(trace, b"operator", "reconcile", links=[TO_CREATION]))
    run.drain()
    assert (run.out[-1].trace_id, run.out[-1].span_count) == (b"c" * 16, 2)


def test_what_was_held_and_has_left_is_told_by_an_amendment() -> None:
    run = Stitched()
    attempt = MadeAttempt()
    run.add(*attempt.groups())
    run.wait()
    run.add(span(b"o", b"operator", "reconcile", links=[Link(attempt.trace_id, attempt.root_id, {})]))
    run.drain()
    (amendment,) = run.named("podtrail.amendment")
    assert (amendment.parent_span_id, told(amendment)) == (attempt.root_id, [(b"operator", None, True)])


def test_an_attempt_that_comes_twice_is_told_to_the_one_before_once() -> None:
    run = Stitched()
    run.add(*MadeAttempt(number=1).groups())
    run.wait()
    for _ in range(2):
        run.add(*MadeAttempt(number=2, start=START + SECOND).groups())
        run.wait()
    assert len(run.named("podtrail.amendment")) == 1


def test_a_trace_that_passed_stays_kept_whatever_a_verdict_says_later() -> None:
    run = Stitched()
    run.add(creation())
    run.add(verdicts=[Verdict(b"c" * 16, "dropped", "", "evicted", START, START, 1)])
    run.add(*MadeAttempt(links=[TO_CREATION]).groups())
    run.drain()
    assert told(run.root()) == [(b"creation", "creation", True)]


def test_an_attempt_that_passes_after_all_is_kept() -> None:
    run = Stitched()
    first = MadeAttempt(number=1)
    run.add(verdicts=[first.verdict("not_sampled")])
    run.add(*first.groups())
    run.add(*MadeAttempt(number=2, start=START + SECOND).groups())
    run.drain()
    second = next(view for view in run.named("SchedulePod") if view.span_id != first.root_id)
    assert told(second) == [(first.root_id, "previous-attempt", True)]


def test_a_link_of_the_kubelets_leads_to_the_scheduling() -> None:
    run = Stitched()
    sync = span(b"k", b"syncPod1", "syncPod", attributes={"k8s.pod.uid": "elsewhere"}, links=[TO_CREATION])
    run.add(creation(), sync)
    run.drain()
    assert told(run.named("syncPod")[0]) == [(b"creation", "scheduling", True)]


def test_an_attempts_first_link_alone_leads_to_the_creation() -> None:
    run = Stitched()
    elsewhere = Link(b"e" * 16, b"elsewher", {})
    run.add(creation(), *MadeAttempt(links=[TO_CREATION, elsewhere]).groups())
    run.drain()
    assert told(run.root()) == [(b"creation", "creation", True), (b"elsewher", None, False)]


@pytest.mark.parametrize(
    ("groups", "entries"),
    [
        (MadeAttempt().groups(), 6),
        ([creation()], 1),
        ([span(b"o", b"operator", "reconcile", links=[TO_CREATION])], 2),
        ([span(b"e", b"etcdspan", "Create etcd3", attributes={"key": "/pods/default/web-0", "audit-id": "a"})], 4),
    ],
    ids=["attempt", "trace", "link", "creation"],
)
def test_each_entry_remembered_counts_for_hundreds_of_bytes(groups: Sequence[Group], entries: int) -> None:
    run = Stitched()
    run.add(*groups)
    run.drain()
    snapshot = run.context.metrics.snapshot()
    assert sum(snapshot["otelcol_processor_link_stitching_remembered"].values()) == entries
    (size,) = snapshot["otelcol_processor_link_stitching_memory_bytes"].values()
    assert size >= 300 * entries


def test_what_an_annotation_claimed_is_not_trusted_on_the_other_side_either() -> None:
    run = Stitched()
    claimed = Link(TO_CREATION.trace_id, TO_CREATION.span_id, {"podtrail.link.trusted": False})
    run.add(creation(), *MadeAttempt(links=[claimed]).groups())
    run.drain()
    (amendment,) = run.named("podtrail.amendment")
    assert amendment.links[0].attributes["podtrail.link.trusted"] is False


def test_the_same_amendment_has_the_same_id_whoever_makes_it() -> None:
    ids = []
    for _ in range(2):
        run = Stitched()
        run.add(creation())
        run.add(*MadeAttempt(links=[TO_CREATION]).groups())
        run.drain()
        ids.append(run.named("podtrail.amendment")[0].span_id)
    assert ids[0] == ids[1]
    assert any(ids[0])


def test_without_amendments_nothing_is_added_to_traces_that_have_left() -> None:
    run = Stitched(amendments=False)
    run.add(creation())
    run.add(*MadeAttempt(links=[TO_CREATION]).groups())
    run.drain()
    assert not run.named("podtrail.amendment")
    assert run.context.ledger.created == 0


def test_a_span_that_comes_later_gets_its_back_links_on_itself() -> None:
    run = Stitched()
    run.add(*MadeAttempt(links=[TO_CREATION]).groups())
    run.wait()
    assert told(run.root()) == [(b"creation", "creation", False)]
    assert run.root().links[0].attributes["podtrail.link.target"] == "unknown"
    run.add(creation())
    run.wait()
    (created,) = run.named(CREATE)
    assert told(created) == [(MadeAttempt().root_id, "creation", True)]
    assert not run.named("podtrail.amendment")


def test_spans_that_are_inside_together_get_links_without_amendments() -> None:
    run = Stitched()
    first = MadeAttempt(number=1, result="Unschedulable", links=[TO_CREATION])
    second = MadeAttempt(number=2, start=START + SECOND)
    run.add(*second.groups())
    run.add(*first.groups())
    run.add(creation())
    run.drain()
    assert not run.named("podtrail.amendment")
    by_id = {view.span_id: told(view) for view in run.named("SchedulePod") + run.named(CREATE)}
    assert by_id == {
        first.root_id: [(b"creation", "creation", True), (second.root_id, "next-attempt", True)],
        second.root_id: [(first.root_id, "previous-attempt", True)],
        b"creation": [(first.root_id, "creation", True)],
    }


def test_a_link_to_a_dropped_trace_says_who_dropped_it() -> None:
    run = Stitched()
    verdict = Verdict(b"c" * 16, "not_sampled", "", "no policy said yes", START, START, 1)
    run.add(*MadeAttempt(links=[TO_CREATION]).groups(), verdicts=[verdict])
    run.drain()
    (link,) = run.root().links
    assert link.attributes["podtrail.link.resolved"] is False
    assert link.attributes["podtrail.link.target"] == "dropped"
    assert link.attributes["podtrail.link.target.reason"] == "no policy said yes"
    assert not run.named("podtrail.amendment")


def test_a_span_that_is_no_attempt_has_its_links_marked_too() -> None:
    run = Stitched()
    run.add(creation())
    run.add(span(b"o", b"operator", "reconcile", links=[TO_CREATION]))
    run.drain()
    (reconcile,) = run.named("reconcile")
    assert told(reconcile) == [(b"creation", None, True)]
    assert told(run.named("podtrail.amendment")[0]) == [(b"operator", None, True)]


@pytest.mark.parametrize(
    "broken",
    [Link(b"\0" * 16, b"creation", {}), Link(b"c" * 16, b"\0" * 8, {}), Link(b"c" * 16, b"c", {})],
)
def test_a_link_that_can_point_to_nothing_is_unresolved(broken: Link) -> None:
    run = Stitched()
    run.add(creation(), span(b"o", b"operator", "reconcile", links=[broken]))
    run.drain()
    assert run.named("reconcile")[0].links[0].attributes["podtrail.link.resolved"] is False
    assert not run.named("podtrail.amendment")


def test_a_binding_request_is_joined_to_the_attempt_by_path_and_time() -> None:
    run = Stitched()
    attempt = MadeAttempt(name=ONLY)
    run.add(binding(place=f"default/{ONLY}"))
    run.add(*attempt.groups())
    run.drain()
    (request,) = run.named(BIND)
    assert told(request) == [(attempt.root_id, "binding", True)]
    assert request.links[0].attributes["podtrail.inferred"] is True
    assert told(run.root()) == [(b"binding1", "binding", True)]


def test_an_attempt_that_has_left_is_told_of_its_binding_by_an_amendment() -> None:
    run = Stitched()
    attempt = MadeAttempt(name=ONLY)
    run.add(*attempt.groups())
    run.wait()
    run.add(binding(place=f"default/{ONLY}"))
    run.wait()
    (amendment,) = run.named("podtrail.amendment")
    assert (amendment.parent_span_id, amendment.start) == (attempt.root_id, attempt.start + attempt.duration)
    assert told(amendment) == [(b"binding1", "binding", True)]
    assert amendment.links[0].attributes["podtrail.inferred"] is True


def test_a_binding_request_that_links_to_the_attempt_by_itself_gets_no_second_link() -> None:
    run = Stitched()
    attempt = MadeAttempt()
    bind = Link(attempt.trace_id, b"bindspan", {})
    run.add(*attempt.groups())
    run.add(binding(links=[bind]))
    run.drain()
    assert told(run.named(BIND)[0]) == [(b"bindspan", "binding", True)]


@pytest.mark.parametrize("request_start", [START - 5 * SECOND, START + 60 * SECOND])
def test_a_binding_request_outside_the_attempt_is_none_of_its_business(request_start: int) -> None:
    run = Stitched()
    run.add(*MadeAttempt().groups(), binding(start=request_start), binding(place="default/other"))
    run.drain()
    assert [told(request) for request in run.named(BIND)] == [[], []]


def test_every_sync_links_to_the_scheduling_but_the_attempt_is_told_of_the_first() -> None:
    run = Stitched()
    failed = MadeAttempt(number=1, result="Unschedulable")
    bound = MadeAttempt(number=2, start=START + SECOND)
    run.add(*failed.groups(), *bound.groups())
    run.wait()
    run.add(sync(START + 3 * SECOND), sync(START + 60 * SECOND, b"l"), sync(START + 3 * SECOND, b"m", uid="another"))
    run.wait()
    assert [told(view) for view in run.named("syncPod")] == [[(bound.root_id, "scheduling", True)]] * 2 + [[]]
    amendments = [view for view in run.named("podtrail.amendment") if view.links[0].span_id == b"syncPod1"]
    assert [(view.trace_id, told(view)) for view in amendments] == [
        (bound.trace_id, [(b"syncPod1", "scheduling", True)])
    ]


def test_spans_of_no_concern_pass_at_once_untouched() -> None:
    run = Stitched()
    batch = Batch([creation(), span(b"x", b"any-span", "GET")], START)
    assert run.processor.add(batch, START).out == [batch]
    assert run.processor.add(batch, START).out[0] is batch


def test_the_other_spans_of_an_attempt_stay_byte_for_byte() -> None:
    run = Stitched()
    before = split(MadeAttempt().groups()[0].spans)
    run.add(*MadeAttempt().groups())
    run.drain()
    after = split(run.out[0].spans)
    assert list(after[1:]) == list(before[1:])
    assert after[0].startswith(before[0][:20])


def test_stitching_twice_is_stitching_once() -> None:
    run, again = Stitched(), Stitched()
    first, second = MadeAttempt(number=1, links=[TO_CREATION]), MadeAttempt(number=2, start=START + SECOND)
    run.add(creation(), *first.groups(), *second.groups())
    run.drain()
    again.add(*run.out)
    again.drain()
    assert {view.span_id: told(view) for view in again.named("SchedulePod")} == {
        view.span_id: told(view) for view in run.named("SchedulePod")
    }


def test_an_attempt_of_nobody_has_the_number_that_it_says() -> None:
    run = Stitched()
    run.add(*MadeAttempt(uid="", attributes={"podtrail.attempt.number": -1, "scheduler.attempts": 3}).groups())
    run.drain()
    assert run.root().attributes["podtrail.attempt.number"] == 3
    assert run.context.metrics.snapshot()["otelcol_processor_link_stitching_attempts_numbered"] == {
        "processor=link_stitching": 1
    }


def test_an_attempts_link_to_another_pods_is_no_link_to_the_attempt_before() -> None:
    run = Stitched()
    other = MadeAttempt(uid="another", name="web-1")
    to_other = Link(other.trace_id, other.root_id, {})
    run.add(*other.groups(), *MadeAttempt(number=2, start=START + SECOND, links=[to_other]).groups())
    run.drain()
    (_, root) = run.named("SchedulePod")
    assert told(root) == [(other.root_id, "creation", True)]


def test_an_attempt_of_nobody_passes_without_a_number() -> None:
    run = Stitched()
    run.add(*MadeAttempt(uid="", attributes={"podtrail.attempt.number": "none"}).groups())
    run.drain()
    assert run.root().attributes["podtrail.attempt.number"] == "none"


def test_what_is_remembered_longer_than_the_ttl_is_forgotten_and_counted() -> None:
    run = Stitched(ttl="1m", reorder_wait="1s")
    run.add(*MadeAttempt(number=1).groups())
    run.wait(61 * SECOND)
    run.add(*MadeAttempt(number=2, start=START + 70 * SECOND).groups())
    run.drain()
    assert [root.attributes["podtrail.attempt.number"] for root in run.named("SchedulePod")] == [1, 1]
    forgotten = run.context.metrics.snapshot()["otelcol_processor_link_stitching_forgotten"]
    assert forgotten == {
        "processor=link_stitching,reason=ttl,what=attempt": 1,
        "processor=link_stitching,reason=ttl,what=place": 1,
        "processor=link_stitching,reason=ttl,what=pod": 1,
        "processor=link_stitching,reason=ttl,what=pod_name": 1,
        "processor=link_stitching,reason=ttl,what=pod_trace": 1,
        "processor=link_stitching,reason=ttl,what=trace": 1,
    }


def test_a_span_that_links_to_itself_is_not_told_of_itself() -> None:
    run = Stitched()
    itself = Link(b"o" * 16, b"operator", {})
    run.add(span(b"o", b"operator", "reconcile", links=[itself]))
    run.drain()
    assert told(run.named("reconcile")[0]) == [(b"operator", None, True)]
    assert not run.named("podtrail.amendment")


def test_only_the_span_that_is_waited_for_is_touched() -> None:
    run = Stitched()
    run.add(*MadeAttempt(links=[TO_CREATION]).groups())
    run.wait()
    before = creation()
    other = span(b"c", b"etcdspan", "etcdserverpb.KV/Txn")
    run.add(before._replace(spans=before.spans + other.spans, span_count=2))
    run.drain()
    assert run.out[-1].spans.endswith(other.spans)
    assert told(run.named(CREATE)[0]) == [(MadeAttempt().root_id, "creation", True)]


def test_a_trace_that_was_told_passes_at_once_again() -> None:
    run = Stitched()
    run.add(*MadeAttempt(links=[TO_CREATION]).groups())
    run.wait()
    run.add(creation())
    run.wait()
    later = span(b"c", b"etcdspan", "etcdserverpb.KV/Txn")
    run.add(later)
    assert run.out[-1] == later


def test_the_links_of_a_span_with_more_than_sdks_allow_pass_as_they_came() -> None:
    run = Stitched()
    many = [Link(b"c" * 16, number.to_bytes(8, "big"), {}) for number in range(1, 130)]
    group = span(b"o", b"operator", "reconcile", links=many)
    run.add(group, *MadeAttempt(links=many, attributes={"podtrail.attempt.number": -1}).groups())
    run.drain()
    assert run.out[0] == group
    assert run.root().attributes["podtrail.attempt.number"] == 1


def test_a_span_that_everybody_links_to_is_told_of_so_many_only() -> None:
    run = Stitched()
    for number in range(1, 200):
        run.add(span(bytes([number]), b"operator", "reconcile", links=[TO_CREATION]))
    run.add(creation())
    run.drain()
    assert len(run.named(CREATE)[0].links) == 128
    forgotten = run.context.metrics.snapshot()["otelcol_processor_link_stitching_forgotten"]
    assert forgotten["processor=link_stitching,reason=full,what=link"] == 199 - 128


def test_links_are_counted_by_type_and_outcome() -> None:
    run = Stitched()
    run.add(
        creation(),
        *MadeAttempt(number=1, links=[TO_CREATION]).groups(),
        *MadeAttempt(number=2, start=START + 1).groups(),
    )
    run.drain()
    assert run.context.metrics.snapshot()["otelcol_processor_link_stitching_links"] == {
        "processor=link_stitching,target=kept,type=creation": 1,
        "processor=link_stitching,target=kept,type=previous-attempt": 1,
    }


def test_a_flood_of_unique_pods_and_links_does_not_grow_the_memory() -> None:
    run = Stitched(max_pods=50, max_attempts=100, max_traces=60, max_waiting_links=70, max_held_mib=1)
    for flood in range(1, 300):
        targets = [Link(flood.to_bytes(16, "big"), bytes([1, at, *bytes(6)]), {}) for at in range(1, 101)]
        run.add(*MadeAttempt(uid=f"uid-{flood}" + "x" * (flood % 200), links=targets).groups())
    remembered = run.context.metrics.snapshot()["otelcol_processor_link_stitching_remembered"]
    assert {label.rpartition("=")[2]: value for label, value in remembered.items() if value} == {
        "pod": 50,
        "attempt": 50,
        "trace": 60,
        "link": 70,
        "pod_name": 50,
        "place": 1,
        "pod_trace": 200,
    }
    (size,) = run.context.metrics.snapshot()["otelcol_processor_link_stitching_memory_bytes"].values()
    assert size < 1 << 21


def test_too_much_to_hold_leaves_early_and_is_counted() -> None:
    run = Stitched(max_held_mib=1)
    large = MadeAttempt(attributes={"filler": "x" * 700_000})
    run.add(*large.groups())
    run.add(*MadeAttempt(uid="another", attributes={"filler": "x" * 700_000}).groups())
    assert run.root().trace_id == large.trace_id
    assert run.context.metrics.snapshot()["otelcol_processor_link_stitching_left_early"] == {
        "processor=link_stitching": large.groups()[0].span_count
    }


def test_with_no_reorder_wait_nothing_is_held() -> None:
    run = Stitched(reorder_wait=0)
    run.add(*MadeAttempt(number=1).groups())
    assert run.processor.held() == 0
    assert read_attempt(run.root())


TO_CHANGE = Link(b"r" * 16, b"reconcil", {"podtrail.link.type": "configuration", "podtrail.link.trusted": False})


def test_the_change_of_the_configuration_is_resolved_and_hears_of_no_attempt() -> None:
    run = Stitched()
    run.add(span(b"r", b"reconcil", "reconcile apply", service="scheduler-operator"))
    run.add(*MadeAttempt(links=[TO_CREATION, TO_CHANGE]).groups())
    run.add(creation())
    run.drain()
    assert told(run.root()) == [(b"creation", "creation", True), (b"reconcil", "configuration", True)]
    assert not run.named("reconcile apply")[0].links
    assert not [link for span in run.named("podtrail.amendment") for link in span.links if link.span_id == b"reconcil"]


def test_the_change_of_the_configuration_is_not_taken_for_the_creation() -> None:
    run = Stitched()
    run.add(*MadeAttempt(links=[TO_CHANGE, TO_CREATION]).groups())
    run.drain()
    assert [kind for _, kind, _ in told(run.root())] == ["configuration", "creation"]
