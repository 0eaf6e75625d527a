"""What messages of Kafka become, without a broker."""

import asyncio

import pytest
from google.protobuf.json_format import ParseDict
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest as Request

from podtrail.component import Context
from podtrail.otlp import resource_attributes

kafka = pytest.importorskip("confluent_kafka")

SPAN = {"traceId": "AQEBAQEBAQEBAQEBAQEBAQ==", "spanId": "AQEBAQEBAQE=", "name": "x"}
HEADERS = ["tenant", "region", "zone", "cell", "rack", "shard"]


def test_headers_become_attributes_in_the_order_in_which_they_are_asked_for() -> None:
    from podtrail_receivers.kafka.config import Config
    from podtrail_receivers.kafka.reading import MessageReader

    request = ParseDict({"resourceSpans": [{"scopeSpans": [{"spans": [SPAN]}]}]}, Request())
    extraction = {"extract_headers": True, "headers": HEADERS}
    config = Config.model_validate({"header_extraction": extraction})
    headers = [(name, b"x") for name in reversed(HEADERS)]
    message = kafka.Message(
        topic="otlp_spans", offset=0, timestamp=(1, 5), value=request.SerializeToString(), headers=headers
    )

    records, poisoned = asyncio.run(MessageReader(config, Context(id="kafka"))([message]))

    assert not poisoned
    batch = records[0].batch
    assert batch is not None
    told = list(resource_attributes(batch.groups[0].resource))
    assert [name.removeprefix("kafka.header.") for name in told] == HEADERS


@pytest.mark.parametrize("error", [SystemError("returned NULL"), UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid")])
def test_a_header_whose_name_is_not_utf_8_costs_the_headers_and_no_span(
    error: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    from podtrail_receivers.kafka.config import Config
    from podtrail_receivers.kafka.reading import MessageReader

    class Odd(kafka.Message):  # type: ignore[misc, name-defined]
        def headers(self) -> None:
            raise error

    config = Config.model_validate({"header_extraction": {"extract_headers": True, "headers": HEADERS}})
    value = ParseDict({"resourceSpans": [{"scopeSpans": [{"spans": [SPAN, {"name": "no ids"}]}]}]}, Request())
    messages = [Odd(topic="t", partition=1, offset=at, value=value.SerializeToString()) for at in (7, 8)]

    records, poisoned = asyncio.run(MessageReader(config, Context(id="kafka"))(messages))

    assert not poisoned
    assert [record.batch.span_count for record in records if record.batch] == [1, 1]
    assert caplog.messages == [
        "t[1] offset 7: rejected 1 with trace_id of 0 bytes instead of 16; further rejections are only counted",
        "cannot read the headers of t[1] offset 7: a name is not UTF-8; its spans have none",
    ]


def test_messages_of_other_signals_are_counted_and_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    from podtrail_receivers.kafka.config import Config
    from podtrail_receivers.kafka.reading import MessageReader

    config = Config.model_validate({"traces": {"encoding": "otlp_json"}})
    values = [
        *(b'{"resourceLogs": []}', b'{"resourceSpans": []}', b'{"resource_metrics": [{}]}', b'{"batches": [{}]}'),
        *(b'{"resourceMetrics": []}', b'{"resourceLogs": []}'),
    ]
    messages = [kafka.Message(topic="t", offset=at, timestamp=(1, 5), value=value) for at, value in enumerate(values)]
    context = Context(id="kafka")
    records, poisoned = asyncio.run(MessageReader(config, context)(messages))
    assert ([record.batch for record in records], poisoned) == ([None] * 6, [])
    assert context.metrics.snapshot()["podtrail_receiver_other_signal_requests_total"] == {
        "receiver=kafka,signal=logs,transport=kafka": 2,
        "receiver=kafka,signal=metrics,transport=kafka": 2,
        "receiver=kafka,signal=unknown,transport=kafka": 1,
    }
    logged = [record.message.partition(":")[0] for record in caplog.records]
    assert logged == [f"t[None] offset {at}" for at in (0, 2, 3)]
