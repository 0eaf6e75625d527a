"""Requests to the API server find the attempts that they were made for, though no span names a Pod's uid."""

from collections.abc import Mapping, Sequence

import pytest
from podtrail_processors.link_stitching.config import Config
from podtrail_processors.link_stitching.processor import LinkStitching

from podtrail.component import Context
from podtrail.config.types import SECOND
from podtrail.otlp import Batch, Group, Link, SpanView, Value, encode_span, frame, resource_header, scope_header, split
from podtrail.pod_identity import CLOCK_SLACK
from podtrail.testing.attempts import MS, START, MadeAttempt

SCHEDULER = "kube-scheduler/v1.37.1 (linux/amd64) kubernetes/0000000/scheduler"
KUBELET = "kubelet/v1.37.1 (linux/amd64) kubernetes/0000000"
RESOURCE = resource_header({"service.name": "apiserver"})
SERVER = 2
ONLY = "web-7f7644db44-dsw5v"
"""A generated name: no other Pod ever had it."""


def spans(trace: bytes, *made: tuple[bytes, str, int, int, Mapping[str, Value]]) -> Group:
    encoded = [
        encode_span(
            trace_id=trace * 16, span_id=id, name=name, kind=kind, start=start, end=start + MS, attributes=attributes
        )
        for id, name, kind, start, attributes in made
    ]
    return Group(RESOURCE, scope_header("test"), trace * 16, frame(encoded), len(encoded))


def creation(start: int = START - SECOND, trace: bytes = b"c", *, whole: bool = True) -> Group:
    """Return a request that creates the Pod of `MadeAttempt`: its own span does not name it."""
    path = {"url.path": "/api/v1/namespaces/default/pods", "audit-id": "a-1"}
    request = (b"request1", "POST /api/v1/namespaces/{:namespace}/pods", SERVER, start, path)
    written = (b"etcdspan", "Create etcd3", 1, start, {"key": "/pods/default/web-0", "audit-id": "a-1"})
    return spans(trace, *([written, request] if whole else [written]))


def status_write(start: int, agent: str = SCHEDULER, code: int = 200, name: str = ONLY) -> Group:
    told: dict[str, Value] = {
        "url.path": f"/api/v1/namespaces/default/pods/{name}/status",
        "user_agent.original": agent,
        "http.response.status_code": code,
        "audit-id": "a-2",
    }
    return spans(b"s", (b"status01", "PATCH /api/v1/namespaces/{:namespace}/pods/{:name}/status", SERVER, start, told))


def binding(code: int, name: str = ONLY) -> Group:
    path = f"/api/v1/namespaces/default/pods/{name}/binding"
    told: dict[str, Value] = {"url.path": path, "http.response.status_code": code}
    return spans(b"b", (b"binding1", "POST binding", SERVER, START + MS, told))


def links_of(
    groups: Sequence[Group], *, succeeded_before: int | None = None, config: Config | None = None
) -> dict[bytes, list[tuple[bytes, Mapping[str, Value]]]]:
    """Return the links of what leaves, by span id; those of an amendment by its parent's.

    All is held until the end, but where a successor takes over before one of the groups: what came before has left.
    """
    processor = LinkStitching(config or Config(), Context(id="link_stitching"))
    out: list[Batch] = []
    for at, group in enumerate(groups):
        if at == succeeded_before:
            out += processor.drain(START + at)
            predecessor, processor = processor, LinkStitching(Config(), Context(id="link_stitching"))
            processor.take_over(predecessor, START + at)
        out += processor.add(Batch([group], START + at), START + at).out
    out += processor.drain(START + SECOND)
    found: dict[bytes, list[tuple[bytes, Mapping[str, Value]]]] = {}
    for view in (SpanView(raw) for batch in out for group in batch.groups for raw in split(group.spans)):
        key = view.parent_span_id if view.name == "podtrail.amendment" else view.span_id
        found.setdefault(key, []).extend((link.span_id, link.attributes) for link in view.links)
    return found


