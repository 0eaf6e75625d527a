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

from tests.scheduler.configuration.reading import Read
from tests.sizes import large

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
    *("NodeResourcesBalancedAllocation", "DefaultBinder", "NodeDeclaredFeatures"),
)
ODD = (*PLUGINS * 3, "EBSLimits", "Elsewhere")


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
            "podMaxBackoffSeconds": self.one(60, 60, 90, self.integer()),
            "delayCacheUntilActive": self.one(True, False),
            "enableProfiling": self.one(True, False),
            "leaderElection": self.some(
                leaderElect=self.one(True, False),
                leaseDuration=self.one("2h", "2h", self.duration()),
                renewDeadline=self.one("5s", "5s", self.duration()),
                retryPeriod=self.duration(),
                resourceName=self.one("a", "", None),
            ),
            "clientConnection": self.some(qps=self.one(1, 2.5, 0), burst=self.integer()),
            "profiles": [self.profile(index) for index in range(self.one(0, 1, 1, 1, 1, 2))],
            "extenders": [self.extender() for _ in range(self.one(0, 0, 1, 2))],
        }
        return {"apiVersion": API_VERSION, "kind": KIND, **self.some(**whole)}

    def profile(self, index: int) -> dict[str, Any]:
        """One profile."""
        return self.some(
            schedulerName=self.one("a", f"b{index}", f"c{index}"),
            percentageOfNodesToScore=self.one(*(0, 10, 100) * 5, 101),
            plugins={self.one(*POINTS): self.plugin_set() for _ in range(self.one(0, 1, 1, 2))},
            pluginConfig=[self.config() for _ in range(self.one(0, 1, 2))],
        )

    def plugin_set(self) -> dict[str, Any]:
        """Enabled and disabled plugins."""
        named = [{"name": self.one(*ODD), **self.some(weight=self.one(0, 1, 7))} for _ in range(self.one(0, 1, 1, 3))]
        disabled = [{"name": self.one("*", *ODD)} for _ in range(self.one(0, 0, 0, 1, 2))]
        return self.some(enabled=named, disabled=disabled)

    def config(self) -> dict[str, Any]:
        """Args of one plugin."""
        args: dict[str, Callable[[], dict[str, Any]]] = {
            "DefaultPreemption": lambda: self.some(
                minCandidateNodesPercentage=self.one(0, 10, 10, 20, 101),
                minCandidateNodesAbsolute=self.one(0, 1, 9, -1),
            ),
            "InterPodAffinity": lambda: self.some(
                hardPodAffinityWeight=self.one(0, 5, 50, 101),
                ignorePreferredTermsOfExistingPods=self.one(True, True, False, False, 1),
            ),
            "NodeResourcesFit": lambda: self.some(
                ignoredResources=self.one([], ["example.com/a"], ["b"], ["a b"]),
                scoringStrategy=self.some(
                    **self.one(
                        {"type": "LeastAllocated"},
                        {"type": "MostAllocated"},
                        {"type": "RequestedToCapacityRatio", "requestedToCapacityRatio": {"shape": self.shape()}},
                        {"requestedToCapacityRatio": self.some(shape=self.shape())},
                    ),
                    resources=self.resources(),
                ),
            ),
            "NodeResourcesBalancedAllocation": lambda: self.some(resources=self.resources()),
            "VolumeBinding": lambda: self.some(bindTimeoutSeconds=self.integer(), shape=self.shape()),
            "PodTopologySpread": lambda: self.some(
                defaultingType=self.one(*("List",) * 8, "System", "Own"),
                defaultConstraints=[
                    {
                        "maxSkew": self.one(1, 2, 5, 0),
                        "topologyKey": self.one("zone", "host", "rack", "a b"),
                        "whenUnsatisfiable": self.one(*("DoNotSchedule", "ScheduleAnyway") * 4, "No"),
                        **self.some(minDomains=self.one(1, 2), nodeTaintsPolicy="Honor"),
                    }
                    for _ in range(self.one(0, 1, 2))
                ],
            ),
            "DynamicResources": lambda: self.some(filterTimeout=self.duration(), bindingTimeout=self.duration()),
            "Elsewhere": lambda: {"anything": [1, None, {"deep": self.one(True, "y", 1.5)}]},
        }
        name = self.one(*args)
        return {"name": name, **self.some(args=args[name]())}

    def resources(self) -> list[dict[str, Any]]:
        """Resources with weights."""
        return [
            {"name": self.one("cpu", "memory"), **self.some(weight=self.one(*(0, 1, 1) * 4, 5, 101))}
            for _ in range(self.one(0, 1, 2))
        ]

    def shape(self) -> list[dict[str, Any]]:
        """A scoring function."""
        return [
            {"utilization": at, "score": self.one(0, 5, 7, 10, 11)}
            for at in self.one([0, 100], [0, 50, 90], [50, 20], [])
        ]

    def extender(self) -> dict[str, Any]:
        """An extender."""
        return self.some(
            urlPrefix="http://127.0.0.1:1",
            filterVerb="filter",
            **self.one({}, {"prioritizeVerb": "prioritize", "weight": self.one(1, 5, 5, 0)}),
            bindVerb=self.one("", "", "bind"),
            httpTimeout=self.duration(),
            nodeCacheCapable=self.one(True, False),
            ignorable=self.one(True, False),
            managedResources=[
                {"name": self.resource(), **self.some(ignoredByScheduler=self.one(True, False))}
                for _ in range(self.one(0, 0, 1, 2))
            ],
        )

    def resource(self) -> str:
        """An extended resource, seldom not one."""
        return str(self.one(*(f"example.com/{each}" for each in "abcdefgh"), "cpu"))

    def some(self, **fields: Any) -> dict[str, Any]:
        """Most of the fields, seldom one too many."""
        kept = {name: value for name, value in fields.items() if self._random.random() < 0.75}
        return kept | ({"unheard": 1} if self._random.random() < 0.002 else {})

    def integer(self) -> Any:
        """A number, seldom none."""
        return self.one(*(1, 2, 5, 20, 50) * 30, 0, -1, None, 101, "many", 2**40)

    def duration(self) -> Any:
        """A length of time, seldom none."""
        return self.one(*("15s", "1m", "1h30m", "250ms", "1.5s", "0s") * 12, "-1s", "soon", 5, None)

    def one(self, *choices: Any) -> Any:
        """One of these."""
        return self._random.choice(choices)


