"""`podtrail replay` as a person meets it: results, files, mistakes."""

import json
import re
from collections import Counter
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from podtrail.cli import main
from podtrail.otlp import frame, split
from podtrail.recording import Record, RecordingWriter, read_recording
from podtrail.testing.attempts import START, MadeAttempt

ROOT = Path(__file__).parents[2]
CONFIG = str(ROOT / "examples" / "recording.yaml")
RECORDING = ROOT / "tests" / "data" / "recordings" / "apiserver.otlp.jsonl"
SPANS = 180
SECOND = 1_000_000_000


def replay(*arguments: object) -> Result:
    return CliRunner().invoke(main, ["replay", "--config", CONFIG, *map(str, arguments)])


def spans(recording: Path) -> int:
    records = [record for record in read_recording(recording) if isinstance(record, Record)]
    return sum(group.span_count for record in records for group in record.intake.groups)


def test_the_table_tells_what_each_policy_kept() -> None:
    done = replay(RECORDING)
    assert done.exit_code == 0
    assert f"10 requests, {SPANS} spans" in done.output
    assert "57 traces decided: 13 kept (22.8 %), 48 spans leave the processors" in done.output
    assert done.output.splitlines()[-2].split() == ["sample-25pct", "13", "13", "48"]


def test_json_decisions_and_output_agree(tmp_path: Path) -> None:
    output, decisions = tmp_path / "kept.otlp.zst", tmp_path / "decisions.jsonl"
    done = replay(RECORDING, "--json", "--output", output, "--decisions", decisions)
    assert done.exit_code == 0
    told = json.loads(done.stdout)
    lines = [json.loads(line) for line in decisions.read_text(encoding="utf-8").splitlines()]
    assert Counter(line["decision"] for line in lines) == told["decisions"]
    assert told["spans"] == sum(line["spans"] for line in lines) == SPANS
    assert told["keptSpans"] == spans(output)


def test_what_is_kept_is_told_by_the_day(story: list[str]) -> None:
    done = CliRunner().invoke(main, ["replay", *story])
    told = json.loads(CliRunner().invoke(main, ["replay", *story, "--json"]).stdout)
    seconds = 150  # from the first request to the last
    assert told["aDay"]["keptSpans"] == round(told["keptSpans"] * 86400 / seconds)
    assert told["aDay"]["keptBytes"] == round(told["keptBytes"] * 86400 / seconds)
    assert f"a day of this: {told['aDay']['keptSpans']:,} spans, " in done.output


def test_what_was_kept_is_a_recording_in_which_everything_is_kept(tmp_path: Path) -> None:
    replay(RECORDING, "--output", tmp_path / "kept.jsonl")
    assert "13 traces decided: 13 kept (100.0 %)" in replay(tmp_path / "kept.jsonl").output


def test_a_pipeline_that_only_records_what_comes_is_left_out() -> None:
    recorder = "yaml:{exporters: {recording: {path: x.otlp}}, service: {pipelines: {traces/all: PIPELINE}}}"
    pipeline = "{receivers: [otlp_json_file], exporters: [recording]}"
    beside = ["--config", recorder.replace("PIPELINE", pipeline)]
    assert replay(*beside, RECORDING).output == replay(RECORDING).output


def test_two_runs_give_the_same_files_byte_for_byte(tmp_path: Path) -> None:
    for name in ("a", "b"):
        replay(RECORDING, "--output", tmp_path / f"{name}.jsonl", "--decisions", tmp_path / f"{name}.decisions")
    assert (tmp_path / "a.jsonl").read_bytes() == (tmp_path / "b.jsonl").read_bytes()
    assert (tmp_path / "a.decisions").read_bytes() == (tmp_path / "b.decisions").read_bytes()


@pytest.mark.parametrize("option", ["--output", "--decisions"])
def test_a_recording_that_is_read_is_never_written_over(tmp_path: Path, option: str) -> None:
    recording, link = tmp_path / "recording.jsonl", tmp_path / "link.jsonl"
    recording.write_bytes(RECORDING.read_bytes())
    link.symlink_to(recording)
    for target in (recording, link):
        done = replay(recording, option, target)
        assert done.exit_code == 2
        assert "is read: write to another file" in done.output
    assert recording.read_bytes() == RECORDING.read_bytes()


def test_output_and_decisions_need_a_file_each(tmp_path: Path) -> None:
    done = replay(RECORDING, "--output", tmp_path / "x.jsonl", "--decisions", tmp_path / "x.jsonl")
    assert done.exit_code == 2
    assert "are the same file" in done.output


