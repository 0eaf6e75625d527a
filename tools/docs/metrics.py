"""`docs/metrics.md`: every metric, from the code that makes it."""

from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from typing import Final

from tools.docs.instruments import Described, described
from tools.docs.metric_advice import ADVICE

_HEAD: Final = """# Metrics

Written by `./dev docs` from the code that makes them. Where they are served: `service::telemetry::metrics`, by default
<http://localhost:8888/metrics>. What asks for OpenMetrics, as Prometheus does by itself, gets exemplars.
Dashboards, alerts and how Prometheus finds podtrail: [monitoring.md](monitoring.md).

- `otelcol_…` are the Collector's metrics, or are named as its components name theirs: no `_total`, milliseconds where
  it has them. What its dashboards ask for works here. Those counters are of type unknown, for the formats want `_total`
  at the end of a counter; `rate()` takes them all the same.
- All others are named as Prometheus advises: base units (seconds, bytes) at the end, `_total` on what only grows.
- An empty last column: nothing to do, it is there to be looked at.

A metric is shown once there is something to show: an exporter's queue when there is one, a policy's votes with the
first. The scheduler's own metrics, under the names of kube-scheduler's, are in [scheduler.md](scheduler.md).
"""

_SECTIONS: Final = (
    ("The process and the ledger", ("src/podtrail/service/", "src/podtrail/component/")),
    ("Receivers", ("receivers/podtrail_receivers/handing_over", "receivers/podtrail_receivers/intake_counters")),
    ("Receiver `scheduler`", ("receivers/podtrail_receivers/scheduler/",)),
    ("Receiver `k8s_pods`", ("receivers/podtrail_receivers/k8s_pods/",)),
    ("Receiver `kafka`", ("receivers/podtrail_receivers/kafka/", "src/podtrail/partitioned/")),
    ("Processor `scheduling_metrics`", ("processors/podtrail_processors/scheduling_metrics/",)),
    ("Processor `tail_sampling`", ("processors/podtrail_processors/tail_sampling/",)),
    ("Processor `link_stitching`", ("processors/podtrail_processors/link_stitching/",)),
    ("Other processors", ("processors/",)),
    ("Exporters and their queues", ("src/podtrail/pipeline/",)),
    ("Exporter `kafka`", ("exporters/podtrail_exporters/kafka/",)),
    ("Exporter `load_balancing`", ("exporters/podtrail_exporters/load_balancing/",)),
    ("Extension `file_storage`", ("src/podtrail/storage/", "src/podtrail/durable/")),
    ("The admission webhook", ("webhook/",)),
)


def page(root: Path) -> str:
    """Return the page.

    Raises:
        ValueError: a metric can't be told from the code, is of no section, or advice is for one that is not there.
    """
    metrics = described(root)
    if gone := sorted(ADVICE.keys() - {metric.name for metric in metrics}):
        raise ValueError(f"tools/docs/metric_advice.py: no such metric: {', '.join(gone)}")
    by_section = sorted(metrics, key=_section)
    parts = [_HEAD]
    for section, found in groupby(by_section, _section):
        parts.append(f"\n## {_SECTIONS[section][0]}\n\n{_table(list(found))}")
    return "".join(parts)


def _section(metric: Described) -> int:
    for number, (_, places) in enumerate(_SECTIONS):
        if metric.where.startswith(places):
            return number
    raise ValueError(f"tools/docs/metrics.py: no section for {metric.where}")


def _table(metrics: Sequence[Described]) -> str:
    rows = ["| metric | type | labels | meaning | what to do |", "|---|---|---|---|---|"]
    for metric in metrics:
        kind = "counter" if metric.name.endswith("_total") else metric.kind
        labels = ", ".join(f"`{label}`" for label in metric.labels)
        cells = (f"`{_shown(metric.name)}`", kind, labels, metric.help, ADVICE.get(metric.name, ""))
        rows.append(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |")
    return "\n".join(rows) + "\n"


def _shown(name: str) -> str:
    """Return a name as Prometheus has it: a dot is an underscore."""
    return name.replace(".", "_")
