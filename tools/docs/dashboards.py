"""`docker/monitoring/dashboards/`: Grafana's JSON, from what each panel asks for."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

_SOURCE: Final = {"type": "prometheus", "uid": "${datasource}"}
_WIDTH: Final = 24
_SCHEMA: Final = 41
"""Of Grafana 12; newer ones take it up."""


class Panel(NamedTuple):
    """What is shown, and what Prometheus is asked for it: queries with their legends."""

    title: str
    about: str
    queries: Sequence[tuple[str, str]]
    unit: str = "short"
    kind: str = "timeseries"
    width: int = 8


_HERE: Final = '{job="podtrail", instance=~"$instance"}'
_SUCCESS: Final = '{job="podtrail", instance=~"$instance", result="Success"}'
_INSIDE: Final = '{job="podtrail", instance=~"$instance", term=~"in_memory|in_queue"}'
_OF_ALL: Final = "sum(rate(podtrail_scheduling_attempts_total{}[$__rate_interval]))"
_QUANTILES: Final = ((0.5, "median"), (0.9, "9 of 10"), (0.99, "99 of 100"))
_SAMPLER: Final = "otelcol_processor_tail_sampling_"
_HEIGHT: Final = 8


def _quantiles(metric: str) -> Sequence[tuple[str, str]]:
    buckets = f"sum by (le) (rate({metric}_bucket{_HERE}[$__rate_interval]))"
    return [(f"histogram_quantile({share}, {buckets})", name) for share, name in _QUANTILES]


def _rate(metric: str, by: str, **matching: str) -> str:
    labels = "".join(f', {label}="{value}"' for label, value in matching.items())
    return f'sum by ({by}) (rate({metric}{{job="podtrail", instance=~"$instance"{labels}}}[$__rate_interval]))'


SCHEDULING: Final = (
    Panel("Attempts", "Scheduling attempts in a second, by result.",
          [(_rate("podtrail_scheduling_attempts_total", "result"), "{{result}}")], "ops", width=16),
    Panel("Attempts that failed", "Share of attempts that did not end with success.",
          [(f"1 - ({_OF_ALL.format(_SUCCESS)} or vector(0)) / {_OF_ALL.format(_HERE)}", "failed")],
          "percentunit", "stat"),
    Panel("Pods that wait", "Pods whose latest attempt failed, under each plugin whose no it failed for.",
          [(f"sum by (plugin) (podtrail_scheduling_pending_pods{_HERE})", "{{plugin}}")], width=12),
    Panel("Longest wait", "How long the first of the Pods that wait for a plugin has waited.",
          [(f"time() - min by (plugin) (podtrail_scheduling_pending_since_timestamp_seconds{_HERE})", "{{plugin}}")],
          "s", width=12),
    Panel("How long attempts take", "From the start of an attempt to its end. Dots are traces.",
          _quantiles("podtrail_scheduling_attempt_duration_seconds"), "s", width=12),
    Panel("How long attempts take, all", "How many attempts took how long.",
          [(f"sum by (le) (increase(podtrail_scheduling_attempt_duration_seconds_bucket{_HERE}[$__rate_interval]))",
            "{{le}}")], "s", "heatmap", 12),
    Panel("Refusals by plugin", "Attempts in a second that failed for a plugin's no, to nodes or to the bind.",
          [(_rate("podtrail_scheduling_rejections_total", "plugin"), "{{plugin}}")], "ops"),
    Panel("Nodes refused by plugin", "Nodes in a second that a plugin said no to, also in attempts that found another.",
          [(_rate("podtrail_scheduling_rejected_nodes_total", "plugin"), "{{plugin}}")], "ops"),
    Panel("How long Pods wait in the queue", "From the queue's view, before an attempt.",
          _quantiles("podtrail_scheduling_queue_wait_seconds"), "s"),
)  # fmt: skip

PODTRAIL: Final = (
    Panel("Spans in", "Spans in a second that receivers took, and that senders have to bring again.",
          [(_rate("otelcol_receiver_accepted_spans", "receiver"), "{{receiver}}"),
           (_rate("otelcol_receiver_refused_spans", "receiver"), "{{receiver}} refused")], "ops"),
    Panel("Spans out", "Spans in a second that exporters delivered, or could not.",
          [(_rate("otelcol_exporter_sent_spans", "exporter"), "{{exporter}}"),
           (_rate("otelcol_exporter_send_failed_spans", "exporter"), "{{exporter}} failed"),
           (_rate("otelcol_exporter_enqueue_failed_spans", "exporter"), "{{exporter}} no room")], "ops"),
    Panel("Spans lost", "Spans in a second that will not arrive, by reason.",
          [(_rate("podtrail_dropped_spans_total", "exporter, reason"), "{{exporter}} {{reason}}")], "ops"),
    Panel("Ledger: inside", "Spans that wait for a decision or for their backend.",
          [(f"sum by (exporter, term) (podtrail_ledger_spans{_INSIDE})", "{{exporter}} {{term}}")]),
    Panel("Ledger: missing", "Spans that are nowhere: 0 in a sound pipeline.",
          [('sum by (exporter) (podtrail_ledger_spans{job="podtrail", instance=~"$instance", term="missing"})',
            "{{exporter}}")], kind="stat"),
    Panel("Queues", "How full the sending queues are.",
          [(f"otelcol_exporter_queue_size{_HERE} / otelcol_exporter_queue_capacity{_HERE}", "{{exporter}}")],
          "percentunit"),
    Panel("Decisions", "Traces decided in a second, by decision.",
          [(_rate(_SAMPLER + "global_count_traces_sampled", "decision"), "{{decision}}")], "ops"),
    Panel("Kept by policy", "Traces in a second that a policy said yes to.",
          [(_rate(_SAMPLER + "count_traces_sampled", "policy", sampled="true"), "{{policy}}")], "ops"),
    Panel("Traces undecided", "Traces in memory.",
          [(f"sum by (instance) ({_SAMPLER}sampling_traces_on_memory{_HERE})", "{{instance}}")]),
    Panel("How long decisions take", "Milliseconds that the decisions due in one second take.",
          _quantiles(_SAMPLER + "sampling_decision_timer_latency"), "ms"),
    Panel("Decided before their time", "Traces in a second that were let go or decided early, for want of room.",
          [(_rate(_SAMPLER + "sampling_trace_dropped_too_early", "instance"), "{{instance}} let go"),
           (_rate(_SAMPLER + "traces_decided_early", "instance"), "{{instance}} decided early")], "ops"),
    Panel("What policies cost", "Microseconds in a second that a policy takes.",
          [(_rate(_SAMPLER + "sampling_policy_execution_time_sum", "policy"), "{{policy}}")], "µs"),
    Panel("Memory", "Resident memory.", [(f"otelcol_process_memory_rss{_HERE}", "{{instance}}")], "bytes"),
    Panel("CPU", "Cores in use. One process keeps one busy.",
          [(f"rate(otelcol_process_cpu_seconds{_HERE}[$__rate_interval])", "{{instance}}")]),
    Panel("Up since", "How long it has been running.",
          [(f"otelcol_process_uptime{_HERE}", "{{instance}}")], "s", "stat"),
)  # fmt: skip


def files() -> Mapping[str, str]:
    """Return the dashboards' JSON, by file name."""
    made = {
        "podtrail-scheduling.json": _dashboard("podtrail-scheduling", "Scheduling", SCHEDULING),
        "podtrail.json": _dashboard("podtrail", "podtrail", PODTRAIL),
    }
    return {name: json.dumps(dashboard, indent=2, ensure_ascii=False) + "\n" for name, dashboard in made.items()}


