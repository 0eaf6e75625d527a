"""What docs/testing-policies.md shows is what happens."""

import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from podtrail.cli import main

pytest_plugins = ("pytester",)

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "testing-policies.md").read_text(encoding="utf-8")
RECORDING = ROOT / "tests" / "data" / "recordings" / "scheduler.otlp.gz"


@pytest.fixture(name="folder")
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The files that the page shows, by the names in their first lines."""
    for block in re.findall(r"^```(?:yaml|python)\n(# (\S+)\n.*?)^```", PAGE, re.MULTILINE | re.DOTALL):
        (tmp_path / block[1]).write_text(block[0], encoding="utf-8")
    (tmp_path / "attempts.otlp.gz").write_bytes(RECORDING.read_bytes())
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_output_is_the_one_that_is_shown(folder: Path) -> None:
    shown = re.search(r"^```console\n\$ podtrail (.*?)\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    assert shown
    done = CliRunner().invoke(main, shown[1].split())
    assert done.exit_code == 1
    assert re.sub(r"in [\d.]+ s", "", done.output) == re.sub(r"in [\d.]+ s", "", shown[2])


def test_all_forms_that_are_shown_work(folder: Path) -> None:
    done = CliRunner().invoke(main, ["test", "forms_test.yaml"])
    assert done.exit_code == 0, done.output


def test_the_tests_in_python_pass(folder: Path, pytester: pytest.Pytester) -> None:
    (pytester.path / "recordings").mkdir()
    (pytester.path / "recordings" / "monday.otlp.gz").write_bytes(RECORDING.read_bytes())
    for name in ("policies.yaml", "test_policies.py"):
        (pytester.path / name).write_bytes((folder / name).read_bytes())
    pytester.runpytest_subprocess("-p", "no:cacheprovider").assert_outcomes(passed=2)


def test_every_option_is_told() -> None:
    told = CliRunner().invoke(main, ["test", "--help"]).output
    options = set(re.findall(r"^  (--?[a-z][a-z-]*)", told, re.MULTILINE)) - {"-h", "--help"}
    assert options
    assert options <= set(re.findall(r"^\| `(-[a-z-]+)", PAGE, re.MULTILINE))
