"""On recordings of a real node: of a Pod all is kept or nothing, and why not with shorter waits."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from podtrail.testing import Run, replay
from tests.examples.recorded_pods import recorded_pods

FILES = Path(__file__).parents[2] / "examples" / "policies"
RECORDINGS = pytest.mark.parametrize("scheduler", ["stock", "podtrail"])


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://backend.example:4317")


def kept_of(
    scheduler: str, file: str = "story.yaml", percentage: float = 0, linked: dict[str, Any] | None = None, **more: Any
) -> Run:
    """Return what a policy file keeps, with this share of Pods that nothing is wrong with, and other settings."""
    settings = yaml.safe_load((FILES / file).read_text(encoding="utf-8"))
    sampler = settings["processors"]["tail_sampling"] | more
    sampler["linked_traces"] |= linked or {}
    sampler["policies"][-1]["and"]["and_sub_policy"][1]["probabilistic"]["sampling_percentage"] = percentage
    settings["processors"]["tail_sampling"] = sampler
    return replay(settings, recorded_pods(scheduler).arrivals)


def stories(run: Run, scheduler: str) -> tuple[int, int]:
    """Return of how many Pods all is kept, and of how many only a part."""
    kept = set(run.kept)
    pods = recorded_pods(scheduler).traces.values()
    return sum(pod <= kept for pod in pods), sum(bool(pod & kept) and not pod <= kept for pod in pods)


def test_the_recordings_have_ten_pods_of_forty_traces_and_more() -> None:
    for scheduler in ("stock", "podtrail"):
        sizes = [len(traces) for traces in recorded_pods(scheduler).traces.values()]
        assert len(sizes) == 10
        assert min(sizes) > 40


@pytest.mark.parametrize(
    ("file", "scheduler", "failed"),
    [("node.yaml", "stock", 2), ("story.yaml", "stock", 2), ("story.yaml", "podtrail", 3)],
)
def test_pods_that_failed_are_kept_whole_and_of_others_nothing(file: str, scheduler: str, failed: int) -> None:
    """One image that can't be pulled, a crash loop, and where a scheduler is traced an attempt without room."""
    run = kept_of(scheduler, file)
    assert stories(run, scheduler) == (failed, 0)
    kept = sum(map(len, run.kept.values()))
    assert kept < 0.1 * sum(decision["spans"] for decision in run.decisions)
    about_no_pod = {decision["traceId"] for decision in run.decisions if decision["policy"] == "no Pod"}
    assert file == "node.yaml" or len(about_no_pod) > 0.8 * len(run.decisions)
    assert not about_no_pod & frozenset[str]().union(*recorded_pods(scheduler).traces.values())


@RECORDINGS
def test_a_share_is_one_of_pods(scheduler: str) -> None:
    assert stories(kept_of(scheduler, percentage=100), scheduler) == (10, 0)


@pytest.mark.parametrize(
    ("linked", "wait", "torn"),
    [
        # Spans of one Pod arrive up to 4.1 s after those of other components, which batch for themselves.
        ({"grace_period": "5s"}, "5m", False),
        ({"grace_period": "3s"}, "5m", True),
        # What the runtime says of a sandbox's end has no root until that: here for half a minute.
        ({"grace_period": "10s"}, "1m", False),
        ({"grace_period": "10s"}, "20s", True),
        ({"whole_pods": False}, "5m", True),
    ],
)
def test_with_shorter_waits_or_where_pods_do_not_count_as_one_stories_are_torn(
    linked: dict[str, Any], wait: str, torn: bool
) -> None:
    assert (stories(kept_of("stock", linked=linked, decision_wait=wait), "stock")[1] > 0) == torn


def test_too_small_a_quota_tears_a_story_and_is_counted() -> None:
    run = kept_of("stock", linked={"max_linked_traces": 16})
    assert stories(run, "stock")[1] > 0
    assert sum(run.metrics["otelcol_processor_tail_sampling_linked_quota_hits"].values()) > 0
