"""What the log of arrivals says is read back as it was written; what was cut or made up is an error, and no other."""

import struct
from contextlib import suppress
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from podtrail.durable.recent import REMEMBERED, RecentRequests, request_key
from podtrail.durable.records import KEY_SIZE, LoggedArrival, LoggedDeliveries, key_of
from podtrail.otlp import Batch, MalformedRequest, Verdict, read_request
from podtrail.storage import Entry

names = st.text(min_size=1, max_size=20).filter(lambda text: len(text.encode()) < 200)
times = st.integers(0, 2**63 - 1)


def batch(number: int = 1) -> Batch:
    sent = ExportTraceServiceRequest()
    scope = sent.resource_spans.add().scope_spans.add()
    for at in range(1, 4):
        scope.spans.add(trace_id=number.to_bytes(16, "big"), span_id=at.to_bytes(8, "big"), name="SchedulePod")
    return Batch(read_request(sent.SerializeToString()).groups, 5)


@given(receiver=names, now=times)
def test_an_arrival_is_read_as_it_was_written(receiver: str, now: int) -> None:
    arrival = LoggedArrival(receiver, now, batch())
    assert LoggedArrival.read(arrival.entry()) == arrival


@given(pipeline=names, exporter=names, now=times, keys=st.lists(st.binary(min_size=KEY_SIZE, max_size=KEY_SIZE)))
def test_deliveries_are_read_as_they_were_written(pipeline: str, exporter: str, now: int, keys: list[bytes]) -> None:
    deliveries = LoggedDeliveries(pipeline, exporter, now, keys)
    assert LoggedDeliveries.read(deliveries.entry()) == deliveries


@given(note=st.binary(max_size=100), body=st.binary(max_size=100))
def test_what_is_made_up_is_an_error_of_theirs(note: bytes, body: bytes) -> None:
    for kind in (LoggedArrival, LoggedDeliveries):
        with suppress(ValueError, MalformedRequest):
            kind.read(Entry(0, body, 1, note))


def test_a_note_that_is_cut_off_is_no_delivery() -> None:
    whole = LoggedDeliveries("traces", "file", 7, [bytes(KEY_SIZE)]).entry()
    for length in range(len(whole.note)):
        if length != 8 + 2 + len("traces") + 2 + len("file"):  # without any key it is one of nothing
            with pytest.raises((ValueError, struct.error)):
                LoggedDeliveries.read(replace(whole, note=whole.note[:length]))


def test_batches_with_other_spans_or_order_have_other_keys() -> None:
    one, two = batch(1), batch(2)
    verdict = Verdict(bytes(15) + b"\1", "sampled", "all", "", 1, 1, 1)
    both, turned = Batch([*one.groups, *two.groups], 5), Batch([*two.groups, *one.groups], 5)
    keys = {key_of(other) for other in (one, two, both, turned, Batch([], 5, [verdict]))}
    assert len(keys) == 5
    assert key_of(replace(one, arrived=9, verdicts=[verdict])) == key_of(one)


def key(request: Batch) -> bytes:
    return request_key("otlp", request)


def test_the_same_request_to_another_receiver_is_another() -> None:
    assert request_key("otlp", batch()) != request_key("otlp/2", batch())


def test_a_request_is_known_for_five_minutes_and_over_a_restart() -> None:
    recent = RecentRequests()
    recent.learn(key(batch(1)), 10)
    recent.learn(key(batch(2)), 20)
    after = RecentRequests()
    after.unpack(recent.pack())
    assert after.knows(key(batch(1)), 9 + REMEMBERED)
    assert not after.knows(key(batch(1)), 10 + REMEMBERED)
    assert after.knows(key(batch(2)), 10 + REMEMBERED)
    with pytest.raises(ValueError, match="cut off"):
        after.unpack(recent.pack()[:-1])


def test_what_is_remembered_of_requests_is_bounded() -> None:
    recent = RecentRequests()
    for number in range(70_000):
        recent.learn(number.to_bytes(KEY_SIZE + 4, "big"), 1)
    assert len(recent.pack()) == 65_536 * (KEY_SIZE + 4 + 8)
    assert recent.knows((69_999).to_bytes(KEY_SIZE + 4, "big"), 1)
    assert not recent.knows((0).to_bytes(KEY_SIZE + 4, "big"), 1)


def test_the_time_in_which_nobody_was_there_does_not_count() -> None:
    recent = RecentRequests()
    recent.learn(key(batch(1)), 10)
    recent.learn(key(batch(2)), 20)
    recent.go_on(20 + 2 * REMEMBERED)
    assert recent.knows(key(batch(1)), 20 + 3 * REMEMBERED - 11)
    assert not recent.knows(key(batch(1)), 20 + 3 * REMEMBERED - 10)
