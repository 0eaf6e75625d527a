"""Runs a workload: cluster, scheduler and time together."""

import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from opentelemetry.trace import TracerProvider
from podtrail_instrumentation import Log

from podtrail_scheduler.configuration.types import KubeSchedulerConfiguration
from podtrail_scheduler.cycles.attempt import AttemptRecord
from podtrail_scheduler.cycles.cache import Cache
from podtrail_scheduler.cycles.scheduler import Scheduler
from podtrail_scheduler.framework.aside import IN_PLACE
from podtrail_scheduler.framework.extension_points import Plugin
from podtrail_scheduler.framework.handle import Handle
from podtrail_scheduler.framework.trial import FilterTrial
from podtrail_scheduler.objects import Node
from podtrail_scheduler.objects.durations import SECOND
from podtrail_scheduler.plugins.registry import default_profile, make_profile
from podtrail_scheduler.plugins.selection import Selection
from podtrail_scheduler.queueing.queue import SchedulingQueueSettings
from podtrail_scheduler.runtime.profile import Profile
from podtrail_scheduler.workload import NodeGroup, Workload

from .api_faults import ApiFaults
from .api_server import SimulatedApiServer
from .arrivals import PodArrival, kind_and_number, make_arrivals, make_nodes, written_arrivals, written_placed
from .creator import Creator
from .disruptions import Disruptions
from .measured import MeasuredInPlace
from .slow_plugins import make_slow_plugins
from .summary import Summary, Totals, pending_pods
from .timeline import Timeline

DEFAULT_START = 1_767_225_600 * SECOND
"""2026-01-01T00:00:00Z in unix nanoseconds."""

SCOPE = "podtrail_scheduler"


_SILENT = logging.getLogger("podtrail_scheduler.simulated")
"""What goes wrong in a simulation is meant to: it is in the records of its attempts."""
_SILENT.setLevel(logging.CRITICAL + 1)


def _say_nothing(text: str) -> None:
    """Drops the text about a long attempt."""


def _profiles(selection: Selection, shared: Handle, slow: Sequence[Plugin]) -> Iterator[tuple[Profile, Handle]]:
    """Each profile with its handle: what the cluster is made of is `shared`, trials are its own."""
    for profile in selection.profiles:
        handle = replace(shared, trial=FilterTrial())
        yield make_profile(handle, profile, selection.makers, additional=slow), handle


def _backoff(configuration: KubeSchedulerConfiguration) -> SchedulingQueueSettings:
    return SchedulingQueueSettings(
        initial_backoff=configuration.pod_initial_backoff_seconds * SECOND,
        max_backoff=configuration.pod_max_backoff_seconds * SECOND,
    )


class Moment(NamedTuple):
    """Something to notice: an attempt is over, or (None) a simulated second has passed or all is done."""

    now: int
    """Unix nanoseconds."""
    attempt: AttemptRecord | None


