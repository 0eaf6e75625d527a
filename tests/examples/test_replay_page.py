"""The commands of docs/replay.md work, in their order."""

import re
import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner

from podtrail.cli import main
from podtrail.cli.presets import PRESETS

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "replay.md").read_text(encoding="utf-8")


def test_the_commands_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    commands = re.findall(r"^\$ podtrail (.+)$", PAGE, re.MULTILINE)
    assert len(commands) == 4
    for command in commands:
        done = CliRunner().invoke(main, shlex.split(command))
        assert done.exit_code == 0, done.output


def test_every_preset_is_told_of() -> None:
    assert set(re.findall(r"^\| `--like (\w+)`", PAGE, re.MULTILINE)) == PRESETS.keys()
