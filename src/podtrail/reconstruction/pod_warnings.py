"""Warnings about a Pod that its node or the attach controller writes as Events: why its containers do not start."""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from podtrail.otlp.pod_transition import MESSAGE, REASON, WARNED, WARNINGS
from podtrail.reconstruction.pod_transitions import Transition
from podtrail.reconstruction.watch import EventSeen, first_time, read_event

_KUBELET: Final = "kubelet"


class PodWarning(NamedTuple):
    """An occurrence of a warning."""

    pod: Mapping[str, Any]
    """The Pod's object, as far as the Event identifies it."""
    transition: Transition
    resolution: int
    """Nanoseconds by which its time may be before the exact one."""


def warnings(event: Mapping[str, Any], change: str, arrival: int) -> list[PodWarning]:
    """Return the first and the latest occurrence of a warning that an Event counts; none for any other Event."""
    seen = read_event(arrival, change, event)
    if not isinstance(seen, EventSeen) or seen.reason not in WARNINGS or not seen.uid:
        return []
    namespace, _, name = seen.pod.partition("/")
    pod = {
        "metadata": {"uid": seen.uid, "namespace": namespace, "name": name},
        "spec": {"nodeName": seen.host if seen.profile == _KUBELET else ""},
    }
    told = {REASON: seen.reason, MESSAGE: seen.note}
    identity = str(event.get("metadata", {}).get("name", ""))[:256]
    times = dict.fromkeys((min(first_time(event) or seen.at, seen.at), seen.at))
    return [
        PodWarning(pod, Transition(WARNED, f"{seen.reason}/{identity}/{time}", time, told), seen.resolution)
        for time in times
    ]
