"""`podtrail backtest` as a person and a CI job meet it."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from podtrail.cli import main
from podtrail.recording import RecordingWriter
from podtrail.testing.attempts import START, MadeAttempt, no_room

ROOT = Path(__file__).parents[2]
SECOND = 1_000_000_000
CONFIG = """\
processors:
  tail_sampling:
    decision_wait: 1s
    policies:
      - {name: failed, type: scheduling_result, scheduling_result: {results: [RESULTS]}}
receivers: {otlp: {protocols: {grpc: }}}
exporters: {debug: }
service: {pipelines: {traces: {receivers: [otlp], processors: [tail_sampling], exporters: [debug]}}}
"""


@pytest.fixture
def sides(tmp_path: Path) -> list[str]:
    """A baseline that keeps failures, a candidate that keeps none of them."""
    for name, results in {"old": "Unschedulable, Error", "new": "Success"}.items():
        (tmp_path / f"{name}.yaml").write_text(CONFIG.replace("RESULTS", results))
    return ["--baseline", str(tmp_path / "old.yaml"), "--candidate", str(tmp_path / "new.yaml")]


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    """A failed attempt, and one that succeeded after two seconds."""
    with RecordingWriter(tmp_path / "recording.jsonl") as writer:
        for attempt in (no_room(), MadeAttempt(number=2, start=START + 3600 * SECOND, duration=2 * SECOND)):
            writer.write(attempt.groups(), attempt.start)
    return tmp_path / "recording.jsonl"


def backtest(*arguments: object) -> Result:
    return CliRunner().invoke(main, ["backtest", *map(str, arguments)])


def test_the_verdict_comes_first_and_no_line_carries_marks(sides: list[str], recording: Path) -> None:
    done = backtest(*sides, recording)
    assert done.exit_code == 0, done.output
    lines = done.stdout.splitlines()
    assert lines[0].startswith("The candidate keeps ")
    assert "loses 1 failed attempt, gains 1 slow one" in lines[0]
    assert "\x1b" not in done.stdout
    assert any(line.startswith("failed attempts lost") and line.split()[-2:] == ["0", "1"] for line in lines)
    assert "baseline: kept by failed: scheduler.result=Unschedulable" in done.stdout


@pytest.mark.parametrize(
    ("gate", "says", "code"),
    [
        (["--fail-on-lost-failed"], "NOT HELD, 1 failed attempt lost", 1),
        (["--fail-on-lost-slow"], "held, 0 slow attempts lost", 0),
        (["--max-spans-increase", "0%"], "held, ", 0),
        (["--budget", "1 spans/day", "--fail-over-budget"], "NOT HELD, ", 1),
        (["--budget", "1GB/day", "--fail-over-budget"], "held, ", 0),
    ],
)
def test_expectations_end_in_the_exit_code(
    sides: list[str], recording: Path, gate: list[str], says: str, code: int
) -> None:
    done = backtest(*sides, *gate, recording)
    assert done.exit_code == code, done.output
    assert says in done.stdout.splitlines()[-1]


def test_more_spans_than_are_allowed_are_a_failure(sides: list[str], recording: Path) -> None:
    turned = ["--baseline", sides[3], "--candidate", sides[1]]
    assert backtest(*turned, "--max-spans-increase", "1000%", recording).exit_code == 2
    assert backtest(*turned, "--max-spans-increase", "5%", recording).exit_code == 1
    assert backtest(*turned, "--max-spans-increase", "900%", recording).exit_code == 0


def test_mistakes_in_use_are_named(sides: list[str], recording: Path, tmp_path: Path) -> None:
    for arguments, says in {
        (str(recording),): "--candidate is needed",
        (*sides, str(recording), "--fail-over-budget"): "goes with --budget",
        (*sides[:2], str(recording), "--max-spans-increase", "5%"): "needs both",
        (*sides, str(recording), "--budget", "2GB"): "is no budget",
        (*sides, str(recording), "--sampled", "5"): "is no percentage",
        (*sides, str(recording), "--sampled", "0%"): "above 0 %",
        (*sides, str(recording), "--slow", "fast"): "is not a duration",
        (*sides, str(recording), "--html", str(recording)): "is read: write to another file",
        (*sides, str(tmp_path / "gone.jsonl")): "gone.jsonl: No such file or directory",
        ("--candidate", str(tmp_path / "gone.yaml"), str(recording)): "gone.yaml",
    }.items():
        done = backtest(*arguments)
        assert done.exit_code == 2, done.output
        assert says in done.output


def test_a_page_that_cannot_be_written_is_named(sides: list[str], recording: Path, tmp_path: Path) -> None:
    for path, (says, code) in {
        tmp_path / "no" / "report.html": ("report.html: No such file", 2),
        Path("/dev/full"): ("No space left on device", 1),
    }.items():
        done = backtest(*sides, recording, "--html", path)
        assert (done.exit_code, says in done.stderr) == (code, True), done.output


def test_damage_is_skipped_and_named_or_refused(sides: list[str], recording: Path) -> None:
    lines = recording.read_bytes().splitlines(keepends=True)
    recording.write_bytes(lines[0] + b"}{\n" + lines[1])
    done = backtest(*sides, recording)
    assert done.exit_code == 0
    assert f"skipped {recording}:2" in done.stderr
    assert "1 damaged place of the recording skipped" in done.stdout
    strict = backtest(*sides, "--strict", recording)
    assert strict.exit_code == 1
    assert f"{recording}:2" in strict.stderr
    assert not strict.stdout


def test_a_recording_that_is_none_is_a_failure(sides: list[str], tmp_path: Path) -> None:
    empty, other = tmp_path / "empty.jsonl", tmp_path / "decisions.jsonl"
    empty.touch()
    other.write_text('{"traceId": "00", "decision": "sampled"}\n')
    for path, says in {empty: "hold no request", other: "a file of decisions"}.items():
        done = backtest(*sides, path)
        assert (done.exit_code, says in done.stderr) == (1, True)


def test_hostile_names_have_no_power_over_a_terminal(sides: list[str], tmp_path: Path) -> None:
    evil = "\x1b[2J\u202eweb\n"
    attempt = no_room(namespace=evil, name=evil, uid=evil, attributes={"scheduler.profile": evil})
    with RecordingWriter(tmp_path / "evil.jsonl") as writer:
        writer.write(attempt.groups(), START)
    done = backtest(*sides, tmp_path / "evil.jsonl")
    assert done.exit_code == 0
    assert "\\x1b[2J\\u202eweb" in done.stdout
    assert not {"\x1b", "\u202e"} & set(done.stdout)


def test_json_is_the_whole_report(sides: list[str], recording: Path) -> None:
    told = json.loads(backtest(*sides, "--json", "--budget", "1GB/day", recording).stdout)
    assert told["budget"] == {"aDay": 1e9, "unit": "bytes"}
    assert [side["name"] for side in told["sides"]] == ["baseline", "candidate"]
    assert sum(part["attempts"] for part in told["tables"][2]["parts"]) == told["came"]["attempts"] == 2
    assert told["sides"][0]["spansADay"]["aDay"] == 24 * told["sides"][0]["spans"]


def test_a_configuration_without_sampler_keeps_everything(recording: Path) -> None:
    done = backtest("--candidate", ROOT / "examples" / "passthrough.yaml", recording)
    assert done.exit_code == 0, done.output
    assert "keeps 100 % of the spans, loses 0 of 1 failed attempt" in done.stdout
    assert "has no tail sampler" in done.stdout


def test_a_ticket_gets_the_figures_and_what_is_lost(sides: list[str], recording: Path, tmp_path: Path) -> None:
    path = tmp_path / "ticket.md"
    done = backtest(*sides, recording, "--markdown", path)
    assert done.exit_code == 0, done.output
    text = path.read_text(encoding="utf-8")
    assert text.startswith("# Backtest baseline, candidate\n")
    assert "| failed attempts not kept | 0 | 1 |" in text
    assert "## Attempts only the baseline keeps: 1" in text
    assert "| `default/web-0` | failed | `Unschedulable` |" in text
