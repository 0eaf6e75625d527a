"""`podtrail generate` as a person meets it: recordings, endpoints, mistakes."""

import json
import signal
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from podtrail.cli import main
from podtrail.otlp import Group, SpanView, split
from podtrail.recording import Record, read_recording

ROOT = Path(__file__).parents[2]
DELAY = 1
"""Seconds; longer than the sender would wait of its own accord."""
PATIENCE = 600.0
PODTRAIL = Path(sys.executable).parent / "podtrail"
START = 1_767_225_600_000_000_000
SECOND = 1_000_000_000


def generate(*arguments: object) -> Result:
    return CliRunner().invoke(main, ["generate", *map(str, arguments)])


def records(path: Path) -> list[Record]:
    found = list(read_recording(path))
    kept = [record for record in found if isinstance(record, Record)]
    assert len(kept) == len(found)
    return kept


def groups(path: Path) -> Iterator[Group]:
    for record in records(path):
        yield from record.intake.groups


def spans(path: Path) -> list[SpanView]:
    return [SpanView(raw) for group in groups(path) for raw in split(group.spans)]


@pytest.mark.parametrize("rate", [[], ["--rate", "400"]])
def test_the_same_options_give_the_same_bytes_and_another_seed_gives_others(tmp_path: Path, rate: list[str]) -> None:
    written = []
    for name, seed in {"a": 5, "b": 5, "c": 6}.items():
        path = tmp_path / f"{name}.otlp"
        assert generate("--to", path, "--length", "20s", "--seed", seed, *rate).exit_code == 0
        written.append(path.read_bytes())
    assert written[0] == written[1] != written[2]


