# ruff: noqa: E501 - help texts are kube-scheduler's, as it exposes them
"""What each metric is called, says and counts in (kube-scheduler v1.37, `pkg/scheduler/metrics`)."""

from collections.abc import Sequence
from typing import NamedTuple

from .families import CounterVec, GaugeVec, HistogramVec, Read, ReadVec, exponential_buckets

ATTEMPT_BUCKETS = exponential_buckets(0.001, 2, 15)
POINT_BUCKETS = exponential_buckets(0.0001, 2, 12)
PLUGIN_BUCKETS = exponential_buckets(0.00001, 1.5, 20)


class Definition(NamedTuple):
    """Name, stability, help, labels and, for histograms, upper bounds."""

    name: str
    stability: str
    text: str
    labels: Sequence[str] = ()
    buckets: Sequence[float] = ()

    @property
    def help(self) -> str:
        """The help text as component-base writes it."""
        return f"[{self.stability}] {self.text}"

    def counter(self) -> CounterVec:
        """A counter of this definition."""
        return CounterVec(self.name, self.help, self.labels)

    def gauge(self) -> GaugeVec:
        """A gauge of this definition."""
        return GaugeVec(self.name, self.help, self.labels)

    def histogram(self) -> HistogramVec:
        """A histogram of this definition."""
        return HistogramVec(self.name, self.help, self.labels, self.buckets)

    def of(self, read: Read) -> ReadVec:
        """A counter or gauge of this definition whose values `read` gives."""
        return ReadVec(self.name, self.help, self.labels, read)


