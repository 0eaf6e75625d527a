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
    [
        ("node.yaml", "stock", 2),
        ("node.yaml", "podtrail", 2),
        ("story.yaml", "stock", 2),
        ("story.yaml", "podtrail", 3),
    ],
)
def test_pods_that_failed_are_kept_whole_and_of_others_nothing(file: str, scheduler: str, failed: int) -> None:
    """One image that can't be pulled, a crash loop, and where a scheduler is traced an attempt without room."""
    run = kept_of(scheduler, file)
    assert stories(run, scheduler) == (failed, 0)
    kept = sum(map(len, run.kept.values()))
    assert kept < 0.1 * sum(decision["spans"] for decision in run.decisions)


@RECORDINGS
def test_a_share_is_one_of_pods(scheduler: str) -> None:
    assert stories(kept_of(scheduler, percentage=100), scheduler) == (10, 0)


@RECORDINGS
def test_what_is_about_no_pod_is_dropped_and_does_not_rest(scheduler: str) -> None:
    run = kept_of(scheduler)
    dropped = sum(decision["policy"] == "no Pod" for decision in run.decisions)
    assert dropped > 0.8 * len(run.decisions)
    about_pods = frozenset[str]().union(*recorded_pods(scheduler).traces.values())
    assert not [one for one in run.decisions if one["policy"] == "no Pod" and one["traceId"] in about_pods]


@RECORDINGS
def test_with_a_shorter_grace_stories_are_torn_apart(scheduler: str) -> None:
    """Spans of one Pod arrive up to 4.1 s after those of other components, which batch for themselves."""
    assert stories(kept_of(scheduler, linked={"grace_period": "5s"}), scheduler)[1] == 0
    assert stories(kept_of(scheduler, linked={"grace_period": "3s"}), scheduler)[1] > 0


@RECORDINGS
def test_with_a_shorter_wait_what_ends_last_is_torn_off(scheduler: str) -> None:
    """What the runtime says of a sandbox's end has no root until that: here for half a minute."""
    grace = {"grace_period": "10s"}
    assert stories(kept_of(scheduler, linked=grace, decision_wait="1m"), scheduler)[1] == 0
    assert stories(kept_of(scheduler, linked=grace, decision_wait="20s"), scheduler)[1] > 0


@RECORDINGS
def test_where_pods_do_not_count_as_one_they_are_torn_or_keep_each_other(scheduler: str) -> None:
    plain = {"whole_pods": False}
    assert stories(kept_of(scheduler, linked=plain), scheduler)[1] > 0


@RECORDINGS
def test_too_small_a_quota_tears_a_story_and_is_counted(scheduler: str) -> None:
    run = kept_of(scheduler, linked={"max_linked_traces": 16})
    assert stories(run, scheduler)[1] > 0
    assert sum(run.metrics["otelcol_processor_tail_sampling_linked_quota_hits"].values()) > 0
