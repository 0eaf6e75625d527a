"""From view models to HTML: the addresses of pages and the few functions that the viewer's templates may call."""

from functools import cache
from typing import Any
from urllib.parse import quote, urlencode

from jinja2 import Environment

from podtrail.pages import environment as kit
from podtrail.pages.chart import span_bar, ticks
from podtrail.pages.environment import FullText
from podtrail.reports.html import CELL_TESTS
from podtrail.story import (
    ANY_STATE,
    POD_LANGUAGE,
    RANGE_KEYS,
    STATES_ASKED,
    HeardBetween,
    Language,
    ago,
    clip,
    clock,
    duration,
    fold_links,
    quoted,
)
from podtrail.story.pending_question import PodsAlike
from podtrail.story.plugin_times import slow_in_short
from podtrail.story.time_range import TimeRange
from podtrail.story.trace_search import TRACE_LANGUAGE
from podtrail_extensions.viewer.alike import alike_query
from podtrail_extensions.viewer.asked_range import range_query
from podtrail_extensions.viewer.decision_views import DecisionFilter
from podtrail_extensions.viewer.listings import minute_bars, names_path, node_path, plugin_path
from podtrail_extensions.viewer.shape_views import MARKS, row_range
from podtrail_extensions.viewer.static_files import StaticFiles
from podtrail_extensions.viewer.trace_list import traces_path
from podtrail_extensions.viewer.views import MAX_QUERY, PodFilter

_WIDTH = 256
"""Room for what Kubernetes lets a name be, 253 characters."""
_SERVICES = 6
_SEARCHED = 80
"""Characters of a value that a link searches for."""
_SHORT = 40


@cache
def environment(static: StaticFiles) -> Environment:
    """Return the environment with all templates loaded; pages name these files. Its templates are compiled once."""
    made = kit.environment(__package__, _WIDTH)
    made.filters |= {"duration": duration, "utc": clock, "short": short}
    made.tests |= CELL_TESTS
    made.globals |= {
        "ago": ago,
        "bar": span_bar,
        "fold_links": fold_links,
        "hue": hue,
        "pod_path": pod_path,
        "attempt_path": attempt_path,
        "attempts_path": attempts_path,
        "cluster_path": cluster_path,
        "compare_path": compare_path,
        "trace_path": trace_path,
        "trace_page_path": trace_page_path,
        "incident_path": incident_path,
        "list_path": list_path,
        "decision_path": decision_path,
        "decisions_path": decisions_path,
        "pod_decisions_path": pod_decisions_path,
        "states_asked": STATES_ASKED,
        "no_range": HeardBetween(),
        "none_wanted": DecisionFilter(),
        "pods_of_plugin_path": pods_of_plugin_path,
        "range_path": range_path,
        "static_path": static.path,
        "range_query": range_query,
        "row_range": row_range,
        "shape_marks": MARKS,
        "pod_search_keys": search_keys(POD_LANGUAGE),
        "ticks": ticks,
        "node_path": node_path,
        "plugin_path": plugin_path,
        "names_path": names_path,
        "search_path": search_path,
        "alike_path": alike_path,
        "traces_path": traces_path,
        "trace_search_keys": search_keys(TRACE_LANGUAGE),
        "minute_bars": minute_bars,
        "slow_in_short": slow_in_short,
    }
    return made


def pod_path(key: str) -> FullText:
    """Return the address of a Pod's page."""
    return FullText(f"/pods/{quote(key, safe='')}")


def attempts_path(key: str, first: int | None = None) -> FullText:
    """Return the address of the list of a Pod's attempts, from a number on."""
    return FullText(f"/pods/{quote(key, safe='')}/attempts{'' if first is None else f'?from={first}'}")


def attempt_path(key: str, number: int) -> FullText:
    """Return the address of one attempt's page."""
    return FullText(f"/pods/{quote(key, safe='')}/attempts/{number}")


def compare_path(key: str, one: int | None = None, other: int | None = None) -> FullText:
    """Return the address of two attempts side by side."""
    query = "" if one is None else f"?{urlencode({'a': one, 'b': other})}"
    return FullText(f"/pods/{quote(key, safe='')}/compare{query}")


