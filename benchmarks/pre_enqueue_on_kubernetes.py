"""What KEP-5501 costs bindings and attempts on a real API server: a backlog beside Pods that PreEnqueue holds back.

2,000 Pods that can be bound, 500 behind scheduling gates and 500 that wait for a ResourceClaim, on 100 nodes.
podtrail-scheduler runs with asynchronous API calls and the feature off and on, in turns; the backlog lasts beyond the
delay of five seconds, so that statuses and Events are written while Pods are bound. The claims: with the feature on at
least 0.9 of the Pods a second, one patch for each Pod that waits for a claim, none for those behind gates, and not one
attempt more. CPU is counted until the last patch. Needs the binaries that tests/envtest/build.sh builds.
"""

import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

from prometheus_client.parser import text_string_to_metric_families

from benchmarks.scheduler_on_kubernetes import COLLECTION, DEADLINE, SIZE, Bindings, ours, pod
from tests.envtest.control_plane import DEFAULT_ASSETS, ControlPlane

NODES, PODS, HELD, ROUNDS = 100, 2_000, 500, 3
LEAST = 0.9
ASYNC = "--feature-gates=SchedulerAsyncAPICalls=true"
WAYS = {"off": (ASYNC, 0), "on": (f"{ASYNC},SchedulerPreEnqueuePodStatus=true", HELD)}
"""Flags, and how many patches are to come."""


class Figures(NamedTuple):
    """Of one run."""

    rate: float
    """Pods bound a second."""
    cpu: float
    """Milliseconds of the scheduler's a Pod bound."""
    attempts: int
    patches: int
    """Of Pods' statuses, by the API server's count."""


def pods() -> Iterator[dict[str, Any]]:
    """Those that are held back first, so that they are known when the backlog is worked off."""
    for number in range(HELD):
        gated, claiming = pod(f"gated-{number}", "ours"), pod(f"claiming-{number}", "ours")
        gated["spec"]["schedulingGates"] = [{"name": "example.com/wait"}]
        claiming["spec"]["resourceClaims"] = [{"name": "gpu", "resourceClaimName": "none"}]
        yield from (gated, claiming)
    for number in range(PODS):
        yield pod(f"free-{number}", "ours")


def total(text: str, name: str, **labels: str) -> int:
    """The sum of a metric's samples that have these labels."""
    return sum(
        int(sample.value)
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if sample.name == name and labels.items() <= sample.labels.items()
    )


def patches(plane: ControlPlane) -> int:
    """How many patches of Pods' statuses there were."""
    text = str(plane.api.get("/metrics"))
    return total(text, "apiserver_request_total", resource="pods", subresource="status", verb="PATCH")


def measure(plane: ControlPlane, flags: str, awaited: int) -> Figures:
    """Has the scheduler empty the backlog once, and write as many statuses."""
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda wanted: plane.api.create(COLLECTION, wanted), pods()))
    version = plane.api.get(f"{COLLECTION}?limit=1")["metadata"]["resourceVersion"]
    bindings, before = Bindings(plane, version, PODS), patches(plane)
    with ours(plane, flags) as scheduler:
        rate = bindings.rate()
        until = time.monotonic() + DEADLINE
        while patches(plane) - before < awaited and time.monotonic() < until:
            time.sleep(0.5)
        cpu, attempts = scheduler.cpu(), total(scheduler.metrics(), "scheduler_schedule_attempts_total")
        patched = patches(plane) - before
    plane.api.delete(COLLECTION)
    return Figures(rate, 1e3 * cpu / PODS, attempts, patched)


def main() -> int:
    """Prints the figures of each round and their ratios; 1 when a claim does not hold."""
    if not (DEFAULT_ASSETS / "kube-apiserver").is_file():
        sys.exit(f"needs etcd and kube-apiserver in {DEFAULT_ASSETS}: tests/envtest/build.sh")
    ratios, held = [], True
    with tempfile.TemporaryDirectory() as folder:
        plane = ControlPlane(DEFAULT_ASSETS, Path(folder), apiserver=["--max-requests-inflight=4000"])
        plane.start()
        try:
            with ThreadPoolExecutor(8) as pool:
                list(pool.map(lambda number: plane.api.node(f"n{number}", SIZE), range(NODES)))
            for number in range(ROUNDS):
                order = list(WAYS) if number % 2 else list(WAYS)[::-1]
                found = {name: measure(plane, *WAYS[name]) for name in order}
                for name, each in sorted(found.items()):
                    print(
                        f"{name:3} {each.rate:5.0f} Pods/s, {each.cpu:5.2f} ms CPU a Pod, {each.attempts} attempts, "
                        f"{each.patches} patches",
                        flush=True,
                    )
                on, off = found["on"], found["off"]
                ratios.append(on.rate / off.rate)
                held = held and on.attempts == off.attempts and on.patches == HELD and off.patches == 0
        finally:
            plane.stop()
    held = held and statistics.median(ratios) >= LEAST
    print(
        f"on to off: {min(ratios):.2f} / {statistics.median(ratios):.2f} of the Pods a second, claimed {LEAST}, "
        f"attempts and patches as claimed: {'holds' if held else 'DOES NOT HOLD'}"
    )
    return 0 if held else 1


if __name__ == "__main__":
    sys.exit(main())
