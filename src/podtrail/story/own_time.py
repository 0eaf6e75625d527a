"""Where the time of a trace went: what each plugin, and each other kind of span, took for itself."""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from podtrail.otlp import Group, SpanView, raw_span_reader, split
from podtrail.otlp.reader import SpanFields
from podtrail.story.pace import plugin_time
from podtrail.story.values import text

_read = raw_span_reader(("span_id", "parent_span_id", "name", "start_time_unix_nano", "end_time_unix_nano"))
_PLUGIN = b"plugin: "
_POINT = "scheduler.plugin.extension_point"


class TimeShare(NamedTuple):
    """What spans of one kind took for themselves, without the spans below them."""

    who: str
    """The plugin; of other spans their name."""
    point: str
    """The extension point at which the plugin was asked; "" for other spans."""
    plugin: bool
    took: int
    """Nanoseconds: of a plugin in its calls, summed over nodes; of other spans what no span below them covers."""
    spans: int
    span_id: bytes
    """The one of them that took most."""


class _Own(NamedTuple):
    fields: SpanFields
    took: int
    point: str


def time_shares(groups: Iterable[Group]) -> tuple[TimeShare, ...]:
    """Return what took time in a trace, the most first."""
    spans: dict[bytes, tuple[SpanFields, bytes]] = {}
    for group in groups:
        for fields, raw in zip(_read(group.spans), split(group.spans), strict=True):
            spans.setdefault(fields.span_id, (fields, raw))
    below: dict[bytes, list[SpanFields]] = {}
    for fields, _ in spans.values():
        if fields.parent_span_id in spans and fields.parent_span_id != fields.span_id:
            below.setdefault(fields.parent_span_id, []).append(fields)
    shares: dict[tuple[str, str, bool], list[_Own]] = {}
    for fields, raw in spans.values():
        name = bytes(fields.name)
        if name.startswith(_PLUGIN):
            span = SpanView(raw)
            point = text(span.attributes.get(_POINT))
            who = text(span.attributes.get("scheduler.plugin.name")) or span.name.removeprefix("plugin: ")
            shares.setdefault((who, point, True), []).append(_Own(fields, plugin_time(span), point))
        else:
            own = _uncovered(fields, below.get(fields.span_id, ()))
            shares.setdefault((name.decode("utf-8", "replace"), "", False), []).append(_Own(fields, own, ""))
    told = [
        TimeShare(
            *kind, sum(one.took for one in alike), len(alike), max(alike, key=lambda one: one.took).fields.span_id
        )
        for kind, alike in shares.items()
    ]
    return tuple(sorted((one for one in told if one.took > 0), key=lambda one: -one.took))


def plugin_times(groups: Iterable[Group]) -> Mapping[tuple[str, str], int]:
    """Return what each plugin took at each extension point, in nanoseconds."""
    return {(one.point, one.who): one.took for one in time_shares(groups) if one.plugin}


def _uncovered(span: SpanFields, below: Sequence[SpanFields]) -> int:
    """Return how much of a span none of those below it covers."""
    start, end = span.start_time_unix_nano, span.end_time_unix_nano
    own, covered = max(0, end - start), start
    for one in sorted(below, key=lambda fields: fields.start_time_unix_nano):
        begun, over = max(one.start_time_unix_nano, covered), min(one.end_time_unix_nano, end)
        if over > begun:
            own -= over - begun
            covered = over
    return max(0, own)
