"""What traces are told apart by: attributes of their root span, or of a resource, as a short text."""

from collections.abc import Sequence

from podtrail.otlp import SpanFields, Value, read_key_value, resource_attributes
from podtrail_processors.evidence.evidence import Evidence, Reads

_LONGEST = 64
"""Characters of a value that count."""
_ABSENT = "-"
_NO_PARENTS = (b"", bytes(8))
_ALL = "all"


class TraceKey:
    """Reads the values of some attributes, put together as `default-scheduler/Success`; `-` for what is not there."""

    def __init__(self, names: tuple[str, ...]) -> None:
        self.names = names
        detailed = frozenset({"span_id", "parent_span_id", "attributes"}) if names else frozenset[str]()
        self.reads = Reads(detailed=detailed)
        self._encoded = [name.encode() for name in names]

    def of(self, trace: Evidence) -> str:
        """Return the key of a trace, `all` when nothing is told apart."""
        if not self.names:
            return _ALL
        found: dict[str, str] = {}
        for encoded in self._encoded:
            if encoded in trace.raw:
                self._read(trace, found)
                break
        return "/".join([found.get(name) or _on_resource(trace, name) for name in self.names])

    def _read(self, trace: Evidence, found: dict[str, str]) -> None:
        for pair in _root(trace.detailed).attributes:
            for encoded in self._encoded:
                if encoded in pair:
                    name, value = read_key_value(pair)
                    if name not in found:
                        found[name] = _text(value)
                    break


def _root(spans: Sequence[SpanFields]) -> SpanFields:
    """Return the span without a parent, or else the first one whose parent is not among them."""
    for span in spans:
        if span.parent_span_id in _NO_PARENTS:
            return span
    ids = {span.span_id for span in spans}
    return next((span for span in spans if span.parent_span_id not in ids), spans[0])


def _on_resource(trace: Evidence, name: str) -> str:
    for header in trace.headers:
        if name.encode() in header.resource:
            attributes = resource_attributes(header.resource)
            if name in attributes:
                return _text(attributes[name])
    return _ABSENT


def _text(value: Value) -> str:
    if isinstance(value, str):
        return value[:_LONGEST] or _ABSENT
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:g}" if isinstance(value, int | float) else _ABSENT
