"""What a FailedScheduling text tells: nodes, reasons with counts and plugins, what preemption could do."""

import re
from typing import NamedTuple

from podtrail.otlp import Rejection, read_message

_FOUND = re.compile(
    r"found a potential placement for pod on node (?P<node>\S+), preempting (?P<victims>\d{1,9}) victims"
)
_BEGINS = re.compile(
    r"\d+/\d+ nodes are available|no nodes available to schedule pods|(pod group is unschedulable, )?minCount \(\d+\)"
)
_RUNNING = re.compile(r'running (?P<point>\w+) plugin "(?P<plugin>[^"]{1,256})": ')
_OTHERS = (
    (re.compile(r"cannot allocate all claims|resourceclaim|ResourceClaim"), "DynamicResources"),
    (re.compile(r"persistentvolumeclaim|PersistentVolumeClaim|persistent volume"), "VolumeBinding"),
    (re.compile(r"minCount \(\d+\)|pod group"), "GangScheduling"),
    (re.compile(r"scheduling gates"), "SchedulingGates"),
    (re.compile(r"had taint \{"), "TaintToleration"),
)
# Refusals that no preemption can change, as the plugins' code has them.
_UNRESOLVABLE = frozenset({"NodeName", "NodeUnschedulable", "TaintToleration", "NodeAffinity", "VolumeZone"})


class Failure(NamedTuple):
    """A failed attempt's message, read."""

    unschedulable: bool
    """It says that no node fits, as opposed to an error."""
    refusals: tuple[Rejection, ...] = ()
    nodes: int | None = None
    feasible: int | None = None
    preemption: str = ""
    nominated: str = ""
    """The node that preemption makes room on."""
    victims: int | None = None
    point: str = ""
    """The extension point at which a plugin failed, as KEP-5927 names it; "" when none did."""
    plugin: str = ""


def read_failure(message: str, asked: frozenset[str] = frozenset()) -> Failure:
    """Read a message. `asked` names the plugins known to have refused; one alone is the author of every reason."""
    if running := _RUNNING.match(message):
        point = running["point"][:1].lower() + running["point"][1:]
        return Failure(unschedulable=False, point=point, plugin=running["plugin"])
    if not _BEGINS.match(message):
        return Failure(unschedulable=False)
    why = read_message(message)
    if why.nodes is None:
        refusals = (Rejection(_author("", message, asked), "", "Unschedulable", message, None),)
        if message.startswith("no nodes available"):
            return Failure(unschedulable=True, nodes=0, feasible=0)
        return Failure(unschedulable=True, refusals=refusals)
    found = _FOUND.search(why.preemption)
    return Failure(
        unschedulable=True,
        refusals=tuple(_named(refusal, asked) for refusal in why.rejections),
        nodes=why.nodes,
        feasible=why.feasible,
        preemption=why.preemption,
        nominated=found["node"] if found else "",
        victims=int(found["victims"]) if found else None,
    )


def _named(refusal: Rejection, asked: frozenset[str]) -> Rejection:
    plugin = _author(refusal.plugin, refusal.reason, asked)
    status = "UnschedulableAndUnresolvable" if plugin in _UNRESOLVABLE else "Unschedulable"
    point = "filter" if refusal.nodes is not None else "preFilter"
    return refusal._replace(plugin=plugin, point=point, status=status)


def _author(known: str, reason: str, asked: frozenset[str]) -> str:
    if known:
        return known
    if len(asked) == 1:
        return next(iter(asked))
    return next((plugin for pattern, plugin in _OTHERS if pattern.search(reason)), "")
