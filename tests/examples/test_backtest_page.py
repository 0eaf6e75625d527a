"""The commands of docs/backtest.md print what the page shows."""

import re
import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner

from podtrail.cli import main
from podtrail.recording import RecordingWriter
from podtrail.testing.attempts import START, MadeAttempt, no_room

PAGE = (Path(__file__).parents[2] / "docs" / "backtest.md").read_text(encoding="utf-8")
SECOND = 1_000_000_000
BLOCKS = re.findall(r"^```(yaml|console)\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
COMMANDS = [text.split("\n", 1) for kind, text in BLOCKS if kind == "console"]


@pytest.fixture(autouse=True)
def _files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The configurations of the page; a recording of two hours in which a third of the Pods need several attempts."""
    monkeypatch.chdir(tmp_path)
    for kind, text in BLOCKS:
        if kind == "yaml" and (name := re.match(r"# (\w+\.yaml)\n", text)):
            Path(name[1]).write_text(text, encoding="utf-8")
    attempts: list[MadeAttempt] = []
    for pod in range(60):
        failures = pod % 6 if pod % 3 == 0 else 0
        for number in range(1, failures + 2):
            uid, start = f"{pod:036}", START + (120 * pod + 30 * number) * SECOND
            common = {"uid": uid, "name": f"web-{pod}", "number": number, "start": start}
            slow = {"duration": (1 + pod % 4) * SECOND} if pod % 10 == 7 else {}
            attempts.append(no_room(**common) if number <= failures else MadeAttempt(**common | slow))  # type: ignore[arg-type] # fields of MadeAttempt
    with RecordingWriter(tmp_path / "recording.otlp") as writer:
        for attempt in sorted(attempts, key=lambda one: one.start + one.duration):
            writer.write(attempt.groups(), attempt.start + attempt.duration)


@pytest.mark.parametrize(("command", "shown"), COMMANDS)
def test_a_command_prints_what_the_page_shows(command: str, shown: str) -> None:
    assert command.startswith("$ podtrail ")
    done = CliRunner().invoke(main, shlex.split(command)[2:])
    assert done.exit_code in (0, 1), done.output
    begin, *end = shown.split("…\n")
    assert done.stdout.startswith(begin)
    assert done.stdout.endswith(end[-1]) if end else done.stdout == begin


def test_the_page_names_every_option_and_no_other() -> None:
    told = {name for command in ("backtest", "suggest") for name in options(command)} - {"--fail-", "--max-"}
    named = options_in(PAGE)
    assert named <= told | {"--config"}
    assert told - named <= {"--help", "--feature-gates"}


def options(command: str) -> set[str]:
    return options_in(CliRunner().invoke(main, [command, "--help"], terminal_width=200).output)


def options_in(text: str) -> set[str]:
    return set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", text))