def test_the_first_attempt_links_to_the_request_that_created_its_pod() -> None:
    first = MadeAttempt(number=1)
    links = links_of([creation(), *first.groups()])
    ((target, told),) = links[first.root_id]
    assert (target, told["podtrail.link.type"], told["podtrail.inferred"]) == (b"request1", "creation", True)
    ((back, answered),) = links[b"request1"]
    assert (back, answered["podtrail.link.back"]) == (first.root_id, True)


def test_a_creation_that_came_without_its_request_is_known_by_its_write_to_etcd() -> None:
    first = MadeAttempt(number=1)
    links = links_of([creation(whole=False), *first.groups()])
    assert [target for target, _ in links[first.root_id]] == [b"etcdspan"]


@pytest.mark.parametrize(("linked", "expected"), [(b"c", [b"anything"]), (b"e", [b"anything", b"request1"])])
def test_a_creation_that_the_attempt_links_to_by_itself_is_not_linked_again(
    linked: bytes, expected: list[bytes]
) -> None:
    first = MadeAttempt(number=1, links=[Link(linked * 16, b"anything", {})])
    assert [target for target, _ in links_of([creation(), *first.groups()])[first.root_id]] == expected


def test_a_creation_whose_trace_is_forgotten_is_linked_to_and_not_told() -> None:
    first = MadeAttempt(number=1)
    links = links_of([creation(), *first.groups()], config=Config(max_traces=1))
    ((target, told),) = links[first.root_id]
    assert (target, told["podtrail.link.target"]) == (b"request1", "unknown")
    assert not links[b"request1"]


def test_only_the_first_attempt_links_to_the_creation() -> None:
    first, second = MadeAttempt(number=1), MadeAttempt(number=2, start=START + 2 * SECOND)
    links = links_of([creation(), *first.groups(), *second.groups()])
    assert b"request1" not in [target for target, _ in links[second.root_id]]


def test_of_pods_of_one_name_the_creation_before_the_attempt_is_meant() -> None:
    first = MadeAttempt(number=1)
    later, earlier = creation(START + 7 * SECOND, b"l"), creation(START - 9 * SECOND, b"e", whole=False)
    links = links_of([earlier, later, *first.groups()])
    assert [target for target, _ in links[first.root_id]] == [b"etcdspan"]


def test_where_a_clock_that_is_behind_would_make_another_creation_the_one_before_none_is_meant() -> None:
    first = MadeAttempt(number=1)
    later, earlier = creation(START + 5 * SECOND, b"l"), creation(START - 9 * SECOND, b"e", whole=False)
    assert not links_of([earlier, later, *first.groups()])[first.root_id]


@pytest.mark.parametrize("before", [0, 5 * MS])
@pytest.mark.parametrize(
    "agent", [SCHEDULER, "podtrail-scheduler/0.1 (linux/x86_64) status", "mine/1 (x) k/1/scheduler"]
)
def test_a_status_write_of_a_scheduler_joins_the_attempt_that_failed(before: int, agent: str) -> None:
    failed = MadeAttempt(number=1, result="Unschedulable", name=ONLY)
    write = status_write(START + failed.duration + 5 * MS - before, agent)
    links = links_of([write, *failed.groups()])
    ((target, told),) = links[b"status01"]
    assert (target, told["podtrail.link.type"]) == (failed.root_id, "status")
    ((_, answered),) = links[failed.root_id]
    assert answered["http.response.status_code"] == 200


@pytest.mark.parametrize(("ahead", "joins"), [(MS, True), (2 * SECOND, False)])
def test_a_status_write_by_a_clock_that_is_behind_joins_the_attempt(ahead: int, *, joins: bool) -> None:
    failed = MadeAttempt(number=1, result="Unschedulable", name=ONLY)
    assert bool(links_of([status_write(START - ahead), *failed.groups()])[b"status01"]) is joins


def test_a_status_write_of_the_kubelet_joins_no_attempt() -> None:
    failed = MadeAttempt(number=1, result="Unschedulable", name=ONLY)
    assert not links_of([status_write(START + failed.duration, KUBELET), *failed.groups()])[b"status01"]


