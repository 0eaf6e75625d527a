"""What tests of podtrail-kube-scheduler share: nodes and Pods of a namespace, and attempts."""

import re
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

from opentelemetry.proto.trace.v1.trace_pb2 import Span

from tests.scheduler.collector import Collector, attributes

ALL = 1_000_000
DEADLINE = 120
RESULTS = {"Success": "scheduled", "Unschedulable": "unschedulable", "Error": "error"}
"""Results of spans, and what the scheduler's counter calls them."""


class Cluster:
    """Nodes and Pods of one namespace."""

    def __init__(self, api: Any, namespace: str) -> None:
        self.api, self.namespace = api, namespace
        self.pods = f"/api/v1/namespaces/{namespace}/pods"

    def nodes(self, number: int, cpu: str = "8") -> None:
        for each in range(number):
            self.api.node(f"{self.namespace}-{each}", {"cpu": cpu}, labels={"for": self.namespace})

    def create(self, name: str, cpu: str = "100m", annotations: Any = None, **spec: Any) -> Any:
        container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}
        whole = {"schedulerName": self.namespace, "containers": [container], "nodeSelector": {"for": self.namespace}}
        metadata = {"name": name, "annotations": annotations or {}}
        return self.api.create(self.pods, {"metadata": metadata, "spec": whole | spec})

    def bound(self, name: str) -> Any:
        return until(lambda: self.api.get(f"{self.pods}/{name}"), lambda pod: pod["spec"].get("nodeName"))


def until(read: Callable[[], Any], true: Callable[[Any], Any] = bool) -> Any:
    deadline = time.monotonic() + DEADLINE
    while not true(found := read()):
        assert time.monotonic() < deadline, f"still {str(found)[:2000]}"
        time.sleep(0.02)
    return found


def roots(collector: Collector) -> list[Span]:
    return [span for span in collector.spans if span.name == "SchedulePod"]


def counted(metrics: str) -> Counter[str]:
    """Attempts by result, as the scheduler's metrics count them."""
    name = re.compile(r'scheduler_schedule_attempts_total\{profile="[^"]*",result="(\w+)"\} (\d+)')
    return Counter({found[1]: int(found[2]) for found in name.finditer(metrics)})


def told(attempts: list[Span]) -> Counter[str]:
    """Attempts by result, as spans tell them."""
    return Counter(RESULTS[str(attributes(root)["scheduler.result"])] for root in attempts)
