"""What goes wrong with a cluster is said once, without a broker."""

import pytest

from podtrail.component import Context

kafka = pytest.importorskip("confluent_kafka")


@pytest.mark.parametrize("code", ["_AUTHENTICATION", "_SSL", "_TRANSPORT", "_FAIL"])
def test_what_differs_by_a_duration_alone_is_said_once(caplog: pytest.LogCaptureFixture, code: str) -> None:
    from podtrail_receivers.kafka.complaints import Complaints

    complaints = Complaints(Context("kafka").log, "b:9092", "g")
    for took in ("305ms in state AUTH_REQ", "1ms in state SSL_HANDSHAKE, 7 identical error(s) suppressed"):
        text = f"sasl_ssl://b:9092/bootstrap: Authentication failed: Invalid username (after {took})"
        complaints.tell(kafka.KafkaError(getattr(kafka.KafkaError, code), text))
    (line,) = caplog.messages
    assert "Invalid username" in line
