"""What the scheduler tells of its work as it goes; durations are nanoseconds."""

from collections.abc import Callable, Iterable, Iterator

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import Metric
from prometheus_client.registry import Collector

from podtrail_scheduler.framework.events import ClusterEvent, Happening, Hint, HintFunction, Hints
from podtrail_scheduler.framework.queued_pod import QueuedPod
from podtrail_scheduler.objects import Pod

from . import definitions as defined
from .families import Family

RESULTS = {"Success": "scheduled", "Unschedulable": "unschedulable", "Error": "error"}
"""The values of `scheduler.result` in spans, and what metrics call them."""
MOST_ATTEMPTS = 15
PLUGIN_SAMPLES = 10
"""One of so many scheduling cycles has the times of its plugins recorded."""


class SchedulerMetrics(Collector):
    """One for each process; its registry has nothing else in it."""

    def __init__(self, *, async_api_calls: bool = False) -> None:
        """The metrics of asynchronous API calls are there only with `async_api_calls`."""
        self.registry = CollectorRegistry(auto_describe=False)
        self._attempts = defined.SCHEDULE_ATTEMPTS.counter()
        self._attempt_duration = defined.SCHEDULING_ATTEMPT_DURATION.histogram()
        self._algorithm_duration = defined.SCHEDULING_ALGORITHM_DURATION.histogram()
        self._event_handling = defined.EVENT_HANDLING_DURATION.histogram()
        self._victims = defined.PREEMPTION_VICTIMS.histogram()
        self._preemptions = defined.PREEMPTION_ATTEMPTS.counter()
        self._goroutines = defined.GOROUTINES.gauge()
        self._sli_duration = defined.POD_SCHEDULING_SLI_DURATION.histogram()
        self._scheduling_attempts = defined.POD_SCHEDULING_ATTEMPTS.histogram()
        self._after_flush = defined.POD_SCHEDULED_AFTER_FLUSH.counter()
        self._point_duration = defined.FRAMEWORK_EXTENSION_POINT_DURATION.histogram()
        self._plugin_duration = defined.PLUGIN_EXECUTION_DURATION.histogram()
        self._hint_duration = defined.QUEUEING_HINT_EXECUTION_DURATION.histogram()
        self._permit_wait = defined.PERMIT_WAIT_DURATION.histogram()
        self._evaluations = defined.PLUGIN_EVALUATION.counter()
        self._claim_creations = defined.RESOURCE_CLAIM_CREATES.counter()
        self._api_calls = defined.ASYNC_API_CALLS.counter()
        self._api_call_duration = defined.ASYNC_API_CALL_DURATION.histogram()
        self._cycles = 0
        self._families: list[Family] = [
            self._attempts,
            self._attempt_duration,
            self._algorithm_duration,
            self._event_handling,
            self._victims,
            self._preemptions,
            self._goroutines,
            self._sli_duration,
            self._scheduling_attempts,
            self._after_flush,
            self._point_duration,
            self._plugin_duration,
            self._hint_duration,
            self._permit_wait,
            self._evaluations,
            self._claim_creations,
        ]
        if async_api_calls:
            self._families += [self._api_calls, self._api_call_duration]
        self.registry.register(self)

    def include(self, *families: Family) -> None:
        """Adds what others keep to what is exposed."""
        self._families += families

    def attempt(self, result: str, profile: str, duration: int) -> None:
        """An attempt is over; `result` is Success, Unschedulable or Error."""
        label = RESULTS[result]
        self._attempts.inc(label, profile)
        self._attempt_duration.observe_duration(duration, label, profile)

    def algorithm(self, duration: int) -> None:
        """A node was found for a Pod."""
        self._algorithm_duration.observe_duration(duration)

    def scheduled(self, entry: QueuedPod, now: int) -> None:
        """A Pod was bound."""
        attempts = entry.attempts
        self._scheduling_attempts.observe(attempts)
        if entry.initial_attempt is not None:
            label = str(attempts) if attempts < MOST_ATTEMPTS else f"{MOST_ATTEMPTS}+"
            self._sli_duration.observe_duration(now - entry.initial_attempt, label)
        if entry.flushed:
            self._after_flush.inc()

    def records_plugins(self) -> bool:
        """Whether the plugins of the scheduling cycle that begins now are to be told to `plugin`: one of ten are."""
        self._cycles += 1
        return self._cycles % PLUGIN_SAMPLES == 0

    def extension_point(self, point: str, status: str, profile: str, duration: int) -> None:
        """All plugins of an extension point have run, for `duration` nanoseconds; names as `PreFilter`, `Success`.

        A Filter phase without failure is a success, whether or not a node was found.
        """
        if point == "Filter" and status != "Error":
            status = "Success"
        self._point_duration.observe_duration(duration, point, status, profile)

    def plugin(self, plugin: str, point: str, status: str, duration: int) -> None:
        """A plugin has run, for `duration` nanoseconds, in a cycle whose plugins are recorded."""
        self._plugin_duration.observe_duration(duration, plugin, point, status)

    def evaluated(self, plugin: str, point: str, profile: str) -> None:
        """A plugin was asked in PreFilter, Filter, PreScore or Score."""
        self._evaluations.inc(plugin, point, profile)

    def expect(self, plugins: Iterable[str], point: str, profile: str) -> None:
        """Shows how often plugins were asked from the start on, though they were not yet."""
        for plugin in plugins:
            self._evaluations.values.setdefault((plugin, point, profile), 0)

    def permit_wait(self, status: str, duration: int) -> None:
        """A Pod has waited for permission, `duration` nanoseconds."""
        self._permit_wait.observe_duration(duration, status)

    def binding(self, change: int) -> None:
        """A binding cycle began (1) or ended (-1)."""
        self._goroutines.add(change, "binding")

    def preemption_attempt(self) -> None:
        """PostFilter tried to make room."""
        self._preemptions.inc()

    def preemption_victims(self, number: int) -> None:
        """Victims were chosen on a node."""
        self._victims.observe(number)

    def claim_creation(self, result: str) -> None:
        """A claim for extended resources of a Pod was to be created; `result` is success or failure."""
        self._claim_creations.inc(result, "false", "", "Pod")

    def event_handled(self, event: ClusterEvent, duration: int) -> None:
        """An event of the cluster was handled, in `duration` nanoseconds."""
        self._event_handling.observe_duration(duration, event.label)

    def api_call_executed(self, call_type: str, result: str, duration: int) -> None:
        """The API dispatcher made a call of `call_type`; `result` is success or error, `duration` in nanoseconds."""
        self._api_calls.inc(call_type, result)
        self._api_call_duration.observe_duration(duration, call_type, result)

    def timed(self, hints: Hints, stopwatch: Callable[[], int]) -> Hints:
        """The same hints, with the time that they take recorded."""
        return {
            event: [(plugin, self._timed(plugin, hint, stopwatch)) for plugin, hint in hinting]
            for event, hinting in hints.items()
        }

    def _timed(self, plugin: str, hint: HintFunction, stopwatch: Callable[[], int]) -> HintFunction:
        def timed(pod: Pod, happening: Happening) -> Hint:
            began = stopwatch()
            answer = "Error"
            try:
                hoped = hint(pod, happening)
                answer = hoped.value
            finally:
                self._hint_duration.observe_duration(stopwatch() - began, plugin, happening.event.label, answer)
            return hoped

        return timed

    def collect(self) -> Iterator[Metric]:
        """All families as they are now."""
        for family in self._families:
            yield from family.collect()

    def exposition(self) -> bytes:
        """The text format of Prometheus."""
        return generate_latest(self.registry)
