"""Who said no, on which nodes, in what words: from plugin spans, or else from the scheduler's own message."""

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from podtrail.otlp import SpanView, Value

_PLUGIN = "plugin: "
_HEADER = re.compile(r"(\d+)/(\d+) nodes are available: ")
_COUNTED = re.compile(r",\s+(?=\d+ )")

# Who says what in kube-scheduler's default plugins: the message counts reasons without naming a plugin.
_AUTHORS = (
    (re.compile(r"^(Insufficient |Too many pods)"), "NodeResourcesFit"),
    (re.compile(r"untolerated taint"), "TaintToleration"),
    (re.compile(r"node affinity/selector|PreferredDuringScheduling"), "NodeAffinity"),
    (re.compile(r"were unschedulable"), "NodeUnschedulable"),
    (re.compile(r"requested node name"), "NodeName"),
    (re.compile(r"free ports"), "NodePorts"),
    (re.compile(r"topology spread constraints"), "PodTopologySpread"),
    (re.compile(r"pod (anti-)?affinity rules"), "InterPodAffinity"),
    (
        re.compile(r"volume node affinity|didn't find available persistent volumes|PersistentVolumeClaims"),
        "VolumeBinding",
    ),
    (re.compile(r"exceed max volume count"), "NodeVolumeLimits"),
    (re.compile(r"no available volume zone"), "VolumeZone"),
)


class Rejection(NamedTuple):
    """One plugin's no, for one reason."""

    plugin: str
    """"" where the source does not name it."""
    point: str
    """The extension point, for instance `filter`; "" when not known."""
    status: str
    """`Unschedulable`, `UnschedulableAndUnresolvable`, …; "" when not known."""
    reason: str
    nodes: int | None
    """How many nodes; None when the source does not say."""
    names: tuple[str, ...] = ()
    """Names of these nodes, as many as the source gives."""


class Why(NamedTuple):
    """Why an attempt found no node. The counts of first refusals add up to the nodes looked at."""

    rejections: tuple[Rejection, ...] = ()
    """In the order in which the plugins were asked, or in the order of the message."""
    nodes: int | None = None
    """Nodes in the cluster."""
    evaluated: int | None = None
    """Nodes looked at; fewer than `nodes` where the scheduler samples them."""
    feasible: int | None = None
    preemption: str = ""
    """What preemption could do, in the scheduler's words."""
    message_only: bool = False
    """Told from the status message: reasons are counted, nodes are not named, one node may count twice."""


def read_message(message: str) -> Why:
    """Return what a FailedScheduling message tells; a message of another form is one reason without a count."""
    found = _HEADER.search(message)
    if not found:
        return Why((Rejection("", "", "", message, None),) if message else (), message_only=True)
    text, _, preemption = message[found.end() :].partition("preemption: ")
    rejections = []
    for part in _COUNTED.split(text.strip().removesuffix(".")):
        count, _, reason = part.partition(" ")
        if count.isdecimal() and len(count) < 10:
            rejections.append(Rejection(_author(reason), "", "", reason, int(count)))
        elif part:
            rejections.append(Rejection(_author(part), "", "", part, None))
    inner = _HEADER.search(preemption)
    return Why(
        tuple(rejections),
        nodes=_count(found[2]),
        feasible=_count(found[1]),
        preemption=(preemption[inner.end() :] if inner else preemption).strip().removesuffix("."),
        message_only=True,
    )


def _count(digits: str) -> int | None:
    return int(digits) if len(digits) < 10 else None


def _author(reason: str) -> str:
    return next((plugin for pattern, plugin in _AUTHORS if pattern.search(reason)), "")


def read_rejections(span: SpanView) -> Iterable[Rejection]:
    """Yield the refusals that a `plugin: …` span tells in its `plugin rejected` events."""
    for event in span.events:
        if event.name != "plugin rejected":
            continue
        told = {**span.attributes, **event.attributes}
        names = told.get("scheduler.nodes.names")
        shown = tuple(name for name in names if isinstance(name, str)) if isinstance(names, list) else ()
        count = number(told.get("scheduler.nodes.count"))
        if count is None:
            count = number(told.get("scheduler.nodes.rejected"))
        yield Rejection(
            plugin=text(told.get("scheduler.plugin.name")) or span.name.removeprefix(_PLUGIN),
            point=text(told.get("scheduler.plugin.extension_point")),
            status=text(event.attributes.get("scheduler.result")),
            reason=text(told.get("scheduler.reason")),
            nodes=len(shown) if count is None and shown else count,
            names=shown,
        )


def number(value: Value) -> int | None:
    """Return an attribute's value if it is a whole number."""
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def text(value: Value) -> str:
    """Return an attribute's value if it is text, else ""."""
    return value if isinstance(value, str) else ""


def size(rejections: Sequence[Rejection]) -> int:
    """Return about how many bytes these take in memory."""
    return sum(200 + len(r.reason) + len(r.plugin) + sum(60 + len(name) for name in r.names) for r in rejections)
