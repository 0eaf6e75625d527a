"""In which order the page lists plugins."""

from collections.abc import Callable, Iterable, Mapping
from typing import Final

from podtrail.story.listing import PluginRow

_Key = Callable[[PluginRow], tuple[int | str, ...]]


def _most_of_its_time(row: PluginRow) -> tuple[int, int, int]:
    """Calls, median and slowest call, as the list shows them; -1 where no span tells."""
    point = row.points[0] if row.points else None
    return (point.calls, point.median, point.slowest) if point else (-1, -1, -1)


_ORDERS: Final[Mapping[str, _Key]] = {
    "waiting": lambda row: (-row.waiting, -row.total, -row.attempts),
    "plugin": lambda row: (row.plugin.lower(),),
    "refusals": lambda row: (-row.attempts,),
    "calls": lambda row: (-_most_of_its_time(row)[0],),
    "median": lambda row: (-_most_of_its_time(row)[1],),
    "slowest": lambda row: (-_most_of_its_time(row)[2],),
    "total": lambda row: (-row.total,),
}
PLUGIN_SORTS: Final = tuple(_ORDERS)
"""What a list of plugins can be sorted by, the usual order first: the most first, by `plugin` from a to z."""


def in_order(rows: Iterable[PluginRow], sort: str) -> list[PluginRow]:
    """Return plugins in an order of `PLUGIN_SORTS`."""
    key = _ORDERS[sort]
    return sorted(rows, key=lambda row: (*key(row), row.plugin))
