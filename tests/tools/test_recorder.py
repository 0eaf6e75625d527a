"""What a run of tests records and prints of itself."""

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
TESTS = """
import subprocess, sys
import pytest
from tests.recorder import report_log

@pytest.fixture
def broker():
    with report_log("broker", lambda: " ".join(["epoch", "is", "fenced"])):
        yield

def test_passes(tmp_path):
    subprocess.run([sys.executable, "-c", ""], check=True)

def test_fails(tmp_path, broker):
    (tmp_path / "server.log").write_text("ready\\nno room left\\n")
    assert 1 == 2

@pytest.mark.parametrize("number", range(100))
def test_is_skipped(number):
    pytest.skip("needs a moon")
"""


def run(folder: Path, *arguments: str) -> str:
    (folder / "test_it.py").write_text(TESTS, encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-p", "tests.recorder", "-p", "no:cacheprovider", "-c", "/dev/null"]
    done = subprocess.run(
        [*command, f"--rootdir={folder}", str(folder), *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 1, done.stdout + done.stderr
    return done.stdout


def test_tables_skips_and_failures_close_a_run(tmp_path: Path) -> None:
    last = "\n".join(run(tmp_path).splitlines()[-100:])
    assert "minutes  CPU min  tests  skipped  suite" in last
    assert "1 of 102 tests start a process" in last
    assert "  100  needs a moon" in last
    assert "FAILED test_it.py::test_fails (0 s) repeat: ./dev test -n0 'test_it.py::test_fails'" in last
    assert "assert 1 == 2" in last
    assert "  no room left" in last


def test_records_tell_phase_outcome_and_logs_of_each_test(tmp_path: Path) -> None:
    printed = run(tmp_path, "--record-to", str(tmp_path / "run.jsonl"), "-k", "fails or passes")
    assert "minutes" not in printed
    lines = (tmp_path / "run.jsonl").read_text(encoding="utf-8").splitlines()
    records = {(each["name"].split("::")[1], each["when"]): each for each in map(json.loads, lines)}
    assert records["test_passes", "call"]["processes"] == 1
    assert records["test_passes", "call"]["cpu"] > 0
    failed = records["test_fails", "call"]
    assert failed["outcome"] == "failed"
    assert "no room left" in failed["text"]
    assert "epoch is fenced" in failed["text"]
