import pytest
from podtrail_instrumentation import BatchSettings, SpanCounters
from podtrail_instrumentation.environment import batch_settings, compressed
from podtrail_instrumentation.span_counters import LossReport


def test_the_variables_of_the_specification_are_read() -> None:
    assert batch_settings(
        {
            "OTEL_BSP_MAX_QUEUE_SIZE": "4096",
            "OTEL_BSP_MAX_EXPORT_BATCH_SIZE": "1024",
            "OTEL_BSP_SCHEDULE_DELAY": "1500",
            "OTEL_BSP_EXPORT_TIMEOUT": "20000",
            "OTEL_EXPORTER_OTLP_TIMEOUT": "2500",
        }
    ) == BatchSettings(4096, 1024, 1.5, 20.0, 2.5)


def test_the_defaults_are_the_specifications_but_for_the_queue(caplog: pytest.LogCaptureFixture) -> None:
    assert batch_settings({"OTEL_BSP_SCHEDULE_DELAY": ""}) == BatchSettings(32_768, 512, 5.0, 30.0, 10.0)
    assert not caplog.records


@pytest.mark.parametrize("value", ["many", "-1", "0", "1.5", "1e3", "²", "512 spans"])
def test_a_bad_value_is_said_once_and_the_default_counts(value: str, caplog: pytest.LogCaptureFixture) -> None:
    assert batch_settings({"OTEL_BSP_MAX_QUEUE_SIZE": value}) == BatchSettings()
    [record] = caplog.records
    assert record.getMessage() == (
        f'OTEL_BSP_MAX_QUEUE_SIZE is "{value}", not a whole number from 1 on: 32768 is taken instead'
    )


def test_a_batch_is_never_larger_than_the_queue(caplog: pytest.LogCaptureFixture) -> None:
    assert batch_settings({"OTEL_BSP_MAX_QUEUE_SIZE": "100"}).max_export_batch_size == 100
    assert "more than fit into the queue" in caplog.text


def test_a_timeout_of_nothing_is_none_and_that_for_traces_goes_before_that_for_all() -> None:
    read = batch_settings(
        {
            "OTEL_BSP_EXPORT_TIMEOUT": "0",
            "OTEL_EXPORTER_OTLP_TIMEOUT": "1000",
            "OTEL_EXPORTER_OTLP_TRACES_TIMEOUT": "3000",
        }
    )
    assert read.export_timeout > 1e6
    assert read.call_timeout == 3.0


def test_a_compression_that_is_not_known_is_said_and_none_is_used(caplog: pytest.LogCaptureFixture) -> None:
    assert not compressed({"OTEL_EXPORTER_OTLP_COMPRESSION": "snappy"})
    assert 'OTEL_EXPORTER_OTLP_COMPRESSION is "snappy"' in caplog.text


def test_losses_are_said_at_once_then_once_a_minute_and_at_the_end(caplog: pytest.LogCaptureFixture) -> None:
    counters = SpanCounters()
    report = LossReport(counters)

    def said(now: float, *, last: bool = False) -> list[str]:
        caplog.clear()
        report.say(now, last=last)
        return [record.getMessage() for record in caplog.records]

    assert said(1.0) == []
    counters.lost["queue_full"] += 21
    assert said(5.0) == ["21 spans were lost (queue_full 21)"]
    counters.lost["queue_full"] += 42
    assert said(64.0) == []
    counters.lost["export_failed"] += 512
    counters.problem = "UNAVAILABLE: nobody there"
    assert said(65.0) == [
        "554 spans were lost (export_failed 512, queue_full 42); the last problem: UNAVAILABLE: nobody there"
    ]
    assert said(200.0) == []
    counters.lost["shutdown"] += 3
    assert len(said(201.0, last=True)) == 1
