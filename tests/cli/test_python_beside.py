"""A policy in Python is found beside its configuration file, by every command that reads one."""

import sys
from pathlib import Path

import pytest

from podtrail.config import Document
from podtrail.pipeline.settings import read_settings
from tests.forked_run import forked_run

RECORDING = Path(__file__).parents[1] / "data" / "recordings" / "apiserver.otlp.jsonl"
CONFIG = f"""\
receivers: {{otlp_json_file: {{include: ["{RECORDING}"]}}}}
exporters: {{debug: }}
processors:
  tail_sampling: {{policies: [{{name: theirs, type: python, python: {{policy: "lies_beside:wanted"}}}}]}}
service:
  telemetry: {{metrics: {{level: none}}}}
  pipelines: {{traces: {{receivers: [otlp_json_file], processors: [tail_sampling], exporters: [debug]}}}}
"""
POLICY = "def wanted(trace):\n    return True\n"
TESTS = """\
config: theirs.yaml
cases: [{name: all are kept, given: [pod web-0: failure], expect: {pod web-0: kept by theirs}}]
"""


@pytest.fixture(name="folder")
def _folder(tmp_path: Path) -> Path:
    folder = tmp_path / "policies"
    folder.mkdir()
    (folder / "theirs.yaml").write_text(CONFIG)
    (folder / "lies_beside.py").write_text(POLICY)
    (folder / "theirs_test.yaml").write_text(TESTS)
    return folder


@pytest.mark.parametrize(
    "arguments",
    [
        ("validate", "--config", "policies/theirs.yaml"),
        ("replay", "--config", "file:policies/theirs.yaml", str(RECORDING)),
        ("backtest", "--baseline", "policies/theirs.yaml", str(RECORDING)),
        ("test", "policies/theirs_test.yaml"),
        ("run", "--config", "policies/theirs.yaml", "--exit-when-done"),
    ],
    ids=lambda arguments: arguments[0],
)
def test_a_module_beside_the_configuration_is_found(folder: Path, arguments: tuple[str, ...]) -> None:
    done = forked_run(*arguments, folder=folder.parent)
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_configuration_in_the_test_file_itself_has_its_modules_beside_that(folder: Path) -> None:
    policies = '[{name: theirs, type: python, python: {policy: "lies_beside:wanted"}}]'
    config = f"{{processors: {{tail_sampling: {{policies: {policies}}}}}}}"
    (folder / "theirs_test.yaml").write_text(TESTS.replace("theirs.yaml", config))
    done = forked_run("test", "policies", folder=folder.parent)
    assert done.returncode == 0, done.stdout + done.stderr


def test_where_python_looks_for_modules_is_as_before(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "lies_beside", raising=False)
    before = list(sys.path)
    read_settings(Document.load([str(folder / "theirs.yaml")]), idle=("receivers",))
    assert sys.path == before
    monkeypatch.delitem(sys.modules, "lies_beside")


def test_what_python_finds_without_goes_first(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    installed = tmp_path / "installed"
    installed.mkdir()
    (installed / "lies_beside.py").write_text(POLICY)
    monkeypatch.syspath_prepend(installed)
    monkeypatch.delitem(sys.modules, "lies_beside", raising=False)
    read_settings(Document.load([str(folder / "theirs.yaml")]), idle=("receivers",))
    assert sys.modules["lies_beside"].__file__ == str(installed / "lies_beside.py")
    monkeypatch.delitem(sys.modules, "lies_beside")
