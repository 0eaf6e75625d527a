"""Two configurations over one recording: what is lost, what is gained, whose story breaks."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from podtrail.backtest import compared_traces
from podtrail.cli import main
from podtrail.otlp import frame, split
from podtrail.recording import RecordingWriter
from podtrail.testing.attempts import START, MadeAttempt, No, no_room

SECOND = 1_000_000_000
FAILED = "{name: failed, type: scheduling_result, scheduling_result: {results: [Unschedulable, Error]}}"
SLOW = "{name: slow, type: slow_attempt, slow_attempt: {threshold: 2s}}"
NONE = "{name: none, type: string_attribute, string_attribute: {key: no, values: [such]}}"
ALL = "{name: all, type: always_sample}"

Configured = Callable[..., str]
Recorded = Callable[..., Path]


def story(pod: int, results: str) -> list[MadeAttempt]:
    """Attempts at a Pod, a letter each: failed, slow, or else fine."""
    made: list[MadeAttempt] = []
    for number, letter in enumerate(results, 1):
        common: dict[str, Any] = {
            "uid": f"{pod:036}",
            "name": f"web-{pod}",
            "number": number,
            "start": START + (100 * number + pod) * SECOND,
        }
        made.append(
            no_room(**common)
            if letter == "f"
            else MadeAttempt(**common, duration=SECOND // 100 + 3 * SECOND * (letter == "s"))
        )
    return made


@pytest.fixture
def recording(recorded: Recorded) -> Path:
    """Three Pods: failed twice and then placed; slow; fine."""
    attempts = [*story(1, "ffo"), *story(2, "s"), *story(3, "o")]
    return recorded(sorted(attempts, key=lambda one: one.start + one.duration))


def backtest(*arguments: object) -> dict[str, Any]:
    done = CliRunner().invoke(main, ["backtest", "--json", *map(str, arguments)])
    assert done.exit_code in (0, 1), done.output
    assert not done.exception or isinstance(done.exception, SystemExit)
    told: dict[str, Any] = json.loads(done.stdout)
    return told


def test_what_only_one_side_keeps_is_lost_or_gained(recording: Path, configured: Configured) -> None:
    told = backtest(
        *("--baseline", configured(FAILED, name="old"), "--candidate", configured(SLOW, name="new"), recording)
    )
    assert told["lost"] == {"failed": 2, "slow": 0, "other": 0}
    assert told["gained"] == {"failed": 0, "slow": 1, "other": 0}
    assert told["sentence"].endswith("loses 2 failed attempts, gains 1 slow one.")
    assert [(one["direction"], one["pod"]) for one in told["examples"]] == [
        ("lost", "default/web-1"),
        ("lost", "default/web-1"),
        ("gained", "default/web-2"),
    ]


def test_examples_say_why_each_side_decided_as_it_did(recording: Path, configured: Configured) -> None:
    told = backtest(
        "--baseline", configured(FAILED, name="old"), "--candidate", configured(SLOW, name="new"), recording
    )
    before, after = told["examples"][0]["decided"]
    assert before["votes"] == [{"policy": "failed", "decision": "sampled", "why": "scheduler.result=Unschedulable"}]
    assert after["decision"] == "not_sampled"
    assert "not longer than 2s" in after["votes"][0]["why"]
    assert told["examples"][0]["plugins"] == ["NodeAffinity", "NodeResourcesFit", "TaintToleration"]


def test_one_configuration_is_compared_with_all_there_is(recording: Path, configured: Configured) -> None:
    told = backtest("--candidate", configured(FAILED), recording)
    assert told["alone"]
    assert told["sentence"].startswith("The candidate keeps ")
    assert "loses 0 of 2 failed attempts and 1 of 1 slow ones; it breaks the story of 1 Pod" in told["sentence"]
    everything, candidate = told["sides"]
    assert everything["spans"] == told["came"]["spans"]
    assert candidate["keptAttempts"] == 2


def test_a_pod_of_which_some_attempts_are_kept_has_a_broken_story(recording: Path, configured: Configured) -> None:
    told = backtest("--baseline", configured(ALL, name="old"), "--candidate", configured(FAILED, name="new"), recording)
    (pod,) = told["brokenPods"]
    assert (pod["pod"], pod["kept"], pod["stories"]) == ("default/web-1", [3, 2], ["whole", "broken"])
    assert told["newlyBroken"] == 1
    assert [told["sides"][1][key] for key in ("podsWhole", "podsBroken", "podsGone")] == [0, 1, 2]


def test_links_to_what_is_not_kept_are_counted(recording: Path, configured: Configured) -> None:
    last = "{name: last, type: string_attribute, string_attribute: {key: scheduler.result, values: [Success]}}"
    told = backtest(
        *("--baseline", configured(ALL, name="old", after="link_stitching")),
        *("--candidate", configured(last, name="new", after="link_stitching"), recording),
    )
    before, after = told["sides"]
    assert before["links"] > 0 == before["linksDangling"]
    assert after["linksDangling"] == after["links"] > 0
    assert told["brokenPods"][0]["dangling"][1] > 0


def test_figures_are_those_of_two_replays(recording: Path, configured: Configured) -> None:
    sides = [configured(FAILED, SLOW, name="old"), configured(SLOW, NONE, name="new")]
    told = backtest("--baseline", sides[0], "--candidate", sides[1], recording)
    for at, config in enumerate(sides):
        done = CliRunner().invoke(main, ["replay", "--json", "--config", config, str(recording)])
        alone = json.loads(done.stdout)
        assert told["sides"][at]["spans"] == alone["keptSpans"]
        for line in told["policies"]:
            row = alone["policies"].get(line["name"])
            mine = line["sides"][at]
            assert (row and row["votedYes"], row and row["decided"]) == (mine["votedYes"], mine["decided"])


def test_what_would_be_lost_without_a_policy_is_its_own(recording: Path, configured: Configured) -> None:
    both = "{name: both, type: always_sample}"
    told = backtest("--candidate", configured(FAILED, both), recording)
    rows = {line["name"]: line["sides"][1] for line in told["policies"]}
    assert rows["failed"] == {"votedYes": 2, "decided": 2, "onlyIt": 0, "spans": rows["failed"]["spans"]}
    assert (rows["both"]["votedYes"], rows["both"]["decided"], rows["both"]["onlyIt"]) == (5, 3, 3)


def test_where_the_first_yes_ends_the_vote_nobody_knows_what_only_one_keeps(
    recording: Path, configured: Configured
) -> None:
    sampler = "sample_on_first_match: true"
    told = backtest("--candidate", configured(FAILED, ALL, sampler=sampler), recording)
    assert {line["sides"][1]["onlyIt"] for line in told["policies"]} == {None}


def test_sides_that_decide_at_different_times_are_joined_all_the_same(recording: Path, configured: Configured) -> None:
    told = backtest(
        *("--baseline", configured(FAILED, name="old", sampler="decision_wait: 1s")),
        *("--candidate", configured(FAILED, name="new", sampler="decision_wait: 10m"), recording),
    )
    assert not told["examples"]
    assert told["lost"] == told["gained"] == {"failed": 0, "slow": 0, "other": 0}
    assert told["came"]["attempts"] == 5


def test_an_attempt_whose_root_comes_late_shares_the_fate_of_its_trace(tmp_path: Path, configured: Configured) -> None:
    (whole,) = no_room().groups()
    root, *below = split(whole.spans)
    with RecordingWriter(tmp_path / "late.jsonl") as writer:
        writer.write([whole._replace(spans=frame(below), span_count=len(below))], START)
        writer.write([whole._replace(spans=frame([root]), span_count=1)], START + 60 * SECOND)
    rescue = "{decision_wait: 1s, rescue_late_errors: true, decision_cache: {non_sampled_cache_size: 10}}"
    old, new = configured(FAILED, name="old"), configured(NONE, name="new")
    told = backtest("--baseline", old, "--candidate", new, tmp_path / "late.jsonl")
    assert [side["lostFailed"] for side in told["sides"]] == [1, 1]
    text = Path(new).read_text().replace("decision_wait: 1s", rescue[1:-1].replace(", ", "\n    "))
    Path(new).write_text(text)
    told = backtest("--baseline", old, "--candidate", new, tmp_path / "late.jsonl")
    assert [side["lostFailed"] for side in told["sides"]] == [1, 0]


def test_how_spans_were_sent_changes_no_figure(tmp_path: Path, configured: Configured) -> None:
    attempts = sorted((one for pod in range(9) for one in story(pod, "ffso"[: pod % 4 + 1])), key=lambda one: one.start)
    for name, size in {"whole.jsonl": 100, "parts.jsonl": 2}.items():
        with RecordingWriter(tmp_path / name) as writer:
            for attempt in attempts:
                (whole,) = attempt.groups()
                spans = split(whole.spans)[::-1]
                for at in range(0, len(spans), size):
                    part = spans[at : at + size]
                    writer.write([whole._replace(spans=frame(part), span_count=len(part))], attempt.start)
    sides = "--baseline", configured(FAILED, name="old"), "--candidate", configured(SLOW, name="new")
    first, second = (backtest(*sides, tmp_path / name) for name in ("whole.jsonl", "parts.jsonl"))
    for key in ("sentence", "lost", "gained", "policies", "examples", "brokenPods"):
        assert second[key] == first[key], key


def test_bounds_change_no_figure(recorded: Recorded, configured: Configured, monkeypatch: pytest.MonkeyPatch) -> None:
    attempts = [one for pod in range(30) for one in story(pod, "ffso"[: pod % 4 + 1])]
    path = recorded(sorted(attempts, key=lambda one: one.start + one.duration))
    sides = "--baseline", configured(FAILED, name="old"), "--candidate", configured(SLOW, name="new"), path
    roomy = backtest(*sides)
    monkeypatch.setattr(compared_traces, "MOST_SETTLED", 3)
    tight = backtest(*sides)
    for key in ("sentence", "lost", "gained", "sides", "tables", "policies"):
        assert tight[key] == roomy[key], key


def test_what_a_filter_takes_ahead_of_the_sampler_is_lost(recording: Path, configured: Configured) -> None:
    old, new = configured(ALL, name="old"), Path(configured(ALL, name="new"))
    condition = '{traces: {span: [\'resource.attributes["service.name"] == "kube-scheduler"\']}}'
    text = new.read_text().replace("processors: [", "processors: [filter, ")
    new.write_text(text.replace("  link_stitching:\n", f"  link_stitching:\n  filter: {condition}\n", 1))
    told = backtest("--baseline", old, "--candidate", new, recording)
    assert told["lost"] == {"failed": 2, "slow": 1, "other": 2}
    assert any("5 attempts never reached the sampler of the candidate" in note for note in told["notes"])
    assert told["examples"][0]["decided"][1]["reason"] == "it never reached the sampler"


def test_where_one_side_waits_long_only_the_reasons_are_let_go(
    recording: Path, configured: Configured, monkeypatch: pytest.MonkeyPatch
) -> None:
    sides = [configured(FAILED, name="old"), configured(NONE, name="new", sampler="decision_wait: 1h")]
    arguments = "--baseline", sides[0], "--candidate", sides[1], recording
    whole = backtest(*arguments)
    monkeypatch.setattr(compared_traces, "MOST_HELD", 1)
    less = backtest(*arguments)
    assert [key for key in whole if whole[key] != less[key]] == ["examples"]
    votes = [[vote["why"] for vote in told["examples"][0]["decided"][0]["votes"]] for told in (whole, less)]
    assert votes == [["scheduler.result=Unschedulable"], [""]]


def test_by_namespace_and_plugin_each_attempt_has_its_row(recorded: Recorded, configured: Configured) -> None:
    helpless = No(plugin="DynamicResources", reason="nothing to deallocate", nodes=(), point="postFilter")
    refused = no_room(namespace="shop", refusals=[*no_room().refusals, helpless])
    path = recorded([refused, MadeAttempt(number=2, namespace="payments", start=START + SECOND)])
    tables = {table["by"]: table["parts"] for table in backtest("--candidate", configured(FAILED), path)["tables"]}
    assert {part["name"]: part["kept"] for part in tables["namespace"]} == {"shop": [1, 1], "payments": [1, 0]}
    assert {part["name"] for part in tables["plugin"]} == {
        "NodeAffinity",
        "NodeResourcesFit",
        "TaintToleration",
        "(none)",
    }


def test_a_sample_is_said_to_be_one_and_has_intervals(recording: Path, configured: Configured) -> None:
    whole = backtest("--candidate", configured(FAILED), recording)
    sample = backtest("--candidate", configured(FAILED), "--sampled", "10%", recording)
    assert "no interval" in whole["sampling"]
    assert whole["sides"][1]["attemptsInterval"] is None
    assert "sample of 10%" in sample["sampling"]
    low, high = (sample["sides"][1]["attemptsInterval"][key] for key in ("low", "high"))
    assert low < sample["sides"][1]["attemptsShare"] == 0.4 < high
    rate, exact = sample["sides"][1]["spansADay"], whole["sides"][1]["spansADay"]
    assert rate["aDay"] == pytest.approx(10 * exact["aDay"])
    assert rate["interval"]["low"] < rate["aDay"] < rate["interval"]["high"]


def test_slow_may_be_what_is_slow_in_this_recording(recording: Path, configured: Configured) -> None:
    told = backtest("--candidate", configured(FAILED), "--slow", "p99", recording)
    assert told["slowThresholdNanos"] == pytest.approx(3_010_000_000, rel=0.02)
    assert told["came"]["slow"] == 1
    assert "p99 of the successful attempts" in told["slowChosen"]
