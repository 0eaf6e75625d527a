"""Pods of several clusters at one gateway: what has only a name is looked for in its own cluster."""

from collections.abc import Mapping, Sequence
from itertools import chain, permutations
from typing import NamedTuple

import pytest
from podtrail_processors.link_stitching.config import Config
from podtrail_processors.link_stitching.processor import LinkStitching

from podtrail.component import Context
from podtrail.config.types import SECOND
from podtrail.otlp import (
    Batch,
    Group,
    SpanView,
    Value,
    change_resource,
    cluster_name,
    encode_span,
    frame,
    resource_header,
    scope_header,
    split,
)
from podtrail.testing.attempts import MS, START, MadeAttempt

EAST, WEST = "production-east", "production-west"
APISERVER = resource_header({"service.name": "apiserver"})
KUBELET = resource_header({"service.name": "kubelet", "host.name": "node-07"})
PODS = "/api/v1/namespaces/default/pods"
SERVER = 2


def within(cluster: str, groups: Sequence[Group]) -> list[Group]:
    """Return groups as an agent of a cluster sends them on."""
    return [
        group._replace(resource=change_resource(group.resource, {"k8s.cluster.name": cluster}, ())) for group in groups
    ]


def spans(trace: bytes, resource: bytes, *made: tuple[bytes, str, int, int, Mapping[str, Value]]) -> Group:
    encoded = [
        encode_span(
            trace_id=trace * 8, span_id=trace + id, name=name, kind=kind, start=start, end=start + MS, attributes=told
        )
        for id, name, kind, start, told in made
    ]
    return Group(resource, scope_header("test"), trace * 8, frame(encoded), len(encoded))


class Life(NamedTuple):
    """What the components of one cluster tell of a Pod `default/web-0`."""

    creation: Group
    attempt: MadeAttempt
    binding: Group
    sync: Group

    @property
    def groups(self) -> list[Group]:
        return [self.creation, *self.attempt.groups(), self.binding, self.sync]

    @property
    def traces(self) -> set[bytes]:
        return {group.trace_id for group in self.groups}


def life(letter: bytes) -> Life:
    """Return the same Pod, node and times for each letter, as clusters made from one template have them."""
    uid = letter.decode() * 8 + "-0000-4000-8000-000000000001"
    made: Mapping[str, Value] = {"url.path": PODS, "audit-id": f"audit-{letter.decode()}"}
    key: Mapping[str, Value] = {"key": "/pods/default/web-0", "audit-id": f"audit-{letter.decode()}"}
    bound: Mapping[str, Value] = {"url.path": f"{PODS}/web-0/binding", "http.response.status_code": 201}
    synced: Mapping[str, Value] = {"k8s.pod.uid": uid, "k8s.namespace.name": "default", "k8s.pod.name": "web-0"}
    return Life(
        spans(
            letter + b"c",
            APISERVER,
            (b"create", "POST /api/v1/namespaces/{:namespace}/pods", SERVER, START - SECOND, made),
            (b"etcd00", "Create etcd3", 1, START - SECOND, key),
        ),
        MadeAttempt(uid=uid, stitched=False),
        spans(letter + b"b", APISERVER, (b"bind00", "POST binding", SERVER, START + MS, bound)),
        spans(letter + b"s", KUBELET, (b"sync00", "syncPod", 1, START + 20 * MS, synced)),
    )


def linked(groups: Sequence[Group]) -> dict[bytes, set[bytes]]:
    """Return which traces the spans of a trace have come to link to."""
    processor = LinkStitching(Config(), Context(id="link_stitching"))
    out: list[Batch] = []
    for at, group in enumerate(groups):
        out += processor.add(Batch([group], START + at), START + at).out
    out += processor.drain(START + SECOND)
    found: dict[bytes, set[bytes]] = {}
    for group in (group for batch in out for group in batch.groups):
        targets = [link.trace_id for raw in split(group.spans) for link in SpanView(raw).links]
        found.setdefault(group.trace_id, set()).update(targets)
    return found


@pytest.mark.parametrize("order", list(permutations(range(4))))
def test_pods_of_one_name_in_two_clusters_have_each_its_own_story(order: Sequence[int]) -> None:
    east, west = life(b"e"), life(b"w")
    # The one cluster's spans come in any order, each followed by the other's.
    pairs = list(zip(within(EAST, east.groups), within(WEST, west.groups), strict=True))
    links = linked(list(chain.from_iterable(pairs[at] for at in order)))
    for own in (east, west):
        attempt = own.attempt.trace_id
        assert links[attempt] == own.traces - {attempt}
        assert all(links[trace] == {attempt} for trace in own.traces - {attempt})


def test_a_request_is_not_joined_with_the_only_pod_of_its_name_that_is_known_if_that_is_of_another_cluster() -> None:
    east, west = life(b"e"), life(b"w")
    links = linked([*within(EAST, east.attempt.groups()), *within(WEST, [west.creation, west.binding])])
    assert links == {east.attempt.trace_id: set(), west.creation.trace_id: set(), west.binding.trace_id: set()}


def test_without_names_of_clusters_what_may_be_of_two_pods_is_linked_with_none() -> None:
    east, west = life(b"e"), life(b"w")
    links = linked([*east.groups, *west.groups])
    assert not links[east.binding.trace_id] | links[west.binding.trace_id]


def test_who_does_not_say_its_cluster_is_joined_by_uid_and_not_by_name() -> None:
    own = life(b"e")
    links = linked([*within(EAST, own.attempt.groups()), own.sync, own.binding])
    assert links[own.sync.trace_id] == {own.attempt.trace_id}
    assert not links[own.binding.trace_id]


def test_lives_say_of_which_cluster_they_are_where_their_spans_do() -> None:
    processor = LinkStitching(Config.model_validate({"mode": "lifecycle"}), Context(id="link_stitching"))
    groups = [*within(EAST, life(b"e").groups), *within(WEST, life(b"w").groups), *life(b"n").groups]
    processor.add(Batch(groups, START), START)
    told = [group for batch in processor.drain(START + SECOND) for group in batch.groups]
    lives = [group for group in told if b"PodLifecycle" in group.spans]
    clusters = {
        str(SpanView(split(group.spans)[0]).attributes["k8s.pod.uid"])[:1]: cluster_name(group.resource)
        for group in lives
    }
    assert clusters == {"e": EAST, "w": WEST, "n": ""}
