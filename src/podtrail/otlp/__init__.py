"""The wire: OTLP requests, batches of undecoded spans, views. The only room that knows a field number."""

from podtrail.otlp.attempt import ROOT_NAME, Attempt, attempt_of, attempts_in, read_attempt
from podtrail.otlp.batch import Batch, merge
from podtrail.otlp.cluster import CLUSTER_NAME, cluster_name
from podtrail.otlp.edit import (
    annotate_links,
    append_attributes,
    append_links,
    change_attributes,
    change_resource,
    encode_span,
    keep_events,
    resource_header,
    scope_header,
    set_scope_attributes,
    set_trace_state,
)
from podtrail.otlp.framing import frame, split
from podtrail.otlp.group import Group
from podtrail.otlp.reader import SpanFields, SpanValues, raw_span_reader, span_reader, status_code
from podtrail.otlp.reasons import plugin_of, status_of
from podtrail.otlp.rejection import POST_FILTER, REFUSAL, Rejection, Why, read_message, read_refusals, read_rejections
from podtrail.otlp.request import Intake, MalformedRequest, read_request, write_request
from podtrail.otlp.small_requests import read_requests
from podtrail.otlp.span import KINDS, Event, Link, SpanView, Status
from podtrail.otlp.values import Value, read_key_value, resource_attributes, scope_attributes, scope_name
from podtrail.otlp.verdict import Decision, Explainer, PolicyVote, Shadow, Verdict

__all__ = [
    "CLUSTER_NAME",
    "KINDS",
    "POST_FILTER",
    "REFUSAL",
    "ROOT_NAME",
    "Attempt",
    "Batch",
    "Decision",
    "Event",
    "Explainer",
    "Group",
    "Intake",
    "Link",
    "MalformedRequest",
    "PolicyVote",
    "Rejection",
    "Shadow",
    "SpanFields",
    "SpanValues",
    "SpanView",
    "Status",
    "Value",
    "Verdict",
    "Why",
    "annotate_links",
    "append_attributes",
    "append_links",
    "attempt_of",
    "attempts_in",
    "change_attributes",
    "change_resource",
    "cluster_name",
    "encode_span",
    "frame",
    "keep_events",
    "merge",
    "plugin_of",
    "raw_span_reader",
    "read_attempt",
    "read_key_value",
    "read_message",
    "read_refusals",
    "read_rejections",
    "read_request",
    "read_requests",
    "resource_attributes",
    "resource_header",
    "scope_attributes",
    "scope_header",
    "scope_name",
    "set_scope_attributes",
    "set_trace_state",
    "span_reader",
    "split",
    "status_code",
    "status_of",
    "write_request",
]
