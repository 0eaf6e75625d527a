"""What is found out about the Pod of a span: its uid, and by which evidence."""

from enum import StrEnum
from typing import NamedTuple


class PodEvidence(StrEnum):
    """By what it is known which Pod a span is about, strongest first: what links say in `podtrail.link.evidence`."""

    POD_UID = "pod-uid"
    """The span has the Pod's uid."""
    CONTAINER_ID = "container-id"
    """It has the id of a container (or of its task) that was created for the Pod."""
    SANDBOX_ID = "sandbox-id"
    """It has the id of the sandbox that was made for the Pod, or that of its network."""
    TRACE = "trace"
    """It is in the trace of one of the Pod's own: an attempt, a sync of the kubelet's."""
    TRACE_CONTEXT = "trace-context"
    """A client passed its context on: the span links to one whose Pod is known, or such a one links to it."""
    NAME = "name"
    """It names the Pod, by itself or by its request (same audit id), and of all Pods of that name that anybody told of
    no other can be meant at its time. Weakest: a Pod made again under its name of which nothing is told is not known.
    """


class IdentifiedPod(NamedTuple):
    """Which Pod a span is about. Where several can be meant, there is no uid."""

    uid: str
    evidence: PodEvidence
    """The one that told; where there is no uid, the one that was not enough."""
    candidates: int = 1
    """How many Pods can be meant, as far as is known: one that nobody told of counts where one must have been."""
