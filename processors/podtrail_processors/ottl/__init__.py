"""Conditions on spans and on events of spans in the Collector's language for them (OTTL).

`Condition(text, SPAN)` compiles a condition; its `holds` is asked about a `Telemetry`. The grammar, the paths and the
functions are those of opentelemetry-collector-contrib v0.161.0; functions that are not there are refused by name.
"""

from podtrail_processors.ottl.condition import Condition
from podtrail_processors.ottl.paths import SPAN, SPAN_EVENT, PathContext
from podtrail_processors.ottl.telemetry import SpanData, Telemetry
from podtrail_processors.ottl.values.errors import ConditionError, EvaluationError

__all__ = [
    "SPAN",
    "SPAN_EVENT",
    "Condition",
    "ConditionError",
    "EvaluationError",
    "PathContext",
    "SpanData",
    "Telemetry",
]
