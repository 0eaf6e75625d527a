"""Runs a workload: cluster, scheduler and time together."""

from collections.abc import Iterator
from typing import NamedTuple

from opentelemetry.trace import TracerProvider
from podtrail_instrumentation import Log

from podtrail_scheduler.attempt import AttemptRecord
from podtrail_scheduler.binding_cycle import Pause
from podtrail_scheduler.cache import Cache
from podtrail_scheduler.durations import SECOND
from podtrail_scheduler.framework.handle import Handle
from podtrail_scheduler.framework.waiting import WaitingPod
from podtrail_scheduler.objects import Node
from podtrail_scheduler.plugins.registry import default_profile
from podtrail_scheduler.scheduler import Scheduler
from podtrail_scheduler.workload import NodeGroup, Workload

from .api_server import SimulatedApiServer
from .arrivals import Arrival, make_arrivals, make_nodes
from .creator import Creator
from .faults import make_slow_plugins
from .summary import Summary, Totals, pending_pods
from .timeline import Timeline

DEFAULT_START = 1_767_225_600 * SECOND
"""2026-01-01T00:00:00Z in unix nanoseconds."""

FLUSH_UNSCHEDULABLE = 30
"""Every how many seconds the unschedulable pool is flushed."""

SCOPE = "podtrail_scheduler"


def _say_nothing(text: str) -> None:
    """Drops the text about a long attempt."""


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
    ) -> None:
        """Without `tracer_provider` the feature gate `SchedulerTracing` is off.

        `creator_provider` gets the spans of the Pods' creation, `log` the texts about attempts that took long.
        """
        self._workload = workload
        self._start = start
        self._end = start + workload.length
        seed = str(workload.seed)
        self.timeline = Timeline(start, f"{seed}/costs")
        self.api_server = SimulatedApiServer(self.timeline, workload.api_server.bind_takes)
        cache = Cache()
        self._handle = Handle(self.timeline, self.api_server, cache.nodes)
        slow = make_slow_plugins(workload.faults.slow_plugins, self._handle, self.timeline.after)
        tracer = None if tracer_provider is None else tracer_provider.get_tracer(SCOPE)
        self.scheduler = Scheduler(
            default_profile(self._handle, slow),
            self._handle,
            cache,
            tracer=tracer,
            on_attempt=self._attempt_over,
            log=log,
        )
        self.api_server.watcher = self.scheduler
        creator_tracer = None if creator_provider is None else creator_provider.get_tracer(SCOPE)
        self._creator = Creator(self.timeline, self.api_server, workload.api_server.create_takes, creator_tracer, seed)
        self.totals = Totals()
        self._over: list[AttemptRecord] = []
        self._under_way = 0
        self._cycle_runs = False
        self._ticked = False
        self._waiting: list[tuple[WaitingPod, Iterator[Pause]]] = []

    def run(self) -> Iterator[Moment]:
        """Yields after each attempt and each simulated second, as fast as it is asked for.

        When the workload's time is over no attempt begins any more, and those under way end.
        """
        self._plan_nodes()
        self._plan_arrival(make_arrivals(self._workload, self._start))
        self.timeline.at(self._start + SECOND, lambda: self._tick(1))
        last = self._start
        while self._is_on():
            self.timeline.step()
            self._resume_decided()
            self.timeline.aside(self._begin_attempt)
            for record in self._over:
                last = max(last, record.ended)
                yield Moment(self.timeline.now(), record)
            self._over.clear()
            if self._ticked:
                self._ticked = False
                yield Moment(self.timeline.now(), None)
        yield Moment(max(last, self.timeline.now()), None)

    def summary(self) -> Summary:
        """Where things stand."""
        return Summary(
            simulated=self.timeline.now() - self._start,
            created=self._creator.created,
            bound=self.api_server.bound,
            finished=self.api_server.finished,
            preempted=self.api_server.preempted,
            attempts=dict(self.totals.attempts),
            refusals=dict(self.totals.refusals.most_common()),
            pending=pending_pods(self.scheduler.queue),
        )

    def _is_on(self) -> bool:
        due = self.timeline.next_time()
        return due is not None and (due < self._end or self._under_way > 0)

    def _plan_nodes(self) -> None:
        for group in self._workload.nodes:
            for node in make_nodes(group):
                self._plan_node(group, node)

    def _plan_node(self, group: NodeGroup, node: Node) -> None:
        joins = self._start + group.joins_after
        self.timeline.at(joins, lambda: self.api_server.add_node(node))
        if node.unschedulable:
            self.timeline.at(joins + group.cordoned_for, lambda: self.api_server.uncordon(node.name))

    def _plan_arrival(self, arrivals: Iterator[Arrival]) -> None:
        arrival = next(arrivals, None)
        if arrival is None:
            return

        def arrive() -> None:
            self._creator.create(arrival)
            self._plan_arrival(arrivals)

        self.timeline.at(arrival.at, arrive)

    def _tick(self, second: int) -> None:
        self._ticked = True
        queue, now = self.scheduler.queue, self.timeline.now()
        queue.flush_backoff(now)
        if second % FLUSH_UNSCHEDULABLE == 0:
            queue.flush_unschedulable(now)
        self.timeline.after(SECOND, lambda: self._tick(second + 1))

    def _begin_attempt(self) -> None:
        if self._cycle_runs or self.timeline.now() >= self._end:
            return
        attempt = self.scheduler.next_attempt()
        if attempt is None:
            return
        self._under_way += 1
        self._cycle_runs = True
        cycle_over = next(attempt)
        assert isinstance(cycle_over, int)

        def go_on() -> None:
            self._cycle_runs = False
            self._advance(attempt)

        self.timeline.at(cycle_over, go_on)

    def _advance(self, attempt: Iterator[Pause]) -> None:
        pause = next(attempt, None)
        if pause is None:
            self._under_way -= 1
        elif isinstance(pause, WaitingPod):
            self._waiting.append((pause, attempt))
            for deadline in pause.deadlines():
                self.timeline.at(deadline, lambda: pause.expire(self.timeline.now()))
        else:
            self.timeline.at(pause, lambda: self._advance(attempt))

    def _resume_decided(self) -> None:
        if not any(waiting.decided for waiting, _ in self._waiting):
            return
        decided = [attempt for waiting, attempt in self._waiting if waiting.decided]
        self._waiting = [(waiting, attempt) for waiting, attempt in self._waiting if not waiting.decided]
        for attempt in decided:
            self._resume(attempt)

    def _resume(self, attempt: Iterator[Pause]) -> None:
        self.timeline.at(self.timeline.now(), lambda: self._advance(attempt))

    def _attempt_over(self, record: AttemptRecord) -> None:
        self.totals.count(record)
        self._over.append(record)
