"""`podtrail tap` as a person meets it: data on stdout, notices on stderr, an end that is asked for."""

import json
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import pytest
from click.testing import CliRunner

from podtrail.cli import main
from tests.running_page import running_page

PATIENCE = 600.0
VIEWER = """
import asyncio, sys
from podtrail_extensions.viewer import FACTORY
from podtrail.component import Context
from podtrail.testing.attempts import MadeAttempt, no_room

async def main():
    config = FACTORY.Config.model_validate({"endpoint": "localhost:0", "otlp_endpoint": "localhost:0"})
    async with FACTORY.create(config, Context(id="viewer")) as viewer:
        print(viewer.page, flush=True)
        while await asyncio.to_thread(sys.stdin.readline):
            batch = no_room().batch(reason="scheduler.result=Unschedulable")
            batch.verdicts[0].votes = {"failed": "sampled"}
            viewer.observe("traces", batch)
            other = MadeAttempt(uid="two", name="api-1")
            viewer.observe("traces", other.batch("not_sampled", "", "no policy said yes"))

asyncio.run(main())
"""


class Page:
    """A running page, through which two attempts come when that is asked for."""

    def __init__(self, address: str, orders: IO[str]) -> None:
        self.address = address
        self._orders = orders

    def feed(self) -> None:
        self._orders.write("go\n")
        self._orders.flush()


@pytest.fixture(scope="module")
def page() -> Iterator[Page]:
    with running_page(VIEWER) as running:
        yield Page(running.address, running.told)


def tapping(page: Page, *arguments: str) -> subprocess.Popen[str]:
    """Return a tap that listens."""
    command = [sys.executable, "-m", "podtrail", "tap", "--endpoint", page.address, *arguments]
    tap = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert tap.stderr
    assert tap.stderr.readline().startswith("podtrail: listening for ")
    return tap


def test_decisions_are_lines_or_what_other_commands_read_and_the_limit_ends_it(page: Page, tmp_path: Path) -> None:
    lines = tapping(page, "--limit", "2")
    spans = tapping(page, "--spans", "--pod", "web-0", "-o", "json", "--limit", "5")
    decisions = tapping(page, "-o", "json", "--limit", "1")
    page.feed()
    out, _ = lines.communicate(timeout=PATIENCE)
    assert lines.returncode == 0
    kept, dropped = (re.split(" {2,}", line) for line in out.splitlines())
    assert kept[1:-2] == ["kept", "failed", "default/web-0", "Unschedulable", "6 spans"]
    assert kept[-2] == "scheduler.result=Unschedulable"
    assert dropped[1] == "not kept"
    assert "\x1b" not in out
    written = []
    for tap, name in ((spans, "spans.jsonl"), (decisions, "decisions.jsonl")):
        written.append(tmp_path / name)
        written[-1].write_text(tap.communicate(timeout=PATIENCE)[0], encoding="utf-8")
    assert json.loads(written[1].read_text())["podName"] == "web-0"
    done = CliRunner().invoke(main, ["why", "pod", "web-0", "--from", *map(str, written)])
    assert done.exit_code == 0
    assert done.stdout.startswith("default/web-0 is Pending")
    assert "kept by failed: scheduler.result=Unschedulable" in done.stdout


def test_that_nothing_matched_yet_and_a_policy_that_nobody_has_is_said(page: Page) -> None:
    first = tapping(page, "--limit", "1")
    page.feed()
    first.communicate(timeout=PATIENCE)
    tap = tapping(page, "--policy", "faild")
    assert tap.stderr
    assert tap.stderr.readline() == "podtrail: no policy faild has voted lately; there is failed\n"
    silent = r"podtrail: nothing came by yet: the last came [\d.]+ (ms|s|m|m \d+s) ago, at \d\d:\d\d:\d\d UTC\n"
    assert re.fullmatch(silent, tap.stderr.readline())
    tap.send_signal(signal.SIGINT)
    assert tap.wait(PATIENCE) == 130
    tap.communicate()


def test_a_duration_ends_it(page: Page) -> None:
    assert CliRunner().invoke(main, ["tap", "--endpoint", page.address, "--duration", "100ms"]).exit_code == 0


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["--endpoint", "http://127.0.0.1:9"], 1, "no podtrail page at http://127.0.0.1:9"),
        (["--decision", "kept"], 2, "'kept' is not one of"),
        (["--pod", "x" * 300], 2, "at most 256"),
        (["--limit", "0"], 2, "--limit"),
    ],
)
def test_what_can_not_be_tapped_says_why(arguments: list[str], code: int, words: str) -> None:
    done = CliRunner().invoke(main, ["tap", *arguments])
    assert (done.exit_code, done.stdout) == (code, "")
    assert words in " ".join(done.stderr.replace("│", "").split())
