"""What a batch becomes on its way to Kafka: which messages, for which topic, under which key, how large."""

from typing import Any

import pytest
from podtrail_exporters.kafka.config import Config
from podtrail_exporters.kafka.messages import MessageMaker, Parcels

from podtrail.otlp import Batch, Group, encode_span, frame, read_request, resource_header, scope_header
from podtrail.otlp.json import read_json_request
from tests.exporters.conftest import make_batch

POD = {"k8s.pod.uid": "u-1", "k8s.namespace.name": "ns", "k8s.pod.name": "web-0"}
AT = 1_790_000_000_000_000_000


def make(batch: Batch, **config: Any) -> Parcels:
    return MessageMaker(Config.model_validate(config)).parcels(batch)


def group(trace: int, *, resource: dict[str, Any] | None = None, attributes: Any = None, name: str = "s") -> Group:
    trace_id = trace.to_bytes(16, "big")
    raw = encode_span(trace_id=trace_id, span_id=b"s" * 8, name=name, start=AT, end=AT, attributes=attributes or {})
    return Group(resource_header(resource or {"service.name": "a"}), scope_header("s"), trace_id, frame([raw]), 1)


def test_without_a_key_a_batch_is_one_message() -> None:
    batch = make_batch(2, groups=3)

    (only,) = make(batch).parcels

    assert (only.message.topic, only.message.key, only.message.headers) == ("otlp_spans", None, None)
    assert only.span_count == 6
    assert only.message.value is not None
    assert list(read_request(only.message.value).groups) == list(batch.groups)


def test_as_json_it_is_a_request_as_well() -> None:
    (only,) = make(make_batch(2), traces={"encoding": "otlp_json"}).parcels

    assert only.message.value is not None
    assert only.message.value.startswith(b"{")
    assert [each.span_count for each in read_json_request(only.message.value).groups] == [2]


@pytest.mark.parametrize("config", [{"partition_traces_by_id": True}, {"partition_by": "trace_id"}])
def test_by_trace_id_each_trace_is_a_message_under_32_digits(config: dict[str, Any]) -> None:
    batch = Batch([group(1), group(2), group(1, name="later")], AT)

    first, second = make(batch, **config).parcels

    assert first.message.key == b"%032x" % 1
    assert [each.trace_id[-1] for each in first.groups] == [1, 1]
    assert second.message.key == b"%032x" % 2


def test_by_pod_what_is_about_one_pod_is_one_message_and_the_rest_goes_by_trace_id() -> None:
    batch = Batch([group(1, attributes=POD), group(2), group(3, attributes={"k8s.pod.uid": "u-1"})], AT)

    of_pod, other = make(batch, partition_by="pod").parcels

    assert of_pod.message.key == b"ns/web-0"
    assert [each.trace_id[-1] for each in of_pod.groups] == [1, 3]
    assert other.message.key == b"%032x" % 2


def test_auto_goes_by_pod_where_the_root_is_there() -> None:
    raw = encode_span(
        trace_id=b"c" * 16, span_id=b"s" * 8, parent_span_id=b"p" * 8, name="s", start=AT, end=AT, attributes=POD
    )
    child = Group(resource_header({}), scope_header("s"), b"c" * 16, frame([raw]), 1)
    batch = Batch([group(1, attributes=POD), child], AT)

    assert [each.message.key for each in make(batch, partition_by="auto").parcels] == [
        b"ns/web-0",
        (b"c" * 16).hex().encode(),
    ]
    assert [each.message.key for each in make(batch, partition_by="pod").parcels] == [b"ns/web-0"]


def test_a_resource_says_its_topic() -> None:
    named = group(1, resource={"team": "red"})
    batch = Batch([group(2), named, group(3, resource={"team": "no topic!"}), group(4, resource={"team": 7})], AT)

    parcels = make(batch, topic_from_attribute="team", topic="usual").parcels

    assert [(each.message.topic, each.span_count) for each in parcels] == [("usual", 3), ("red", 1)]


def test_headers_go_with_every_message() -> None:
    parcels = make(make_batch(groups=2), record_headers={"a": "b"}, partition_by="trace_id").parcels
    assert [each.message.headers for each in parcels] == [[("a", "b")]] * 2


@pytest.mark.parametrize("encoding", ["otlp_proto", "otlp_json"])
@pytest.mark.parametrize("partition_by", [None, "trace_id"])
def test_no_message_is_larger_than_it_may_be(encoding: str, partition_by: str | None) -> None:
    def grown(trace: int, spans: int) -> Group:
        trace_id = trace.to_bytes(16, "big")
        raws = [
            encode_span(trace_id=trace_id, span_id=(i + 1).to_bytes(8, "big"), name="n" * 50, start=AT, end=AT)
            for i in range(spans)
        ]
        return Group(resource_header({"service.name": "a"}), scope_header("s"), trace_id, frame(raws), spans)

    batch = Batch([grown(1, 1), grown(2, 90), grown(3, 3), grown(4, 2)], AT)
    config = {"traces": {"encoding": encoding}, "partition_by": partition_by, "record_headers": {"h": "v" * 20}}

    parcels, too_large = make(batch, producer={"max_message_bytes": 2000}, **config)

    assert too_large == 0
    assert max(each.message.size for each in parcels) < 2000
    assert sum(each.span_count for each in parcels) == batch.span_count
    order = [each.trace_id[-1] for parcel in parcels for each in parcel.groups]
    assert order == sorted(order)
    whole = [one for parcel in parcels for one in _read(parcel.message.value or b"", encoding)]
    assert sum(one.span_count for one in whole) == batch.span_count


def _read(value: bytes, encoding: str) -> Any:
    return (read_request if encoding == "otlp_proto" else read_json_request)(value).groups


def test_a_span_that_no_message_can_hold_is_counted_and_the_others_go() -> None:
    batch = Batch([group(1), group(1, name="n" * 5000), group(1, name="last")], AT)

    parcels, too_large = make(batch, producer={"max_message_bytes": 1000})

    assert too_large == 1
    assert sum(each.span_count for each in parcels) == 2


def test_an_empty_batch_is_no_message() -> None:
    assert make(Batch([], AT)) == ([], 0)
    assert make(Batch([], AT), partition_by="pod") == ([], 0)


def test_headers_are_given_by_name_or_as_a_list_and_the_signal_beside_them() -> None:
    by_name = make(Batch([group(1)], AT), record_headers={"a": "b"}, signal_header=True)
    as_list = make(Batch([group(1)], AT), record_headers=[{"name": "a", "value": "b"}], signal_header=True)

    expected = [("a", "b"), ("otelcol.signal", "traces")]
    assert by_name.parcels[0].message.headers == as_list.parcels[0].message.headers == expected
