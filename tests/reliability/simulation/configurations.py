"""The configurations of the simulation: YAML as users write it, receivers and exporters replaced by ones in memory."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any, Final

from podtrail.component import Context, Factory
from podtrail.config import Document
from podtrail.pipeline.settings import ComponentSettings, Settings, read_settings
from tests.reliability.simulation.scenario import Setup

_SAMPLER = """
  tail_sampling:
    decision_wait: {wait}
    decision_wait_after_root_received: {after_root}
    num_traces: {traces}
    record_reason: true
    decision_cache: {{sampled_cache_size: 100, non_sampled_cache_size: 100}}
    {more}
    policies:
      - {{name: failed, type: status_code, status_code: {{status_codes: [ERROR]}}}}
      - {{name: attempts, type: scheduling_result, scheduling_result: {{results: [Unschedulable]}}}}
      - {{name: share, type: probabilistic, probabilistic: {{sampling_percentage: {share}}}}}
      - {{name: few, type: rate_limiting, rate_limiting: {{spans_per_second: {rate}}}}}
"""
_LINKED = "linked_traces: {keep: true, grace_period: 8s}"


def _sampler(more: str = "rescue_late_errors: true", **settings: Any) -> str:
    usual = {"wait": "3s", "after_root": "1s", "traces": 1000, "share": 30, "rate": 4}
    return _SAMPLER.format(more=more, **(usual | settings))


CHAINS: Final[Mapping[str, tuple[tuple[str, str], ...]]] = {
    # By name: what variants there are, each its processors' settings and the order of the processors.
    "passing": (("", "[]"), ("  batch: {timeout: 2s, send_batch_size: 20}\n", "[batch]")),
    "batch": (
        ("  batch: {timeout: 500ms, send_batch_size: 8, send_batch_max_size: 8}\n", "[batch]"),
        ("  batch: {timeout: 3s, send_batch_size: 30}\n", "[batch]"),
    ),
    "sampler": (
        (_sampler(), "[tail_sampling]"),
        (_sampler(wait="6s", after_root="0s", share=10, rate=2), "[tail_sampling]"),
        (_sampler(traces=5, share=60), "[tail_sampling]"),
    ),
    "story": (
        (_sampler(_LINKED) + "  link_stitching: {reorder_wait: 2s}\n", "[tail_sampling, link_stitching]"),
        (_sampler(_LINKED, wait="5s") + "  link_stitching: {reorder_wait: 1s}\n", "[tail_sampling, link_stitching]"),
    ),
}
PIPELINES_OF_TWO: Final = frozenset({"sampler", "story"})
"""Chains beside which another pipeline brings everything to the archive."""

_TEMPLATE = """
receivers:
  otlp: {{protocols: {{grpc: {{}}}}}}
{processors}
exporters:
{exporters}
{extensions}
service:
  {listed}
  telemetry: {{metrics: {{level: none}}}}
  pipelines:
{pipelines}
"""
_EXPORTER = """  {id}:
    endpoint: http://localhost:{port}
    timeout: 5s
    retry_on_failure: {{initial_interval: 1s, max_interval: 8s, max_elapsed_time: {give_up}}}
    sending_queue: {{num_consumers: {consumers}, queue_size: {size}, sizer: items, block_on_overflow: true{storage}}}
"""


def text(setup: Setup) -> str:
    """Return a configuration as a user would write it."""
    settings, order = CHAINS[setup.chain][setup.variant]
    ids = ["otlp_grpc/backend", *(["otlp_grpc/archive"] if setup.chain in PIPELINES_OF_TWO else [])]
    exporters = "".join(
        _EXPORTER.format(
            id=id,
            port=4400 + at,
            give_up="60s" if setup.gives_up else "0s",
            consumers=setup.consumers,
            size=setup.queue_size,
            storage=", storage: file_storage" if setup.stored_queues else "",
        )
        for at, id in enumerate(ids)
    )
    durable = ", durable: file_storage" if setup.durable else ""
    orders = [("traces", order), ("traces/all", "[]")]
    pipelines = "".join(
        f"    {name}: {{receivers: [otlp], processors: {processors}, exporters: [{id}]{durable}}}\n"
        for (name, processors), id in zip(orders, ids, strict=False)
    )
    stores = setup.durable or setup.stored_queues
    fsync = str(setup.fsync).lower()
    storage = f"extensions:\n  file_storage: {{directory: {FOLDER}, fsync: {fsync}, create_directory: true}}\n"
    return _TEMPLATE.format(
        processors=f"processors:\n{settings}" if settings else "",
        exporters=exporters,
        extensions=storage if stores else "",
        listed="extensions: [file_storage]" if stores else "",
        pipelines=pipelines,
    )


FOLDER: Final = "/var/lib/podtrail"
"""Where the simulated disk has the store."""


@lru_cache(maxsize=256)
def _read(configuration: str) -> Settings:
    return read_settings(Document.from_text(configuration))


class Components:
    """Has components in memory take the place of those that a configuration names."""

    def __init__(
        self,
        receiver: Callable[[Any, Context], Any],
        exporter: Callable[[Any, Context], Any],
        extension: Callable[[Any, Context], Any],
    ) -> None:
        self._made = {"receivers": receiver, "exporters": exporter, "extensions": extension}
        self._factories: dict[str, Factory] = {}

    def settings(self, setup: Setup) -> Settings:
        """Return the settings of a setup; what is configured alike is equal."""
        settings = _read(text(setup))
        return replace(
            settings,
            receivers={id: self._replaced("receivers", c) for id, c in settings.receivers.items()},
            exporters={id: self._replaced("exporters", c) for id, c in settings.exporters.items()},
            extensions={id: self._replaced("extensions", c) for id, c in settings.extensions.items()},
        )

    def _replaced(self, section: str, component: ComponentSettings) -> ComponentSettings:
        if section not in self._factories:
            self._factories[section] = replace(component.factory, create=self._made[section])
        return replace(component, factory=self._factories[section])
