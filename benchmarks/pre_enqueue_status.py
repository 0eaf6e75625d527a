"""What KEP-5501 costs the scheduling queue, with Pods behind scheduling gates and behind another PreEnqueue plugin.

5,000 Pods come and PreEnqueue is asked about each of them six times, within the five seconds that a rejection must
last. CPU time with the feature on is compared with the same, feature off; the API calls that follow are counted. The
claims: gated Pods, whose status the API server has set, cost no call and at most a tenth more; others one call each,
however often their message changes.
"""

import sys
import time
from collections.abc import Mapping, Sequence

from podtrail_scheduler.api_dispatcher.dispatcher import APIDispatcher, DispatcherSettings
from podtrail_scheduler.api_dispatcher.reporting import PodStatusReporter
from podtrail_scheduler.cluster.simulated.timeline import Timeline
from podtrail_scheduler.framework.client import PodCondition
from podtrail_scheduler.framework.events import (
    ActionType,
    ClusterEvent,
    EventResource,
    Happening,
    Registration,
    hints_of,
)
from podtrail_scheduler.framework.status import Status, unschedulable
from podtrail_scheduler.objects import Pod
from podtrail_scheduler.objects.durations import SECOND
from podtrail_scheduler.queueing.queue import ProfileQueueing, SchedulingQueue

PODS = 5_000
ROUNDS = 5
REPEATS = 5
GATED = "Scheduling is blocked due to non-empty scheduling gates"
CLAIM = ClusterEvent(EventResource.RESOURCE_CLAIM, ActionType.ADD)


class Holding:
    """Rejects every Pod, with one message or with another one each round."""

    name = "Holding"

    def __init__(self, message: str, *, changes: bool) -> None:
        self.message = message
        self._changes = changes

    def next_round(self, number: int) -> None:
        """Another reason, perhaps."""
        if self._changes:
            self.message = f"waiting for claim {number}"

    def pre_enqueue(self, pod: Pod) -> Status | None:  # noqa: ARG002
        """Never."""
        return unschedulable(self.message)

    def events_to_register(self) -> Sequence[Registration]:
        """One kind of event."""
        return (Registration(CLAIM),)


class Client:
    """Counts."""

    def __init__(self) -> None:
        self.calls = 0

    def get_pod(self, uid: str) -> Pod | None:  # noqa: ARG002
        """Nothing is looked up."""
        return None

    async def bind(self, pod: Pod, node_name: str, annotations: Mapping[str, str]) -> None:
        """Not asked for."""

    async def patch_pod_status(self, pod: Pod, condition: PodCondition | None, nominated_node: str | None) -> None:  # noqa: ARG002
        """One call."""
        self.calls += 1

    async def remove_pod_condition(self, pod: Pod, condition: str) -> None:  # noqa: ARG002
        """One call."""
        self.calls += 1


def run(plugin: Holding, conditions: Mapping[str, tuple[str, str, str]], *, enabled: bool) -> tuple[float, int]:
    """Seconds of CPU in the queue, and the calls that were made in the minutes after."""
    timeline, client = Timeline(0, ""), Client()
    dispatcher = APIDispatcher(client, timeline, DispatcherSettings(status_qps=0))  # type: ignore[arg-type]
    queue = SchedulingQueue(lambda entry: (entry.queued_at,), {"s": ProfileQueueing([plugin], hints_of([plugin]))})
    if enabled:
        queue.report_to(PodStatusReporter(dispatcher, lambda *_: None, queue.report_failed))
    dispatcher.start()
    pods = [Pod(f"p{each}", uid=f"p{each}", scheduler_name="s", conditions=conditions) for each in range(PODS)]
    began = time.process_time()
    for pod in pods:
        queue.add(pod, timeline.now())
    for number in range(ROUNDS):
        plugin.next_round(number)
        queue.move(Happening(CLAIM), timeline.now())
    seconds = time.process_time() - began
    while timeline.next_time() is not None:
        timeline.step()
    assert timeline.now() <= 60 * SECOND
    return seconds, client.calls


def main() -> int:
    """Prints the figures; 1 when a claim does not hold."""
    kinds = {
        "scheduling gates": (False, GATED, {"PodScheduled": ("False", "SchedulingGated", GATED)}, 0),
        "one message": (False, "waiting for claim", {}, PODS),
        "six messages": (True, "waiting for claim", {}, PODS),
    }
    held = True
    for name, (changes, message, conditions, wanted) in kinds.items():
        off, on, calls = [], [], 0
        for _ in range(REPEATS):
            off.append(run(Holding(message, changes=changes), conditions, enabled=False)[0])
            seconds, calls = run(Holding(message, changes=changes), conditions, enabled=True)
            on.append(seconds)
        ratio = min(on) / min(off)
        holds = calls == wanted and (wanted > 0 or ratio <= 1.1)
        held = held and holds
        each = min(on) / PODS / (ROUNDS + 1) * 1e6
        print(
            f"{name:16}: {ratio:5.2f} of the feature off ({each:4.1f} us a Pod and time asked), {calls} calls for "
            f"{PODS} Pods: {'holds' if holds else 'DOES NOT HOLD'}"
        )
    return 0 if held else 1


if __name__ == "__main__":
    sys.exit(main())
