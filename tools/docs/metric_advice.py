"""What to do about a metric that says something is wrong: put into docs/metrics.md beside it."""

from collections.abc import Mapping
from typing import Final


def _runbook(alert: str, page: str) -> str:
    return f"[{alert}](runbooks/{page}.md)"


_LOSING = _runbook("PodtrailLosingSpans", "losing-spans")
_REFUSING = _runbook("PodtrailRefusing", "refusing")
_QUEUE = _runbook("PodtrailQueueFilling", "queue-filling")
_EVICTING = _runbook("PodtrailEvictingUndecided", "evicting-undecided")
_DISK = (
    "free the disk or make it larger; `podtrail_ledger_spans` says what waits meanwhile ([reliability](reliability.md))"
)
_PARTITION = "see what to do in [kafka](kafka.md)"

ADVICE: Final[Mapping[str, str]] = {
    "otelcol_receiver_refused_spans": f"{_REFUSING}: senders keep them and come again",
    "podtrail_receiver_rejected_spans_total": "mend who sends them: the log has what is wrong with the first",
    "podtrail_receiver_spans_without_duration_total": "mend the clocks or the SDK of who sends them",
    "podtrail_receiver_failed_requests_total": "look at `reason`; the log has who it was ([security](security.md))",
    "podtrail_receiver_other_signal_requests_total": "send other signals to a Collector, or ignore it",
    "podtrail_receiver_failed_handshakes_total": "look at `reason`: certificates of one side ([security](security.md))",
    "podtrail_receiver_limited_requests_total": "give the client more (`client_limits`), or have it send less",
    "podtrail_receiver_k8s_pods_watch_failing": "give the ServiceAccount list and watch of Pods; the log has why",
    "podtrail_receiver_kube_scheduler_watch_failing": "give the ServiceAccount list and watch; the log has why",
    "podtrail_receiver_kube_scheduler_attempts_untold": "raise its `-v` ([stock scheduler](stock-scheduler.md))",
    "otelcol_kafka_receiver_offset_lag": "more gateways, up to the number of partitions ([scaling](scaling.md))",
    "otelcol_kafka_receiver_unmarshal_failed_spans": "see who writes what else into the topic; set `dead_letter`",
    "podtrail_kafka_receiver_lost_dead_letters_total": "make the topic of `dead_letter` take such messages",
    "podtrail_kafka_receiver_missing_records_total": "lost: longer retention, or more gateways",
    "podtrail_kafka_receiver_future_records_total": "set the producer's clock",
    "podtrail_kafka_receiver_failed_commits_total": "a few at a rebalance are usual; else look at the brokers",
    "podtrail_kafka_receiver_time_ahead_seconds": "set the producer's clock",
    "podtrail_partition_unreadable_checkpoints_total": _PARTITION,
    "podtrail_partition_failed_checkpoints_total": _PARTITION,
    "podtrail_partition_abandoned_spans_total": "configure the exporter again, or let them go",
    "otelcol_processor_refused_spans": f"{_REFUSING}: more memory, or a sampler that holds less",
    "podtrail_scheduling_attempts_total": f'{_runbook("SchedulerFailing", "scheduler-failing")} for `result="Error"`',
    "podtrail_scheduling_attempt_duration_seconds": _runbook("SchedulerSlow", "scheduler-slow"),
    "otelcol_processor_tail_sampling_sampling_trace_dropped_too_early": f"{_EVICTING}: raise `num_traces`",
    "otelcol_processor_tail_sampling_traces_decided_early": f"{_EVICTING}: raise `maximum_held_mib`",
    "otelcol_processor_tail_sampling_traces_decided_large": "raise `maximum_held_trace_kib` if these matter",
    "otelcol_processor_tail_sampling_traces_dropped_too_large": "raise `maximum_trace_size_bytes` if these matter",
    "otelcol_processor_tail_sampling_sampling_decision_timer_latency": _runbook(
        "PodtrailDecidingLate", "deciding-late"
    ),
    "otelcol_processor_tail_sampling_sampling_policy_evaluation_error": "the log has the policy and the exception",
    "otelcol_processor_tail_sampling_stress_relief_active": "a while is what it is for; if longer, give it more memory",
    "otelcol_processor_tail_sampling_linked_grace_pushed_out": "raise `linked_traces::grace_max_bytes`",
    "otelcol_processor_tail_sampling_linked_quota_hits": "raise `linked_traces::max_linked_traces` if they matter",
    "otelcol_processor_tail_sampling_linked_forgotten_early": "raise `linked_traces::max_remembered`",
    "otelcol_processor_tail_sampling_decisions_forgotten": "raise `decision_memory` if late spans matter",
    "otelcol_processor_tail_sampling_target_rate_keys_folded": "raise `max_keys`, or choose a coarser key",
    "podtrail_python_policy_errors_total": "the log has the exception ([python](policies/python.md))",
    "podtrail_python_policy_switched_off": "make it faster or raise its `budget`, then reload",
    "otelcol_processor_link_stitching_left_early": "raise the processor's bounds on memory",
    "otelcol_processor_link_stitching_late_attempts": "raise `reorder_window`",
    "otelcol_exporter_send_failed_spans": _LOSING,
    "otelcol_exporter_enqueue_failed_spans": f"{_LOSING}; before it comes to that: {_QUEUE}",
    "otelcol_exporter_queue_size": _QUEUE,
    "podtrail_dropped_spans_total": f"{_LOSING}: look at `reason`",
    "podtrail_dropped_decisions_total": _LOSING,
    "podtrail_ledger_spans": f'{_runbook("PodtrailLedgerUnbalanced", "ledger-unbalanced")} for `term="missing"`',
    "podtrail_component_failures_total": "the log has the exception with its trace: report it",
    "otelcol_process_memory_rss": "should stay below the container's limit: `memory_limiter` sees to it",
    "podtrail_loadbalancer_backends_down": "look at that gateway ([load balancing](load-balancing.md))",
    "podtrail_loadbalancer_forgotten_traces_total": "raise `grace_traces`",
    "podtrail_loadbalancer_moved_spans_total": "traces were parted: see which gateway was down, and why",
    "otelcol_extension_file_storage_failures": _DISK,
    "otelcol_extension_file_storage_failing": _DISK,
    "otelcol_extension_file_storage_damages": "the log has file and place; what is readable was read. See to the disk",
    "otelcol_extension_file_storage_damaged_bytes": "as `…_damages`",
    "otelcol_extension_file_storage_unreadable_entries": "as `…_damages`",
    "otelcol_extension_file_storage_abandoned_spans": "configure the exporter again, or let them go",
    "otelcol_extension_file_storage_missing_checkpoints": "once after a checkpoint was removed: nothing",
    "podtrail_webhook_refused_requests_total": "look at `reason` ([webhook](webhook.md))",
    "podtrail_webhook_certificate_loads_total": '`result="failed"`: the old one serves on; see to the Secret',
}
