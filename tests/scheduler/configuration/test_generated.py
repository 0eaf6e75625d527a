"""Configurations drawn at random, read by the real kube-scheduler and here: written or refused alike."""

import json
import random
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from podtrail_scheduler.configuration.encoding import encode
from podtrail_scheduler.configuration.errors import ConfigurationError
from podtrail_scheduler.configuration.types import API_VERSION, KIND

pytestmark = pytest.mark.control_plane

LOGGED = re.compile(r'"command failed" err="((?:[^"\\]|\\.)*)"')
POINTS = (
    *("multiPoint", "preEnqueue", "queueSort", "preFilter", "filter", "postFilter", "preScore", "score"),
    *("reserve", "permit", "preBind", "bind", "postBind"),
)
PLUGINS = (
    *("SchedulingGates", "PrioritySort", "NodeName", "NodeUnschedulable", "TaintToleration", "NodeAffinity"),
    *("NodePorts", "NodeResourcesFit", "VolumeRestrictions", "NodeVolumeLimits", "VolumeBinding", "VolumeZone"),
    *("PodTopologySpread", "InterPodAffinity", "DynamicResources", "DefaultPreemption", "ImageLocality"),
    *("NodeResourcesBalancedAllocation", "DefaultBinder", "NodeDeclaredFeatures", "EBSLimits", "Elsewhere"),
)


