"""What the policies on one attribute share: looking it up on resources and spans, no further decoded than needed."""

from collections.abc import Callable, Iterator

from podtrail.config.types import WarningPath
from podtrail.otlp import Decision, SpanFields, Value, read_key_value, resource_attributes
from podtrail.otlp.remembering import remembering
from podtrail_processors.evidence.evidence import Evidence, Reads
from podtrail_processors.evidence.sought import Sought
from podtrail_processors.tail_sampling.voting.evaluator import Evaluator
from podtrail_processors.tail_sampling.voting.words import name_of, shown, some

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
        self._resource_meets = remembering(_RESOURCES)(self._ask_resource(on_resource or meets))
        self.gates = frozenset([self._sought, Sought("resource", self._resource_meets)])
        """It is met nowhere unless one of these is."""

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
        for span in trace.detailed:
            yield from self._value_on(span)

    def told(self, trace: Evidence, *, met: bool) -> str:
        """Tell where it is met, or else what the values are; of evidence that `tells`."""
        places: list[tuple[Value, str, bool]] = []
        for header in trace.headers:
            attributes = resource_attributes(header.resource)
            if self._key in attributes:
                places.append((attributes[self._key], "on the resource", self._resource_meets(header.resource)))
        for span in trace.detailed:
            places += [(value, f"on span {name_of(span)}", self._meets(value)) for value in self._value_on(span)]
        told = dict.fromkeys(f"{shown(value)} {place}" for value, place, does in places if does is met)
        return f"{self._key} is {some(list(told))}" if told else f"no span and no resource has {self._key}"

    def _value_on(self, span: SpanFields) -> Iterator[Value]:
        for pair in span.attributes:
            if self._encoded in pair:
                name, value = read_key_value(pair)
                if name == self._key:
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


class AttributeEvaluator(Evaluator):
    """Says yes when an attribute meets something somewhere, or `inverted`, when it does nowhere."""

    reads = READS

    def __init__(self, reason: str, lookup: Lookup, inverted: bool) -> None:
        """`reason`: what it says yes to."""
        self.reason = reason
        self.gates = None if inverted else lookup.gates
        self._lookup = lookup
        self._inverted = inverted

    def vote(self, trace: Evidence) -> Decision:
        """Look the attribute up."""
        return "sampled" if self._lookup.matches(trace) is not self._inverted else "not_sampled"

    def because(self, trace: Evidence) -> str:
        """Tell the value and where it stands, where that is read."""
        return self._lookup.told(trace, met=not self._inverted) if trace.tells else self.reason

    def why_not(self, trace: Evidence) -> str:
        """Tell the values and where they stand."""
        return f"{self._lookup.told(trace, met=self._inverted)}; wanted is: {self.reason}"


def keyless(key: str) -> list[tuple[WarningPath, str]]:
    """Return what is hardly meant by a policy on no attribute."""
    return [] if key else [(("key",), "names no attribute")]