def _dashboard(uid: str, title: str, panels: Sequence[Panel]) -> Mapping[str, Any]:
    return {
        "uid": uid,
        "title": title,
        "tags": ["podtrail"],
        "schemaVersion": _SCHEMA,
        "editable": True,
        "refresh": "30s",
        "time": {"from": "now-1h", "to": "now"},
        "templating": {
            "list": [
                {"name": "datasource", "label": "Data source", "type": "datasource", "query": "prometheus"},
                {
                    "name": "instance",
                    "label": "Instance",
                    "type": "query",
                    "datasource": _SOURCE,
                    "query": 'label_values(up{job="podtrail"}, instance)',
                    "refresh": 2,
                    "multi": True,
                    "includeAll": True,
                    "allValue": ".*",
                    "current": {"text": "All", "value": "$__all"},
                },
            ]
        },
        "panels": list(_laid_out(panels)),
    }


def _laid_out(panels: Sequence[Panel]) -> Sequence[Mapping[str, Any]]:
    made: list[Mapping[str, Any]] = []
    x = y = 0
    for number, panel in enumerate(panels, 1):
        if x + panel.width > _WIDTH:
            x, y = 0, y + _HEIGHT
        made.append(_panel(panel, number, {"x": x, "y": y, "w": panel.width, "h": _HEIGHT}))
        x += panel.width
    return made


def _panel(panel: Panel, number: int, place: Mapping[str, int]) -> Mapping[str, Any]:
    exemplars = panel.kind == "timeseries" and "_bucket" in panel.queries[0][0]
    targets = [
        {
            "refId": chr(ord("A") + at),
            "datasource": _SOURCE,
            "expr": expr,
            "legendFormat": legend,
            "exemplar": exemplars,
            **({"format": "heatmap"} if panel.kind == "heatmap" else {}),
        }
        for at, (expr, legend) in enumerate(panel.queries)
    ]
    return {
        "id": number,
        "type": panel.kind,
        "title": panel.title,
        "description": panel.about,
        "datasource": _SOURCE,
        "gridPos": place,
        "fieldConfig": {"defaults": {"unit": panel.unit, "min": 0}, "overrides": []},
        "targets": targets,
        "options": {"calculate": False} if panel.kind == "heatmap" else {},
    }
