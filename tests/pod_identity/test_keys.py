"""Traces of one Pod have one key, whoever tells of them; a trace keeps the key that it began with."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from podtrail.otlp import Group, Value, encode_span, frame, resource_header, scope_header
from podtrail.pod_identity import PodKeys
from podtrail.recording.reader import read_recording
from podtrail.recording.record import Record
from tests.pod_identity.told_directory import (
    APISERVER,
    AT,
    CLIENT,
    CONTAINER,
    CONTAINERD,
    KUBELET,
    SANDBOX,
    SCHEDULER,
    SERVER,
    UID,
)

WEB: Mapping[str, Value] = {"k8s.pod.uid": UID, "k8s.namespace.name": "ns", "k8s.pod.name": "web-0"}
PATH: Mapping[str, Value] = {"url.path": "/api/v1/namespaces/ns/pods/web-0", "audit-id": "a"}


def group(
    trace: int,
    attributes: Mapping[str, Value],
    resource: bytes = APISERVER,
    *,
    name: str = "span",
    kind: int = 1,
    parent: bytes = b"",
) -> Group:
    raw = encode_span(
        trace_id=trace.to_bytes(16, "big"),
        span_id=b"s" * 8,
        parent_span_id=parent,
        name=name,
        start=AT,
        end=AT,
        kind=kind,
        attributes=attributes,
    )
    return Group(resource, scope_header("s"), trace.to_bytes(16, "big"), frame([raw]), 1)


def key_of(keys: PodKeys, *groups: Group) -> bytes | None:
    (key,) = set(keys.keys(groups, AT).values())
    return key


def test_who_says_the_uid_and_who_says_the_name_have_one_key() -> None:
    attempt = group(1, WEB, SCHEDULER, name="SchedulePod")
    sync = group(2, WEB, KUBELET, name="syncPod")
    request = group(3, PATH, kind=SERVER)
    asking = group(4, {"url.full": "https://api:6443/api/v1/namespaces/ns/pods/web-0"}, KUBELET, kind=CLIENT)
    creation = group(5, {"key": "/pods/ns/web-0"}, name="Create etcd3", parent=b"p" * 8)

    for senders in ([attempt, sync, request, asking, creation], [creation], [attempt], [request], [sync]):
        assert key_of(PodKeys(), *senders) == b"ns/web-0"


def test_pods_of_one_name_in_two_clusters_have_two() -> None:
    def of(cluster: str) -> bytes | None:
        resource = resource_header({"service.name": "apiserver", "k8s.cluster.name": cluster})
        return key_of(PodKeys(), group(1, PATH, resource, kind=SERVER))

    assert of("blue") == of("blue")
    assert of("blue") != of("green")


def test_a_runtimes_id_leads_to_the_pod_once_it_was_seen_made() -> None:
    keys = PodKeys()
    stopped = {"sandbox.id": SANDBOX}
    assert key_of(keys, group(1, stopped, CONTAINERD)) is None

    made = {"sandbox.id": SANDBOX, "sandbox.name": f"web-0_ns_{UID}_0"}
    assert key_of(keys, group(2, made, CONTAINERD)) == b"ns/web-0"
    assert key_of(keys, group(3, stopped, CONTAINERD)) == b"ns/web-0"
    assert key_of(keys, group(4, {"container.id": CONTAINER}, CONTAINERD)) is None


def test_a_uid_alone_is_the_key_until_its_name_is_known() -> None:
    keys = PodKeys()
    alone = {"k8s.pod.uid": UID}
    assert key_of(keys, group(1, alone)) == UID.encode()
    assert key_of(keys, group(2, WEB)) == b"ns/web-0"
    assert key_of(keys, group(3, alone)) == b"ns/web-0"


def test_what_names_no_pod_has_none() -> None:
    assert key_of(PodKeys(), group(1, {"http.route": "/healthz"}), group(2, {})) is None


def test_a_trace_keeps_the_key_that_it_began_with() -> None:
    keys = PodKeys()
    assert key_of(keys, group(1, {}), group(1, {})) is None
    assert key_of(keys, group(1, WEB, SCHEDULER)) is None, "its first spans have gone already"
    assert keys.known_too_late == 1

    assert key_of(keys, group(2, WEB, SCHEDULER)) == b"ns/web-0"
    assert key_of(keys, group(2, {})) == b"ns/web-0", "what comes later follows"
    assert key_of(keys, group(2, {"k8s.pod.uid": UID, "k8s.namespace.name": "ns", "k8s.pod.name": "b"})) == b"ns/web-0"


def test_with_its_root_a_trace_goes_by_its_pod_else_not() -> None:
    keys = PodKeys(with_root=True)
    part = group(1, PATH, parent=b"p" * 8)
    assert key_of(keys, part) is None
    assert key_of(keys, group(2, PATH, kind=SERVER)) == b"ns/web-0"
    creation = group(3, {"key": "/pods/ns/web-0"}, name="Create etcd3", parent=b"s" * 8)
    assert key_of(keys, creation, group(3, {}, name="POST")) == b"ns/web-0"


@pytest.mark.parametrize("most", [1, 3])
def test_traces_are_forgotten_beyond_the_bound(most: int) -> None:
    keys = PodKeys(most_traces=most)
    for trace in range(1, most + 2):
        assert key_of(keys, group(trace, {})) is None
    assert key_of(keys, group(1, WEB)) == b"ns/web-0"
    assert keys.known_too_late == 0


def test_on_a_real_node_attempts_requests_and_syncs_of_each_pod_meet() -> None:
    """Each component has a sender of its own, which knows nothing of the others."""
    recording = Path(__file__).parents[1] / "data" / "recordings" / "node" / "podtrail" / "spans.otlp.zst"
    senders: dict[bytes, PodKeys] = {}
    met: dict[bytes, set[bytes]] = {}
    for record in read_recording(recording):
        assert isinstance(record, Record)
        of_sender: dict[bytes, list[Group]] = {}
        for one in record.intake.groups:
            of_sender.setdefault(one.resource, []).append(one)
        for resource, groups in of_sender.items():
            for key in senders.setdefault(resource, PodKeys()).keys(groups, record.arrival).values():
                if key is not None:
                    met.setdefault(key, set()).add(resource)

    scheduled = [key for key, of in met.items() if any(b"podtrail-scheduler" in resource for resource in of)]
    assert len(scheduled) > 5
    for key in scheduled:
        assert any(b"apiserver" in resource for resource in met[key]), f"the API server's requests about {key!r}"
    on_node = [key for key in scheduled if any(b"kubelet" in resource for resource in met[key])]
    assert len(on_node) > 5
    assert sum(any(b"containerd" in resource for resource in met[key]) for key in on_node) > 3


@pytest.mark.parametrize(("recorded", "share"), [("podtrail", 0.95), ("stock", 0.94)])
@pytest.mark.parametrize("with_root", [False, True])
def test_of_a_real_cluster_most_traces_about_a_pod_meet_and_none_is_parted(
    recorded: str, share: float, with_root: bool
) -> None:
    """One agent is on the node, one in the control plane; docs/kafka.md says how many meet."""
    folder = Path(__file__).parents[1] / "data" / "recordings" / "node" / recorded
    records = [record for record in read_recording(folder / "spans.otlp.zst") if isinstance(record, Record)]
    node, control_plane = PodKeys(with_root=with_root), PodKeys(with_root=with_root)
    keys: dict[bytes, set[bytes | None]] = {}
    traces: dict[bytes, list[Group]] = {}
    for record in records:
        parts: dict[bool, list[Group]] = {True: [], False: []}
        for one in record.intake.groups:
            on_node = b"kubelet" in one.resource or b"containerd" in one.resource
            parts[on_node].append(one)
            traces.setdefault(one.trace_id, []).append(one)
        for sender, groups in ((node, parts[True]), (control_plane, parts[False])):
            for trace_id, key in sender.keys(groups, record.arrival).items():
                keys.setdefault(trace_id, set()).add(key)

    all_knowing = PodKeys(most_traces=1)
    for record in records:
        all_knowing.keys(record.intake.groups, record.arrival)
    truly = {trace: all_knowing.keys(groups, records[-1].arrival)[trace] for trace, groups in traces.items()}
    about_pods = {trace: key for trace, key in truly.items() if key is not None}
    meet = sum(keys[trace] == {key} for trace, key in about_pods.items())

    assert all(len(of_trace) == 1 for of_trace in keys.values())
    assert meet / len(about_pods) > (share - 0.06 if with_root else share) - 0.005
