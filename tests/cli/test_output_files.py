"""Files that commands write: whole, or not there; never over another without a question."""

import os
import resource
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from podtrail.cli import main
from podtrail.cli.output_file import whole_file
from podtrail.recording import RecordingWriter

RECORDING = Path(__file__).parents[1] / "data" / "recordings" / "apiserver.otlp.jsonl"
CONFIG = str(Path(__file__).parents[2] / "examples" / "recording.yaml")
WRITERS: dict[str, Callable[[Path], list[object]]] = {
    "merge": lambda to: ["recording", "merge", RECORDING, "--to", to],
    "anonymize": lambda to: ["recording", "anonymize", RECORDING, "--to", to],
    "cut": lambda to: ["recording", "cut", RECORDING, "--since", "0s", "--to", to],
    "generate": lambda to: ["generate", "--length", "10s", "--to", to],
    "replay": lambda to: ["replay", RECORDING, "--config", CONFIG, "--output", to],
}


def run(*arguments: object) -> Result:
    return CliRunner().invoke(main, list(map(str, arguments)))


@pytest.mark.parametrize("command", WRITERS)
def test_a_recording_that_is_there_is_written_anew_only_when_that_is_asked_for(command: str, tmp_path: Path) -> None:
    to = tmp_path / "to.jsonl"
    to.write_bytes(b"precious\n")
    refused = run(*WRITERS[command](to))
    assert (refused.exit_code, to.read_bytes()) == (2, b"precious\n")
    assert f"{to} is there: --overwrite writes it anew" in refused.output
    assert run(*WRITERS[command](to), "--overwrite").exit_code == 0
    assert to.read_bytes().startswith(b'{"resourceSpans"')
    to.write_bytes(b"")
    assert run(*WRITERS[command](to)).exit_code == 0
    assert os.listdir(tmp_path) == ["to.jsonl"]


OWN_INPUT: dict[str, Callable[[Path, Path], list[object]]] = {
    "backtest --html": lambda config, _: ["backtest", RECORDING, "--candidate", config, "--html", config],
    "backtest --markdown": lambda config, _: [
        "backtest",
        RECORDING,
        "--baseline",
        f"file:{config}",
        "--markdown",
        config,
    ],
    "replay --output": lambda config, _: ["replay", RECORDING, "--config", config, "--output", config],
    "replay --decisions": lambda config, _: ["replay", RECORDING, "--config", config, "--decisions", config],
    "generate --config": lambda config, _: ["generate", "--config", config, "--overwrite", "--to", config],
    "generate --workload": lambda config, _: ["generate", "--workload", config, "--overwrite", "--to", config],
    "test --junit": lambda _, cases: ["test", cases, "--junit", cases],
    "test --junit over the configuration": lambda config, cases: ["test", cases, "--junit", config],
}


@pytest.mark.parametrize("command", OWN_INPUT)
def test_no_command_writes_over_what_it_reads(command: str, tmp_path: Path) -> None:
    config, cases = tmp_path / "c.otlp", tmp_path / "c_test.yaml"
    config.write_text(Path(CONFIG).read_text("utf-8"))
    cases.write_text("config: c.otlp\ncases: [{name: x, given: [pod a: success], expect: {pod a: dropped}}]\n")
    before = config.read_bytes(), cases.read_bytes()
    done = run(*OWN_INPUT[command](config, cases))
    assert "is read: write to another file" in done.output
    assert done.exit_code == 2
    assert (config.read_bytes(), cases.read_bytes()) == before


class Ended(BaseException):
    """The process would have ended here."""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("command", [name for name in WRITERS if name != "generate"])
def test_a_signal_leaves_no_half_file_and_says_so(
    command: str, number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    to, ended = tmp_path / "to.jsonl", list[int]()
    to.write_bytes(b"precious\n")

    def write(*_: object) -> None:
        assert len(os.listdir(tmp_path)) == 2
        signal.raise_signal(number)

    def end(_pid: int, number: int) -> None:
        ended.append(number)
        raise Ended

    monkeypatch.setattr(RecordingWriter, "write", write)
    monkeypatch.setattr(os, "kill", end)
    before = signal.getsignal(number)
    with pytest.raises(Ended):
        main([*map(str, WRITERS[command](to)), "--overwrite"])
    assert (ended, signal.getsignal(number)) == ([number], before)
    assert f"podtrail: stopped before the end: {to} is not written" in capfd.readouterr().err
    assert os.listdir(tmp_path) == ["to.jsonl"]
    assert to.read_bytes() == b"precious\n"


def test_a_signal_ends_the_process_as_it_would_have(tmp_path: Path) -> None:
    stops = "import os, signal; from podtrail.cli.output_file import whole_file; from pathlib import Path\n"
    stops += "with whole_file(Path('to')) as begun: begun.touch(); signal.raise_signal(signal.SIGINT)"
    done = subprocess.run([sys.executable, "-c", stops], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, os.listdir(tmp_path)) == (-signal.SIGINT, [])
    assert done.stderr == "podtrail: stopped before the end: to is not written\n"


def test_a_failure_leaves_what_was_there(tmp_path: Path) -> None:
    to = tmp_path / "to"
    to.write_text("before")
    with pytest.raises(IsADirectoryError), whole_file(to) as begun:
        tmp_path.write_text(begun.write_text("half") * "x")
    assert (to.read_text(), os.listdir(tmp_path)) == ("before", ["to"])


FULL_DISK: dict[str, Callable[[Path], list[object]]] = {
    **WRITERS,
    "backtest --html": lambda to: ["backtest", RECORDING, "--candidate", CONFIG, "--html", to],
    "backtest --markdown": lambda to: ["backtest", RECORDING, "--candidate", CONFIG, "--markdown", to],
    "test --junit": lambda to: ["test", Path(CONFIG).parent / "policies", "--junit", to],
    "replay --decisions": lambda to: ["replay", RECORDING, "--config", CONFIG, "--decisions", to],
    "record": lambda to: ["record", "--from", RECORDING, "--to", to],
}


@pytest.mark.parametrize("command", FULL_DISK)
def test_a_full_disk_leaves_no_half_file_and_is_named_with_the_file(command: str, tmp_path: Path) -> None:
    to, limits = tmp_path / "to.jsonl", resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10, limits[1]))
    try:
        done = run(*FULL_DISK[command](to))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert (done.exit_code, os.listdir(tmp_path)) == (1, [])
    assert f"{to}: File too large" in done.output


def test_what_is_no_file_is_written_to_at_once(tmp_path: Path) -> None:
    (tmp_path / "null").symlink_to("/dev/null")
    with whole_file(tmp_path / "null") as begun:
        assert begun == tmp_path / "null"
    assert (tmp_path / "null").is_symlink()
