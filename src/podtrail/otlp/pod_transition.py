"""What somebody who watches a Pod saw of it: a span for each transition, by whomever it was written."""

from typing import Final, NamedTuple

from podtrail.otlp.span import SpanView
from podtrail.otlp.values import Value

TRANSITION: Final = "podtrail.pod.transition"
"""The attribute that says which transition a span tells."""
TRANSITION_MARK: Final = TRANSITION.encode()
CONTAINER: Final = "k8s.container.name"
INIT: Final = "podtrail.pod.init_container"
"""Whether it is an init or an ephemeral container, whose restarts kubectl does not count."""
RESTARTS: Final = "k8s.container.restart_count"
REASON: Final = "podtrail.pod.reason"
MESSAGE: Final = "podtrail.pod.message"
MIRROR_UID: Final = "podtrail.pod.mirror_uid"
"""The uid that a static Pod has at the API server; its kubelet and runtime know it by another one."""
GATES: Final = "k8s.pod.scheduling_gates"
FINALIZERS: Final = "k8s.pod.finalizers"
"""Names that must be removed before a Pod whose deletion was asked for is gone."""
WARNED: Final = "warned"
"""The transition of an Event that warns of a Pod: it shows nothing of the Pod's status."""
SCHEDULING_GATED: Final = "SchedulingGated"
NOT_READY_FOR_SCHEDULING: Final = "NotReadyForScheduling"
"""Reasons of a condition `PodScheduled` by which a Pod is held outside of the scheduler's active queue (KEP-3521,
KEP-5501)."""
WARNINGS: Final = frozenset(
    {
        "FailedAttachVolume",
        "FailedMapVolume",
        "FailedMount",
        "FailedCreatePodSandBox",
        "FailedCreatePodContainer",
        "FailedPrepareDynamicResources",
        "NetworkNotReady",
        "FailedKillPod",
    }
)
"""Reasons of Events of kubelet and attach controller (`pkg/kubelet/events`, `pkg/controller/volume`) whose cause no
status of a container shows."""
ALL_IS_WELL: Final = frozenset({"", "ContainerCreating", "PodInitializing"})
"""Why containers wait that nothing is wrong with."""


class PodTransition(NamedTuple):
    """A transition of a Pod, as a span tells it."""

    kind: str
    """`created`, `unscheduled`, `gated` (told when it is over), `scheduled`, `initialized`, `started`, `waiting`,
    `terminated`, `ready`, `not ready`, `disrupted`, `resize pending`, `resizing`, `resized`, `warned`, `finished`,
    `deleting`, `deleted`."""
    uid: str
    container: str
    """Of `started`, `waiting`, `terminated`, `resized`."""
    restarts: int
    reason: str
    message: str


def read_transition(span: SpanView) -> PodTransition | None:
    """Return the transition that a span tells; None for any other span."""
    attributes = span.attributes
    kind = _text(attributes.get(TRANSITION))
    uid = _text(attributes.get("k8s.pod.uid"))
    if not kind or not uid:
        return None
    restarts = attributes.get(RESTARTS)
    return PodTransition(
        kind,
        uid,
        _text(attributes.get(CONTAINER)),
        restarts if isinstance(restarts, int) and not isinstance(restarts, bool) else 0,
        _text(attributes.get(REASON)),
        _text(attributes.get(MESSAGE)),
    )


def _text(value: Value) -> str:
    return value if isinstance(value, str) else ""
