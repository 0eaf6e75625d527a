"""`podtrail reconstruct` as a person meets it."""

import gzip
import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from podtrail.cli import main
from podtrail.otlp import SpanView, split
from podtrail.recording import Record, read_recording
from podtrail.testing import replay

DATA = Path(__file__).parents[1] / "data" / "kube-scheduler"


def reconstruct(*arguments: object, stdin: bytes = b"") -> Result:
    return CliRunner().invoke(main, ["reconstruct", *map(str, arguments)], input=stdin)


def file(name: str) -> Path:
    return DATA / f"{name}.gz"


def sources(run: str) -> list[object]:
    given = {"--log": f"{run}.log", "--pods": f"{run}.pods.jsonl", "--events": f"{run}.events.jsonl"}
    return [part for option, name in given.items() for part in (option, file(name))]


def test_the_report_lays_what_is_rebuilt_beside_the_schedulers_own_count() -> None:
    done = reconstruct(*sources("v2-text"), "--metrics", DATA / "v2-text.prom")
    assert done.exit_code == 0
    rows = [line.split() for line in done.output.splitlines()]
    assert ["log", "1,024", "579", "445", "0"] in rows
    assert ["Success", "323", "323"] in rows
    assert ["Unschedulable", "125", "125"] in rows
    assert ["in", "all", "459", "459"] in rows


def test_the_recording_tells_why_a_pod_waits(tmp_path: Path) -> None:
    output = tmp_path / "attempts.jsonl"
    reconstruct(*sources("v2-text"), "--output", output)
    told = CliRunner().invoke(main, ["why", "pod", "default/giant", "--from", str(output)]).output
    assert "default/giant is Pending" in told
    assert "36  NodeResourcesFit  Insufficient cpu" in told


@pytest.mark.parametrize("suffix", [".jsonl", ".otlp", ".otlp.zst"])
def test_two_readings_write_the_same_recording_byte_for_byte(tmp_path: Path, suffix: str) -> None:
    for name in ("a", "b"):
        assert reconstruct(*sources("v5-json"), "--output", tmp_path / f"{name}{suffix}").exit_code == 0
    assert (tmp_path / f"a{suffix}").read_bytes() == (tmp_path / f"b{suffix}").read_bytes()
    records = [record for record in read_recording(tmp_path / f"a{suffix}") if isinstance(record, Record)]
    assert len(records) == 49


def test_a_rotated_log_is_one_log(tmp_path: Path) -> None:
    lines = gzip.decompress(file("v10-text.log").read_bytes()).splitlines(keepends=True)
    half = next(at for at, line in enumerate(lines) if b"Attempting to schedule pod" in line and at > 9_000) + 1
    (tmp_path / "kube-scheduler.log").write_bytes(b"".join(lines[half:]))
    (tmp_path / "kube-scheduler.log.1").write_bytes(b"".join(lines[:half]))
    logs = ["--log", tmp_path / "kube-scheduler.log", "--log", tmp_path / "kube-scheduler.log.1"]
    told = json.loads(reconstruct(*logs, "--json", "--year", 2026).stdout)
    assert told["attempts"] == {"Error": 8, "Success": 45, "Unschedulable": 82}


def test_a_log_comes_from_standard_input() -> None:
    log = gzip.decompress(file("v5-json.log").read_bytes())
    told = json.loads(reconstruct("--log", "-", "--json", stdin=log).stdout)
    assert sum(told["attempts"].values()) == 49


def test_a_file_that_is_cut_off_gives_what_it_still_holds(tmp_path: Path) -> None:
    (tmp_path / "cut.log.gz").write_bytes(file("v2-text.log").read_bytes()[:9_000])
    done = reconstruct("--log", tmp_path / "cut.log.gz", "--json")
    assert done.exit_code == 0
    assert "cut off" in done.stderr
    assert sum(json.loads(done.stdout)["attempts"].values()) > 100


def test_nothing_to_tell_of_is_a_failure_that_says_so(tmp_path: Path) -> None:
    (tmp_path / "a.log").write_bytes(b"\x00\xff rubbish\n" * 3)
    done = reconstruct("--log", tmp_path / "a.log")
    assert done.exit_code == 1
    assert "log: 3 unknown: not a line of kube-scheduler" in done.output
    assert "nothing that was read tells of an attempt" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        ([], 2, "nothing to read"),
        (["--log", "/nowhere/a.log"], 2, "No such file"),
        (["--log", str(file("v2-text.log")), "--output", "attempts.txt"], 2, "attempts.txt"),
    ],
)
def test_mistakes_are_said_in_one_line(arguments: list[str], code: int, words: str) -> None:
    done = reconstruct(*arguments)
    assert done.exit_code == code
    assert words in done.stderr


def test_what_is_read_is_not_written_over(tmp_path: Path) -> None:
    log = tmp_path / "a.jsonl"
    log.write_bytes(b"")
    assert reconstruct("--log", log, "--output", log).exit_code == 2


def text_of(span: SpanView, attribute: str) -> str:
    value = span.attributes[attribute]
    assert isinstance(value, str)
    return value


def place_in(span: SpanView) -> str:
    found = re.search(r"/namespaces/([^/]+)/pods/([^/?]+)", str(span.attributes.get("url.path")))
    return f"{found[1]}/{found[2]}" if found else ""


