"""From view models to HTML: the template environment and the few functions that templates may call.

Every value that a template puts out passes `finalize`: control and direction characters become visible, long text is
cut in the middle. What that returns is escaped by jinja2; nothing here marks text as safe.
"""

from importlib.resources import files
from urllib.parse import quote, urlencode

from jinja2 import DictLoader, Environment, StrictUndefined
from markupsafe import Markup

from podtrail.story import ago, clip, clock, duration, shell_word, stamp, visible
from podtrail_extensions.viewer.decision_views import DecisionFilter
from podtrail_extensions.viewer.views import MAX_QUERY, PodFilter

_WIDTH = 256
"""Room for what Kubernetes lets a name be, 253 characters."""
AXIS = 1000
"""Width of the waterfall's drawing, in its own units."""
_LEAST = 4
_SERVICES = 6


class Whole(str):
    """Text that is shown in full length."""

    __slots__ = ()


def environment() -> Environment:
    """Return the environment with all templates loaded."""
    folder = files(__package__) / "templates"
    sources = {one.name: one.read_text(encoding="utf-8") for one in folder.iterdir() if one.name.endswith(".html")}
    env = Environment(
        loader=DictLoader(sources),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=finalize,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    env.filters |= {
        "duration": duration,
        "number": number,
        "utc": clock,
        "iso": stamp,
        "whole": Whole,
        "shell_word": shell_word,
    }
    env.globals |= {
        "ago": ago,
        "bar": bar,
        "hue": hue,
        "pod_path": pod_path,
        "trace_path": trace_path,
        "list_path": list_path,
        "decision_path": decision_path,
        "decisions_path": decisions_path,
        "pod_decisions_path": pod_decisions_path,
        "ticks": ticks,
    }
    return env


def finalize(value: object) -> object:
    """Return what a template may put out in place of a value."""
    if isinstance(value, Markup) or not isinstance(value, str):
        return value
    return visible(value if isinstance(value, Whole) else clip(value, _WIDTH))


def number(value: int | None) -> str:
    """Return a number with its thousands apart; `-` for None."""
    return "-" if value is None else f"{value:,}"


def pod_path(key: str) -> Whole:
    """Return the address of a Pod's page."""
    return Whole(f"/pods/{quote(key, safe='')}")


def trace_path(trace_id: bytes, span_id: bytes = b"") -> Whole:
    """Return the address of a trace's page, at one of its spans."""
    at = f"?span={span_id.hex()}#s-{span_id.hex()}" if span_id else ""
    return Whole(f"/traces/{trace_id.hex()}{at}")


def list_path(wanted: PodFilter, **changes: str | int) -> Whole:
    """Return the address of the list of Pods with a filter; changing it starts at the first page."""
    target = wanted._replace(after=0)._replace(**changes)  # type: ignore[arg-type] # named by the templates
    query = {name: value for name, value in target._asdict().items() if value != PodFilter._field_defaults[name]}
    return Whole("/?" + urlencode(query) if query else "/")


def decision_path(trace_id: bytes) -> Whole:
    """Return the address of a decision's page."""
    return Whole(f"/decisions/{trace_id.hex()}")


def decisions_path(wanted: DecisionFilter, **changes: str | int | None) -> Whole:
    """Return the address of the list of decisions with a filter; changing it starts at the latest."""
    target = wanted._replace(before=None)._replace(**changes)  # type: ignore[arg-type] # named by the templates
    query = {n: v for n, v in target._asdict().items() if v != DecisionFilter._field_defaults[n]}
    return Whole(f"/policies?{urlencode(query)}#decisions" if query else "/policies#decisions")


def pod_decisions_path(key: str) -> Whole:
    """Return the address of the list of decisions about a Pod's attempts."""
    return decisions_path(DecisionFilter(), q=key[:MAX_QUERY])


def bar(offset: int, length: int | None, whole: int) -> tuple[int, int]:
    """Return start and width of a span's bar on the axis, at least a line that can be seen."""
    if whole <= 0:
        return 0, AXIS
    start = min(AXIS - _LEAST, max(0, offset * AXIS // whole))
    width = max(_LEAST, (length or 0) * AXIS // whole)
    return start, min(width, AXIS - start)


def ticks(whole: int) -> tuple[str, ...]:
    """Return the words under the axis: start, quarters, end."""
    return tuple("0" if not part else duration(whole * part // 4) for part in range(5))


def hue(service: str) -> int:
    """Return the number of a service's colour: the same on every page."""
    return sum(service.encode("utf-8", "surrogatepass")) % _SERVICES
