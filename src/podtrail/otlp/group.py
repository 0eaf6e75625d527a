"""Spans of one trace side by side, as they came: what a batch is made of."""

from typing import NamedTuple


class Group(NamedTuple):
    """Spans of one trace that arrived together under one resource and scope, in their order.

    Nothing here is decoded. Equal headers of neighbours mean that they came in one ScopeSpans; to write a group is to
    put its bytes behind its headers.
    """

    resource: bytes
    """The ResourceSpans message without its scopes: resource, schema URL and unknown fields."""
    scope: bytes
    """The ScopeSpans message without its spans: scope, schema URL and unknown fields."""
    trace_id: bytes
    """16 bytes, never all zero."""
    spans: bytes
    """The spans as they stand in a ScopeSpans message, each behind its tag and length (`framing.split` parts them)."""
    span_count: int
    """How many spans these are, at least one."""
