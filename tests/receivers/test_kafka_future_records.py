"""Records whose time is ahead of the clock, without a broker."""

from typing import Any

import pytest

from podtrail.component import Context, Metrics

kafka = pytest.importorskip("confluent_kafka")

NOW = 1_800_000_000_000
CREATED = 1
WITHOUT = 0


def messages(*times: int, kind: int = CREATED) -> list[Any]:
    return [kafka.Message(topic="spans", partition=3, offset=at, timestamp=(kind, t)) for at, t in enumerate(times)]


@pytest.fixture
def metrics() -> Metrics:
    return Metrics()


@pytest.fixture
def future_records(metrics: Metrics) -> Any:
    from podtrail_receivers.kafka.complaints import Complaints
    from podtrail_receivers.kafka.future_records import FutureRecords
    from podtrail_receivers.kafka.instruments import KafkaInstruments

    context = Context("kafka", metrics=metrics)
    return FutureRecords(Complaints(context.log, "b", "g"), KafkaInstruments(context, list, delays=False))


def counted(metrics: Metrics) -> float:
    return sum(metrics.snapshot()["podtrail_kafka_receiver_future_records_total"].values())


def test_a_time_that_an_owner_has_left_ahead_is_told(future_records: Any, caplog: pytest.LogCaptureFixture) -> None:
    future_records.opened(("spans", 3), (NOW + 59_000) * 1_000_000, NOW)
    assert not caplog.messages
    future_records.opened(("spans", 3), (NOW + 90_000) * 1_000_000, NOW)
    (line,) = caplog.messages
    assert line.startswith("the time of spans[3], as its last owner has left it, is 90 s ahead of the clock")


def test_the_furthest_is_told_once_and_each_is_counted(
    future_records: Any, metrics: Metrics, caplog: pytest.LogCaptureFixture
) -> None:
    found = messages(NOW, NOW + 60_001, NOW + 3_600_000, NOW + 90_000, NOW + 60_000)
    future_records.look(("spans", 3), found, NOW)
    future_records.look(("spans", 3), messages(NOW + 1), NOW + 1)
    (line,) = caplog.messages
    assert line.startswith("spans[3] offset 2 is 3600 s ahead of the clock: ")
    assert metrics.snapshot()["podtrail_kafka_receiver_future_records_total"] == {"partition=3,topic=spans": 3}


def test_it_is_told_again_with_what_comes_behind_it_until_the_clock_is_there(
    future_records: Any, metrics: Metrics, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    passed = [0.0]
    monkeypatch.setattr("time.monotonic", lambda: passed[0])
    for minute, found in enumerate([messages(NOW, NOW + 180_000), messages(NOW), messages(NOW), messages(NOW)]):
        passed[0] = minute * 60.0
        future_records.look(("spans", 3), found, NOW + minute * 60_000)
    assert [line.partition(" the clock")[0] for line in caplog.messages] == [
        f"spans[3] offset 1 is {s} s ahead of" for s in (180, 120)
    ]
    assert counted(metrics) == 1


def test_records_without_a_time_are_passed_over(future_records: Any, caplog: pytest.LogCaptureFixture) -> None:
    future_records.look(("spans", 3), messages(NOW + 180_000, kind=WITHOUT), NOW)
    assert not caplog.messages
