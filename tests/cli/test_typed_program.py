"""Commands that podtrail proposes can be pasted."""

import re
import shlex
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from podtrail.cli import main
from podtrail.cli.typed_program import asked_again, pasteable, typed_program

ROOT = Path(__file__).parents[2]
RECORDING = ROOT / "tests/data/recordings/scheduler.otlp.gz"
PROGRAM = Path(sys.executable).with_name("podtrail")


@pytest.mark.parametrize("asked", [["pending"], ["node", "node-3"], ["plugin", "CostScorer", "-v"]])
def test_what_is_proposed_asks_the_same_files_when_it_is_pasted(
    asked: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", [str(PROGRAM)])
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    recording = tmp_path / "a b.otlp.gz"
    recording.write_bytes(RECORDING.read_bytes())
    told = CliRunner().invoke(main, ["why", *asked, "--from", recording.name])
    found = re.search(rf"{re.escape(str(PROGRAM))} why .*", told.stdout)
    assert found
    proposed = found[0]
    assert proposed.endswith(" --from 'a b.otlp.gz'")
    pasted = CliRunner().invoke(main, shlex.split(proposed)[1:])
    assert pasted.exit_code == 0, pasted.stderr


@pytest.mark.parametrize(
    ("called", "typed"),
    [
        (".venv/bin/podtrail", ".venv/bin/podtrail"),
        ("my tools/podtrail", "'my tools/podtrail'"),
        ("/usr/bin/kubectl-podtrail", "kubectl podtrail"),
        ("/site/podtrail/__main__.py", f"{shlex.quote(sys.executable)} -m podtrail"),
        ("/site/pytest/__main__.py", "podtrail"),
    ],
)
def test_the_program_is_named_as_it_was_called(called: str, typed: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", [called])
    assert typed_program() == typed


def test_a_program_that_is_found_by_its_name_is_called_by_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "podtrail"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(sys, "argv", [str(program)])
    assert typed_program() == "podtrail"


def test_a_page_that_is_not_the_usual_one_and_logs_are_named() -> None:
    usual = "http://localhost:15927"
    assert asked_again([], [], [], "", [], [], usual) == ""
    assert asked_again([], [], [], "", [], [], "http://a:1") == "--endpoint http://a:1"
    assert asked_again([], [Path("x.log")], [Path("w")], "UTC", [], [], usual) == "--log x.log --watch w --timezone UTC"
    assert (
        asked_again([Path("r"), Path("s")], [], [], "", ["c.yaml"], ["a=1"], usual)
        == "--from r s --config c.yaml --set a=1"
    )
    assert pasteable("kubectl get pods", "--from r") == "kubectl get pods"
    assert pasteable("podtrail why pod a", "--from r") == "podtrail why pod a --from r"
