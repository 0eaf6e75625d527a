"""`podtrail why` on what a stock kube-scheduler leaves behind, and what a recording rebuilt from that is good for."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from podtrail.cli import main
from podtrail.testing import replay

DATA = Path(__file__).parents[1] / "data" / "kube-scheduler"
CONFIG = """
receivers: {otlp: {protocols: {grpc: }}}
processors:
  tail_sampling:
    decision_wait: 1s
    policies:
      - {name: failed, type: scheduling_result, scheduling_result: {results: [Unschedulable, Error]}}
  link_stitching: {}
exporters: {debug: }
service: {pipelines: {traces: {receivers: [otlp], processors: [tail_sampling, link_stitching], exporters: [debug]}}}
"""


def podtrail(*arguments: object) -> Result:
    return CliRunner().invoke(main, [*map(str, arguments)])


def left_behind(run: str, *sources: str) -> list[object]:
    given: list[object] = []
    for source in sources or ("log", "pods", "events"):
        option, suffix = ("--log", "log") if source == "log" else ("--watch", f"{source}.jsonl")
        given += [option, DATA / f"{run}.{suffix}.gz"]
    return given


def test_the_log_alone_says_why_a_pod_waits() -> None:
    told = podtrail("why", "pod", "default/giant", *left_behind("v2-text", "log")).output
    assert "default/giant is Pending" in told
    assert "31 attempts" in told
    assert "36  NodeResourcesFit  Insufficient cpu" in told


def test_watches_alone_say_it_too() -> None:
    told = podtrail("why", "pod", "default/giant", *left_behind("v2-text", "pods", "events")).output
    assert "36  NodeResourcesFit  Insufficient cpu" in told


def test_a_pod_that_preempted_was_scheduled_where_it_made_room() -> None:
    told = podtrail("why", "pod", "default/pre-boss", *left_behind("v5-json")).output
    assert "default/pre-boss was scheduled on tight0" in told


def test_a_gated_pod_is_known_from_the_watch_though_no_attempt_tells_of_it() -> None:
    told = podtrail("why", "pod", "default/gated-forever", *left_behind("v5-json", "pods")).output
    assert "default/gated-forever is gated" in told
    assert "Gates left: example.com/hold" in told


def test_an_attempt_is_told_by_its_trace_id() -> None:
    story = json.loads(podtrail("why", "pod", "default/pre-boss", "--json", *left_behind("v5-json")).stdout)
    trace = story["pod"]["attempts"][0]["traceId"]
    told = podtrail("why", "trace", trace, *left_behind("v5-json")).output
    assert f"Trace {trace}" in told
    assert "default/pre-boss" in told


def test_an_unknown_pod_is_said_to_be_unknown_with_what_was_read() -> None:
    done = podtrail("why", "pod", "default/nobody", *left_behind("v5-json", "log"))
    assert done.exit_code == 1
    assert "49 attempts from 2026-11-21T11:20:" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [(["--log", "/nowhere/a.log"], "No such file"), (["--log", "a.log", "--from", "b.jsonl"], "either --from, or")],
)
def test_mistakes_are_said_in_one_line(arguments: list[str], words: str) -> None:
    done = podtrail("why", "pod", "default/giant", *arguments)
    assert done.exit_code == 2
    assert words in done.stderr


@pytest.mark.parametrize("suffix", [".jsonl", ".otlp"])
def test_policies_decide_about_rebuilt_attempts_and_number_them(tmp_path: Path, suffix: str) -> None:
    recording = tmp_path / f"attempts{suffix}"
    sources = ["--log", DATA / "v2-text.log.gz", "--pods", DATA / "v2-text.pods.jsonl.gz"]
    assert podtrail("reconstruct", *sources, "--output", recording).exit_code == 0
    run = replay(CONFIG, recording)
    assert len(run.decisions) == 459
    kept = [one.span for one in run.exported["debug"] if one.span.name == "SchedulePod"]
    assert len(kept) == 136
    for root in kept:
        assert root.attributes["podtrail.attempt.number"] == root.attributes["scheduler.attempts"]
