"""`podtrail why` on what a stock kube-scheduler leaves behind, and what a recording rebuilt from that is good for."""

import gzip
import json
import os
import re
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
    assert "default/pre-boss is running on tight0" in told
    assert "attempt 2: bound, tight0" in told


FATES = {
    "doomed": r" was deleted at .*, Pending for .* until then: unschedulable\. 1 attempt\.",
    "again": r" was deleted at .*; it was scheduled on n\d\. 1 attempt\.",
    "gated": r" is gated for .*: the scheduler has not tried it\. 0 attempts\.",
    "giant": r" is Pending for .*: unschedulable\. \d attempts, last ",
    "late": r" was scheduled on n1 in .*\. 2 attempts\.",
    "boss": r" was scheduled on narrow in .*\. 2 attempts\.",
    "refused": r" was deleted at .*, Pending for .* until then: bind refused\. 1 attempt\.",
    "by-hand": r" is scheduled on n0: no attempt to schedule it is known; it may have been created with its node\.",
}


@pytest.mark.parametrize("pod", FATES)
@pytest.mark.parametrize("run", ["1.35/v0", "1.36/json", "1.37/v10"])
def test_each_fate_of_a_pod_is_told_from_each_version(run: str, pod: str) -> None:
    folder, _, name = str(DATA / "versions" / run).rpartition("/")
    watches = [Path(folder, f"{name}.{kind}.jsonl.gz") for kind in ("pods", "events")]
    listed = gzip.decompress(watches[0].read_bytes()).decode()
    namespace = re.findall(r'"namespace": "([^"]+)"', listed)[0]
    sources = [each for watch in watches for each in ("--watch", watch)]
    told = podtrail("why", "pod", f"{namespace}/{pod}", "--log", f"{folder}/{name}.kube-scheduler.log.gz", *sources)
    assert re.match(rf"{namespace}/{pod}{FATES[pod]}", told.output), told.output


FIELD = DATA / "field"


@pytest.mark.parametrize("sources", [("log", "watch"), ("log",), ("watch",)])
def test_a_deleted_pod_is_no_longer_pending(sources: tuple[str, ...]) -> None:
    files = {"log": FIELD / "deleted-pod-pending/s.log", "watch": FIELD / "deleted-pod-pending/pods.jsonl"}
    given = [one for name in sources for one in (f"--{name}", files[name])]
    told = podtrail("why", "pod", "default/gone", *given).output
    pending = "1m" if "watch" in sources else "59 s"  # since its creation, where that is known
    assert told.startswith(
        f"default/gone was deleted at 10:01:00 UTC, Pending for {pending} until then: unschedulable. 1 attempt."
    )
    assert "Next try" not in told
    assert "1  NodeResourcesFit  Insufficient cpu" in told


def test_a_pod_that_lost_its_scheduler_cache_entry_is_deleted_at_any_verbosity(tmp_path: Path) -> None:
    log = tmp_path / "s.log"
    failed, deleted, other = (FIELD / "deleted-pod-pending/s.log").read_text().splitlines()
    lost = deleted.replace("Delete event for unscheduled pod", "Pod doesn't exist in informer cache")
    log.write_text("\n".join([failed, f'{lost} err="pod not found"', other]))
    assert "was deleted at 10:01:00 UTC" in podtrail("why", "pod", "default/gone", "--log", log).output
    # The same line as for a deletion is logged when a Pod has got a node; and a Pod may be created again.
    placed = deleted.replace("Delete event for unscheduled pod", "Add event for scheduled pod")
    log.write_text("\n".join([failed, placed, deleted, other]))
    assert "was scheduled" in podtrail("why", "pod", "default/gone", "--log", log).output
    again = deleted.replace("Delete event", "Add event").replace("10:01", "10:02")
    log.write_text("\n".join([failed, deleted, again, other]))
    assert "is Pending for 58m: waiting" in podtrail("why", "pod", "default/gone", "--log", log).output


LAST = b'I0501 12:30:00.000000       1 httplog.go:134] "HTTP" verb="GET" URI="/livez" resp=200\n'


@pytest.mark.parametrize(
    "last",
    [
        LAST,
        b"2026-05-01T12:30:00.000000000Z stderr F " + LAST,
        b'{"ts":1777638600000.0,"caller":"server/httplog.go:134","msg":"HTTP","verb":"GET"}\n',
    ],
)
def test_a_log_goes_on_until_its_last_line_whatever_that_tells(tmp_path: Path, last: bytes) -> None:
    log = tmp_path / "s.log"
    log.write_bytes((FIELD / "as-of-last-used-line/s.log").read_bytes().splitlines(keepends=True)[0] + last)
    os.utime(log, (1_777_638_600, 1_777_638_600))
    told = podtrail("why", "pod", "default/stuck", "--log", log).output
    assert "is Pending for 2h 29m: unschedulable" in told
    assert "(as of 12:30:00 UTC" in told
    assert "by 10:05:01 UTC, which is past: none was seen here." in told


@pytest.mark.parametrize("log", [True, False])
def test_a_pod_that_was_never_tried_is_known_from_the_watch(log: bool) -> None:
    sources = ["--log", FIELD / "never-tried-in-watch/01.log"] if log else []
    told = podtrail("why", "pod", "lost", *sources, "--watch", FIELD / "never-tried-in-watch/01-pods.jsonl").output
    assert told.startswith("default/lost is Pending for 2h: waiting, the scheduler has not tried it. 0 attempts.")
    assert "Meanwhile 2 other Pods were scheduled, the last default/late at 12:00:01 UTC." in told


def test_a_pod_that_asks_for_a_scheduler_of_which_nothing_is_known_says_so(tmp_path: Path) -> None:
    watch = tmp_path / "pods.jsonl"
    lines = (FIELD / "never-tried-in-watch/01-pods.jsonl").read_text().splitlines()
    watch.write_text("\n".join([lines[0].replace("default-scheduler", "defualt-scheduler"), *lines[1:]]))
    told = podtrail("why", "pod", "lost", "--watch", watch).output
    assert "It asks for the scheduler defualt-scheduler. No attempt of that one is known" in told


def test_a_pod_that_a_plugin_holds_in_the_queue_is_known_from_the_log() -> None:
    told = podtrail("why", "pod", "a/gated", "--log", FIELD / "gated-in-log/s6-gated-v5.log").output
    assert "is gated" in told
    assert "SchedulingGates: waiting for scheduling gates: [example.com/quota]" in told


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
