"""What docs/attributes.md shows of lifecycles is what happens."""

import re
import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner

from podtrail.cli import main
from podtrail.testing import replay

ROOT = Path(__file__).parents[2]
NODE = ROOT / "tests/data/recordings/node/podtrail"
PAGE = (ROOT / "docs/attributes.md").read_text(encoding="utf-8")
BLOCKS = dict(re.findall(r"^```(yaml|sh)\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL))


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "pods.jsonl.zst").write_bytes((NODE / "pods.jsonl.zst").read_bytes())
    (tmp_path / "spans.otlp.zst").write_bytes((NODE / "spans.otlp.zst").read_bytes())
    (tmp_path / "config.yaml").write_text(BLOCKS["yaml"], encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_configuration_is_one_and_its_lives_are_told_of_what_the_commands_make(here: Path) -> None:
    assert CliRunner().invoke(main, ["validate", "--config", "config.yaml"]).exit_code == 0
    for line in BLOCKS["sh"].splitlines():
        podtrail, *command = shlex.split(line)
        assert podtrail == "podtrail"
        assert CliRunner().invoke(main, command).exit_code == 0
    exported = replay(here / "config.yaml", here / "story.otlp.zst").exported["otlp_grpc"]
    names = [each.span.name for each in exported]
    assert names.count("PodLifecycle") == 10
    assert names.count("ready") == 8
    assert "syncPod" not in names