class Simulation:
    """One run of a workload; iterate over `run` once."""

    def __init__(
        self,
        workload: Workload,
        tracer_provider: TracerProvider | None = None,
        *,
        creator_provider: TracerProvider | None = None,
        start: int = DEFAULT_START,
        log: Log = _say_nothing,
        selection: Selection | None = None,
        stopwatch: Callable[[], int] | None = None,
    ) -> None:
        """Without `tracer_provider` the feature gate `SchedulerTracing` is off.

        Args:
            workload: The cluster and what happens in it.
            tracer_provider: Gets the scheduler's spans.
            creator_provider: Gets the spans of the Pods' creation.
            start: Unix nanoseconds.
            log: Told the texts about attempts that took long.
            selection: The profiles; None: the default one.
            stopwatch: Nanoseconds since any moment. With it what plugins of others take is added to simulated time,
                which then differs a little from run to run.

        Raises:
            ValueError: A plugin can't be made.
        """
        self._workload = workload
        self._start = start
        self._end = start + workload.length
        seed = str(workload.seed)
        self.timeline = Timeline(start, f"{seed}/costs")
        faults = ApiFaults(workload.faults.api, self.timeline, seed)
        self.api_server = SimulatedApiServer(self.timeline, workload.api_server.bind_takes, faults)
        cache = Cache()
        self._handle = Handle(self.timeline, self.api_server, cache.nodes)
        slow = make_slow_plugins(workload.faults.slow_plugins, self._handle, self.timeline)
        tracer = None if tracer_provider is None else tracer_provider.get_tracer(SCOPE)
        self.scheduler = Scheduler(
            [(default_profile(self._handle, slow), self._handle)]
            if selection is None
            else list(_profiles(selection, self._handle, slow)),
            cache,
            settings=None if selection is None else _backoff(selection.configuration),
            seed=f"{seed}/draws",
            tracer=tracer,
            on_attempt=self._attempt_over,
            aside=IN_PLACE if stopwatch is None else MeasuredInPlace(self.timeline, stopwatch),
            log=log,
            logger=_SILENT,
        )
        self.api_server.watch.watcher = self.scheduler
        creator_tracer = None if creator_provider is None else creator_provider.get_tracer(SCOPE)
        self._creator = Creator(self.timeline, self.api_server, workload.api_server.create_takes, creator_tracer, seed)
        self.totals = Totals()
        self._over: list[AttemptRecord] = []
        self._ticked = False
        self._untold = 0

    def run(self) -> Iterator[Moment]:
        """Yields after each attempt and each simulated second, as fast as it is asked for.

        When the workload's time is over no attempt begins any more, and those under way end.
        """
        self._plan_nodes()
        Disruptions(self._workload, self.timeline, self.api_server).plan()
        self._plan_arrival(written_arrivals(self._workload, self._start))
        self._plan_arrival(make_arrivals(self._workload, self._start))
        self.timeline.spawn(self.scheduler.run(until=self._end))
        self.timeline.spawn(self._tick())
        last = self._start
        try:
            while self._is_on():
                self.timeline.step()
                for record in self._over:
                    last = max(last, record.ended)
                    yield Moment(self.timeline.now(), record)
                self._over.clear()
                if self._ticked:
                    self._ticked = False
                    yield Moment(self.timeline.now(), None)
        finally:
            self.timeline.close()
        yield Moment(max(last, self.timeline.now()), None)

    def summary(self) -> Summary:
        """What has become of the workload so far."""
        return Summary(
            simulated=self.timeline.now() - self._start,
            created=self._creator.created,
            bound=self.api_server.bound,
            finished=self.api_server.finished,
            preempted=self.api_server.preempted,
            deleted=self.api_server.deleted,
            attempts=dict(self.totals.attempts),
            refusals=dict(self.totals.refusals.most_common()),
            pending=pending_pods(self.scheduler.queue),
        )

    def of_others(self) -> int:
        """How many Pods without a node ask for a scheduler that isn't there."""
        names = self.scheduler.profiles.keys()
        return sum(not pod.node_name and pod.scheduler_name not in names for pod in self.api_server.pods.values())

    def _is_on(self) -> bool:
        due = self.timeline.next_time()
        return due is not None and (due < self._end or self.scheduler.under_way + self._untold > 0)

    def _plan_nodes(self) -> None:
        for group in self._workload.nodes:
            for node in make_nodes(group):
                self._plan_node(group, node)
        written = self._workload.written
        for node in written.nodes:
            self.api_server.add_node(node)
        for each in written.others:
            self.api_server.objects.put(each)
        for pod, plan in written_placed(self._workload):
            self.api_server.create_pod(pod, plan)

    def _plan_node(self, group: NodeGroup, node: Node) -> None:
        joins = self._start + group.joins_after
        self.timeline.at(joins, lambda: self.api_server.add_node(node))
        if node.unschedulable:
            self.timeline.at(joins + group.cordoned_for, lambda: self._uncordon(node.name))

    def _uncordon(self, name: str) -> None:
        node = self.api_server.node(name)
        if node is not None:
            self.api_server.change_node(replace(node, unschedulable=False))

    def _plan_arrival(self, arrivals: Iterator[PodArrival]) -> None:
        arrival = next(arrivals, None)
        if arrival is None:
            return

        def arrive() -> None:
            self._creator.create(arrival)
            self._plan_interference(arrival)
            self._plan_arrival(arrivals)

        self.timeline.at(arrival.at, arrive)

    def _plan_interference(self, arrival: PodArrival) -> None:
        """What others do to the Pod."""
        faults, uid = self._workload.faults, arrival.pod.uid
        kind, number = kind_and_number(arrival.pod.name)
        created = self.timeline.now() + self._workload.api_server.create_takes
        for deletion in faults.pods_deleted:
            if deletion.concerns(kind, number):
                self.timeline.at(created + deletion.after, lambda: self.api_server.delete(uid))
        for binding in faults.bound_by_another:
            if binding.concerns(kind, number):
                self.timeline.at(created + binding.after, lambda: self._bind_elsewhere(uid, number))

    def _bind_elsewhere(self, uid: str, number: int) -> None:
        nodes = self.api_server.nodes()
        if nodes:
            self.api_server.bind_elsewhere(uid, nodes[number % len(nodes)].name)

    async def _tick(self) -> None:
        while True:
            await self.timeline.sleep(SECOND)
            self._ticked = True

    def _attempt_over(self, record: AttemptRecord) -> None:
        self._untold += 1
        self.timeline.at(record.ended, lambda: self._tell(record))

    def _tell(self, record: AttemptRecord) -> None:
        self._untold -= 1
        self.totals.count(record)
        self._over.append(record)
