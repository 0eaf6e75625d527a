"""link_stitching with BENCH_PODS Pods (200,000), one after the other, its memories small: it stays as large as it is.

Half of the names come back every quarter of a second, with another Pod.
"""

import gc
import os
import re
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal

from podtrail_processors.link_stitching.config import Config
from podtrail_processors.link_stitching.lifecycle.config import LifecycleSettings
from podtrail_processors.link_stitching.processor import LinkStitching

from podtrail.component import Context
from podtrail.otlp import Batch, Group, SpanView, Value, encode_span, frame, resource_header, scope_header, split

_MS: Final = 1_000_000
_START: Final = 1_790_000_000_000 * _MS
_NAMES: Final = 50
_PACE: Final = 5 * _MS
_PARTS: Final = 10
_SCOPE: Final = scope_header("churn")
_RESOURCES: Final = {
    service: resource_header({"service.name": service, "host.name": "node-1"})
    for service in ("kube-scheduler", "apiserver", "kubelet")
}


def _made(service: str, part: int, pod: int, name: str, at: int, told: Mapping[str, Value], kind: int = 1) -> Group:
    """Return a trace of one span, whose ids say of which Pod it is."""
    trace_id = bytes([part]) + pod.to_bytes(15, "big")
    raw = encode_span(
        trace_id=trace_id, span_id=trace_id[-8:], name=name, start=at, end=at + _MS, kind=kind, attributes=told
    )
    return Group(_RESOURCES[service], _SCOPE, trace_id, frame([raw]), 1)


def story(pod: int, at: int) -> list[Group]:
    """Return spans of a Pod: its creation (not of each), attempt, binding and sync."""
    name, uid = f"web-{pod % _NAMES}" if pod % 2 else f"only-{pod}", f"00000000-0000-4000-8000-{pod:012x}"
    place: dict[str, Value] = {"k8s.pod.uid": uid, "k8s.namespace.name": "default", "k8s.pod.name": name}
    path = f"/api/v1/namespaces/default/pods/{name}/binding"
    key: dict[str, Value] = {"key": f"/pods/default/{name}", "audit-id": uid}
    attempt: dict[str, Value] = {**place, "k8s.pod.namespace": "default", "scheduler.result": "Success"}
    return [
        *([_made("apiserver", 1, pod, "Create etcd3", at, key)] if pod % 3 else []),
        _made("kube-scheduler", 2, pod, "SchedulePod", at + _MS, attempt),
        _made("apiserver", 3, pod, "POST binding", at + _MS + 1, {"url.path": path}, 2),
        _made("kubelet", 4, pod, "syncPod", at + 3 * _MS, place),
    ]


def resident() -> int:
    """Return the resident memory of this process in bytes."""
    return int(re.findall(r"VmRSS:\s+(\d+) kB", Path("/proc/self/status").read_text())[0]) << 10


@dataclass
class Churn:
    """A processor through which Pods go, and what was seen of it."""

    mode: Literal["link", "lifecycle"]
    links: int = 0
    wrong: int = 0
    estimates: list[int] = field(default_factory=list)
    """What it takes by its own estimate, now and then."""

    def __post_init__(self) -> None:
        self.context = Context(id="link_stitching")
        config = Config(
            mode=self.mode,
            reorder_wait=100 * _MS,
            max_pods=200,
            max_attempts=400,
            max_traces=1000,
            max_waiting_links=200,
            lifecycle=LifecycleSettings(max_pods=200),
        )
        self._stitching = LinkStitching(config, self.context)

    def run(self, pods: range) -> None:
        """Let Pods go through."""
        for pod in pods:
            now = _START + pod * _PACE
            for group in story(pod, now):
                self._left(self._stitching.add(Batch([group], now), now).out)
            while (due := self._stitching.deadline()) is not None and due <= now:
                self._left(self._stitching.expire(due, 1000))
        (size,) = self.context.metrics.snapshot()["otelcol_processor_link_stitching_memory_bytes"].values()
        self.estimates.append(int(size))

    def end(self, pods: int) -> None:
        """Let go of what is held."""
        self._left(self._stitching.drain(_START + pods * _PACE))

    def _left(self, batches: Iterable[Batch]) -> None:
        for view in (SpanView(raw) for batch in batches for group in batch.groups for raw in split(group.spans)):
            source = view.parent_span_id if view.name == "podtrail.amendment" else view.span_id
            if view.trace_id[0] in range(1, 5) and view.trace_id[1:7] == bytes(6):
                self.links += len(view.links)
                self.wrong += sum(link.span_id != source for link in view.links)

    def count(self, metric: str, **labels: str) -> int:
        """Return the sum of a metric over all that has these labels."""
        found = self.context.metrics.snapshot().get(f"otelcol_processor_link_stitching_{metric}", {})
        wanted = {f"{key}={value}" for key, value in labels.items()}
        return int(sum(value for label, value in found.items() if wanted <= set(label.split(","))))


def main() -> None:
    """Print the figures of one run."""
    pods = int(os.environ.get("BENCH_PODS", "200000"))
    modes: tuple[Literal["link"], Literal["lifecycle"]] = ("link", "lifecycle")
    for mode in modes:
        churn = Churn(mode)
        began = time.process_time()
        sizes = []
        for part in range(_PARTS):
            churn.run(range(pods * part // _PARTS + 1, pods * (part + 1) // _PARTS + 1))
            gc.collect()
            sizes.append(resident() >> 20)
        churn.end(pods)
        took = (time.process_time() - began) / pods * 1e6
        grown = " ".join(map(str, sizes))
        print(f"mode: {mode}, {pods:,} Pods: {took:.0f} us each; resident MiB after each tenth: {grown}")
        print(
            f"  {churn.links:,} links, {churn.wrong} of another Pod, {churn.count('unjoined'):,} not made", flush=True
        )
