"""What docs/terminal.md shows is what is printed."""

import json
import re
import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner
from podtrail_exporters.span_tree import trees

from podtrail.cli import main
from podtrail.cli.tap import decision_text
from podtrail.story.tap import decision_told
from podtrail.testing.attempts import MadeAttempt, no_room
from tests.examples.changed_configuration import write as write_changed_configuration

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "terminal.md"
BLOCKS = re.findall(r"^```console\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
SHOWN = [step for block in BLOCKS for step in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]]


@pytest.mark.parametrize("step", [step for step in SHOWN if " --from " in step.partition("\n")[0]])
def test_what_the_page_shows_of_files_is_what_is_printed(step: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    command, _, said = step.partition("\n")
    program, *arguments = shlex.split(command)
    assert program == "podtrail"
    done = CliRunner().invoke(main, arguments)
    assert (done.exit_code, done.stdout.strip()) == (0, said.strip())


def test_the_recording_of_a_changed_configuration_can_be_made_again(tmp_path: Path) -> None:
    made = tmp_path / "changed.otlp.zst"
    write_changed_configuration(made)
    done = CliRunner().invoke(main, ["why", "change", "--from", str(made)])
    assert done.stdout.startswith("The scheduler's configuration changed at 14:03:")
    assert "refused by NodeAffinity" in done.stdout


def test_a_snapshot_of_top_has_the_tables_that_the_page_shows(page_of_a_viewer: str) -> None:
    (shown,) = (step for step in SHOWN if step.startswith("podtrail top\n"))
    done = CliRunner().invoke(main, ["top", "--endpoint", page_of_a_viewer])
    assert done.exit_code == 0
    told, heads = (
        {re.split(" {2,}", line)[0] for line in text.splitlines() if line.isupper()} for text in (done.stdout, shown)
    )
    assert told == {"WAITING FOR", "SLOWEST PLUGIN", "REFUSED BY", "POLICY, LAST HOUR"}
    assert heads == {*told, "EXPORTER"}


def test_the_page_shows_the_tree_that_the_debug_exporter_writes() -> None:
    (shown,) = re.findall(r"^```text\n(Trace ID.*?)^```", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    assert "\n".join(trees(MadeAttempt().groups())).startswith(shown.rstrip("\n"))


def test_the_page_shows_a_line_of_tap_as_it_is() -> None:
    (said,) = (step.partition("\n")[2].strip() for step in SHOWN if step.startswith("podtrail tap"))
    (verdict,) = no_room().batch(reason="scheduler.result=Unschedulable").verdicts
    assert decision_text(json.loads(decision_told("traces", verdict))["decision"]) == said
