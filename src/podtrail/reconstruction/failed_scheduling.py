"""What a FailedScheduling text tells: nodes, reasons with counts and plugins, what preemption could do."""

import re
from collections.abc import Sequence
from typing import Final, NamedTuple

from podtrail.otlp import Rejection, plugin_of, read_message, status_of

_FOUND = re.compile(
    r"found a potential placement for pod on node (?P<node>\S+), preempting (?P<victims>\d{1,9}) victims"
)
_BEGINS = re.compile(
    r"\d+/\d+ nodes are available|no nodes available to schedule pods|(pod group is unschedulable, )?minCount \(\d+\)"
)
_RUNNING = re.compile(
    r"(?:\w[\w ]*: )?(?:waiting on permit for pod: )?running (?:(?P<named>\w+) plugin \"(?P<plugin>[^\"]{1,256})\": "
    r"|\"(?P<filter>[^\"]{1,256})\" (?P<kind>filter|prefilter) plugin\b"
    r"|(?:Normalize on )?(?P<all>\w+) plugins: plugin \"(?P<failed>[^\"]{1,256})\" failed with: "
    r"|(?:AddPod|RemovePod) on (?P<changed>\w+) plugin \"(?P<changing>[^\"]{1,256})\": )"
)
"""How the framework names the plugin that an error is from."""
_POINTS: Final = {"filter": "filter", "prefilter": "preFilter"}


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


def read_failure(message: str, asked: frozenset[str] = frozenset(), minor: int = 0) -> Failure:
    """Read a message.

    Args:
        message: The text of the failure.
        asked: The plugins that the log says have refused; they take precedence over the words of the reasons.
        minor: The scheduler's minor release, 0 if it is not known.
    """
    if running := _RUNNING.match(message):
        name = running["named"] or running["all"] or running["changed"] or ""
        point = _POINTS.get(running["kind"] or "") or name[:1].lower() + name[1:]
        plugin = running["plugin"] or running["filter"] or running["failed"] or running["changing"]
        return Failure(unschedulable=False, point=point, plugin=plugin)
    if not _BEGINS.match(message):
        return Failure(unschedulable=False)
    why = read_message(message, minor)
    if why.nodes is None:
        plugin = plugin_of(message, minor)
        (plugin,) = _authors([plugin], asked)
        refusals = (Rejection(plugin, "", "Unschedulable", message, None),)
        if message.startswith("no nodes available"):
            return Failure(unschedulable=True, nodes=0, feasible=0)
        return Failure(unschedulable=True, refusals=refusals)
    found = _FOUND.search(why.preemption)
    return Failure(
        unschedulable=True,
        refusals=tuple(
            _refusal(refusal, plugin, minor)
            for refusal, plugin in zip(
                why.rejections, _authors([refusal.plugin for refusal in why.rejections], asked), strict=True
            )
        ),
        nodes=why.nodes,
        feasible=why.feasible,
        preemption=why.preemption,
        nominated=found["node"] if found else "",
        victims=int(found["victims"]) if found else None,
    )


def _refusal(refusal: Rejection, plugin: str, minor: int) -> Rejection:
    status = status_of(refusal.reason, minor) if plugin == refusal.plugin else ""
    point = "filter" if refusal.nodes is not None else "preFilter"
    return refusal._replace(plugin=plugin, point=point, status=status or "Unschedulable")


def _authors(plugins: Sequence[str], asked: frozenset[str]) -> list[str]:
    """Return the plugin of each reason: by its words if the log names that one, too, else one that only it names."""
    if not asked:
        return list(plugins)
    named = [" or ".join(name for name in plugin.split(" or ") if name in asked) for plugin in plugins]
    left = asked - {name for plugin in named for name in plugin.split(" or ")}
    other = next(iter(left)) if len(left) == 1 else next(iter(asked)) if len(asked) == 1 else ""
    return [name or other or plugin for name, plugin in zip(named, plugins, strict=True)]
