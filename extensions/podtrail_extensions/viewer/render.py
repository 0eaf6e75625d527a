"""From view models to HTML: the addresses of pages and the few functions that the viewer's templates may call."""

from urllib.parse import quote, urlencode

from jinja2 import Environment

from podtrail.pages import environment as kit
from podtrail.pages.chart import span_bar, ticks
from podtrail.pages.environment import FullText
from podtrail.story import ago, clock, duration, fold_links, shell_word
from podtrail_extensions.viewer.decision_views import DecisionFilter
from podtrail_extensions.viewer.views import MAX_QUERY, STATES_ASKED, PodFilter

_WIDTH = 256
"""Room for what Kubernetes lets a name be, 253 characters."""
_SERVICES = 6


def environment() -> Environment:
    """Return the environment with all templates loaded."""
    made = kit.environment(__package__, _WIDTH)
    made.filters |= {"duration": duration, "utc": clock, "shell_word": shell_word}
    made.globals |= {
        "ago": ago,
        "bar": span_bar,
        "fold_links": fold_links,
        "hue": hue,
        "pod_path": pod_path,
        "trace_path": trace_path,
        "list_path": list_path,
        "decision_path": decision_path,
        "decisions_path": decisions_path,
        "pod_decisions_path": pod_decisions_path,
        "states_asked": STATES_ASKED,
        "ticks": ticks,
    }
    return made


def pod_path(key: str) -> FullText:
    """Return the address of a Pod's page."""
    return FullText(f"/pods/{quote(key, safe='')}")


def trace_path(trace_id: bytes, span_id: bytes = b"") -> FullText:
    """Return the address of a trace's page, at one of its spans."""
    at = f"?span={span_id.hex()}#s-{span_id.hex()}" if span_id else ""
    return FullText(f"/traces/{trace_id.hex()}{at}")


def list_path(wanted: PodFilter, **changes: str | int) -> FullText:
    """Return the address of the list of Pods with a filter; changing it starts at the first page."""
    target = wanted._replace(after=0)._replace(**changes)  # type: ignore[arg-type] # named by the templates
    query = {name: value for name, value in target._asdict().items() if value != PodFilter._field_defaults[name]}
    return FullText("/?" + urlencode(query) if query else "/")


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


def hue(service: str) -> int:
    """Return the number of a service's colour: the same on every page."""
    return sum(service.encode("utf-8", "surrogatepass")) % _SERVICES
