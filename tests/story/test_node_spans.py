"""Spans of a node that nobody sends on purpose: of two Pods, forged, without end, by other clocks, twice."""

from podtrail.otlp import Group, Status, Value, encode_span, frame, resource_header, scope_header
from podtrail.story import Library, PodStory, lifetime, plain
from podtrail.testing.attempts import START, MadeAttempt

SECOND = 1_000_000_000
UID = MadeAttempt().uid
HOSTILE = "x\x1b]8;;http://x\x07\u202e\n[red]"


def span(
    name: str,
    attributes: dict[str, Value] | None = None,
    *,
    trace: int = 1,
    number: int = 1,
    parent: int = 0,
    at: int = 0,
    took: int = SECOND // 10,
    error: str = "",
    kind: int = 1,
    service: str = "kubelet",
) -> Group:
    raw = encode_span(
        trace_id=trace.to_bytes(16, "big"),
        span_id=number.to_bytes(8, "big"),
        parent_span_id=parent.to_bytes(8, "big") if parent else b"",
        name=name,
        kind=kind,
        start=START + at,
        end=START + at + took,
        status=Status(2, error) if error else None,
        attributes=attributes or {},
    )
    header = resource_header({"service.name": service, "host.name": "node-1"})
    return Group(header, scope_header("k8s.io/component-base/tracing"), trace.to_bytes(16, "big"), frame([raw]), 1)


def pod_of(uid: str = UID, name: str = "web-0") -> dict[str, Value]:
    return {"k8s.pod.uid": uid, "k8s.namespace.name": "default", "k8s.pod.name": name}


def sync(uid: str = UID, name: str = "web-0", **more: int | str) -> Group:
    return span("syncPod", pod_of(uid, name), **more)  # type: ignore[arg-type]


def started(trace: int = 1, at: int = 0, number: int = 7) -> Group:
    name = "runtime.v1.RuntimeService/StartContainer"
    return span(name, trace=trace, number=number, parent=1, at=at, kind=3)


def library_of(*groups: Group) -> Library:
    library = Library()
    for group in groups:
        library.keep([group], START)
    return library


def story(library: Library, name: str = "web-0") -> PodStory:
    return library.find(name, "default")[0]


def test_calls_that_come_before_their_sync_are_told_when_it_says_whose_they_are() -> None:
    library = library_of(started())
    assert library.stories.pods() == []
    library.keep([sync()], START)
    assert story(library).state == "running"


def test_a_trace_of_two_pods_says_of_no_call_for_which_it_was() -> None:
    library = library_of(sync(), sync("other", "web-1", number=2), started())
    assert story(library).state == "starting"


def test_a_sandbox_names_its_pod_only_where_its_name_is_one() -> None:
    for name in ("web-0_default_u_0_more", "web_0_default_u_0", "web-0_default_U!_0", "_" * 9_000, "web-0"):
        library = library_of(span("cri.sandbox.run", {"sandbox.name": name}, service="containerd"), started())
        assert library.stories.pods() == []
    told = library_of(
        span("cri.sandbox.run", {"sandbox.name": f"web-0_default_{UID}_0"}, service="containerd"), started()
    )
    assert (story(told).key, story(told).state) == (UID, "running")


def test_a_sync_without_a_uid_is_nobodys() -> None:
    assert library_of(span("syncPod", {"k8s.pod.name": "web-0"}), started()).stories.pods() == []


def test_failures_without_end_take_no_more_room_and_are_counted() -> None:
    failing = 'failed to "StartContainer" for "main" with CrashLoopBackOff: "back-off"'
    library = library_of(*(sync(trace=n, number=n, at=n * SECOND, error=failing) for n in range(1, 501)))
    pod = story(library)
    assert pod.on_node is not None
    assert (pod.state, len(pod.on_node.of("failed"))) == ("crash loop", 12)
    assert pod.on_node.more >= 488
    assert library.stories.size < 40_000


def test_a_churn_of_pods_and_of_traces_that_say_nothing_is_bounded() -> None:
    library = Library(max_mib=4, max_pods=500)
    for n in range(1, 3_000):
        library.keep([sync(f"uid-{n}", f"web-{n}", trace=n), started(trace=10_000 + n)], START)
    assert len(library.stories) <= 500
    assert len(library.stories._node_spans._waiting) <= 2_000


def test_words_from_a_node_are_harmless_and_short() -> None:
    error = f'failed to "StartContainer" for "{HOSTILE}" with ErrImagePull: "{HOSTILE}{"y" * 50_000}"'
    library = library_of(sync(error=error), sync(trace=2, number=2, at=SECOND, error=HOSTILE * 900))
    told = library.why_pod(story(library), START, live=True)
    assert told is not None
    for line in map(plain, (*told.lines, *told.details)):
        assert line.isprintable()
        assert len(line) < 1_200


def test_a_node_whose_clock_is_behind_makes_no_time_less_than_none() -> None:
    library = library_of(sync(at=-5 * SECOND), started(at=-4 * SECOND))
    library.keep(MadeAttempt().groups(), START)
    pod = story(library)
    moments = lifetime(pod, *library.requests_of(pod))
    assert [moment.at_unix_nano for moment in moments] == sorted(moment.at_unix_nano for moment in moments)
    told = library.why_pod(pod, START, live=True)
    assert told is not None
    assert not any("-" in line.partition("%")[0] for line in map(plain, told.details) if "%" in line)


def test_a_kubelet_that_restarts_and_tells_a_sync_again_tells_it_once() -> None:
    library = library_of(sync(), started(), sync(), started(), sync(trace=2, number=9, at=SECOND))
    pod = story(library)
    assert pod.on_node is not None
    assert [step.kind for step in pod.on_node.steps] == ["sync", "start", "sync"]
