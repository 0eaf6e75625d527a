"""What kube-scheduler's lines mean, from 1.20 to 1.38: the message of a structured line, the words of an older one."""

import re
from enum import StrEnum
from typing import Final


class Kind(StrEnum):
    """What a line tells of an attempt, of a Pod in the queue or of the scheduler itself."""

    BEGUN = "an attempt begins"
    POPPED = "a Pod leaves the queue"
    SKIPPED = "a Pod is not tried"
    BINDING = "a bind begins"
    BOUND = "a Pod is bound"
    NO_FIT = "no node fits"
    NO_NODES = "there are no nodes"
    FAILED = "an attempt ends in an error"
    PLUGIN_FAILED = "a plugin fails"
    ALGORITHM_FAILED = "finding a node fails"
    TRACE = "an attempt took long"
    CHOSEN = "a node is chosen"
    WITHIN = "an attempt goes on"
    NODE_REFUSED = "a plugin refuses a node"
    SCORED = "a plugin scores a node"
    EXTENDER_SCORED = "an extender scores a node"
    TOTALLED = "a node's scores are summed up"
    POST_FILTERED = "PostFilter ends"
    NOMINATED = "preemption chooses a node"
    PREEMPTING = "preemption begins"
    VICTIM = "a Pod is preempted"
    PERMIT_WAIT = "a Pod waits for a permit"
    PLUGIN_REJECTED = "a plugin rejects a Pod"
    HELD = "a PreEnqueue plugin holds a Pod"
    THROTTLED = "a request waited in the client"
    ADDED = "a Pod comes to the scheduler"
    REMOVED = "a Pod leaves the scheduler"
    ENDED = "a Pod with a node leaves the scheduler"
    PLACED = "a Pod has a node"
    LOST = "a Pod no longer exists"
    QUEUED = "a Pod is moved in the queue"
    ASKED = "plugins that refused are named"
    CONDITION = "a condition is written"
    IDENTITY = "a Pod is written out"
    PANICKED = "the scheduler panics"
    PROFILE = "a profile is set up"
    VERBOSITY = "how much the scheduler logs"
    STARTED = "the scheduler starts"
    LEADING = "the scheduler becomes leader"
    LED = "the scheduler is no longer leader"
    WAITING = "the scheduler waits to be leader"
    SPANS_ON = "the scheduler exports spans of its attempts"
    SPANS_OFF = "the scheduler no longer exports spans"
    HAS_SPANS = "spans of an attempt were exported"


