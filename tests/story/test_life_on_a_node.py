"""The whole story of each Pod of a real node's recording: from who created it until it was gone, without a cluster."""

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
import zstandard
from click.testing import CliRunner
from podtrail_extensions.viewer.views import PodFilter, PodViews

from podtrail.cli import main
from podtrail.otlp import Group, frame, resource_header, scope_header
from podtrail.recording import Record, read_recording
from podtrail.story import Library, PodStory, WhyQuestion, answer_query, lifetime, plain, stamp
from podtrail.testing import replay

LIFECYCLE = """
receivers: {otlp: {protocols: {grpc: {}}}}
processors:
  link_stitching: {mode: lifecycle}
exporters: {debug: {}}
service:
  pipelines:
    traces: {receivers: [otlp], processors: [link_stitching], exporters: [debug]}
"""
RECORDING = Path(__file__).parents[1] / "data" / "recordings" / "node" / "podtrail"


def records() -> Iterator[Record]:
    for record in read_recording(RECORDING / "spans.otlp.zst"):
        assert isinstance(record, Record)
        yield record


@pytest.fixture(scope="module")
def node() -> Library:
    return library_of(records())


def lines_of(name: str) -> list[Any]:
    unpacked = zstandard.ZstdDecompressor().decompressobj().decompress((RECORDING / name).read_bytes())
    return [json.loads(line) for line in unpacked.splitlines()]


@pytest.fixture(scope="module")
def watched() -> dict[str, list[dict[str, Any]]]:
    """What the API server said of each Pod, by uid."""
    told: dict[str, list[dict[str, Any]]] = {}
    for line in lines_of("pods.jsonl.zst"):
        told.setdefault(line["event"]["object"]["metadata"]["uid"], []).append(line["event"]["object"])
    return told


@pytest.fixture(scope="module")
def before_the_deletions() -> Library:
    """What is known when the first Pod is about to be deleted, and `waits` has no room."""
    [step] = [step for step in lines_of("steps.jsonl.zst") if step["step"].endswith("pods/filler")]
    return library_of(record for record in records() if record.arrival < int(step["timeUnixNano"]))


def library_of(some: Iterable[Record]) -> Library:
    library = Library()
    for record in some:
        library.keep(record.intake.groups, record.arrival)
    return library


def find(library: Library, name: str) -> PodStory:
    pod = next(pod for pod in library.stories.pods() if pod.name.startswith(name))
    return library.find(pod.name, "default")[0]


def told(library: Library, name: str, *, details: bool = False) -> list[str]:
    answer = library.why_pod(find(library, name), library.stories.latest, live=False)
    assert answer is not None
    assert len(answer.lines) <= 12
    return list(map(plain, answer.details if details else answer.lines))


def moments(library: Library, name: str) -> list[str]:
    pod = find(library, name)
    return [moment.what for moment in lifetime(pod, *library.requests_of(pod))]


def test_every_pod_that_there_was_is_told_as_the_api_server_told_it(node: Library, watched: Any) -> None:
    assert {pod.uid for pod in node.stories.pods()} == set(watched)
    for pod in node.stories.pods():
        last = watched[pod.uid][-1]
        assert (pod.namespace, pod.name) == (last["metadata"]["namespace"], last["metadata"]["name"])
        assert pod.node == last["spec"]["nodeName"]
        assert pod.state == "terminated"
        assert pod.on_node is not None
        statuses = [one for each in watched[pod.uid] for one in each["status"].get("containerStatuses", ())]
        assert pod.on_node.restarts == max(status["restartCount"] for status in statuses)
        waits = {status["state"].get("waiting", {}).get("reason", "") for status in statuses}
        assert {step.reason for step in pod.on_node.of("failed")} == waits - {"", "ContainerCreating"}
        began = [state.get("startedAt") for status in statuses for state in status["state"].values()]
        assert pod.on_node.ran == any(began)


def test_containers_start_when_the_api_server_says_they_did(node: Library, watched: Any) -> None:
    for pod in node.stories.pods():
        states = [one["state"] for each in watched[pod.uid] for one in each["status"].get("containerStatuses", ())]
        said = {state["running"]["startedAt"] for state in states if "running" in state}
        assert pod.on_node is not None
        starts = {stamp(step.end) for step in pod.on_node.of("start")} | {
            stamp(step.start_unix_nano) for step in pod.on_node.of("start")
        }
        assert said <= starts


@pytest.mark.parametrize(
    ("name", "state"),
    [
        ("web-", "running"),
        ("sums-", "terminated"),
        ("by-kubectl", "terminated"),
        ("no-image", "image pull failing"),
        ("crash", "crash loop"),
        ("unready", "running"),
        ("filler", "running"),
    ],
)
def test_a_pods_state_is_its_nodes_word_as_soon_as_it_has_one(
    before_the_deletions: Library, name: str, state: str
) -> None:
    assert find(before_the_deletions, name).state == state


