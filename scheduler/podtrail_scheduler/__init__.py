"""The Kubernetes Scheduling Framework in Python, traced as KEP-5927 proposes, on a simulated cluster.

    workload = Workload.model_validate({"seed": 7, "length": "1h"})
    traced = TracedSimulation(workload, start=time.time_ns())
    for delivery in traced.run():
        for request in delivery.requests:      # serialized ExportTraceServiceRequest
            await consume(request)
        await clock_reaches(delivery.now)      # or not, to run as fast as possible
    print(traced.summary())

`Simulation` is the same with tracer providers of the caller's own. `Workload` alone, from here or from
`podtrail_scheduler.workload`, imports no OpenTelemetry.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .cluster.simulated.simulation import Moment, Simulation
    from .cluster.simulated.summary import PendingPod, Summary
    from .cluster.simulated.traced_simulation import Delivery, TracedSimulation
    from .cycles.attempt import AttemptRecord
    from .workload import Workload

_HOMES = {
    "AttemptRecord": "cycles.attempt",
    "Delivery": "cluster.simulated.traced_simulation",
    "Moment": "cluster.simulated.simulation",
    "PendingPod": "cluster.simulated.summary",
    "Simulation": "cluster.simulated.simulation",
    "Summary": "cluster.simulated.summary",
    "TracedSimulation": "cluster.simulated.traced_simulation",
    "Workload": "workload",
}

__all__ = [
    "AttemptRecord",
    "Delivery",
    "Moment",
    "PendingPod",
    "Simulation",
    "Summary",
    "TracedSimulation",
    "Workload",
]


def __getattr__(name: str) -> object:
    """Imports what is asked for, so that a configuration can be read without the rest."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f".{_HOMES[name]}", __name__), name)
