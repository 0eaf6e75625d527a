"""examples/several-schedulers/ on a real control plane: three schedulers, an agent beside each, one gateway."""

import itertools
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol

import pytest
import yaml

from tests.examples.several_schedulers import CLUSTER, DEADLINE, Attempt, Site, settings, site, until

__all__ = ["settings", "site"]

pytestmark = pytest.mark.control_plane

NODES = ("control-plane-1", "control-plane-2", "control-plane-3")
ELECTION = {"leaderElect": True, "leaseDuration": "3s", "renewDeadline": "2s", "retryPeriod": "500ms"}


class Schedulers(Protocol):
    """Three replicas, each with its agent."""

    def kill(self, node: str) -> None:
        """Ends the scheduler of a node as a crash does."""


def wander(api: Any, name: str, scheduler: str, schedulers: Schedulers, site: Site) -> Sequence[Attempt]:
    """Has a Pod wait through several attempts, the leader killed between them; returns the attempts."""
    node = f"worker-of-{name}"
    api.node(node, {"cpu": "8"})
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "16"}}}
    spec = {"schedulerName": scheduler, "containers": [container], "nodeSelector": {"disk": name}}
    api.create("/api/v1/namespaces/default/pods", {"metadata": {"name": name}, "spec": spec})

    def more(count: int) -> list[Attempt]:
        found: list[Attempt] = until(
            lambda: site.backend.attempts(name), lambda seen: len(seen) >= count, lambda: site.gateway.log
        )
        return found

    more(1)
    api.patch(f"/api/v1/nodes/{node}", {"metadata": {"labels": {"disk": name}}})  # it fits, but has no room
    first = more(2)
    schedulers.kill(first[0].node)
    second = more(len(first) + 1)  # the next leader finds the Pod waiting, and tries
    size = {"cpu": "64"}
    api.patch(f"/api/v1/nodes/{node}/status", {"status": {"capacity": size, "allocatable": size}})
    more(len(second) + 1)
    whole: list[Attempt] = until(
        lambda: site.backend.attempts(name), lambda seen: seen[-1].result == "Success", lambda: site.gateway.log
    )
    return whole


def is_one_story(attempts: Sequence[Attempt]) -> None:
    """Holds when each attempt is there once, numbered through, of one leader and then of another."""
    assert [attempt.number for attempt in attempts] == list(range(1, len(attempts) + 1))
    assert len({attempt.key for attempt in attempts}) == len(attempts)
    assert {attempt.cluster for attempt in attempts} == {CLUSTER}
    leaders = [node for node, _ in itertools.groupby(attempt.node for attempt in attempts)]
    assert len(leaders) == 2
    assert set(leaders) <= set(NODES)
    assert [attempt.result for attempt in attempts] == [*["Unschedulable"] * (len(attempts) - 1), "Success"]


class OfOurs:
    """podtrail-schedulers, each of which sends its spans to its agent."""

    def __init__(self, plane: Any, name: str, site: Site, folder: Path) -> None:
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        for node in NODES:
            agent = site.agent(node, "agent.yaml", {})
            document = {
                "apiVersion": "kubescheduler.config.k8s.io/v1",
                "kind": "KubeSchedulerConfiguration",
                "leaderElection": {**ELECTION, "resourceName": name, "resourceNamespace": "default"},
                "clientConnection": {"kubeconfig": str(plane.kubeconfig)},
                "profiles": [{"schedulerName": name}],
                "tracing": {"endpoint": f"127.0.0.1:{agent.port()}", "samplingRatePerMillion": 1_000_000},
            }
            path = folder / f"{node}.yaml"
            path.write_text(yaml.safe_dump(document))
            command = [sys.executable, "-m", "podtrail_scheduler.command.main", "--config", str(path)]
            with (folder / f"{node}.log").open("wb") as log:
                self._processes[node] = subprocess.Popen(
                    [*command, "--secure-port=0", "--feature-gates=SchedulerTracing=true"], stdout=log, stderr=log
                )

    def kill(self, node: str) -> None:
        """Ends the scheduler of a node as a crash does."""
        self._processes[node].kill()
        self._processes[node].wait(DEADLINE)

    def close(self) -> None:
        """Ends them."""
        for process in self._processes.values():
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
            process.wait(DEADLINE)


def test_podtrail_schedulers_of_which_the_leader_is_killed_tell_one_story(
    control_plane: Any, site: Site, tmp_path: Path
) -> None:
    schedulers = OfOurs(control_plane, "ours-moving", site, tmp_path)
    try:
        attempts = wander(control_plane.api, "wanderer", "ours-moving", schedulers, site)
    finally:
        schedulers.close()
    is_one_story(attempts)
    restarted = next(at for at, attempt in enumerate(attempts) if attempt.node != attempts[0].node)
    assert attempts[restarted].declared == 1, "a scheduler that takes over counts from one again"


class OfKubernetes:
    """Stock kube-schedulers, beside each an agent that reads its log."""

    def __init__(self, plane: Any, site: Site) -> None:
        self._plane = plane
        for number, node in enumerate(NODES):
            log = plane.start_scheduler({"leaderElection": ELECTION}, ["-v=2"], replica=str(number))
            environment = {"KUBECONFIG": str(plane.kubeconfig), "SCHEDULER_LOG": str(log)}
            site.agent(node, "stock-agent.yaml", environment)

    def kill(self, node: str) -> None:
        """Ends the scheduler of a node as a crash does."""
        self._plane.stop_one(f"kube-scheduler-{NODES.index(node)}", kill=True)


def test_stock_schedulers_of_which_the_leader_is_killed_tell_one_story_by_their_logs(
    start_control_plane: Callable[..., Any], site: Site
) -> None:
    plane = start_control_plane()
    try:
        schedulers = OfKubernetes(plane, site)
        attempts = wander(plane.api, "wanderer", "default-scheduler", schedulers, site)
    finally:
        plane.stop()
    is_one_story(attempts)