def test_a_pod_that_ran_to_its_end_is_told_from_creation_to_end(node: Library) -> None:
    assert moments(node, "by-kubectl") == [
        "created by kubectl",
        "attempt 1: bound, node-1",
        "kubelet of node-1 takes it on",
        "sandbox, its network 18.5 ms",
        "container main started",
        "its containers have ended",
        "gone from its node",
        "deletion asked for by admin (its user agent)",
    ]
    first, *_ = told(node, "by-kubectl")
    assert first.startswith("default/by-kubectl is terminated: it ran on node-1, its containers had ended. 1 attempt.")


def test_where_the_time_until_it_ran_went_is_told_in_a_line_and_as_a_table(node: Library) -> None:
    [line] = [line for line in told(node, "by-kubectl") if "%" in line]
    assert line == (
        "712 ms from its creation to its first container: 44 % kubelet, before the sandbox (admission, volumes), "
        "30 % image there already, container created and started, 21 % sandbox and network."
    )
    details = told(node, "by-kubectl", details=True)
    at = details.index("712 ms from its creation to its first container:")
    shares = [int(line.split("%")[0]) for line in details[at + 1 : at + 6]]
    assert 98 <= sum(shares) <= 102


def test_a_pod_that_waited_for_room_says_so_where_the_time_went(node: Library) -> None:
    [line] = [line for line in told(node, "waits") if "%" in line]
    assert line.startswith(
        "4.37 s from its creation to its first container: 81 % no node for it, 8 % sandbox and network"
    )


def test_who_made_a_pod_is_told_through_its_controllers(node: Library) -> None:
    assert moments(node, "web-")[0] == "created by kube-controller-manager"
    assert "deletion asked for by kube-controller-manager" in moments(node, "sums-")


def test_a_pod_that_waited_tells_its_failed_attempt_first(node: Library) -> None:
    assert moments(node, "waits")[:4] == [
        "created by admin (its user agent)",
        "attempt 1: Unschedulable: 1 NodeResourcesFit (Insufficient cpu)",
        "attempt 2: bound, node-1",
        "kubelet of node-1 takes it on",
    ]


def test_in_full_it_is_said_that_there_was_one_node_only(node: Library) -> None:
    assert "node-1 is the only node there is: nothing was scored." in told(node, "waits", details=True)
    assert not any("only node" in line for line in told(node, "waits"))


def test_a_pod_that_no_node_tells_of_has_the_schedulers_state(node: Library) -> None:
    library = Library()
    first = find(node, "waits").attempts[0]
    library.keep([*node.store.get(first.trace_id)], first.end_unix_nano)
    assert find(library, "waits").state == "unschedulable"


def test_an_image_that_cannot_be_pulled_is_told_in_the_kubelets_words(before_the_deletions: Library) -> None:
    first, second, *_ = told(before_the_deletions, "no-image")
    assert first.startswith("default/no-image: image pull failing on node-1 since 17:13:34 UTC. 1 attempt.")
    assert second.startswith("ErrImagePull for container main: failed to pull and unpack image")
    assert "connect: connection refused" in second
    assert "pull of image 127.0.0.1:1/missing:1 fails, 2 times, last 17:13:48" in moments(
        before_the_deletions, "no-image"
    )


def test_a_crash_loop_is_told_with_its_restarts_and_the_back_off(before_the_deletions: Library) -> None:
    first, second, *_ = told(before_the_deletions, "crash")
    assert first.startswith("default/crash: crash loop on node-1 since 17:13:36 UTC, 2 restarts. 1 attempt.")
    assert second.startswith("CrashLoopBackOff for container main: back-off 20s restarting failed container=main")
    assert {"container main started, 3 times, last 17:13:47", "CrashLoopBackOff of main, 3 times"} <= {
        *moments(before_the_deletions, "crash")
    }


def test_a_pod_that_was_stopped_is_told_from_one_that_ended(node: Library) -> None:
    assert "its containers are stopped" in moments(node, "unready")
    assert "its containers have ended" in moments(node, "sums-")
    assert "given up" in moments(node, "no-image")


def test_in_whatever_order_and_how_often_spans_come_the_story_is_one(node: Library) -> None:
    everything = list(records())
    library = library_of([*reversed(everything), *everything[::3]])
    for pod in node.stories.pods():
        again = library.pod(pod.key)
        assert again is not None
        assert again.on_node == pod.on_node
        assert moments(library, pod.name) == moments(node, pod.name)


def test_a_recreated_name_leaves_open_whose_creation_it_was(node: Library) -> None:
    library = library_of(records())
    library.stories.note_gated("another-uid", "default", "by-kubectl", ["a"])
    assert library.requests_of(library.find("9d92ed34-8969-4742-b006-b29199457bb7")[0]) == (None, None)


def test_the_page_and_the_api_tell_the_same(node: Library) -> None:
    answer = answer_query(node, WhyQuestion(pod="default/crash"), node.stories.latest, live=False).as_json()
    assert answer["pod"]["state"] == "terminated"
    assert answer["pod"]["onNode"]["restarts"] == 2
    assert [moment["what"] for moment in answer["lifetime"]] == moments(node, "crash")