SCHEDULE_ATTEMPTS = Definition(
    "scheduler_schedule_attempts_total",
    "STABLE",
    "Number of attempts to schedule pods, by the result. 'unschedulable' means a pod could not be scheduled, while 'error' means an internal scheduler problem.",
    ("result", "profile"),
)
EVENT_HANDLING_DURATION = Definition(
    "scheduler_event_handling_duration_seconds",
    "ALPHA",
    "Event handling latency in seconds.",
    ("event",),
    POINT_BUCKETS,
)
SCHEDULING_ATTEMPT_DURATION = Definition(
    "scheduler_scheduling_attempt_duration_seconds",
    "STABLE",
    "Scheduling attempt latency in seconds (scheduling algorithm + binding)",
    ("result", "profile"),
    ATTEMPT_BUCKETS,
)
SCHEDULING_ALGORITHM_DURATION = Definition(
    "scheduler_scheduling_algorithm_duration_seconds",
    "BETA",
    "Scheduling algorithm latency in seconds",
    (),
    ATTEMPT_BUCKETS,
)
PREEMPTION_VICTIMS = Definition(
    "scheduler_preemption_victims",
    "STABLE",
    "Number of selected preemption victims for preemption initiated by a single pod",
    (),
    exponential_buckets(1, 2, 7),
)
PREEMPTION_ATTEMPTS = Definition(
    "scheduler_preemption_attempts_total", "STABLE", "Total preemption attempts in the cluster till now"
)
PENDING_PODS = Definition(
    "scheduler_pending_pods",
    "STABLE",
    "Number of pending pods, by the queue type. 'active' means number of pods in activeQ; 'backoff' means number of pods in backoffQ; 'unschedulable' means number of pods in unschedulableEntities that the scheduler attempted to schedule and failed; 'gated' is the number of unschedulable pods that the scheduler never attempted to schedule because they are gated; 'incomplete' means number of pods in incompletePodGroupPods; 'pending' means number of pods in pendingPodGroupPods.",
    ("queue",),
)
QUEUED_ENTITIES = Definition(
    "scheduler_queued_entities",
    "ALPHA",
    "Number of queued scheduling entities ('pod' or 'podgroup'; 'pod' stands for individual pods that are not members of any podgroup) by the queue type. 'active' means number of entities in activeQ; 'backoff' means number of entities in backoffQ; 'unschedulable' means number of entities in unschedulableEntities that the scheduler attempted to schedule and failed; 'gated' is the number of unschedulable entities that the scheduler never attempted to schedule because they are gated.",
    ("queue", "type"),
)
INFLIGHT_EVENTS = Definition(
    "scheduler_inflight_events", "ALPHA", "Number of events currently tracked in the scheduling queue.", ("event",)
)
GOROUTINES = Definition(
    "scheduler_goroutines",
    "BETA",
    "Number of running goroutines split by the work they do such as binding.",
    ("operation",),
)
POD_SCHEDULING_SLI_DURATION = Definition(
    "scheduler_pod_scheduling_sli_duration_seconds",
    "BETA",
    "E2e latency for a pod being scheduled, from the time the pod enters the scheduling queue and might involve multiple scheduling attempts.",
    ("attempts",),
    exponential_buckets(0.01, 2, 20),
)
POD_SCHEDULING_ATTEMPTS = Definition(
    "scheduler_pod_scheduling_attempts",
    "STABLE",
    "Number of attempts to successfully schedule a pod.",
    (),
    exponential_buckets(1, 2, 5),
)
POD_SCHEDULED_AFTER_FLUSH = Definition(
    "scheduler_pod_scheduled_after_flush_total",
    "ALPHA",
    "Number of pods that were successfully scheduled after being flushed from unschedulableEntities due to timeout. This metric helps detect potential queueing hint misconfigurations or event handling issues.",
)
FRAMEWORK_EXTENSION_POINT_DURATION = Definition(
    "scheduler_framework_extension_point_duration_seconds",
    "STABLE",
    "Latency for running all plugins of a specific extension point.",
    ("extension_point", "status", "profile"),
    POINT_BUCKETS,
)
PLUGIN_EXECUTION_DURATION = Definition(
    "scheduler_plugin_execution_duration_seconds",
    "BETA",
    "Duration for running a plugin at a specific extension point.",
    ("plugin", "extension_point", "status"),
    PLUGIN_BUCKETS,
)
QUEUEING_HINT_EXECUTION_DURATION = Definition(
    "scheduler_queueing_hint_execution_duration_seconds",
    "ALPHA",
    "Duration for running a queueing hint function of a plugin.",
    ("plugin", "event", "hint"),
    PLUGIN_BUCKETS,
)
QUEUE_INCOMING_PODS = Definition(
    "scheduler_queue_incoming_pods_total",
    "STABLE",
    "Number of pods added to scheduling queues by event and queue type.",
    ("queue", "event"),
)
QUEUE_INCOMING_ENTITIES = Definition(
    "scheduler_queue_incoming_entities_total",
    "ALPHA",
    "Number of scheduling entities added to scheduling queues by event, queue type, and entity type. Entity types are either 'pod' (for individual pods that are not members of any podgroup) or 'podgroup'.",
    ("queue", "event", "type"),
)
PERMIT_WAIT_DURATION = Definition(
    "scheduler_permit_wait_duration_seconds", "BETA", "Duration of waiting on permit.", ("result",), ATTEMPT_BUCKETS
)
CACHE_SIZE = Definition(
    "scheduler_cache_size",
    "ALPHA",
    "Number of nodes, pods, and assumed (bound) pods in the scheduler cache.",
    ("type",),
)
UNSCHEDULABLE_PODS = Definition(
    "scheduler_unschedulable_pods",
    "BETA",
    "The number of unschedulable pods broken down by plugin name. A pod will increment the gauge for all plugins that caused it to not schedule and so this metric have meaning only when broken down by plugin.",
    ("plugin", "profile"),
)
PLUGIN_EVALUATION = Definition(
    "scheduler_plugin_evaluation_total",
    "BETA",
    "Number of attempts to schedule pods by each plugin and the extension point (available only in PreFilter, Filter, PreScore, and Score).",
    ("plugin", "extension_point", "profile"),
)
ASYNC_API_CALLS = Definition(
    "scheduler_async_api_call_execution_total",
    "ALPHA",
    "Total number of API calls executed by the async dispatcher.",
    ("call_type", "result"),
)
ASYNC_API_CALL_DURATION = Definition(
    "scheduler_async_api_call_execution_duration_seconds",
    "ALPHA",
    "Duration in seconds for executing API call in the async dispatcher.",
    ("call_type", "result"),
    ATTEMPT_BUCKETS,
)
PENDING_ASYNC_API_CALLS = Definition(
    "scheduler_pending_async_api_calls",
    "ALPHA",
    "Number of API calls currently pending in the async queue.",
    ("call_type",),
)
RESOURCE_CLAIM_CREATES = Definition(
    "dynamic_resource_allocation_resourceclaim_creates_total",
    "ALPHA",
    "Number of ResourceClaims creation requests, categorized by creation status, admin access, and owning API group and kind (either Pod or scheduling.k8s.io/PodGroup)",
    ("status", "admin_access", "owner_api_group", "owner_api_kind"),
)
EVENTS_DROPPED = Definition(
    "scheduler_events_dropped_total", "ALPHA", "Events that could not be queued or written, by reason.", ("reason",)
)
CONFIG_RELOADS = Definition(
    "scheduler_config_reloads_total",
    "ALPHA",
    "Configurations read while the scheduler ran, by what became of them: success, unchanged, refused.",
    ("result",),
)
TRACING_SPANS_EXPORTED = Definition(
    "scheduler_tracing_spans_exported_total",
    "ALPHA",
    "Spans of scheduling attempts that were exported, or were not because of an error (KEP-5927).",
    ("result",),
)
TRACING_SPANS_DROPPED = Definition(
    "scheduler_tracing_spans_dropped_total",
    "ALPHA",
    "Spans of scheduling attempts that were lost, by reason: queue_full, export_failed, rejected and shutdown.",
    ("reason",),
)
ANNOTATIONS_INJECTED = Definition(
    "trace_context_annotations_injected_total",
    "ALPHA",
    "How often trace context was to be written into annotations, by what came of it (KEP-5915).",
    ("component", "controller", "resource_kind", "result"),
)
ANNOTATIONS_EXTRACTED = Definition(
    "trace_context_annotations_extracted_total",
    "ALPHA",
    "How often trace context was looked for in annotations, by what came of it (KEP-5915).",
    ("component", "controller", "resource_kind", "result"),
)
