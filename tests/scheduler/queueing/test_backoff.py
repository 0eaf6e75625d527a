"""Back-off: its length, its windows, and who may leave before it is over (KEP-5142)."""

from dataclasses import replace

import pytest
from podtrail_scheduler.framework.events import Happening
from podtrail_scheduler.objects.durations import MILLISECOND, SECOND

from tests.scheduler.queueing.bench import QueueBench


def backoffs(bench: QueueBench, start: int, attempts: int, by: tuple[str, ...]) -> list[int]:
    """The lengths of a Pod's back-offs in seconds, one for each attempt."""
    bench.add()
    lengths = []
    for _ in range(attempts):
        entry = bench.refuse(by=by)
        lengths.append((bench.queue.backoff_ends(entry) - start) // SECOND)
        bench.queue.activate(["a"], start)
    return lengths


def test_backoff_is_a_second_doubled_each_time_up_to_ten(bench: QueueBench, start: int) -> None:
    assert backoffs(bench, start, 6, ("Fit",)) == [1, 2, 4, 8, 10, 10]


def test_errors_back_off_by_the_number_of_errors_in_a_row(bench: QueueBench, start: int) -> None:
    assert backoffs(bench, start, 3, ()) == [1, 2, 4]
    entry = bench.refuse()
    assert (entry.errors, entry.unschedulable_count) == (0, 1)
    assert bench.queue.backoff_ends(entry) == start + SECOND


def test_backoff_is_configurable(make_bench: type[QueueBench], start: int) -> None:
    bench = make_bench(initial_backoff=3 * SECOND, max_backoff=5 * SECOND)
    assert backoffs(bench, start, 3, ("Fit",)) == [3, 5, 5]


def test_a_maximum_of_nothing_is_no_backoff(make_bench: type[QueueBench], start: int) -> None:
    bench = make_bench(max_backoff=0)
    bench.add()
    bench.refuse(by=())
    assert bench.place() == "active"


def test_a_window_is_flushed_as_a_whole_when_it_is_over(bench: QueueBench, start: int) -> None:
    for name, failed_after in (("a", 100), ("b", 900)):
        bench.add(name)
        bench.refuse(at=start + failed_after * MILLISECOND, by=())
    assert bench.queue.deadline() == start + 2 * SECOND
    bench.queue.flush_backoff(start + 2 * SECOND - 1)
    assert bench.queue.lengths()["backoff"] == 2
    bench.queue.flush_backoff(start + 2 * SECOND)
    assert bench.queue.lengths()["active"] == 2
    assert bench.queue.deadline() is None


def test_an_idle_scheduler_pops_from_backoff_the_most_important_of_a_window(
    bench: QueueBench, start: int, node_added: Happening
) -> None:
    for name, priority in (("low", 1), ("high", 2)):
        bench.add(name, priority=priority)
        bench.refuse(at=start + 500 * MILLISECOND - 100 * priority)
    bench.queue.move(node_added, start + 600 * MILLISECOND)
    assert bench.queue.lengths()["backoff"] == 2
    assert [bench.pop().pod.name for _ in range(2)] == ["high", "low"]


def test_nobody_is_popped_from_backoff_while_somebody_is_active(
    bench: QueueBench, start: int, node_added: Happening
) -> None:
    bench.add("a")
    bench.refuse()
    bench.queue.move(node_added, start)
    bench.add("b")
    assert bench.pop().pod.name == "b"


def test_pods_that_failed_with_an_error_are_not_popped_from_backoff(bench: QueueBench, start: int) -> None:
    bench.add()
    bench.refuse(by=())
    assert bench.place() == "backoff"
    assert bench.queue.pop() is None


@pytest.mark.parametrize("failed_after", [0, 1, 999 * MILLISECOND])
def test_without_popping_from_backoff_it_ends_to_the_nanosecond(
    make_bench: type[QueueBench], start: int, failed_after: int, node_added: Happening
) -> None:
    bench = make_bench(pop_from_backoff=False)
    bench.add()
    bench.refuse(at=start + failed_after)
    bench.queue.move(node_added, start + failed_after)
    assert bench.queue.pop() is None
    ends = start + failed_after + SECOND
    bench.queue.flush_backoff(ends)
    assert bench.place() == "backoff"
    bench.queue.flush_backoff(ends + 1)
    assert bench.place() == "active"


def test_who_became_more_important_in_a_window_is_popped_first(
    bench: QueueBench, start: int, node_added: Happening
) -> None:
    pods = [bench.add(name) for name in "ab"]
    for _ in pods:
        bench.refuse()
    bench.queue.move(node_added, start)
    bench.queue.update(pods[1], replace(pods[1], priority=1), start)
    assert bench.place("b") == "backoff"
    assert [bench.pop().pod.name for _ in pods] == ["b", "a"]


def test_who_was_let_into_backoff_is_not_asked_again_when_it_ends(
    bench: QueueBench, start: int, node_added: Happening
) -> None:
    bench.add()
    bench.refuse()
    bench.queue.move(node_added, start)
    asked = bench.gates.asked
    bench.queue.flush_backoff(start + 2 * SECOND)
    assert (bench.place(), bench.gates.asked) == ("active", asked)


def test_who_failed_and_changes_stays_in_backoff(bench: QueueBench, start: int) -> None:
    pod = bench.add()
    entry = bench.pop()
    assert bench.queue.backoff_ends(entry) == 0
    bench.give_back(entry, by=[])
    bench.queue.update(pod, replace(pod, priority=1), start)
    assert bench.place() == "backoff"
    assert bench.queue.get("a") is entry
