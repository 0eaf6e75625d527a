"""The dispatcher: which calls are made, in which order, how many at once (KEP-5229)."""

import pytest
from podtrail_scheduler.api_dispatcher.client import DispatchingClient
from podtrail_scheduler.api_dispatcher.dispatcher import DispatcherSettings
from podtrail_scheduler.framework.client import ApiError, PodCondition

from tests.scheduler.api_dispatcher.bench import DispatcherBench, MakeBench, condition

DISRUPTION = PodCondition("DisruptionTarget", "True", "PreemptionByScheduler", "preempting")


def test_a_status_patch_is_sent_without_anybody_waiting(bench: DispatcherBench) -> None:
    pod = bench.pod()
    bench.dispatcher.patch_pod_status(pod, condition(), "node-1")
    assert bench.requests == []
    bench.run()
    assert bench.requests == [(0, "patch", "a", "0/3", "node-1")]
    assert bench.api_server.pods["a"].nominated_node_name == "node-1"


def test_nothing_is_sent_before_it_is_started(make_bench: MakeBench) -> None:
    bench = make_bench(start=False)
    bench.dispatcher.patch_pod_status(bench.pod(), condition(), None)
    bench.run()
    assert bench.requests == []
    bench.dispatcher.start()
    bench.run()
    assert len(bench.requests) == 1


def test_who_binds_gets_the_answer(bench: DispatcherBench) -> None:
    pod = bench.pod()
    bound = bench.spawn(bench.dispatcher.bind(pod, "node-1", {}))
    bench.run()
    assert bound == [None]
    assert bench.api_server.pods["a"].node_name == "node-1"


def test_who_binds_gets_the_refusal_and_nothing_is_tried_again(bench: DispatcherBench) -> None:
    bench.api_server.failures = [ApiError("denied", "Forbidden", 403)]
    bound = bench.spawn(bench.dispatcher.bind(bench.pod(), "node-1", {}))
    bench.run()
    assert [str(error) for error in bound] == ["denied"]
    assert len(bench.requests) == 1


def test_a_binding_takes_the_place_of_a_patch_that_waits(make_bench: MakeBench) -> None:
    bench = make_bench(DispatcherSettings(parallelism=1))
    pod = bench.pod()
    bench.dispatcher.patch_pod_status(bench.pod("busy"), condition(), None)
    bench.dispatcher.patch_pod_status(pod, condition(), None)
    bench.spawn(bench.dispatcher.bind(pod, "node-1", {}))
    bench.run()
    assert [request[1:3] for request in bench.requests] == [("patch", "busy"), ("bind", "a")]


def test_a_patch_behind_a_binding_is_skipped(bench: DispatcherBench) -> None:
    pod = bench.pod()
    bench.spawn(bench.dispatcher.bind(pod, "node-1", {}))
    bench.run(0.005)
    bench.dispatcher.patch_pod_status(pod, condition(), None)
    bench.run()
    assert [request[1] for request in bench.requests] == ["bind"]


def test_two_patches_of_a_pod_become_one_and_keep_the_nomination(make_bench: MakeBench) -> None:
    bench = make_bench(DispatcherSettings(parallelism=1))
    bench.dispatcher.patch_pod_status(bench.pod("busy"), condition(), None)
    pod = bench.pod()
    bench.dispatcher.patch_pod_status(pod, condition("0/3"), "node-1")
    bench.dispatcher.patch_pod_status(pod, condition("0/4"), None)
    bench.run()
    assert [request[1:] for request in bench.requests[1:]] == [("patch", "a", "0/4", "node-1")]


def test_conditions_of_two_types_are_both_written(make_bench: MakeBench) -> None:
    bench = make_bench(DispatcherSettings(parallelism=1))
    bench.dispatcher.patch_pod_status(bench.pod("busy"), condition(), None)
    pod = bench.pod()
    bench.dispatcher.patch_pod_status(pod, DISRUPTION, None)
    bench.dispatcher.patch_pod_status(pod, condition(), None)
    bench.run()
    assert set(bench.api_server.pods["a"].conditions) == {"DisruptionTarget", "PodScheduled"}


def test_what_the_status_shows_is_not_written_again(bench: DispatcherBench) -> None:
    pod = bench.pod(conditions={"PodScheduled": ("False", "Unschedulable", "0/3")})
    bench.dispatcher.patch_pod_status(pod, condition(), None)
    bench.run()
    assert bench.requests == []


def test_what_was_just_written_and_not_seen_yet_is_not_written_again(bench: DispatcherBench) -> None:
    pod = bench.pod()
    for _ in range(3):
        bench.dispatcher.patch_pod_status(pod, condition(), None)
        bench.run(0.015)
    assert len(bench.requests) == 1


def test_a_patch_that_the_watch_makes_needless_is_dropped(make_bench: MakeBench) -> None:
    bench = make_bench(DispatcherSettings(parallelism=1))
    bench.dispatcher.patch_pod_status(bench.pod("busy"), condition(), None)
    bench.dispatcher.patch_pod_status(bench.pod(), condition(), None)
    bench.pod(conditions={"PodScheduled": ("False", "Unschedulable", "0/3")})
    bench.run()
    assert [request[2] for request in bench.requests] == ["busy"]


def test_a_new_patch_waits_until_the_one_in_flight_is_over(bench: DispatcherBench) -> None:
    pod = bench.pod()
    bench.dispatcher.patch_pod_status(pod, condition("0/3"), None)
    bench.run(0.005)
    bench.dispatcher.patch_pod_status(pod, condition("0/4"), None)
    bench.run()
    assert [(request[0], request[3]) for request in bench.requests] == [(0, "0/3"), (0.01, "0/4")]


