"""What messages of Kafka become, without a broker."""

import asyncio

import pytest
from google.protobuf.json_format import ParseDict
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from podtrail.component import Context
from podtrail.otlp import resource_attributes

kafka = pytest.importorskip("confluent_kafka")

HEADERS = ["tenant", "region", "zone", "cell", "rack", "shard"]


def test_headers_become_attributes_in_the_order_in_which_they_are_asked_for() -> None:
    from podtrail_receivers.kafka.config import Config
    from podtrail_receivers.kafka.reading import MessageReader

    span = {"traceId": "AQEBAQEBAQEBAQEBAQEBAQ==", "spanId": "AQEBAQEBAQE=", "name": "x"}
    request = ParseDict({"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]}, ExportTraceServiceRequest())
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