MESSAGES: Final = {
    message.encode(): kind
    for kind, messages in {
        Kind.BEGUN: ("Attempting to schedule pod", "Attempting to schedule a pod belonging to a pod group"),
        Kind.POPPED: ("About to try and schedule pod",),
        Kind.SKIPPED: ("Skip schedule deleting pod",),
        Kind.BINDING: ("Attempting to bind pod to node",),
        Kind.BOUND: ("Successfully bound pod to node",),
        Kind.NO_FIT: (
            "Unable to schedule pod; no fit; waiting",
            "Unable to schedule pod belonging to a pod group; waiting",
        ),
        Kind.NO_NODES: ("Unable to schedule pod; no nodes are registered to the cluster; waiting",),
        Kind.FAILED: (
            "Error scheduling pod; retrying",
            "Unable to schedule pod, possibly due to node not found; waiting",
        ),
        Kind.PLUGIN_FAILED: (
            "Plugin Failed",
            "Plugin failed",
            "Failed running PreFilter plugin",
            "Failed running PreScore plugin",
            "Failed running Bind plugin",
            "Failed running PreBind plugin",
            "Failed running Permit plugin",
            "Failed running Reserve plugin",
        ),
        Kind.PLUGIN_REJECTED: (
            "Pod rejected by permit plugin",
            "Pod rejected by plugin",
            "Pod rejected by PreBind plugin",
            "Pod rejected by Bind plugin",
        ),
        Kind.ALGORITHM_FAILED: ("Error selecting node for pod",),
        Kind.CHOSEN: ("OpportunisticBatch set cycle state",),
        Kind.WITHIN: (
            "OpportunisticBatch no node hint available for pod",
            "pod resource claims",
            "No new claims to deallocate",
            "No preemption candidate is found; preemption is not helpful for scheduling",
            "Preemption will not help schedule pod on any node",
            "Pod is not eligible for preemption",
            "Dry run the preemption",
            "Pods are potential preemption victims on node",
            "All PVCs for pod are bound",
            "Status after running PreFilter plugins for pod",
            "Evaluation failed on nominated node",
            "Pod rejected while waiting on permit",
            "Failed waiting on permit for pod",
            "Failed running Score plugins",
            "Failed running Normalize on Score plugins",
            "Failed applying score defaultWeights on Score plugins",
        ),
        Kind.NODE_REFUSED: ("node had untolerated taints",),
        Kind.SCORED: ("Plugin scored node for pod", "Plugin scored nodes for pod"),
        Kind.EXTENDER_SCORED: ("Extender scored node for pod",),
        Kind.TOTALLED: ("Calculated node's final score for pod",),
        Kind.POST_FILTERED: ("Status after running PostFilter plugins for pod",),
        Kind.NOMINATED: ("the target node for the preemption is determined",),
        Kind.PREEMPTING: ("Start the preemption asynchronously",),
        Kind.VICTIM: (
            "Preemptor Pod preempted victim Pod",
            "Preemptor pod rejected a waiting pod",
            "Preemptor preempted a waiting pod",
            "Preemptor rejected a pod in preBind",
        ),
        Kind.PERMIT_WAIT: ("Pod waiting on permit", "One or more plugins asked to wait and no plugin rejected pod"),
        Kind.THROTTLED: ("Waited before sending request",),
        Kind.ADDED: ("Add event for unscheduled pod",),
        Kind.REMOVED: ("Delete event for unscheduled pod",),
        Kind.ENDED: ("Delete event for scheduled pod",),
        Kind.PLACED: (
            "Add event for scheduled pod",
            "Pod has been assigned to node. Abort adding it back to queue.",
        ),
        Kind.LOST: ("Pod doesn't exist in informer cache",),
        Kind.QUEUED: (
            "Entity moved to an internal scheduling queue",
            "Entity moved to an internal scheduling queue because the Pod is updated",
            "Pod moved to an internal scheduling queue",
            "Pod moved to an internal scheduling queue because the Pod is updated",
        ),
        Kind.ASKED: ("Checking events for in-flight pod",),
        Kind.HELD: (
            "Status after running PreEnqueue plugin",
            "Unexpected error running PreEnqueue plugin",
            "Entity moved to an internal scheduling queue, because it is gated",
            "Pod moved to an internal scheduling queue, because the pod is gated",
        ),
        Kind.CONDITION: ("Updating pod condition", "Updating pod condition and nominated node name"),
        Kind.IDENTITY: ("Event is not making entity schedulable",),
        Kind.PROFILE: ("Disabling signatures for profile because it has extenders configured.",),
        Kind.PANICKED: ("Observed a panic",),
        Kind.STARTED: ("Starting Kubernetes Scheduler", "Starting Kubernetes Scheduler version"),
        Kind.LEADING: ("Successfully acquired lease",),
        Kind.WAITING: ("Attempting to acquire leader lease...",),
        Kind.SPANS_ON: ("Scheduling attempts are traced",),
        Kind.SPANS_OFF: ("Tracing failed and is off until the scheduler restarts",),
        Kind.HAS_SPANS: ("Scheduling attempt was traced",),
        Kind.LED: (
            "Requested to terminate, exiting",
            "Leaderelection lost",
            "leaderelection lost",
            "Failed to renew lease",
        ),
    }.items()
    for message in messages
}

