"""The components of docs/components/, installed as the pages say: their own tests, and podtrail with all of them."""

import json
import os
import shutil
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
COMPONENTS = ROOT / "examples" / "components"
PODTRAIL = Path(sys.executable).parent / "podtrail"
PATIENCE = 600.0
TYPES = {
    ("receiver", "job_log"),
    ("processor", "short_spans"),
    ("processor", "group_by_trace"),
    ("exporter", "line_tcp"),
}
JOBS = [
    {"job": "backup", "start": 1_767_225_600, "seconds": 12.5},
    {"job": "ping", "start": 1_767_225_601, "seconds": 0.01},
    {"job": "mail", "start": 1_767_225_602, "seconds": 1, "error": "no such user"},
]


@pytest.fixture(scope="module", name="installed")
def _installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder into which pip has installed the distribution, for PYTHONPATH."""
    source, target = tmp_path_factory.mktemp("source") / "components", tmp_path_factory.mktemp("installed")
    shutil.copytree(COMPONENTS, source)
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-index"]
    pip += ["--no-deps", "--no-build-isolation", "--no-compile", "--target", str(target), str(source)]
    done = subprocess.run(pip, check=False, capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 0, done.stderr
    return target


def run(*command: str, installed: Path, folder: Path, **variables: str) -> "subprocess.CompletedProcess[str]":
    environment = os.environ | {"PYTHONPATH": str(installed), "NO_COLOR": "1"} | variables
    return subprocess.run(
        command, cwd=folder, env=environment, check=False, capture_output=True, text=True, timeout=PATIENCE
    )


class Listener:
    """Takes lines as `line_tcp` sends them; answers with what is in `answers`, then `ok`."""

    def __init__(self, answers: list[str]) -> None:
        self.answers = answers
        self.lines: list[str] = []
        self._server = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._server.getsockname()[1]}"
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        while True:
            try:
                connection, _ = self._server.accept()
            except OSError:
                return
            with connection, connection.makefile("rw", encoding="utf-8") as stream:
                lines = list(iter(lambda: stream.readline().strip(), ""))
                answer = self.answers.pop(0) if self.answers else "ok"
                if answer == "ok":
                    self.lines += lines
                stream.write(f"{answer}\n")

    def close(self) -> None:
        self._server.close()


@pytest.fixture(name="listener")
def _listener() -> Iterator[Listener]:
    listener = Listener(["busy 0.1"])
    yield listener
    listener.close()


def test_the_tests_of_the_example_pass_where_it_is_installed(installed: Path, tmp_path: Path) -> None:
    tests = str(COMPONENTS / "tests")
    done = run(
        *(sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-W", "error", tests),
        installed=installed,
        folder=tmp_path,
    )
    assert done.returncode == 0, done.stdout


def test_a_pipeline_of_them_delivers_what_is_to_be_delivered(
    installed: Path, tmp_path: Path, listener: Listener
) -> None:
    (tmp_path / "jobs.jsonl").write_text("".join(json.dumps(job) + "\n" for job in JOBS), encoding="utf-8")
    done = run(
        *(str(PODTRAIL), "run", "--config", str(COMPONENTS / "pipeline.yaml"), "--exit-when-done", "--json"),
        *("--set", "service.telemetry.metrics.level=none"),
        installed=installed,
        folder=tmp_path,
        LINES=listener.address,
        JOBS="jobs.jsonl",
    )
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["balanced"]
    assert sorted(line.rpartition(" ")[2] for line in listener.lines) == ["'backup'", "'mail'"]
    assert "is busy" in done.stderr


def test_a_misspelt_key_is_told_as_the_page_says(installed: Path, tmp_path: Path) -> None:
    text = (COMPONENTS / "pipeline.yaml").read_text(encoding="utf-8").replace("shorter_than", "shorter_then")
    (tmp_path / "pipeline.yaml").write_text(text, encoding="utf-8")
    done = run(
        *(str(PODTRAIL), "validate", "--config", "pipeline.yaml"),
        installed=installed,
        folder=tmp_path,
        LINES="127.0.0.1:1",
        JOBS="jobs.jsonl",
    )
    assert done.returncode == 2
    assert done.stderr.strip() in page("pipeline.yaml:")


def test_an_entry_point_that_leads_nowhere_is_told_as_the_page_says(installed: Path, tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    shutil.copytree(installed, broken)
    [points] = broken.glob("*.dist-info/entry_points.txt")
    points.write_text(points.read_text().replace("short_spans:FACTORY", "short_spans:FACTORI"), encoding="utf-8")
    done = run(str(PODTRAIL), "components", "--json", installed=broken, folder=tmp_path)
    assert done.returncode == 0
    assert done.stderr.strip() in page("warning: ")
    found = {(one["kind"], one["type"]): one["summary"] for one in json.loads(done.stdout)}
    assert found.keys() & TYPES == TYPES - {("processor", "short_spans")}
    assert found["receiver", "job_log"] == "Makes a span of each line of a log of jobs."


def page(begin: str) -> list[str]:
    """Return the blocks of docs/components/README.md that begin so."""
    blocks = (ROOT / "docs" / "components" / "README.md").read_text(encoding="utf-8").split("```\n")
    return [block.strip() for block in blocks if block.startswith(begin)]