@pytest.mark.parametrize("seed", range(large(10, 300)))
def test_are_taken_or_refused_as_the_real_one_does(
    seed: int, kube_scheduler: Path, reading: Read, tmp_path: Path
) -> None:
    text = yaml.safe_dump(Draw(seed).document())

    ours, theirs = here(reading, text), there(kube_scheduler, text, tmp_path)

    assert ours == theirs, text


def here(reading: Read, text: str) -> Any:
    """What is written here, or said."""
    try:
        return yaml.safe_load(encode(reading(text)))
    except ConfigurationError as refused:
        return comparable(refused.message)


def there(kube_scheduler: Path, text: str, folder: Path) -> Any:
    """What kube-scheduler writes, or says."""
    document, written = folder / "document.yaml", folder / "written.yaml"
    document.write_text(text)
    arguments: list[str | Path] = ["--config", document, "--write-config-to", written, "--master", "http://127.0.0.1:1"]
    command = [kube_scheduler, *arguments, "--secure-port=0"]  # several may run at once
    ended = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    if ended.returncode == 0:
        return yaml.safe_load(written.read_text())
    said = LOGGED.search(ended.stderr)
    assert said is not None, ended.stderr
    return comparable(json.loads(f'"{said[1]}"'))


def comparable(message: str) -> list[str]:
    """Kube-scheduler goes through its points and plugins in no order: the parts of a list of errors are sorted."""
    return sorted(message.removeprefix("[").removesuffix("]").split(", "))
