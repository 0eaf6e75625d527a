"""What the policies on one attribute share: looking it up on resources and spans, no further decoded than needed."""

from collections.abc import Callable, Iterator
from functools import lru_cache

from podtrail.otlp import Decision, Value, read_key_value, resource_attributes
from podtrail_processors.sought import Sought
from podtrail_processors.tail_sampling.evidence import Evidence, Reads

READS = Reads(columns=frozenset({"attributes"}), detailed=frozenset({"attributes"}))
_RESOURCES = 256

Meets = Callable[[Value], bool]


class Lookup:
    """Asks whether an attribute meets something. Scopes, events and links are not looked at, as in the Collector."""

    def __init__(self, key: str, meets: Meets, *, on_resource: Meets | None = None) -> None:
        """`on_resource` is asked about resources, if not `meets` as well."""
        self._key = key
        self._encoded = key.encode("utf-8", "surrogateescape")
        self._meets = meets
        self._sought = Sought("attributes", self._is_met_by, key)
        self._others = Sought("attributes", self._is_missed_by, key)
        self._resource_meets = lru_cache(maxsize=_RESOURCES)(self._ask_resource(on_resource or meets))

    def matches(self, trace: Evidence) -> bool:
        """Say whether it does on a resource or span of a trace; of a key given twice the first counts."""
        for header in trace.headers:
            if self._resource_meets(header.resource):
                return True
        if not trace.met(self._sought):
            return False
        # Where the key stands with values that match and with others, a span may have both.
        return not trace.met(self._others) or any(map(self._meets, self.on_spans(trace)))

    def on_spans(self, trace: Evidence) -> Iterator[Value]:
        """Yield the attribute's value on each span that has it."""
        key, encoded = self._key, self._encoded
        for span in trace.detailed:
            for pair in span.attributes:
                if encoded in pair:
                    name, value = read_key_value(pair)
                    if name == key:
                        yield value
                        break

    def _ask_resource(self, meets: Meets) -> Callable[[bytes], bool]:
        def ask(header: bytes) -> bool:
            attributes = resource_attributes(header) if self._encoded in header else {}
            return self._key in attributes and meets(attributes[self._key])

        return ask

    def _is_met_by(self, pair: bytes) -> bool:
        name, value = read_key_value(pair)
        return name == self._key and self._meets(value)

    def _is_missed_by(self, pair: bytes) -> bool:
        name, value = read_key_value(pair)
        return name == self._key and not self._meets(value)


def verdict(*, matched: bool, inverted: bool) -> Decision:
    """Return the vote for a trace of which something, or nothing, matched."""
    return "sampled" if matched is not inverted else "not_sampled"
