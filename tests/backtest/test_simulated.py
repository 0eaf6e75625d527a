"""The ready policy files on what a simulated scheduler sends: a backtest says what replays say."""

from pathlib import Path

import pytest
import yaml
from podtrail_scheduler import TracedSimulation, Workload

from podtrail.backtest import Backtest, Contender, Report, ReportContext, summarize
from podtrail.backtest.expectations import Expectations
from podtrail.otlp import Batch, read_request, write_request
from podtrail.pipeline.settings import Settings, read_settings
from podtrail.recording import Record, RecordingPosition
from podtrail.replay.replayer import Replayer, read_config
from podtrail.testing import replay

ROOT = Path(__file__).parents[2]
FILES = ROOT / "examples" / "policies"
Arrivals = list[tuple[int, bytes]]


@pytest.fixture(scope="module")
def arrivals() -> Arrivals:
    """Four minutes of what the scheduler of pipeline.yaml sends."""
    settings = yaml.safe_load((ROOT / "pipeline.yaml").read_text(encoding="utf-8"))["receivers"]["scheduler"]
    simulation = TracedSimulation(Workload.model_validate(settings["workload"] | {"length": "4m"}))
    return [(delivery.now, request) for delivery in simulation.run() for request in delivery.requests]


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://backend.example:4317")
    monkeypatch.setenv("SPANS_PER_SECOND", "8")


def settings(name: str) -> Settings:
    return read_settings(read_config(FILES / name))


def backtest(arrivals: Arrivals, baseline: Settings | None, candidate: Settings) -> Report:
    before = Contender("baseline", "old", baseline) if baseline else None
    comparison = Backtest(before, Contender("candidate", "new", candidate), slow=1_000_000_000)
    for at, (arrival, request) in enumerate(arrivals):
        comparison.add(Record(arrival, read_request(request), RecordingPosition("made", at, "line"), timed=True))
    comparison.finish()
    return summarize(comparison, ReportContext(["made"], "as told", None, None), Expectations())


@pytest.mark.parametrize("candidate", ["cost-capped.yaml", "platform-default.yaml"])
def test_each_side_keeps_what_its_replay_keeps(arrivals: Arrivals, candidate: str) -> None:
    report = backtest(arrivals, settings("failed-and-slow.yaml"), settings(candidate))
    for side, name in zip(report.sides, ("failed-and-slow.yaml", candidate), strict=True):
        run = replay(FILES / name, arrivals)
        attempts = [decision for decision in run.decisions if decision.get("podUid")]
        kept = [decision for decision in attempts if decision["decision"] == "sampled"]
        assert side.spans == len(run.exported["otlp_grpc"])
        assert (report.came.attempts, side.kept_attempts) == (len(attempts), len(kept))
        assert side.lost_failed == sum(d["decision"] != "sampled" and d["result"] != "Success" for d in attempts)
        assert side.pods_whole + side.pods_broken + side.pods_gone == len({d["podUid"] for d in attempts})
    assert report.sides[0].lost_failed == 0
    assert report.lost["failed"] == report.sides[1].lost_failed


def test_linked_traces_leave_fewer_links_dangling(arrivals: Arrivals) -> None:
    report = backtest(arrivals, settings("failed-and-slow.yaml"), settings("platform-default.yaml"))
    before, after = report.sides
    assert before.links_dangling > 10 * after.links_dangling


def test_what_a_sampler_kept_tells_of_all_there_was(arrivals: Arrivals) -> None:
    sampled: Arrivals = []

    def keep(_pipeline: str, batch: Batch) -> None:
        if batch.groups:
            sampled.append((batch.arrived, write_request(batch.groups)))

    rates = "receivers: {otlp: {protocols: {grpc: }}}\nexporters: {debug: }\nprocessors:\n  tail_sampling:\n"
    rates += "    decision_wait: 5s\n    policies:\n"
    rates += "      - {name: some, type: target_rate, target_rate: {spans_per_second: 6}}\n"
    rates += "service: {pipelines: {traces: {receivers: [otlp], processors: [tail_sampling], exporters: [debug]}}}\n"
    replayer = Replayer(read_settings(read_config(rates)), keep)
    for arrival, request in arrivals:
        replayer.add(arrival, read_request(request))
    replayer.finish()

    everything = read_settings(
        read_config(rates.replace("target_rate, target_rate: {spans_per_second: 6}", "always_sample"))
    )
    whole, sample = (
        backtest(arrivals, None, everything),
        backtest(sorted(sampled, key=lambda one: one[0]), None, everything),
    )
    assert sample.came.spans < 0.6 * whole.came.spans
    figure = sample.sides[1].spans_a_day
    assert figure is not None
    assert figure.interval is not None
    estimate = figure.a_day * sample.came.length / 86_400e9
    half = (figure.interval.high - figure.a_day) / figure.a_day
    assert estimate == pytest.approx(whole.came.spans, rel=1.5 * half)
    assert "stand for about" in sample.sampling
