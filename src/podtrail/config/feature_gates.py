"""Feature gates: behaviour that is switched with `--feature-gates=a,-b`."""

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Final

from podtrail.config.problem import did_you_mean

RECORD_POLICY: Final = "processor.tailsamplingprocessor.recordpolicy"
COUNT_SPANS_SAMPLED: Final = "processor.tailsamplingprocessor.metricstatcountspanssampled"
USE_TRACE_STATE: Final = "processor.tailsamplingprocessor.usetracestate"
TAIL_STORAGE: Final = "processor.tailsamplingprocessor.tailstorageextension"
COUNT_BYTES_SAMPLED: Final = "processor.tailsamplingprocessor.metricstatcountbytessampled"

KNOWN_GATES: Final[Mapping[str, str]] = MappingProxyType(
    {
        RECORD_POLICY: "Record the deciding policy on the instrumentation scope of kept spans "
        "(tailsampling.policy, tailsampling.composite_policy, tailsampling.cached_decision).",
        USE_TRACE_STATE: "Let `probabilistic`, `rate_limiting` and `bytes_limiting` go by the randomness in trace "
        "states, and write into those of kept spans with what threshold they were sampled (`ot=th:…`).",
        TAIL_STORAGE: "Accept `tail_storage`, which has no effect here: traces are held in memory.",
        COUNT_SPANS_SAMPLED: "Count the spans of the traces that each policy voted on "
        "(otelcol_processor_tail_sampling_count_spans_sampled).",
        COUNT_BYTES_SAMPLED: "Count the bytes of the traces that each policy voted on "
        "(otelcol_processor_tail_sampling_count_bytes_sampled).",
    }
)
"""Every gate and what it does; all are off by default."""


def parse_gates(values: Iterable[str]) -> frozenset[str]:
    """Return the gates that are on after `a,+b,-c` lists, later ones over earlier ones.

    Raises:
        ValueError: an unknown gate; the text lists the known ones.
    """
    on: set[str] = set()
    for value in values:
        for word in filter(None, (part.strip() for part in value.split(","))):
            name = word.removeprefix("-") if word.startswith("-") else word.removeprefix("+")
            if name not in KNOWN_GATES:
                raise ValueError(f"unknown feature gate {name!r}; {did_you_mean(name, tuple(KNOWN_GATES))}")
            if word.startswith("-"):
                on.discard(name)
            else:
                on.add(name)
    return frozenset(on)
