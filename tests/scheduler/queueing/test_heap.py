"""The heap of queued Pods: what comes out is what a sorted list would give, whatever was changed or removed before."""

from hypothesis import given
from hypothesis import strategies as st
from podtrail_scheduler.framework.queued_pod import QueuedPod
from podtrail_scheduler.objects import Pod
from podtrail_scheduler.queueing.heap import EntryHeap

STEPS = st.lists(
    st.tuples(st.sampled_from(["put", "put", "put", "remove", "pop"]), st.sampled_from("abcde"), st.integers(0, 3)),
    min_size=1,
    max_size=30,
)


@given(STEPS)
def test_the_smallest_comes_first_of_equal_ones_who_came_first(steps: list[tuple[str, str, int]]) -> None:
    heap = EntryHeap(lambda entry: (entry.pod.priority,))
    model: dict[str, tuple[int, int]] = {}
    for at, (step, uid, priority) in enumerate(steps * 9):
        if step == "put":
            heap.put(QueuedPod(Pod(uid, uid=uid, priority=priority), queued_at=0))
            model[uid] = (priority, at)
        elif step == "remove":
            removed = heap.remove(uid)
            assert (removed is not None) is (model.pop(uid, None) is not None)
        else:
            first = min(model, key=model.__getitem__, default=None)
            entry = heap.pop()
            assert (entry and entry.pod.uid) == first
            model.pop(first or "", None)
        assert {entry.pod.uid for entry in heap} == model.keys()
        assert len(heap) == len(model)


def test_what_changes_often_keeps_the_others_in_order() -> None:
    heap = EntryHeap(lambda entry: (entry.pod.priority,))
    for priority, uid in enumerate("edcba"):
        heap.put(QueuedPod(Pod(uid, uid=uid, priority=-priority), queued_at=0))
    for turn in range(200):
        heap.put(QueuedPod(Pod("e", uid="e", priority=turn % 2), queued_at=0))
    popped = [entry.pod.uid for _ in "abcde" if (entry := heap.pop())]
    assert popped == list("abcde")