@pytest.mark.parametrize(
    ("run", "linked"), [("v5-json", (29, 26, 7)), ("v10-text", (51, 63, 41))], ids=["json", "gangs"]
)
def test_requests_to_the_api_server_are_linked_with_their_attempts(
    tmp_path: Path, run: str, linked: tuple[int, int, int]
) -> None:
    output = tmp_path / "story.otlp"
    given = [*sources(run), "--apiserver", DATA / f"{run}.apiserver.otlp.zst", "--output", output]
    done = reconstruct(*given, "--json")
    told = json.loads(done.stdout)["linkedRequests"]
    assert (told["binding"], told["creation"], told["status"]) == linked
    records = [record for record in read_recording(output) if isinstance(record, Record)]
    spans = [SpanView(raw) for record in records for group in record.intake.groups for raw in split(group.spans)]
    roots = {span.span_id: span for span in spans if span.name == "SchedulePod"}
    created = {
        span.trace_id: str(span.attributes["key"]).removeprefix("/pods/")
        for span in spans
        if span.name == "Create etcd3" and str(span.attributes.get("key")).startswith("/pods/")
    }
    for span in (span for span in spans if span.kind == 2):
        for link in span.links:
            root, kind = roots.get(link.span_id), link.attributes.get("podtrail.link.type")
            if root is None or kind not in ("binding", "status"):
                continue
            pod = f"{text_of(root, 'k8s.namespace.name')}/{text_of(root, 'k8s.pod.name')}"
            assert place_in(span) == pod
            assert root.start - 1e9 <= span.start <= root.end + 1e9
            assert (kind == "binding") == ("/binding" in span.name)
    for root in roots.values():
        for link in root.links:
            if link.attributes["podtrail.link.type"] == "creation" and link.attributes.get("podtrail.inferred"):
                assert created[link.trace_id].endswith(f"/{text_of(root, 'k8s.pod.name')}")
    lone = [span for span in spans if span.name == "authentication"]
    assert lone
    assert not any(span.links for span in lone)


def test_every_bind_of_a_pod_that_was_surely_there_is_found_refused_ones_too(tmp_path: Path) -> None:
    output = tmp_path / "story.otlp"
    reconstruct(*sources("v5-json"), "--apiserver", DATA / "v5-json.apiserver.otlp.zst", "--output", output)
    records = [record for record in read_recording(output) if isinstance(record, Record)]
    spans = [SpanView(raw) for record in records for group in record.intake.groups for raw in split(group.spans)]
    binds = [span for span in spans if span.kind == 2 and span.name.endswith("/binding")]
    assert len(binds) == 30
    # Nobody recorded that `traced-unsampled` was created, so that another Pod may have had the name a moment before.
    unlinked = [str(span.attributes["url.path"]) for span in binds if not span.links]
    assert unlinked == ["/api/v1/namespaces/default/pods/traced-unsampled/binding"]
    assert all(len(span.links) <= 1 for span in binds)
    refused = [span for span in binds if span.attributes["http.response.status_code"] == 422]
    roots = {span.span_id: span for span in spans if span.name == "SchedulePod"}
    assert len(refused) == 6
    assert {roots[span.links[0].span_id].attributes["scheduler.result"] for span in refused} == {"Error"}


STITCHED = """
receivers: {otlp: {protocols: {grpc: }}}
processors: {link_stitching: {reorder_wait: 15s}}
exporters: {debug: }
service: {pipelines: {traces: {receivers: [otlp], processors: [link_stitching], exporters: [debug]}}}
"""


def test_in_a_replay_rebuilt_attempts_and_the_api_servers_spans_meet_as_well(tmp_path: Path) -> None:
    attempts = tmp_path / "attempts.otlp"
    reconstruct(*sources("v5-json"), "--output", attempts)
    run = replay(STITCHED, [attempts, DATA / "v5-json.apiserver.otlp.zst"])
    links = run.metrics["otelcol_processor_link_stitching_links"]
    found = {kind: links[f"processor=link_stitching,target=kept,type={kind}"] for kind in ("binding", "status")}
    assert found == {"binding": 29, "status": 7}  # of one Pod the creation was not recorded


@pytest.mark.parametrize("option", ["--log", "--pods", "--events"])
def test_a_file_that_is_given_twice_is_refused_for_it_would_tell_of_everything_twice(option: str) -> None:
    path = file("v2-text.log")
    done = reconstruct(option, path, option, path.parent / "ages" / ".." / path.name)
    assert done.exit_code == 2
    assert "is given twice" in done.output


NODE = Path(__file__).parents[1] / "data/recordings/node/podtrail"


def test_transitions_of_pods_become_a_recording_that_a_lifecycle_is_made_of(tmp_path: Path) -> None:
    transitions, whole = tmp_path / "transitions.otlp", tmp_path / "whole.otlp.zst"
    done = reconstruct("--pods", NODE / "pods.jsonl.zst", "--transitions", transitions)
    assert done.exit_code == 0
    merge = ["recording", "merge", str(NODE / "spans.otlp.zst"), str(transitions), "--to", str(whole)]
    assert CliRunner().invoke(main, merge).exit_code == 0
    config = """
receivers: {otlp: {protocols: {grpc: {}}}}
processors: {link_stitching: {mode: lifecycle}}
exporters: {debug: {}}
service: {pipelines: {traces: {receivers: [otlp], processors: [link_stitching], exporters: [debug]}}}
"""
    spans = replay(config, whole).exported["debug"]
    assert len([each for each in spans if each.span.name == "PodLifecycle"]) == 10
    assert len([each for each in spans if each.span.name == "ready"]) == 8


def test_transitions_need_a_watch_of_pods(tmp_path: Path) -> None:
    done = reconstruct("--log", file("v2-text.log"), "--transitions", tmp_path / "out.otlp")
    assert done.exit_code == 2
    assert "give --pods" in done.output
    same = tmp_path / "out.otlp"
    done = reconstruct("--pods", NODE / "pods.jsonl.zst", "--transitions", same, "--output", same)
    assert done.exit_code == 2
    assert "--output and --transitions are one file" in done.output