def test_a_full_disk_is_a_failure_not_a_mistake() -> None:
    done = replay(RECORDING, "--decisions", "/dev/full")
    assert done.exit_code == 1
    assert "No space left on device" in done.output


def test_files_that_cannot_be_opened_are_named(tmp_path: Path) -> None:
    for arguments, says in {
        (tmp_path / "gone.jsonl",): "gone.jsonl: No such file or directory",
        (tmp_path,): "there is no recording in this folder",
        (RECORDING, "--output", tmp_path / "no" / "kept.jsonl"): "kept.jsonl: No such file or directory",
        (RECORDING, "--output", tmp_path / "kept.txt"): "a recording ends in .jsonl or .otlp",
    }.items():
        done = replay(*arguments)
        assert done.exit_code == 2
        assert says in done.output
        assert "Errno" not in done.output


def test_damage_is_named_and_the_rest_is_read(tmp_path: Path) -> None:
    lines = RECORDING.read_bytes().splitlines(keepends=True)
    damaged = tmp_path / "damaged.jsonl"
    damaged.write_bytes(b"".join([lines[0], b"}{\n", *lines[1:]]))
    done = replay(damaged)
    assert done.exit_code == 0
    assert f"skipped {damaged}:2" in done.output
    assert f"{SPANS} spans" in done.output
    assert "1 damaged place skipped" in done.output


@pytest.mark.parametrize("content", [b"", b"not a recording\n"])
def test_a_recording_without_a_request_is_a_failure(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "none.jsonl").write_bytes(content)
    done = replay(tmp_path / "none.jsonl")
    assert done.exit_code == 1
    assert "hold no request that can be read" in done.output


def test_a_disk_that_is_full_when_the_output_ends_is_a_failure_too(tmp_path: Path) -> None:
    full = tmp_path / "full.jsonl"
    full.symlink_to("/dev/full")
    done = replay(RECORDING, "--output", full)
    assert (done.exit_code, done.stderr) == (1, "podtrail: No space left on device\n")


STORY = """\
processors:
  tail_sampling:
    decision_wait: 1s
    decision_cache: {sampled_cache_size: 10, non_sampled_cache_size: 10}
    policies:
      - {name: never, type: string_attribute, string_attribute: {key: no, values: [such]}}
      - {name: failed, type: scheduling_result, scheduling_result: {results: [Unschedulable]}}
  link_stitching:
receivers: {otlp: {protocols: {grpc: }}}
exporters: {otlp_grpc: {}}
service: {pipelines: {traces: {receivers: [otlp], processors: [tail_sampling, link_stitching], exporters: [otlp_grpc]}}}
"""


@pytest.fixture
def story(tmp_path: Path) -> list[str]:
    """Arguments for a replay of attempts at one Pod, kept and not; all but the root of each comes once more, late."""
    recording = tmp_path / "story.jsonl"
    with RecordingWriter(recording) as writer:
        for number, result in enumerate(["Unschedulable", "Unschedulable", "Success"]):
            attempt = MadeAttempt(number=number + 1, result=result, start=START + 60 * number * SECOND)
            (whole,) = attempt.groups()
            _root, *below = split(whole.spans)
            writer.write([whole], attempt.start)
            writer.write([whole._replace(spans=frame(below), span_count=len(below))], attempt.start + 30 * SECOND)
    config = tmp_path / "story.yaml"
    config.write_text(STORY)
    return [str(recording), "--config", str(config)]


def rows(output: str) -> dict[str, list[str]]:
    table = output[output.index("POLICY") :].splitlines()[1:]
    return {line[:24].strip(): line[24:].split() for line in table}


def test_every_span_has_its_row(story: list[str]) -> None:
    done = CliRunner().invoke(main, ["replay", *story])
    assert done.exit_code == 0, done.output
    table = rows(done.stdout)
    assert list(table)[:3] == ["never", "failed", "(nothing)"]
    assert table["never"] == ["0", "0", "0"]
    spans = {name: int(row[-1]) for name, row in table.items()}
    made = spans.pop("(created)")
    came, leave, _day = (int(n.replace(",", "")) for n in re.findall(r"([\d,]+) spans", done.stdout))
    assert sum(spans.values()) == came
    assert spans["failed"] + spans["(late, kept)"] + made == leave
    assert min(spans["(late, kept)"], spans["(late, not kept)"], made) > 0
    told = json.loads(CliRunner().invoke(main, ["replay", *story, "--json"]).stdout)
    assert told["policies"]["never"] == {"votedYes": 0, "decided": 0, "spans": 0}
    assert told["createdSpans"] == made
    assert told["lateSpans"] == {"kept": spans["(late, kept)"], "notKept": spans["(late, not kept)"]}


