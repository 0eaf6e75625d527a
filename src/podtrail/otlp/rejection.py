"""Which plugins rejected which nodes, and why: from spans `plugin: …` (KEP-5927), or from the FailedScheduling text."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, cast

from podtrail.otlp.lite import SPAN, lite_type
from podtrail.otlp.reasons import plugin_of
from podtrail.otlp.values import Value, read_key_value

_PLUGIN = "plugin: "
REFUSAL = b"plugin rejected"
"""The name of the span events that tell of a plugin's rejections."""
POST_FILTER = "postFilter"
_SPAN = cast("Any", lite_type(SPAN, {"name": None, "attributes": None, "events": {"name": None, "attributes": None}}))
_HEADER = re.compile(r"(?<!\d)(\d+)/(\d+) nodes are available: ")
_COUNTED = re.compile(r",\s+(?=\d+ (?!remaining\b))")  # GangScheduling: "9 scheduled, 4 remaining"

_PREEMPTION = re.compile(r"(?:^|(?<=[.,] ))preemption: ")
_POST_FILTERED = re.compile(
    r"\. (?:no new claims to deallocate|still not schedulable|not found|plugin disabled"
    r"|(?:deallocation|deletion) [\w ]{1,80} completed|ResourceClaim unreserved for PodGroup)[.,]?$"
)
"""What DynamicResources appends to the reasons when it could not help either."""


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


def read_message(message: str, minor: int = 0) -> Why:
    """Return what a FailedScheduling message tells; a message of another form is one reason without a count.

    `minor` is the scheduler's minor release (35 for 1.35), 0 if it is not known: texts moved between plugins.
    """
    found = _HEADER.search(message)
    if not found:
        return Why((Rejection("", "", "", message, None),) if message else (), message_only=True)
    text, preemption = _split(message[found.end() :])
    # PreFilter gives one reason without a count, which may have commas and numbers in it.
    parts = [text] if not text[:1].isdigit() and plugin_of(text, minor) else _COUNTED.split(text)
    rejections = []
    for part in parts:
        count, _, reason = part.partition(" ")
        if count.isdecimal() and len(count) < 10:
            rejections.append(_rejection(reason, int(count), minor))
        elif part:
            rejections.append(_rejection(part, None, minor))
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


def _split(text: str) -> tuple[str, str]:
    """Return the reasons in a message, and what preemption could do, without what other PostFilter plugins add."""
    found = _PREEMPTION.search(text)
    reasons = text[: found.start()].strip() if found else text.strip()
    if found and reasons.endswith(","):
        reasons = reasons[: reasons.rfind(". ") + 1] if ". " in reasons else ""
    cut = _POST_FILTERED.search(reasons)
    return (reasons[: cut.start()] if cut else reasons).removesuffix("."), text[found.end() :] if found else ""


def _rejection(reason: str, nodes: int | None, minor: int) -> Rejection:
    first, stop, _ = reason.partition(". ")
    if stop and plugin_of(first, minor):  # a PostFilter plugin of a third party appends to the last reason
        reason = first
    return Rejection(plugin_of(reason, minor), "", "", reason, nodes)


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
