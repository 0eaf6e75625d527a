"""docs/reconstruct.md: its commands, run."""

import gzip
import re
import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner

from podtrail.cli import main

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "reconstruct.md").read_text(encoding="utf-8")
DATA = ROOT / "tests" / "data" / "kube-scheduler"
FILES = {
    "kube-scheduler.log": "v2-text.log",
    "pods.jsonl": "v2-text.pods.jsonl",
    "events.jsonl": "v2-text.events.jsonl",
}


def test_the_commands_of_the_page_print_what_it_shows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, recorded in FILES.items():
        (tmp_path / name).write_bytes(gzip.decompress((DATA / f"{recorded}.gz").read_bytes()))
    (tmp_path / "scheduler.prom").write_bytes((DATA / "v2-text.prom").read_bytes())
    monkeypatch.chdir(tmp_path)
    session = re.search(r"^```console\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    assert session
    shown = re.findall(r"^\$ podtrail (.*)\n((?:(?!\$ ).*\n)*)", session[1], re.MULTILINE)
    assert len(shown) == 2
    for command, expected in shown:
        done = CliRunner().invoke(main, shlex.split(command, comments=True))
        assert done.exit_code == 0
        assert done.stdout.rstrip() == expected.rstrip()


def test_the_page_names_every_option() -> None:
    options = set(re.findall(r"--[a-z]+", CliRunner().invoke(main, ["reconstruct", "--help"]).output)) - {"--help"}
    table = re.search(r"^\| option.*?\n\n", PAGE, re.MULTILINE | re.DOTALL)
    assert table
    assert set(re.findall(r"--[a-z]+", table[0])) == options