def test_policies_that_are_only_tried_have_their_votes_in_the_table(story: list[str]) -> None:
    shadow = "yaml:processors::tail_sampling::policies: [{name: tried, type: always_sample, shadow: true}]"
    done = CliRunner().invoke(main, ["replay", *story, "--config", shadow])
    assert done.exit_code == 0, done.output
    assert rows(done.stdout)["tried (shadow)"] == ["3", "0", "0"]
    told = json.loads(CliRunner().invoke(main, ["replay", *story, "--config", shadow, "--json"]).stdout)
    assert told["policies"]["tried"] == {"votedYes": 3, "decided": 0, "spans": 0, "shadow": True}


FILTER = "{traces: {span: ['name == \"filter\"']}}"


@pytest.mark.parametrize(
    "position", ["[filter, tail_sampling, link_stitching]", "[tail_sampling, filter, link_stitching]"]
)
def test_spans_that_another_processor_drops_are_named_as_such_and_not_as_late(story: list[str], position: str) -> None:
    changes = ["--set", f"processors.filter={FILTER}", "--set", f"service.pipelines.traces.processors={position}"]
    before = json.loads(CliRunner().invoke(main, ["replay", *story, "--json"]).stdout)
    done = CliRunner().invoke(main, ["replay", *story, *changes, "--json"])
    told, table = json.loads(done.stdout), rows(CliRunner().invoke(main, ["replay", *story, *changes]).stdout)
    dropped = told["droppedSpans"]["filter"]["sampled_out"]
    assert dropped == int(table["(dropped by filter)"][-1]) > 0
    late = told["lateSpans"]["kept"] + told["lateSpans"]["notKept"]
    assert late == sum(before["lateSpans"].values()) - (dropped // 2 if position.startswith("[filter") else 0)
    decided = sum(policy["spans"] for policy in told["policies"].values())
    lost = dropped if position.startswith("[filter") else 0
    assert told["spans"] == decided + late + lost
    assert told["unaccountedSpans"] == 0


def test_without_a_sampler_drops_are_named_too(story: list[str]) -> None:
    only = ["--set", f"processors.filter={FILTER}", "--set", "service.pipelines.traces.processors=[filter]"]
    done = CliRunner().invoke(main, ["replay", *story, *only])
    assert re.search(r"no sampler decided anything: \d+ spans pass\ndropped by filter: \d+ spans\n", done.stdout)


def test_in_a_dry_run_what_passes_is_not_taken_for_late(story: list[str]) -> None:
    done = CliRunner().invoke(main, ["replay", *story, "--set", "processors.tail_sampling.dry_run=true"])
    assert done.exit_code == 0, done.output
    table = rows(done.stdout)
    assert "spans leave the processors, for it is a dry run" in done.stdout
    # Of each attempt all but the root comes once more, late, and passes.
    assert int(table["(late, kept)"][-1]) == int(table["failed"][-1]) + int(table["(nothing)"][-1]) - 3


@pytest.fixture
def rootless(tmp_path: Path) -> list[str]:
    """Arguments for a replay of three attempts that took 40 s: the root of two comes when they are decided.

    That of the third comes in time, and once more.
    """
    recording, config = tmp_path / "rootless.jsonl", tmp_path / "story.yaml"
    with RecordingWriter(recording) as writer:
        for number in range(3):
            start = START + 60 * number * SECOND
            (whole,) = MadeAttempt(number=number + 1, start=start, duration=40 * SECOND).groups()
            root, *below = split(whole.spans)
            early = [root, *below] if number == 2 else below
            writer.write([whole._replace(spans=frame(early), span_count=len(early))], start)
            writer.write([whole._replace(spans=frame([root]), span_count=1)], start + 40 * SECOND)
    config.write_text(STORY)
    return [str(recording), "--config", str(config)]


def test_traces_that_were_decided_before_their_root_came_are_told_of_and_counted_once(rootless: list[str]) -> None:
    done = CliRunner().invoke(main, ["replay", *rootless])
    assert "3 traces decided: 0 kept" in done.stdout
    assert "2 traces were decided before their root came, and not kept: hold traces for longer" in done.stdout
    assert "attempts took up to 40 s" in done.stdout
    table = rows(done.stdout)
    assert table["(nothing)"][1] == "3"
    assert table["(late, not kept)"] == ["-", "-", "3"]
    told = json.loads(CliRunner().invoke(main, ["replay", *rootless, "--json"]).stdout)
    assert (told["decisions"], told["decidedBeforeRoot"]) == ({"not_sampled": 3}, 2)
    longer = ["--set", "processors.tail_sampling.decision_wait=41s"]
    assert "before their root" not in CliRunner().invoke(main, ["replay", *rootless, *longer]).stdout
    candidate = CliRunner().invoke(main, ["backtest", "--candidate", rootless[-1], rootless[0]])
    assert "The candidate: 2 traces were decided before their root came" in candidate.stdout


def test_a_trace_that_is_rescued_late_is_counted_once(rootless: list[str]) -> None:
    recording = Path(rootless[0])
    *early, last = recording.read_bytes().splitlines(keepends=True)
    failed = json.loads(last)
    for resource in failed["resourceSpans"]:
        for scope in resource["scopeSpans"]:
            for span in scope["spans"]:
                span["status"] = {"code": 2}
    recording.write_bytes(b"".join([*early, json.dumps(failed).encode() + b"\n"]))
    rescue = ["--set", "processors.tail_sampling.rescue_late_errors=true"]
    done = CliRunner().invoke(main, ["replay", *rootless, *rescue])
    assert "3 traces decided: 1 kept" in done.stdout
    table = rows(done.stdout)
    assert table["rescue_late_errors"] == ["0", "1", "1"]
    assert table["(nothing)"][1] == "2"


def test_votes_that_failed_are_counted(story: list[str]) -> None:
    policy = "{name: broken, type: ottl_condition, ottl_condition: {error_mode: propagate, span: ['Len(nil) > 1']}}"
    broken = ["--config", f"yaml:processors::tail_sampling::policies: [{policy}]"]
    done = CliRunner().invoke(main, ["replay", *story, *broken])
    traces = int(re.search(r"(\d+) traces? decided", done.output)[1])  # type: ignore[index] # it is there
    assert done.output.splitlines()[-1] == f"{traces} times a policy was asked and failed: it had no vote there"


def test_what_the_exporters_lack_is_no_more_than_a_warning(story: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OTEL_EXPORTER_OTLP_ENDPOINT", raising=False)
    done = CliRunner().invoke(main, ["replay", *story])
    assert done.exit_code == 0
    assert "warning: " in done.stderr
    assert "exporters::otlp_grpc::endpoint: is required" in done.stderr


def test_a_recording_without_arrivals_is_said_to_have_none(tmp_path: Path) -> None:
    timed, untimed = RECORDING.read_bytes(), tmp_path / "untimed.jsonl"
    untimed.write_bytes(re.sub(rb',"[^"]*arriv[^"]*":"?\d+"?', b"", timed, flags=re.IGNORECASE))
    assert untimed.read_bytes() != timed
    assert "arrival times are those of the spans' ends: the recording has none" in replay(untimed).output
    assert "the spans' ends" not in replay(RECORDING).output


def test_what_was_kept_is_told_from_what_came(story: list[str], tmp_path: Path) -> None:
    kept, says = tmp_path / "kept.jsonl", "what was kept, not what came"
    CliRunner().invoke(main, ["replay", *story, "--output", str(kept)])
    assert says in CliRunner().invoke(main, ["replay", str(kept), *story[1:]]).stderr
    assert says not in replay(RECORDING).stderr


def test_another_kind_of_json_is_named_and_nothing_is_written(tmp_path: Path) -> None:
    decisions, metrics, output = tmp_path / "decisions.jsonl", tmp_path / "metrics.jsonl", tmp_path / "kept.jsonl"
    replay(RECORDING, "--decisions", decisions)
    metrics.write_text('{"resourceMetrics": []}\n')
    for path, says in {
        decisions: f"{decisions} is a file of decisions",
        metrics: "1 request of metrics skipped",
    }.items():
        done = replay(path, "--output", output)
        assert done.exit_code == 1
        assert says in done.stderr
    assert not output.exists()


DAMAGES = {
    "truncated": lambda lines: [*lines[:-1], lines[-1][:200]],
    "a line of another program": lambda lines: [lines[0], b'{"level": "info"}\n', *lines[1:]],
    "an enormous line": lambda lines: [lines[0], b'{"resourceSpans": "' + b"x" * (65 << 20) + b'"}\n', *lines[1:]],
    "nonsense": lambda lines: [*lines[:3], bytes(range(256)).replace(b"\n", b"") + b"\n", *lines[3:]],
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_strict_ends_at_the_first_damage_and_names_it(tmp_path: Path, damage: str) -> None:
    lines = RECORDING.read_bytes().splitlines(keepends=True)
    damaged = tmp_path / "damaged.jsonl"
    damaged.write_bytes(b"".join(DAMAGES[damage](lines)))
    strict, lenient = replay(damaged, "--strict"), replay(damaged)
    assert strict.exit_code == 1
    assert strict.stdout == ""
    (said,) = re.findall(rf"podtrail: refused {damaged}:(\d+): ", strict.stderr)
    assert f"skipped {damaged}:{said}: " in lenient.stderr
    assert "1 damaged place skipped" in lenient.stdout
    assert replay(RECORDING, "--strict").exit_code == lenient.exit_code == 0


def test_strict_refuses_spans_that_are_not_valid(tmp_path: Path) -> None:
    bad = tmp_path / "bad.jsonl"
    bad.write_bytes(re.sub(rb'"spanId":"[0-9a-f]{16}"', b'"spanId":"00"', RECORDING.read_bytes(), count=1))
    assert "1 invalid spans rejected" in replay(bad).stdout
    done = replay(bad, "--strict")
    assert done.exit_code == 1
    assert f"refused {bad}:1: " in done.stderr


def test_recordings_reordered_doubled_and_mixed_are_used_whole(tmp_path: Path) -> None:
    lines = RECORDING.read_bytes().splitlines(keepends=True)
    reordered, mixed = tmp_path / "reordered.jsonl", tmp_path / "mixed.otlp.zst"
    reordered.write_bytes(b"".join(reversed(lines)))
    with RecordingWriter(mixed) as writer:
        for record in read_recording(RECORDING):
            assert isinstance(record, Record)
            writer.write(record.intake.groups, record.arrival)
    done = replay(reordered, RECORDING, mixed, RECORDING)
    assert done.exit_code == 0
    assert f"40 requests, {4 * SPANS} spans" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ([], "give --config to decide here, or --endpoint"),
        (["--config", CONFIG, "--endpoint", "localhost:1"], "--config does not go with --endpoint"),
        (["--endpoint", "localhost:1", "--output", "x.otlp"], "--output does not go with --endpoint"),
        (["--config", CONFIG, "--speed", "1x"], "--speed goes with --endpoint"),
        (["--endpoint", "localhost:1", "--speed", "0x"], "write 1x, 10x, 0.5x or max"),
        (["--endpoint", "localhost:1", "--speed", "fast"], "write 1x, 10x, 0.5x or max"),
        (["--endpoint", "http://"], "--endpoint: "),
    ],
)
def test_options_that_do_not_go_together_are_a_usage_error(arguments: list[str], says: str) -> None:
    done = CliRunner().invoke(main, ["replay", str(RECORDING), *arguments])
    assert done.exit_code == 2, done.output
    assert says in done.output


@pytest.mark.parametrize(
    "line",
    [
        'I1121 11:12:05.888918    4385 flags.go:64] FLAG: --v="2"',
        '{"ts":1795260015658.4927,"caller":"flag/flags.go:64","msg":"FLAG: --v=\\"5\\"","v":1}',
    ],
)
def test_a_log_is_told_from_a_recording_and_what_reads_it_is_named(tmp_path: Path, line: str) -> None:
    (tmp_path / "kube-scheduler.log").write_text(line + "\n")
    done = replay(tmp_path / "kube-scheduler.log")
    assert done.exit_code == 1
    assert "podtrail reconstruct" in done.stderr


@pytest.mark.parametrize("command", [["replay", "--config"], ["backtest", "--candidate"]])
def test_a_warning_about_the_configuration_is_printed_once(tmp_path: Path, command: list[str]) -> None:
    config = tmp_path / "config.yaml"
    config.write_text(Path(CONFIG).read_text().replace("decision_wait: 5m", "decision_wait: -5s"))
    done = CliRunner().invoke(main, [*command, str(config), str(RECORDING)])
    assert done.exit_code == 0, done.output
    assert done.output.count("is negative: a trace is decided after 1s") == 1
