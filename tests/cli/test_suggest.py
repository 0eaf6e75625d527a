"""`podtrail suggest` as a person meets it: a block that can be used, or what stands in the way."""

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from podtrail.cli import main
from podtrail.otlp import Group, Status, encode_span, frame, resource_header, scope_header
from podtrail.recording import RecordingWriter
from podtrail.testing.attempts import START, MadeAttempt, no_room

ROOT = Path(__file__).parents[2]
SECOND = 1_000_000_000


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    """An hour of attempts, every third of which fails."""
    with RecordingWriter(tmp_path / "recording.otlp") as writer:
        for minute in range(60):
            start, uid = START + 60 * minute * SECOND, f"{minute:036}"
            attempt = no_room(uid=uid, start=start) if minute % 3 == 0 else MadeAttempt(uid=uid, start=start)
            writer.write(attempt.groups(), start)
    return tmp_path / "recording.otlp"


def podtrail(*arguments: object) -> Result:
    return CliRunner().invoke(main, [*map(str, arguments)])


def test_the_block_can_be_laid_over_a_configuration(recording: Path, tmp_path: Path) -> None:
    done = podtrail("suggest", "--budget", "1.5MB/day", "--keep", "failed", recording)
    assert done.exit_code == 0, done.output
    block = tmp_path / "policies.yaml"
    block.write_text(done.stdout)
    layers = "--config", ROOT / "examples" / "recording.yaml", "--config", block
    assert podtrail("validate", *layers).exit_code == 0
    replayed = podtrail("replay", *layers, recording)
    assert replayed.exit_code == 0
    assert next(line for line in replayed.stdout.splitlines() if line.startswith("failed")).split()[-2] == "20"


def test_what_the_budget_cannot_hold_is_said_on_both_streams(recording: Path) -> None:
    done = podtrail("suggest", "--budget", "100 kB/day", recording)
    assert done.exit_code == 1
    for stream in (done.stdout, done.stderr):
        assert "The budget can't hold all failed attempts: they alone cost " in stream
    assert "new_reason" in done.stdout


def test_only_what_is_asked_for_is_kept_whole(recording: Path) -> None:
    done = podtrail("suggest", "--budget", "300kB/day", "--keep", "slower than 1s", recording)
    assert done.exit_code == 0
    assert "slow_attempt: {threshold: 1s}" in done.stdout
    assert "scheduling_result" not in done.stdout


def test_without_attempts_it_goes_by_the_statuses_and_lengths_of_traces(tmp_path: Path) -> None:
    """An hour of requests to an API, every tenth of which fails and every twentieth takes 3 s."""
    with RecordingWriter(tmp_path / "api.otlp") as writer:
        for number in range(200):
            start, trace = START + 18 * number * SECOND, (number + 1).to_bytes(16, "big")
            took = 3 * SECOND if number % 20 == 5 else SECOND // 100
            status = Status(2, "refused") if number % 10 == 0 else None
            span = encode_span(
                trace_id=trace, span_id=trace[8:], name="GET /", start=start, end=start + took, status=status
            )
            header = resource_header({"service.name": "api"}), scope_header("s")
            writer.write([Group(*header, trace, frame([span]), 1)], start + took)
    done = podtrail(
        "suggest", "--budget", "1MB/day", "--keep", "failed", "--keep", "slower than 1s", tmp_path / "api.otlp"
    )
    assert done.exit_code == 0, done.output
    assert "200 traces, 200 spans" in done.stdout
    assert "20 of 20 failed traces kept" in done.stdout
    block = tmp_path / "policies.yaml"
    block.write_text(done.stdout)
    replayed = podtrail(
        "replay", "--config", ROOT / "examples" / "recording.yaml", "--config", block, tmp_path / "api.otlp"
    )
    table = {line.split()[0]: line.split()[1:] for line in replayed.stdout.splitlines() if line}
    assert (table["failed"][1], table["slow"][1]) == ("20", "10")
    short = podtrail("suggest", "--budget", "30kB/day", tmp_path / "api.otlp")
    assert short.exit_code == 1
    assert "The budget can't hold all failed traces" in short.stdout
    assert "new_reason" not in short.stdout


def test_mistakes_are_named(recording: Path, tmp_path: Path) -> None:
    empty = tmp_path / "empty.otlp"
    empty.touch()
    for arguments, (says, code) in {
        (recording,): ("--budget", 2),
        ("--budget", "2GB", recording): ("is no budget", 2),
        ("--budget", "2GB/day", "--keep", "all", recording): ("is not understood", 2),
        ("--budget", "2GB/day", tmp_path / "gone.otlp"): ("gone.otlp: No such file", 2),
        ("--budget", "2GB/day", empty): ("hold no span", 1),
    }.items():
        done = podtrail("suggest", *arguments)
        assert (done.exit_code, says in done.stderr) == (code, True), done.output
        assert not done.stdout