def test_a_status_write_behind_a_success_is_that_of_a_preemption_and_joins_nothing() -> None:
    done = MadeAttempt(number=1, result="Success", name=ONLY)
    assert not links_of([status_write(START + done.duration + 5 * MS), *done.groups()])[b"status01"]


def test_a_refused_binding_is_told_by_its_code() -> None:
    failed = MadeAttempt(number=1, result="Error", name=ONLY)
    ((_, told),) = links_of([binding(422), *failed.groups()])[failed.root_id]
    assert (told["podtrail.link.type"], told["http.response.status_code"]) == ("binding", 422)


@pytest.mark.parametrize(
    ("ahead", "joins"), [(-2, True), (-1, True), (0, False)], ids=["within", "at the bound", "beyond"]
)
def test_a_request_joins_what_ended_up_to_a_second_before(ahead: int, *, joins: bool) -> None:
    attempt = MadeAttempt(number=1, name=ONLY)
    at = START + attempt.duration + CLOCK_SLACK + 1 + ahead
    path = {"url.path": f"/api/v1/namespaces/default/pods/{ONLY}/binding"}
    request = spans(b"b", (b"binding1", "POST binding", SERVER, at, path))
    assert bool(links_of([request, *attempt.groups()])[b"binding1"]) is joins


@pytest.mark.parametrize(
    "request_", [binding(200, "web-0"), status_write(START + MS, name="web-0")], ids=["binding", "status"]
)
@pytest.mark.parametrize("created", [True, False], ids=["made before", "perhaps made again"])
def test_a_request_by_a_name_that_may_come_back_is_joined_where_its_pod_was_surely_there(
    request_: Group, *, created: bool
) -> None:
    """Of a Pod before it under its name nobody need have told; the time alone does not tell the two apart."""
    attempt = MadeAttempt(number=1)
    links = links_of([*([creation()] if created else []), request_, *attempt.groups()])
    (id,) = [view.span_id for view in map(SpanView, split(request_.spans))]
    assert [target for target, _ in links[id]] == ([attempt.root_id] if created else [])


@pytest.mark.parametrize(
    "later",
    [
        binding(200, "web-0"),
        status_write(START + MS, name="web-0"),
        *MadeAttempt(number=2, start=START + SECOND).groups(),
        spans(b"k", (b"syncPod1", "syncPod", 1, START + SECOND, {"k8s.pod.uid": MadeAttempt().uid})),
    ],
    ids=["binding", "status write", "next attempt", "sync"],
)
def test_a_successor_joins_what_its_predecessor_has_seen(later: Group) -> None:
    before = [creation(), *MadeAttempt(number=1).groups()]
    whole, parted = links_of([*before, later]), links_of([*before, later], succeeded_before=len(before))
    assert whole == parted
    assert any(target == MadeAttempt(number=1).root_id for target, _ in whole[split_ids(later)[0]])


def test_a_successor_knows_the_creations_and_who_is_waited_for() -> None:
    first = MadeAttempt(number=1)
    assert links_of([creation(), *first.groups()]) == links_of([creation(), *first.groups()], succeeded_before=1)
    to_creation = Link(b"c" * 16, b"request1", {})
    linking = MadeAttempt(number=2, links=[to_creation]).groups()
    (back,) = links_of([*linking, creation()], succeeded_before=1)[b"request1"]
    assert back[0] == MadeAttempt(number=2).root_id


def split_ids(group: Group) -> list[bytes]:
    return [SpanView(raw).span_id for raw in split(group.spans)]


def test_creations_remembered_are_bounded() -> None:
    context = Context(id="link_stitching")
    processor = LinkStitching(Config(max_pods=20), context)
    for number in range(200):
        written: dict[str, Value] = {"key": f"/pods/default/p-{number}", "audit-id": "a"}
        trace = number.to_bytes(1, "big")
        processor.add(Batch([spans(trace, (b"etcdspan", "Create etcd3", 1, START, written))], START), START)
    remembered = context.metrics.snapshot()["otelcol_processor_link_stitching_remembered"]
    assert remembered["pipeline=,processor=link_stitching,what=place"] == 20