def test_a_recording_holds_arrivals_that_no_span_ends_after(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    done = generate("--to", path, "--length", "30s", "--start", "2026-03-01T12:00:00Z", "--json")
    told = json.loads(done.stdout)
    assert told["spans"] == len(spans(path))
    last = 0
    for record in records(path):
        assert record.timed
        ends = [SpanView(raw).end for group in record.intake.groups for raw in split(group.spans)]
        assert max(last, *ends) <= record.arrival
        last = record.arrival
    assert all(span.start >= 1_772_366_400 * SECOND for span in spans(path))


def test_options_change_the_workload(tmp_path: Path) -> None:
    path = tmp_path / "a.otlp.zst"
    done = generate("--to", path, "--length", "10s", "--nodes", "3", "--pods-per-second", "20", "--like", "quiet")
    assert done.exit_code == 0
    totals = {span.attributes.get("scheduler.nodes.total") for span in spans(path)} - {None}
    assert totals == {3}
    assert len({span.attributes["k8s.pod.uid"] for span in spans(path) if span.name == "SchedulePod"}) > 100


def test_a_workload_comes_from_a_file_or_a_configuration(tmp_path: Path) -> None:
    workload, whole, path = tmp_path / "workload.yaml", tmp_path / "whole.yaml", tmp_path / "a.otlp"
    workload.write_text("length: 20s\npods: [{name: only}]\nfaults: {}\n")
    whole.write_text(
        "receivers: {scheduler/x: {speed: 3, workload: {length: 20s, pods: [{name: only}], faults: {}}}}\n"
    )
    for option in (["--workload", workload], ["--config", whole]):
        assert generate("--to", path, "--overwrite", *option).exit_code == 0
        names = [span.attributes["k8s.pod.name"] for span in spans(path) if span.name == "SchedulePod"]
        assert names
        assert all(str(name).startswith("only-") for name in names)


@pytest.mark.parametrize(
    ("like", "most", "least"), [("quiet", 0.0, 0.0), ("incident", 1.0, 0.3), ("preempting", 1.0, 0.1)]
)
def test_presets_are_what_they_are_called(tmp_path: Path, like: str, most: float, least: float) -> None:
    path = tmp_path / "a.otlp"
    assert generate("--to", path, "--like", like, "--length", "1m").exit_code == 0
    made = spans(path)
    results = Counter(span.attributes["scheduler.result"] for span in made if span.name == "SchedulePod")
    failed = 1 - results["Success"] / results.total()
    assert least <= failed <= most, results
    assert any(span.name == "postFilter" for span in made) == (like != "quiet")


def test_a_rate_is_kept_with_ids_uids_and_names_of_their_own(tmp_path: Path) -> None:
    path = tmp_path / "a.otlp"
    assert generate("--to", path, "--rate", "1000", "--length", "10s", "--requests-of", "100").exit_code == 0
    made = spans(path)
    assert 9_000 < len(made) < 11_000
    assert max(sum(group.span_count for group in record.intake.groups) for record in records(path)) <= 100
    assert len({span.span_id for span in made}) == len(made)
    roots = [span for span in made if span.name == "SchedulePod"]
    assert len({span.trace_id for span in roots}) == len(roots)
    named: dict[object, set[object]] = {}
    for root in roots:
        named.setdefault(root.attributes["k8s.pod.name"], set()).add(root.attributes["k8s.pod.uid"])
    assert len(named) > 150
    assert all(len(uids) == 1 for uids in named.values())


def test_copies_keep_parents_links_and_durations(tmp_path: Path) -> None:
    alone, path = tmp_path / "alone.otlp", tmp_path / "a.otlp"
    like = ("--like", "incident", "--length", "30s")
    generate("--to", alone, *like)
    generate("--to", path, *like, "--rate", "1000")
    made = spans(path)
    ids = {(span.trace_id, span.span_id) for span in made}
    parents = [(span.trace_id, span.parent_span_id) for span in made if span.parent_span_id]
    links = [(link.trace_id, link.span_id) for span in made for link in span.links]
    # Copies begin in the middle of their lives and are cut off at the end.
    assert sum(parent in ids for parent in parents) > 0.98 * len(parents)
    assert sum(link in ids for link in links) > 0.9 * len(links) > 100
    durations = {span.end - span.start for span in spans(alone)}
    assert {span.end - span.start for span in made} <= durations


def test_options_that_do_not_go_together_are_a_usage_error(tmp_path: Path) -> None:
    file = tmp_path / "a.otlp"
    for arguments, says in {
        (): "either --to FILE or --endpoint URL",
        ("--to", file, "--endpoint", "localhost:4317"): "either --to FILE or --endpoint URL",
        ("--to", file, "--for", "1s"): "--for goes with --endpoint",
        ("--to", file, "--protocol", "http"): "--protocol goes with --endpoint",
        ("--endpoint", "localhost:4317", "--start", "2026-01-01T00:00:00Z"): "--start goes with --to",
        ("--to", file, "--like", "busy", "--config", "x.yaml"): "one of --like, --workload and --config",
        ("--to", tmp_path / "a.txt"): "a recording ends in .jsonl or .otlp",
        ("--to", file, "--length", "5"): "lacks a unit",
        ("--to", file, "--rate", "2", "--length", "5s"): "lower --pods-per-second or raise --rate",
        ("--endpoint", "ftp://x:1"): "unknown scheme",
        ("--to", file, "--start", "yesterday"): "is no time since 1970",
        ("--to", file, "--workload", tmp_path / "gone.yaml"): "gone.yaml",
    }.items():
        done = generate(*arguments)
        assert done.exit_code == 2, done.output
        assert says in done.output


def test_a_mistake_in_a_workload_is_named_with_its_place(tmp_path: Path) -> None:
    (tmp_path / "w.yaml").write_text("length: 1m\npods:\n  - {name: web, wieght: 3}\n")
    done = generate("--to", tmp_path / "a.otlp", "--workload", tmp_path / "w.yaml")
    assert done.exit_code == 2
    assert "w.yaml:3:17: workload::pods::0::wieght" in done.output


@pytest.mark.parametrize("text", ["", "# nothing\n", "---\n", "null\n"])
def test_an_empty_workload_is_told_the_keys_of_a_workload(tmp_path: Path, text: str) -> None:
    (tmp_path / "w.yaml").write_text(text)
    done = generate("--to", tmp_path / "a.otlp", "--workload", tmp_path / "w.yaml")
    assert done.exit_code == 2
    assert "a workload has keys such as nodes, pods, arrival_rate and length" in done.output


def test_a_full_disk_is_a_failure(tmp_path: Path) -> None:
    (tmp_path / "full.otlp").symlink_to("/dev/full")
    done = generate("--to", tmp_path / "full.otlp", "--length", "5s")
    assert (done.exit_code, done.stderr) == (1, "podtrail: No space left on device\n")


def test_ctrl_c_leaves_a_whole_recording_and_says_so(tmp_path: Path) -> None:
    path = tmp_path / "a.otlp"
    process = subprocess.Popen(
        [str(PODTRAIL), "generate", "--to", str(path), "--length", "100h"],
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    begun = tmp_path / ".unfinished-a.otlp"
    while not (begun.exists() and begun.stat().st_size):
        assert process.poll() is None
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 1
    assert b"stopped before the end" in err
    assert f"{len(spans(path)):,} spans".encode() in out
    assert not begun.exists()


def test_nobody_at_the_endpoint_is_told_at_once_and_ctrl_c_ends_it() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        endpoint = f"127.0.0.1:{taken.getsockname()[1]}"
        process = subprocess.Popen(
            [str(PODTRAIL), "generate", "--endpoint", endpoint, "--like", "busy", "--length", "2s", "--for", "1h"],
            stderr=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        assert process.stderr is not None
        assert b"not taken, trying again: UNAVAILABLE" in process.stderr.readline()
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 1
    assert b"0 accepted" in out
    assert b"spans were not taken: UNAVAILABLE" in err


def test_what_is_refused_when_the_time_is_over_is_asked_again_as_before() -> None:
    tried: dict[bytes, list[float]] = {}

    class Refusing(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            times = tried.setdefault(self.rfile.read(int(self.headers["Content-Length"])), [])
            times.append(time.monotonic())
            self.send_response(503 if len(times) == 1 else 200)
            self.send_header("Retry-After", str(DELAY))
            self.send_header("Content-Length", "0")
            self.end_headers()

    with ThreadingHTTPServer(("127.0.0.1", 0), Refusing) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        endpoint = f"http://127.0.0.1:{server.server_port}/v1/traces"
        done = generate("--endpoint", endpoint, "--rate", 100, "--for", "1s")
        server.shutdown()
    assert done.exit_code == 0, done.output
    assert tried
    assert all(again - first >= DELAY for first, again in tried.values())
