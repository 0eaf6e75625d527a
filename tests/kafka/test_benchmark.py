"""`./dev bench kafka` on a small load: what it measures runs, and it says when something comes out wrong."""

from pathlib import Path

import pytest

from benchmarks import kafka as bench
from benchmarks.load import make_load
from benchmarks.loopback.contenders import THREE
from benchmarks.loopback.messages import write_messages
from benchmarks.loopback.stations import Station, Topic
from tests.kafka.cluster import Kafka

pytestmark = [pytest.mark.kafka, pytest.mark.slow]


@pytest.fixture
def small(kafka: Kafka, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> bench.KafkaBench:
    monkeypatch.setattr(bench, "TRACES", 150)
    monkeypatch.setattr(bench, "STEADY_TRACES", 1500)
    monkeypatch.setattr(bench, "WAIT", 1.0)
    monkeypatch.setattr(bench, "JOINS_AFTER", 2.0)
    monkeypatch.setattr(bench, "WARM_UP", 0.0)
    monkeypatch.setattr(bench, "LAST", 0.5)
    return bench.KafkaBench(tmp_path, kafka)


def test_what_a_span_costs_is_measured_by_every_way(small: bench.KafkaBench) -> None:
    assert small.counts["small"] > small.counts["batched"] > 0
    assert small.direct("podtrail") > 0
    assert small.agent("podtrail") > 0
    for consumers in (1, 2):
        found = small.through("podtrail", "batched", consumers)
        assert min(found.cpu, found.broker) > 0
    assert min(small.hops()) > 0


def test_how_long_a_join_is_felt_is_measured(small: bench.KafkaBench) -> None:
    felt = small.joined("podtrail")
    assert felt.messages > 0  # on a busy machine spans come after their trace's decision, and count as wrong
    assert felt.at_join > 0


def test_spans_that_do_not_come_out_end_it(kafka: Kafka, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("benchmarks.loopback.standing._LIMIT", 3.0)
    load = make_load(20)
    write_messages(tmp_path / "messages", load.requests)
    topic = Topic(kafka.bootstrap(), kafka.topic(partitions=1), "nobody")
    station = Station("podtrail-late", source=topic, policies=THREE, wait=3600.0)
    with pytest.raises(SystemExit, match="spans went in, what came out is wrong"):
        bench.consume([[station]], load, tmp_path / "messages", tmp_path, kafka)
