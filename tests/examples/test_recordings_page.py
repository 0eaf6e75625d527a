"""What docs/recordings.md shows is what happens."""

import json
import re
import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner

from podtrail.cli import main
from podtrail.config import Document
from podtrail.pipeline.settings import read_settings

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "recordings.md").read_text(encoding="utf-8")
DATA = ROOT / "tests" / "data" / "recordings"
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
JAEGER = {
    "data": [
        {
            "traceID": "5b8efff798038103d269b633813fc60c",
            "spans": [
                {"traceID": "5b8efff798038103d269b633813fc60c", "spanID": id, "startTime": 1, "duration": 1}
                for id in ("1", "2")
            ],
            "processes": {},
        }
    ]
}


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The directory in which the page's commands are called."""
    for name in ("scheduler.otlp.gz", "apiserver.otlp"):
        (tmp_path / name).write_bytes((DATA / name).read_bytes())
    lines = (DATA / "apiserver.otlp.jsonl").read_bytes().splitlines(keepends=True)
    (tmp_path / "torn.jsonl").write_bytes(b"".join([lines[0], b"torn\n", *lines[2:]]))
    (tmp_path / "jaeger.json").write_text(json.dumps(JAEGER), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_every_command_says_what_the_page_shows(here: Path) -> None:
    del here
    shown = [block for kind, block in BLOCKS if kind == "console"]
    assert len(shown) == 6
    for block in shown:
        for command, output in re.findall(r"^\$ podtrail (.*)\n((?:(?!\$).*\n)*)", block, re.MULTILINE):
            done = CliRunner().invoke(main, shlex.split(command))
            assert done.output.startswith(output), command
            assert done.exit_code == int("--strict" in command), command


def test_the_options_that_the_page_names_are_there(here: Path) -> None:
    (here / "today.otlp.zst").touch()
    (listening,) = (block for kind, block in BLOCKS if kind == "sh")
    known = CliRunner().invoke(main, ["record", "--help"]).output
    for option in set(re.findall(r"--[a-z-]+", listening)):
        assert option in known
    for line in listening.splitlines():
        arguments = shlex.split(line, comments=True)[1:]
        done = CliRunner().invoke(main, [*arguments, "--append", "--overwrite"])
        assert "contradict" in done.output, line


def test_the_configuration_of_the_page_is_right(here: Path) -> None:
    del here
    (configuration,) = (block for kind, block in BLOCKS if kind == "yaml")
    settings = read_settings(Document.from_text(configuration))
    assert [pipeline.id for pipeline in settings.pipelines] == ["traces", "traces/recording"]
    assert not settings.warnings