_POD = r"(?P<pod>[^ /]+/[^ :]+)"
_WORDS: Final = (
    (Kind.BEGUN, re.compile(rf"Attempting to schedule pod: {_POD}$")),
    (Kind.POPPED, re.compile(rf"About to try and schedule pod {_POD}$")),
    (Kind.SKIPPED, re.compile(rf"Skip schedule deleting pod: {_POD}$")),
    (Kind.BINDING, re.compile(rf"Attempting to bind {_POD} to (?P<node>\S+)$")),
    (
        Kind.BOUND,
        re.compile(
            rf'pod {_POD} is bound successfully on node "?(?P<node>[^", ]+)"?, '
            r"(?P<evaluatedNodes>\d+) nodes evaluated, (?P<feasibleNodes>\d+) nodes were found feasible"
        ),
    ),
    (Kind.POST_FILTERED, re.compile(rf"Status after running PostFilter plugins for pod {_POD}: ")),
    (Kind.NO_NODES, re.compile(rf"Unable to schedule {_POD}: no nodes are registered to the cluster; waiting$")),
    (Kind.NO_FIT, re.compile(rf"Unable to schedule {_POD}: no fit: (?P<err>.*); waiting$", re.DOTALL)),
    (Kind.FAILED, re.compile(rf"Error scheduling {_POD}: (?P<err>.*); retrying$", re.DOTALL)),
    (
        Kind.FAILED,
        re.compile(rf"Unable to schedule {_POD}: possibly due to node not found: (?P<err>.*); waiting$", re.DOTALL),
    ),
    (Kind.SCORED, re.compile(rf"Plugin (?P<plugin>\S+) scores on {_POD} => (?P<scores>\[.*\])$")),
    (Kind.TOTALLED, re.compile(r"Host (?P<node>\S+) => Score (?P<score>\d+)$")),
    (Kind.ADDED, re.compile(rf"add event for unscheduled pod {_POD}$")),
    (Kind.PLACED, re.compile(rf"add event for scheduled pod {_POD} *$")),
    (Kind.REMOVED, re.compile(rf"delete event for unscheduled pod {_POD}$")),
    (Kind.ENDED, re.compile(rf"delete event for scheduled pod {_POD} *$")),
    (Kind.PERMIT_WAIT, re.compile(r'pod "(?P<name>[^"]{1,253})" waiting on permit$')),
    (Kind.PANICKED, re.compile(r"Observed a panic: ")),
    (Kind.STARTED, re.compile(r"Starting Kubernetes Scheduler version (?P<version>\S+)$")),
    (
        Kind.CONDITION,
        re.compile(
            rf"Updating pod condition for {_POD} to \((?P<conditionType>\w+)==(?P<conditionStatus>\w+), "
            r"Reason=(?P<conditionReason>\w*)\)"
        ),
    ),
    (Kind.VERBOSITY, re.compile(r'FLAG: --v="(?P<level>\d{1,3})"$')),
    (Kind.LEADING, re.compile(r"successfully acquired lease +(?P<lock>\S+)")),
    (Kind.WAITING, re.compile(r"attempting to acquire leader lease +(?P<lock>\S+?)(?:\.\.\.)?$")),
    (Kind.LED, re.compile(r"failed to renew lease +(?P<lock>\S+?):?(?: |$)")),
    (Kind.LED, re.compile(r"leaderelection lost")),
)
_FIRST: Final = frozenset(b"AEFHOPSUadpslf")
"""What the messages above begin with."""
MARKS: Final = (
    b"schedul",
    b"bind ",
    b"bound",
    b"lease",
    b"leaderelection",
    b"Updating pod",
    b"FLAG: --v=",
    b" scores on ",
    b" => Score ",
    b"waiting on permit",
    b"Observed a panic",
    b"Scheduler version",
)
"""One of these stands in each of them."""


def read_words(message: bytes) -> tuple[Kind, dict[str, str]] | None:
    """Return what an unstructured message means, with its values; None when it tells nothing of attempts."""
    if message[:1] not in _FIRST_BYTES or not any(mark in message for mark in MARKS):
        return None
    text = message.decode("utf-8", "replace")
    for kind, pattern in _WORDS:
        if found := pattern.match(text):
            return kind, found.groupdict()
    return None


_FIRST_BYTES: Final = frozenset(bytes([byte]) for byte in _FIRST)
