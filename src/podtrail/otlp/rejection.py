"""Which plugins rejected which nodes, and why: from spans `plugin: …` (KEP-5927), or from the FailedScheduling text."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, cast

from podtrail.otlp.lite import SPAN, lite_type
from podtrail.otlp.values import Value, read_key_value

_PLUGIN = "plugin: "
REFUSAL = b"plugin rejected"
"""The name of the span events that tell of a plugin's rejections."""
POST_FILTER = "postFilter"
_SPAN = cast("Any", lite_type(SPAN, {"name": None, "attributes": None, "events": {"name": None, "attributes": None}}))
_HEADER = re.compile(r"(?<!\d)(\d+)/(\d+) nodes are available: ")
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
    """Nodes that one plugin rejected for one reason."""

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


def read_rejections(span: bytes) -> Iterable[Rejection]:
    """Yield what a `plugin: …` span tells of that kept the Pod from being scheduled.

    As in kube-scheduler's UnschedulablePlugins, what postFilter could not do about it is none of it.
    """
    return (refusal for refusal in read_refusals(span) if refusal.point != POST_FILTER)


def read_refusals(span: bytes) -> Iterable[Rejection]:
    """Yield all refusals that a `plugin: …` span tells in its `plugin rejected` events, at postFilter as well."""
    if REFUSAL not in span:
        return
    fields = _SPAN.FromString(span)
    plugin = _attributes(fields.attributes)
    for event in fields.events:
        if event.name != REFUSAL:
            continue
        own = _attributes(event.attributes)
        told = {**plugin, **own}
        names = told.get("scheduler.nodes.names")
        shown = tuple(name for name in names if isinstance(name, str)) if isinstance(names, list) else ()
        count = _number(told.get("scheduler.nodes.count"))
        if count is None:
            count = _number(told.get("scheduler.nodes.rejected"))
        yield Rejection(
            plugin=_text(told.get("scheduler.plugin.name")) or fields.name.decode().removeprefix(_PLUGIN),
            point=_text(told.get("scheduler.plugin.extension_point")),
            status=_text(own.get("scheduler.result")),
            reason=_text(told.get("scheduler.reason")),
            nodes=len(shown) if count is None and shown else count,
            names=shown,
        )


def _attributes(pairs: Sequence[bytes]) -> Mapping[str, Value]:
    return dict(map(read_key_value, reversed(pairs)))  # of several of one key the first counts


def _number(value: Value) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _text(value: Value) -> str:
    return value if isinstance(value, str) else ""
