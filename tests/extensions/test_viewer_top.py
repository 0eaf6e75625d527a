"""What `podtrail top` asks of a running page: stories, and podtrail's own metrics."""

from functools import partial

from podtrail_extensions.viewer.top import read_pipeline

from podtrail.component import Metrics
from podtrail.testing.attempts import no_room
from tests.extensions.asking import Viewing


async def test_the_api_tells_what_goes_on(viewing: Viewing) -> None:
    async with viewing(no_room().batch()) as (_, browser), browser.get("/api/v1/top") as answer:
        assert answer.status == 200
        told = await answer.json()
    assert told["live"] is False
    assert (told["pods"], told["pending"]) == ({"unschedulable": 1}, 1)
    assert told["refusals"][0]["plugin"] == "NodeAffinity"
    assert told["pipeline"]["exporters"] == []


def test_the_ledger_and_the_queue_are_told_of_each_exporter() -> None:
    metrics = Metrics()
    ledger = metrics.gauge("podtrail_ledger_spans", "", ("exporter", "term"))
    terms = {("file", "received"): 9.0, ("file", "delivered"): 5.0, ("otlp", "missing"): 2.0}
    ledger.read_all_from(partial(dict[tuple[str, ...], float], terms))
    lost = {("file", "late_span"): 3.0, ("file", "queue_full"): 0.0, ("otlp", "late_span"): 1.0}
    metrics.gauge("podtrail_dropped_spans_total", "", ("exporter", "reason")).read_all_from(
        partial(dict[tuple[str, ...], float], lost)
    )
    for name, value in (("size", 4.0), ("capacity", 8.0)):
        metrics.gauge(f"otelcol_exporter_queue_{name}", "", ("exporter",)).read_from(partial(float, value), "file")
    metrics.gauge("otelcol_process_memory_rss", "").read_from(lambda: 1e8)
    told = read_pipeline(metrics)
    file, otlp = told.exporters
    assert (file.received, file.delivered, file.dropped, file.queue_size, file.queue_capacity) == (9, 5, 3, 4, 8)
    assert (otlp.missing, otlp.queue_size) == (2, None)
    assert (told.dropped, told.memory_bytes, told.undecided) == ({"late_span": 3}, 100_000_000, None)
