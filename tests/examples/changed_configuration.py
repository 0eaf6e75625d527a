"""A simulated scheduler whose configuration changes while it runs, as a recording.

`python -m tests.examples.changed_configuration FILE` writes it, always the same: from the fourth minute on
`NodeAffinity` has an `addedAffinity` that only two nodes fit.
"""

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from podtrail_receivers.scheduler.profiles import selected
from podtrail_scheduler.cluster.simulated.simulation import Simulation
from podtrail_scheduler.cluster.simulated.traced_simulation import TracedSimulation
from podtrail_scheduler.configuration.generation import generation_of
from podtrail_scheduler.cycles.attempt_spans import ConfigurationInForce
from podtrail_scheduler.framework.trial import FilterTrial
from podtrail_scheduler.objects.durations import MINUTE
from podtrail_scheduler.plugins.registry import make_profile
from podtrail_scheduler.plugins.selection import Selection
from podtrail_scheduler.workload import Workload

from podtrail.otlp import read_request
from podtrail.recording import RecordingWriter

START: Final = 1_795_269_600_000_000_000
"""2026-11-21T14:00:00Z."""
CHANGED_AFTER: Final = 3 * MINUTE
WORKLOAD: Final = {
    "seed": 7,
    "length": "6m",
    "arrival_rate": 0.15,
    "nodes": [
        {"name": "node", "count": 4, "labels": {"disk": "hdd"}},
        {
            "name": "fast",
            "count": 2,
            "labels": {"disk": "ssd"},
            "allocatable": {"cpu": 2, "memory": "8Gi", "pods": 110},
        },
    ],
    "pods": [{"name": "web", "requests": {"cpu": "500m"}, "lifetime": "100s"}],
}


def profiled(affinity: dict[str, Any] | None) -> Selection:
    """Return the default profile, with or without an affinity that is added to each Pod's."""
    args = {} if affinity is None else {"addedAffinity": affinity}
    kind = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "NodeAffinityArgs", **args}
    profile = {"schedulerName": "default-scheduler", "pluginConfig": [{"name": "NodeAffinity", "args": kind}]}
    return selected({"profiles": [profile]}, {}, Workload.model_validate(WORKLOAD))


def use(simulation: Simulation, selection: Selection) -> None:
    """Have a simulation's scheduler go on with these profiles."""
    handle = simulation.scheduler.handle
    made = [
        (make_profile(own, each, selection.makers), own)
        for each in selection.profiles
        for own in (replace(handle, trial=FilterTrial()),)
    ]
    simulation.scheduler.reconfigure(made, ConfigurationInForce(generation_of(selection.configuration)))


def write(path: Path) -> None:
    """Write the recording."""
    expressions = [{"key": "disk", "operator": "In", "values": ["ssd"]}]
    required = {"nodeSelectorTerms": [{"matchExpressions": expressions}]}
    before, after = profiled(None), profiled({"requiredDuringSchedulingIgnoredDuringExecution": required})
    traced = TracedSimulation(Workload.model_validate(WORKLOAD), start=START, selection=before)
    simulation = traced._simulation
    timeline = simulation.timeline
    timeline.at(START, lambda: use(simulation, before))
    timeline.at(START + CHANGED_AFTER, lambda: use(simulation, after))
    with RecordingWriter(path) as recording:
        for delivery in traced.run():
            for request in delivery.requests:
                recording.write(read_request(request).groups, delivery.now)


if __name__ == "__main__":
    write(Path(sys.argv[1]))