def test_calls_about_a_pod_that_is_gone_are_dropped(make_bench: MakeBench) -> None:
    bench = make_bench(DispatcherSettings(parallelism=1))
    bench.dispatcher.patch_pod_status(bench.pod("busy"), condition(), None)
    bench.dispatcher.patch_pod_status(bench.pod(), condition(), None)
    bench.dispatcher.forget("a")
    bench.run()
    assert [request[2] for request in bench.requests] == ["busy"]


def test_no_more_calls_at_once_than_allowed(make_bench: MakeBench) -> None:
    bench = make_bench(DispatcherSettings(parallelism=3))
    for number in range(10):
        bench.dispatcher.patch_pod_status(bench.pod(f"pod-{number}"), condition(), None)
    bench.run()
    assert bench.api_server.most_at_once == 3
    assert [request[2] for request in bench.requests] == [f"pod-{number}" for number in range(10)]


def test_patches_wait_for_their_rate_and_bindings_do_not(make_bench: MakeBench) -> None:
    bench = make_bench(DispatcherSettings(status_qps=1, status_burst=2))
    for number in range(4):
        bench.dispatcher.patch_pod_status(bench.pod(f"pod-{number}"), condition(), None)
    bench.spawn(bench.dispatcher.bind(bench.pod("bound"), "node-1", {}))
    bench.run()
    assert [(request[0], request[1]) for request in bench.requests] == [
        (0, "patch"),
        (0, "patch"),
        (0, "bind"),
        (1, "patch"),
        (2, "patch"),
    ]


def test_a_patch_that_failed_is_tried_again_later_and_later(bench: DispatcherBench) -> None:
    bench.api_server.failures = [ApiError("try again", "InternalError", 500), ApiError("no answer")]
    bench.dispatcher.patch_pod_status(bench.pod(), condition(), None)
    bench.run()
    assert [request[0] for request in bench.requests] == [0, 1.01, 3.02]
    assert bench.executed == [
        ("pod_status_patch", "error", 10_000_000),
        ("pod_status_patch", "error", 10_000_000),
        ("pod_status_patch", "success", 10_000_000),
    ]


@pytest.mark.parametrize(("reason", "code"), [("NotFound", 404), ("Forbidden", 403), ("Invalid", 422)])
def test_a_patch_that_can_not_succeed_is_not_tried_again(bench: DispatcherBench, reason: str, code: int) -> None:
    bench.api_server.failures = [ApiError("no", reason, code)]
    bench.dispatcher.patch_pod_status(bench.pod(), condition(), None)
    bench.run()
    assert len(bench.requests) == 1


def test_a_failed_patch_gives_way_to_a_newer_one(bench: DispatcherBench) -> None:
    pod = bench.pod()
    bench.api_server.failures = [ApiError("no answer")]
    bench.dispatcher.patch_pod_status(pod, condition("0/3"), None)
    bench.run(0.5)
    bench.dispatcher.patch_pod_status(pod, condition("0/4"), None)
    bench.run()
    assert [request[3] for request in bench.requests] == ["0/3", "0/4"]


def test_patches_that_fail_for_ever_end(bench: DispatcherBench) -> None:
    bench.api_server.failures = [ApiError("no answer")] * 99
    bench.dispatcher.patch_pod_status(bench.pod(), condition(), None)
    bench.run(600)
    assert len(bench.requests) == 6
    assert bench.dispatcher.pending() == {"pod_binding": 0, "pod_status_patch": 0}


def test_pending_calls_are_counted_by_type(make_bench: MakeBench) -> None:
    bench = make_bench(DispatcherSettings(parallelism=1))
    for name in "abc":
        bench.dispatcher.patch_pod_status(bench.pod(name), condition(), None)
    assert bench.dispatcher.pending() == {"pod_binding": 0, "pod_status_patch": 2}


def test_the_client_of_the_dispatcher_binds_and_patches_through_it(bench: DispatcherBench) -> None:
    client = DispatchingClient(bench.api_server, bench.dispatcher)
    pod = bench.pod()
    patched = bench.spawn(client.patch_pod_status(pod, condition(), None))
    bench.run(0)
    assert patched == [None]
    assert bench.api_server.pods["a"].conditions == {}
    bench.run()
    patched_pod = client.get_pod("a")
    assert patched_pod is not None
    bound = bench.spawn(client.bind(patched_pod, "node-1", {}))
    bench.run()
    deleted = bench.spawn(client.delete_pod(pod))
    bench.run()
    assert (bound, deleted) == ([None], [None])
    assert [request[1] for request in bench.requests] == ["patch", "bind", "delete"]


def test_a_call_that_fails_with_something_unexpected_is_over_all_the_same(
    bench: DispatcherBench, caplog: pytest.LogCaptureFixture
) -> None:
    bench.api_server.failures = [RuntimeError("broken"), RuntimeError("broken")]
    bound = bench.spawn(bench.dispatcher.bind(bench.pod(), "node-1", {}))
    bench.dispatcher.patch_pod_status(bench.pod("b"), condition(), None)
    bench.run()
    assert [str(error) for error in bound] == ["RuntimeError: broken"]
    bench.dispatcher.patch_pod_status(bench.pod("b"), condition(), None)
    bench.run()
    assert bench.api_server.pods["b"].conditions != {}
