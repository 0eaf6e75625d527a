"""Where policies of users found their types before `podtrail.policy` had them; imports from here go on to work."""

from podtrail.policy import Attributes, FrozenValue, Span, SpanEvent, SpanLink, TraceView

__all__ = ["Attributes", "FrozenValue", "Span", "SpanEvent", "SpanLink", "TraceView"]