class Draw:
    """A document; most of its values make sense."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def document(self) -> dict[str, Any]:
        """The whole of it."""
        whole = {
            "apiVersion": API_VERSION,
            "kind": KIND,
            "parallelism": self.integer(),
            "percentageOfNodesToScore": self.integer(),
            "podInitialBackoffSeconds": self.integer(),
            "podMaxBackoffSeconds": self.integer(),
            "delayCacheUntilActive": self.one(True, False),
            "enableProfiling": self.one(True, False),
            "leaderElection": self.some(
                leaderElect=self.one(True, False),
                leaseDuration=self.duration(),
                renewDeadline=self.duration(),
                retryPeriod=self.duration(),
                resourceName=self.one("a", "", None),
            ),
            "clientConnection": self.some(qps=self.one(1, 2.5, 0), burst=self.integer()),
            "profiles": [self.profile(index) for index in range(self.one(0, 1, 1, 1, 2))],
            "extenders": [self.extender() for _ in range(self.one(0, 0, 1, 2))],
        }
        return {"apiVersion": API_VERSION, "kind": KIND, **self.some(**whole)}

    def profile(self, index: int) -> dict[str, Any]:
        """One profile."""
        return self.some(
            schedulerName=self.one("a", f"b{index}", f"c{index}"),
            percentageOfNodesToScore=self.one(0, 10, 100, 101),
            plugins={self.one(*POINTS): self.plugin_set() for _ in range(self.one(0, 1, 1, 2))},
            pluginConfig=[self.config() for _ in range(self.one(0, 1, 2))],
        )

    def plugin_set(self) -> dict[str, Any]:
        """Enabled and disabled plugins."""
        named = [self.some(name=self.one(*PLUGINS), weight=self.one(0, 1, 7)) for _ in range(self.one(0, 1, 1, 3))]
        disabled = [{"name": self.one("*", *PLUGINS)} for _ in range(self.one(0, 0, 0, 1, 2))]
        return self.some(enabled=named, disabled=disabled)

    def config(self) -> dict[str, Any]:
        """Args of one plugin."""
        args: dict[str, Callable[[], dict[str, Any]]] = {
            "DefaultPreemption": lambda: self.some(
                minCandidateNodesPercentage=self.one(0, 10, 101), minCandidateNodesAbsolute=self.one(0, 1, -1)
            ),
            "InterPodAffinity": lambda: self.some(
                hardPodAffinityWeight=self.one(0, 5, 101), ignorePreferredTermsOfExistingPods=self.one(True, False, 1)
            ),
            "NodeResourcesFit": lambda: self.some(
                ignoredResources=self.one([], ["example.com/a"], ["a b"]),
                scoringStrategy=self.some(
                    type=self.one("LeastAllocated", "MostAllocated", "RequestedToCapacityRatio"),
                    resources=self.resources(),
                    requestedToCapacityRatio=self.some(shape=self.shape()),
                ),
            ),
            "NodeResourcesBalancedAllocation": lambda: self.some(resources=self.resources()),
            "VolumeBinding": lambda: self.some(bindTimeoutSeconds=self.integer(), shape=self.shape()),
            "PodTopologySpread": lambda: self.some(
                defaultingType=self.one("System", "List", "List", "Own"),
                defaultConstraints=[
                    self.some(
                        maxSkew=self.one(1, 0),
                        topologyKey=self.one("zone", "host", "a b"),
                        whenUnsatisfiable=self.one("DoNotSchedule", "ScheduleAnyway", "No"),
                        minDomains=self.one(1, 2),
                        nodeTaintsPolicy="Honor",
                    )
                    for _ in range(self.one(0, 1, 2))
                ],
            ),
            "DynamicResources": lambda: self.some(filterTimeout=self.duration(), bindingTimeout=self.duration()),
            "Elsewhere": lambda: {"anything": [1, None, {"deep": self.one(True, "y", 1.5)}]},
        }
        name = self.one(*args)
        return self.some(name=name, args=args[name]())

    def resources(self) -> list[dict[str, Any]]:
        """Resources with weights."""
        return [
            self.some(name=self.one("cpu", "memory"), weight=self.one(0, 1, 1, 101)) for _ in range(self.one(0, 1, 2))
        ]

    def shape(self) -> list[dict[str, Any]]:
        """A scoring function."""
        return [{"utilization": at, "score": self.one(0, 10, 11)} for at in self.one([], [0, 100], [50, 20])]

    def extender(self) -> dict[str, Any]:
        """An extender."""
        return self.some(
            urlPrefix="http://127.0.0.1:1",
            filterVerb="filter",
            prioritizeVerb=self.one("", "prioritize"),
            bindVerb=self.one("", "", "bind"),
            weight=self.one(0, 1, 5),
            httpTimeout=self.duration(),
            nodeCacheCapable=self.one(True, False),
            ignorable=self.one(True, False),
            managedResources=[
                self.some(
                    name=self.one("example.com/a", "example.com/b", "cpu"), ignoredByScheduler=self.one(True, False)
                )
                for _ in range(self.one(0, 0, 1, 2))
            ],
        )

    def some(self, **fields: Any) -> dict[str, Any]:
        """Most of the fields, seldom one too many."""
        kept = {name: value for name, value in fields.items() if self._random.random() < 0.75}
        return kept | ({"unheard": 1} if self._random.random() < 0.01 else {})

    def integer(self) -> Any:
        """A number, seldom none."""
        return self.one(*(1, 2, 5, 20, 50) * 4, 0, -1, None, 101, "many", 2**40)

    def duration(self) -> Any:
        """A length of time, seldom none."""
        return self.one(*("15s", "1m", "1h30m", "250ms", "1.5s", "0s") * 4, "-1s", "soon", 5, None)

    def one(self, *choices: Any) -> Any:
        """One of these."""
        return self._random.choice(choices)


@pytest.mark.parametrize("seed", range(40))
def test_are_taken_or_refused_as_the_real_one_does(
    seed: int, kube_scheduler: Path, reading: Any, tmp_path: Path
) -> None:
    text = yaml.safe_dump(Draw(seed).document())

    ours, theirs = here(reading, text), there(kube_scheduler, text, tmp_path)

    assert ours == theirs, text


def here(reading: Any, text: str) -> Any:
    """What is written here, or said."""
    try:
        return yaml.safe_load(encode(reading(text)))
    except ConfigurationError as refused:
        return comparable(refused.message)


def there(kube_scheduler: Path, text: str, folder: Path) -> Any:
    """What kube-scheduler writes, or says."""
    document, written = folder / "document.yaml", folder / "written.yaml"
    document.write_text(text)
    arguments = ["--config", document, "--write-config-to", written, "--master", "http://127.0.0.1:1"]
    ended = subprocess.run([kube_scheduler, *arguments], capture_output=True, text=True, timeout=60, check=False)
    if ended.returncode == 0:
        return yaml.safe_load(written.read_text())
    said = LOGGED.search(ended.stderr)
    assert said is not None, ended.stderr
    return comparable(json.loads(f'"{said[1]}"'))


def comparable(message: str) -> list[str]:
    """Kube-scheduler goes through its points and plugins in no order: the parts of a list of errors are sorted."""
    return sorted(message.removeprefix("[").removesuffix("]").split(", "))