@pytest.fixture(scope="module")
def transitions(tmp_path_factory: pytest.TempPathFactory) -> list[Record]:
    """What the receiver `k8s_pods` tells of these Pods."""
    to = tmp_path_factory.mktemp("watch") / "transitions.otlp"
    command = ["reconstruct", "--pods", str(RECORDING / "pods.jsonl.zst"), "--transitions", str(to)]
    assert CliRunner().invoke(main, command).exit_code == 0
    return [record for record in read_recording(to) if isinstance(record, Record)]


def test_who_watches_the_pods_adds_when_they_were_ready_and_how_they_ended(transitions: list[Record]) -> None:
    library = library_of([*records(), *transitions])
    assert moments(library, "by-kubectl") == [
        "created by kubectl",
        "attempt 1: bound, node-1",
        "kubelet of node-1 takes it on",
        "sandbox, its network 18.5 ms",
        "container main started",
        "ready",
        "container main exited with 0 (Completed)",
        "its node has cleaned up",
        "deletion asked for by admin (its user agent)",
        "gone from the API server",
    ]
    assert "container main exited with 3 (Error), 3 times" in moments(library, "crash")
    assert "ready" not in moments(library, "unready")
    assert not [what for what in moments(library, "no-image") if "exited" in what]


def test_a_running_pod_is_told_to_be_ready_or_not_where_somebody_watches(transitions: list[Record]) -> None:
    until = "1795367629907777695"  # when `filler` is about to be made
    before = [record for record in (*records(), *transitions) if record.arrival < int(until)]
    library = library_of(before)
    assert "running on node-1 since 17:13:26 UTC, ready since 17:13:26 UTC." in told(library, "web-7f7644db44-dsw5v")[0]
    assert ", not ready yet." in told(library, "unready")[0]


def test_a_pod_that_runs_for_30_s_and_is_not_told_to_be_ready_is_to_be_looked_at_where_somebody_watches(
    transitions: list[Record],
) -> None:
    until = 1795367629907777695
    before = [record for record in (*records(), *transitions) if record.arrival < until]
    library = library_of(before)
    ran = find(library, "unready").on_node
    assert ran is not None
    at = ran.since_unix_nano + 30_000_000_000
    views = PodViews(library)
    row = {pod.name: pod.headline for pod in views.pods(PodFilter(), at).pods}
    assert row["unready"] == "not ready; on node-1"
    assert not [name for name in row if name.startswith("web-")]
    assert "unready" not in {pod.name for pod in views.pods(PodFilter(), at - 1).pods}
    unwatched = library_of(record for record in records() if record.arrival < until)
    assert "unready" not in {pod.name for pod in PodViews(unwatched).pods(PodFilter(), at).pods}


def test_a_watch_alone_tells_a_life_too(transitions: list[Record]) -> None:
    library = library_of(transitions)
    assert moments(library, "crash") == [
        "created",
        "container main started, 3 times, last 17:13:47",
        "ready",
        "container main exited with 3 (Error), 3 times",
        "CrashLoopBackOff of main",
        "deletion asked for",
        "gone from the API server",
    ]
    assert {pod.state for pod in library.stories.pods()} == {"terminated"}


@pytest.fixture(scope="module")
def run() -> Any:
    return replay(LIFECYCLE, RECORDING / "spans.otlp.zst")


def stitched(run: Any, node: Library, *, originals: bool) -> Library:
    """What is known of what leaves link_stitching, with or without the spans that the parts of lives stand for."""
    library = Library()
    for each in (each for spans in run.exported.values() for each in spans):
        if originals or each.resource == {"service.name": "podtrail"}:
            scope = "podtrail.link_stitching" if each.resource == {"service.name": "podtrail"} else "other"
            header = resource_header(each.resource)
            group = Group(header, scope_header(scope), each.span.trace_id, frame([each.span.raw]), 1)
            library.keep([group], each.span.end)
    assert {pod.key for pod in library.stories.pods()} == {pod.key for pod in node.stories.pods()}
    return library


def test_the_trace_of_a_life_beside_the_originals_tells_nothing_twice(run: Any, node: Library) -> None:
    library = stitched(run, node, originals=True)
    for pod in node.stories.pods():
        assert moments(library, pod.name) == moments(node, pod.name)


def test_the_trace_of_a_life_alone_tells_what_happened_on_the_node(run: Any, node: Library) -> None:
    library = stitched(run, node, originals=False)
    assert moments(library, "by-kubectl") == [
        "created",
        "sandbox",
        "container main started",
        "terminating",
        "its node has cleaned up",
    ]
    for pod in node.stories.pods():
        alone = library.pod(pod.key)
        assert alone is not None
        assert alone.on_node is not None
        assert pod.on_node is not None
        assert (alone.node, alone.state, alone.on_node.restarts) == (pod.node, pod.state, pod.on_node.restarts)
        reasons = {(step.reason, step.what) for step in pod.on_node.of("failed")}
        assert {(step.reason, step.what) for step in alone.on_node.of("failed")} == reasons