def short(name: str) -> str:
    """Return a name that may be as long as a cluster's, with its middle left out: it stands beside many."""
    return clip(name, _SHORT)


def cluster_path(cluster: str) -> FullText:
    """Return the address of the list of a cluster's Pods."""
    return list_path(PodFilter(), cluster=cluster, state=ANY_STATE)


def trace_path(trace_id: bytes, span_id: bytes = b"") -> FullText:
    """Return the address of a trace's page, at one of its spans."""
    at = f"?span={span_id.hex()}#s-{span_id.hex()}" if span_id else ""
    return FullText(f"/traces/{trace_id.hex()}{at}")


def incident_path(since: str | int, until: int | None = None, ending: str = "") -> FullText:
    """Return the address of what happened in a range of time, Unix nanoseconds; `ending` is that of a file."""
    query = {"from": since} if isinstance(since, str) else TimeRange(since, since if until is None else until).query
    query = query if until is not None else {"from": query["from"]}
    return FullText(f"/incident{ending}?{urlencode(query, safe=':')}")


def trace_page_path(trace_id: bytes, first: int) -> FullText:
    """Return the address of a trace's page, with its rows from a place on."""
    return FullText(f"/traces/{trace_id.hex()}?from={first}")


def list_path(wanted: PodFilter, **changes: str | int | HeardBetween) -> FullText:
    """Return the address of the list of Pods with a filter; changing it starts at the first page."""
    target = wanted._replace(after=0)._replace(**changes)  # type: ignore[arg-type] # named by the templates
    query = {name: value for name, value in target._asdict().items() if value != PodFilter._field_defaults[name]}
    if within := query.pop("during", None):
        query |= {"state": target.state} | range_query(within)  # without a state it would be of all
    return FullText("/?" + urlencode(query) if query else "/")


def pods_of_plugin_path(plugin: str) -> FullText:
    """Return the address of the list of the Pods that a plugin refused or kept waiting."""
    return list_path(PodFilter(), plugin=plugin, state=ANY_STATE)


def range_path(path: str, since: int, until: int | None) -> FullText:
    """Return an address with a range of time put behind it."""
    return FullText(f"{path}{'&' if '?' in path else '?'}{urlencode(range_query(HeardBetween(since, until)))}")


def decision_path(trace_id: bytes) -> FullText:
    """Return the address of a decision's page."""
    return FullText(f"/decisions/{trace_id.hex()}")


def decisions_path(wanted: DecisionFilter, **changes: str | int | None) -> FullText:
    """Return the address of the list of decisions with a filter; changing it starts at the latest."""
    target = wanted._replace(before=None)._replace(**changes)  # type: ignore[arg-type] # named by the templates
    query = {n: v for n, v in target._asdict().items() if v != DecisionFilter._field_defaults[n]}
    return FullText(f"/policies?{urlencode(query)}#decisions" if query else "/policies#decisions")


def pod_decisions_path(key: str) -> FullText:
    """Return the address of the list of decisions about a Pod's attempts."""
    return decisions_path(DecisionFilter(), q=key[:MAX_QUERY])


def search_keys(language: Language[Any]) -> tuple[tuple[str, str], ...]:
    """Return the keys of a search with their meanings."""
    return (*((name, key.meaning) for name, key in language.keys.items()), *RANGE_KEYS.items())


def alike_path(group: PodsAlike) -> FullText:
    """Return the address of the list of the Pods that wait for the same reason."""
    return list_path(PodFilter(), q=alike_query(group))


def search_path(**terms: str) -> FullText:
    """Return the address of a search for Pods in any state by `key:value`; long values are cut."""
    said = " ".join(f"{key}:{quoted(value[:_SEARCHED])}" for key, value in terms.items())
    return list_path(PodFilter(), q=said[:MAX_QUERY], state=ANY_STATE)


def hue(service: str) -> int:
    """Return the number of a service's colour: the same on every page."""
    return sum(service.encode("utf-8", "surrogatepass")) % _SERVICES
