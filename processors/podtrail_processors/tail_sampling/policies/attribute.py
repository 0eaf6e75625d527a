"""What the policies on one attribute share: looking it up on resources and spans, no further decoded than needed."""

from collections.abc import Iterator
from typing import NamedTuple

from podtrail.otlp import Decision, Value, read_key_value, resource_attributes
from podtrail_processors.tail_sampling.evidence import Evidence, Reads

READS = Reads(detailed=frozenset({"attributes"}))


class Found(NamedTuple):
    """The attribute where it was found."""

    value: Value
    on_resource: bool


class Lookup:
    """Finds the values of one attribute in a trace. Scopes, events and links are not looked at, as in the Collector."""

    def __init__(self, key: str) -> None:
        self._key = key
        self._encoded = key.encode()

    def values(self, trace: Evidence) -> Iterator[Found]:
        """Yield the attribute's value on each resource and span that has it; of a key given twice the first counts."""
        key, encoded = self._key, self._encoded
        for header in trace.headers:
            if encoded in header.resource:
                attributes = resource_attributes(header.resource)
                if key in attributes:
                    yield Found(attributes[key], on_resource=True)
        if encoded not in trace.raw:
            return
        for span in trace.detailed:
            for pair in span.attributes:
                if encoded in pair:
                    name, value = read_key_value(pair)
                    if name == key:
                        yield Found(value, on_resource=False)
                        break


def verdict(*, matched: bool, inverted: bool) -> Decision:
    """Return the vote for a trace of which something, or nothing, matched."""
    return "sampled" if matched is not inverted else "not_sampled"
