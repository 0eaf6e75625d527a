"""What docs/reports.md shows is what is printed."""

import re
import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner

from podtrail.cli import main

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "reports.md").read_text(encoding="utf-8")


def run(command: str, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(ROOT)
    program, *arguments = shlex.split(command)
    assert program == "podtrail"
    done = CliRunner().invoke(main, arguments)
    assert done.exit_code == 0, done.output
    return done.stdout


def test_the_incident_that_is_shown_is_what_is_printed(monkeypatch: pytest.MonkeyPatch) -> None:
    found = re.search(r"^~~~console\n\$ ([^\n]+)\n(.*?)^~~~", PAGE, re.MULTILINE | re.DOTALL)
    assert found is not None
    assert run(found[1], monkeypatch) == found[2]


def test_the_page_of_a_pod_is_one_file(monkeypatch: pytest.MonkeyPatch) -> None:
    found = re.search(r"^```console\n\$ ([^\n]+) > crash.html\n", PAGE, re.MULTILINE)
    assert found is not None
    page = run(found[1], monkeypatch)
    assert page.startswith("<!doctype html>")
    assert "CrashLoopBackOff" in page
    assert not re.findall(r"src=|href=|<script|url\(|@import", page)
