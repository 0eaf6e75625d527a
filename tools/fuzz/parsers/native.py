"""Requests read in Rust (`podtrail-native`) beside the same read in Python, the facts of their traces, and searches.

Where the extension is not built there is nothing to compare: everything holds.
"""

from collections.abc import Sequence
from itertools import pairwise

from opentelemetry.proto.common.v1.common_pb2 import KeyValue

from podtrail.otlp import Group, MalformedRequest, native
from podtrail.otlp.byte_search import LINKED_TRACE
from podtrail.otlp.columns import column_reader
from podtrail.otlp.request import Intake, read_in_python
from tools.fuzz.parser import Parser
from tools.fuzz.parsers.requests import seeds
from tools.fuzz.wire import mutate_message

_SIGNED = 2**63
_KEYS = 3
_read = column_reader({"start_time_unix_nano", "end_time_unix_nano", "status"})
_read_attributes = column_reader({"attributes"})
_read_parents = column_reader({"parent_span_id"})


def check(data: bytes) -> None:
    """Read a request both ways: equal groups and times, or Rust leaves it to Python; facts of its spans; searches."""
    _check_searches(data)
    found = native.check_and_cut(data)
    try:
        intake = read_in_python(data)
    except MalformedRequest:
        assert found is None, "read in Rust, though Python refuses it"
        return
    if found is not None:
        groups, odd_times = found
        assert Intake(groups, 0, "", odd_times) == intake._replace(groups=[*intake.groups]), "read otherwise in Rust"
        assert _shared(groups) == _shared(intake.groups), "headers are shared otherwise"
    for group in intake.groups:
        _check_facts(group.spans, group.span_count)
    _check_facts(b"".join([group.spans for group in intake.groups]), sum(group.span_count for group in intake.groups))


def _check_searches(data: bytes) -> None:
    middle = len(data) // 2
    for mark in (data[middle : middle + 1], data[middle : middle + 4], data[-3:], b".id"):
        for start in (0, middle, len(data) + 1):
            assert native.find(data, mark, start) == data.find(mark, start), "found elsewhere"
    assert native.linked_traces(data, 2) in (None, LINKED_TRACE.findall(data)[:2]), "other links"


def _shared(groups: Sequence[Group]) -> list[tuple[bool, bool]]:
    """Return which neighbours came in one ResourceSpans, and which in one ScopeSpans."""
    return [(one.resource is other.resource, one.scope is other.scope) for one, other in pairwise(groups)]


def _check_facts(spans: bytes, count: int) -> None:
    root = native.has_root(spans)
    if root is not None:
        parents = _read_parents(spans).parent_span_id[:]
        assert root == (len(parents) < count or bytes(8) in parents), "another root"
    _check_attributes(spans, facts := native.trace_facts(spans))
    if facts is None:
        return
    columns = _read(spans)
    starts, ends, codes = columns.start_time_unix_nano[:], columns.end_time_unix_nano[:], columns.status.code[:]
    assert len(starts) == len(ends) == count, "facts of spans without times"
    assert facts.first == min(starts) > 0, "another start"
    assert facts.last == max(ends) < _SIGNED, "another end"
    assert {*facts.statuses} == {*codes, *([0] if len(codes) < count else [])}, "other statuses"


def _check_attributes(spans: bytes, bare: native.Facts | None) -> None:
    """Have attributes found in the same pass; `bare`: what is found without."""
    pairs = [(KeyValue.FromString(pair).key, pair) for pair in _read_attributes(spans).attributes]
    keys = sorted({key for key, _ in pairs})[:_KEYS]
    facts = native.trace_facts(spans, [key.encode() for key in keys])
    if facts is not None:
        assert facts._replace(attributes=[]) == bare, "other facts where attributes are asked for"
        assert facts.attributes == [pair for key, pair in pairs if key in keys], "other attributes"


PARSER = Parser(check, seeds, mutate_message, words=(b"\x0a\x10", b"\x12\x08", bytes(16), b"\xc1\x3e"))
