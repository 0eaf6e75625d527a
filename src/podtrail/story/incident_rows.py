"""Rows of what happened in a range of time."""

from collections.abc import Mapping
from typing import NamedTuple

from podtrail.story.attempt import AttemptStory
from podtrail.story.pod_state import PodState


class IncidentRefusal(NamedTuple):
    """A reason for which attempts failed."""

    plugin: str
    """Who gave it; "" where nobody is named."""
    reason: str
    attempts: int
    pods: int
    first_unix_nano: int
    """When the first of these attempts ended."""
    last_unix_nano: int
    example: str
    """The key of one of the Pods."""


class IncidentPlugin(NamedTuple):
    """What a plugin did in the range."""

    plugin: str
    refused: int
    """Attempts in which it said no, to their bind, or else to nodes."""
    pods: int
    took: int
    """Its longest calls in these attempts, in all; nanoseconds."""
    slowest: int
    """Nanoseconds."""
    point: str
    """Where the slowest was called."""
    trace_id: bytes
    """Of the attempt with the slowest."""


class NodeShare(NamedTuple):
    """What became of Pods on a node."""

    node: str
    bound: int
    refused: int
    """Attempts in which it was refused: it is named, or every node was."""
    failures: int
    """Of the kubelet, with Pods there."""
    at_least: bool = False
    """Whether there are refusals whose nodes are not all named: it may be among these."""


class ConcernedPod(NamedTuple):
    """A Pod for which something failed or was slow."""

    key: str
    cluster: str
    several_clusters: bool
    namespace: str
    name: str
    state: PodState
    """Now, which may be after the range."""
    slow: bool
    attempts: int
    failed: int
    slowest: int | None
    """Nanoseconds of its longest attempt."""
    why: str
    """What stood against it last, in the range."""


class ChangedConfiguration(NamedTuple):
    """Attempts from here on were made with another configuration of the scheduler."""

    at_unix_nano: int
    """When the first attempt with it began."""
    before: str
    after: str
    pods: int
    """Of those that were tried with both."""
    trace_id: bytes
    """Of what made it; b"" where no attempt says."""


class IncidentAttempt(NamedTuple):
    """One of the attempts that took longest."""

    key: str
    cluster: str
    several_clusters: bool
    namespace: str
    name: str
    attempt: AttemptStory


class IncidentSlice(NamedTuple):
    """A part of the range."""

    start_unix_nano: int
    attempts: Mapping[str, int]
    """By result."""
    slowest: int
    """Nanoseconds."""


class NodeFailure(NamedTuple):
    """What failed on nodes, in the kubelet's words."""

    reason: str
    times: int
    pods: int
    example: str
    """The key of one of the Pods."""
    error: str
