"""Suggestions: what is proposed for a budget, replayed, is within it."""

import re
from pathlib import Path

import pytest
import yaml
from podtrail_scheduler import TracedSimulation, Workload

from podtrail.backtest import parse_budget
from podtrail.backtest.proposal import parse_wish
from podtrail.backtest.suggestion import Suggestion, Unsuitable, suggest
from podtrail.otlp import read_request
from podtrail.recording import Record, RecordingPosition

ROOT = Path(__file__).parents[2]
UNITS = {"B": "bytes", "spans": "spans"}
DEFAULT = ("failed", "p99 latency")


@pytest.fixture(scope="module")
def records() -> list[Record]:
    """Four minutes of what the scheduler of pipeline.yaml sends."""
    settings = yaml.safe_load((ROOT / "pipeline.yaml").read_text(encoding="utf-8"))["receivers"]["scheduler"]
    simulation = TracedSimulation(Workload.model_validate(settings["workload"] | {"length": "4m"}))
    requests = [(delivery.now, request) for delivery in simulation.run() for request in delivery.requests]
    return [
        Record(arrival, read_request(request), RecordingPosition("made", at, "line"), timed=True)
        for at, (arrival, request) in enumerate(requests)
    ]


def a_day(done: Suggestion) -> float:
    """What leaves in the replay of a proposal."""
    return done.trial.output.of(done.proposal.budget.unit) / done.trial.days


@pytest.fixture(scope="module")
def whole(records: list[Record]) -> dict[str, float]:
    """What all of it comes to in a day, by unit."""
    done = suggest(parse_budget("1 TB/s"), parse_wish(DEFAULT), lambda: records)
    return {unit: done.everything.output.of(of) / done.everything.days for unit, of in UNITS.items()}


@pytest.mark.parametrize(("unit", "share"), [("B", 0.1), ("spans", 0.5), ("B", 0.8), ("spans", 0.95), ("B", 2)])
def test_what_is_proposed_is_within_the_budget_and_uses_it(
    records: list[Record], whole: dict[str, float], unit: str, share: float
) -> None:
    budget = parse_budget(f"{share * whole[unit]:.0f} {unit}/day")
    done = suggest(budget, parse_wish(DEFAULT), lambda: records)
    assert done.fits
    assert a_day(done) > 0.6 * min(share, 1) * whole[unit]
    if not done.proposal.shortfall:
        assert done.trial.lost == 0


def test_what_there_is_room_for_is_kept_whole(records: list[Record]) -> None:
    done = suggest(parse_budget("1 TB/day"), parse_wish(DEFAULT), lambda: records)
    assert done.fulfilled
    assert done.proposal.percentage == 100
    assert done.trial.costs[""].traces == 0


def test_the_block_says_what_each_policy_costs_and_they_add_up(records: list[Record], whole: dict[str, float]) -> None:
    done = suggest(parse_budget(f"{0.9 * whole['spans']:.0f} spans/day"), parse_wish(DEFAULT), lambda: records)
    text = done.yaml(["recording.otlp"])
    block = yaml.safe_load(text)["processors"]["tail_sampling"]
    assert [policy["name"] for policy in block["policies"]][:1] == ["failed"]
    costs = [int(cost.replace(",", "")) for cost in re.findall(r"name: .* traces?, ([\d,]+) spans a day", text)]
    assert sum(costs) == pytest.approx(a_day(done), abs=len(costs))
    assert f"Replayed, with link_stitching and batch behind: {a_day(done):,.0f} spans a day" in text


def test_where_even_the_failures_are_too_much_the_first_of_each_kind_come_first(
    records: list[Record], whole: dict[str, float]
) -> None:
    budget = parse_budget(f"{0.3 * whole['B']:.0f} B/day")
    done = suggest(budget, parse_wish(DEFAULT), lambda: records)
    assert not done.fulfilled
    said = " ".join(done.shortage())
    assert "can't hold all failed attempts" in said
    assert "failures of a kind seen within the hour" in said
    assert "The first of each kind" in done.yaml([])
    assert {name for name in done.trial.costs if name} == {"first of its kind", "the rest within the budget"}
    assert done.trial.costs["first of its kind"].traces >= done.measured.first.traces


def test_where_the_slow_are_too_many_the_slowest_have_room(records: list[Record], whole: dict[str, float]) -> None:
    room = whole["spans"]
    done = suggest(parse_budget(f"{room:.0f} spans/day"), parse_wish(["slower than 1us"]), lambda: records)
    assert done.proposal.shortfall == ""
    tight = suggest(parse_budget(f"{0.1 * room:.0f} spans/day"), parse_wish(["slower than 1us"]), lambda: records)
    assert tight.proposal.shortfall == "slow"
    assert tight.proposal.slow is None or tight.proposal.slow > 1_000
    assert "There is room for" in " ".join(tight.shortage())


def test_a_sample_stands_for_more_and_so_less_is_kept(records: list[Record], whole: dict[str, float]) -> None:
    budget = parse_budget(f"{whole['B']:.0f} B/day")
    done = suggest(budget, parse_wish(["p99"]), lambda: records, probability=0.25)
    assert done.fits
    assert done.proposal.percentage is not None
    assert done.proposal.percentage < 30


@pytest.mark.parametrize(("count", "says"), [(0, "no span"), (1, "one moment")])
def test_from_nothing_nothing_is_proposed(records: list[Record], count: int, says: str) -> None:
    with pytest.raises(Unsuitable, match=says):
        suggest(parse_budget("1GB/day"), parse_wish(DEFAULT), lambda: records[:count])
