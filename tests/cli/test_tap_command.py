"""`podtrail tap` as a person meets it: data on stdout, notices on stderr, an end that is asked for."""

import json
import re
import signal
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import IO

import pytest
from click.testing import CliRunner

from podtrail.cli import main
from tests.running_page import running_page
from tests.service.conftest import PODTRAIL, Process

VIEWER = """
while await asyncio.to_thread(sys.stdin.readline):
    batch = no_room().batch(reason="scheduler.result=Unschedulable")
    batch.verdicts[0].votes = {"failed": "sampled"}
    viewer.observe("traces", batch)
    other = MadeAttempt(uid="two", name="api-1")
    viewer.observe("traces", other.batch("not_sampled", "", "no policy said yes"))
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


Tap = Callable[..., Process]


@pytest.fixture
def tapping(page: Page, tmp_path: Path) -> Iterator[Tap]:
    """Return a function that starts a tap, and waits until it listens."""
    with ExitStack() as stack:

        def tap(*arguments: str) -> Process:
            process = Process([str(PODTRAIL)], ["tap", "--endpoint", page.address, *arguments], tmp_path, {})
            stack.callback(process.close)
            process.line("^podtrail: listening for ")
            return process

        yield tap


def test_decisions_are_lines_or_what_other_commands_read_and_the_limit_ends_it(
    page: Page, tapping: Tap, tmp_path: Path
) -> None:
    lines = tapping("--limit", "2")
    spans = tapping("--spans", "--pod", "web-0", "-o", "json", "--limit", "5")
    decisions = tapping("-o", "json", "--limit", "1")
    page.feed()
    assert lines.end() == 0
    kept, dropped = (re.split(" {2,}", line) for line in lines.out.splitlines())
    assert kept[1:-2] == ["kept", "failed", "default/web-0", "Unschedulable", "6 spans"]
    assert kept[-2] == "scheduler.result=Unschedulable"
    assert dropped[1] == "not kept"
    assert "\x1b" not in lines.out
    written = []
    for tap, name in ((spans, "spans.jsonl"), (decisions, "decisions.jsonl")):
        tap.end()
        written.append(tmp_path / name)
        written[-1].write_text(tap.out, encoding="utf-8")
    assert json.loads(written[1].read_text())["podName"] == "web-0"
    done = CliRunner().invoke(main, ["why", "pod", "web-0", "--from", *map(str, written)])
    assert done.exit_code == 0
    assert done.stdout.startswith("default/web-0 is Pending")
    assert "kept by failed: scheduler.result=Unschedulable" in done.stdout


def test_that_nothing_matched_yet_and_a_policy_that_nobody_has_is_said(page: Page, tapping: Tap) -> None:
    first = tapping("--limit", "1")
    page.feed()
    first.end()
    tap = tapping("--policy", "faild")
    tap.line("^podtrail: no policy faild has voted lately; there is failed$")
    tap.line(r"^podtrail: nothing came by yet: the last came [\d.]+ (ms|s|m|m \d+s) ago, at \d\d:\d\d:\d\d UTC$")
    tap.tell(signal.SIGINT)
    assert tap.end() == 130


def test_a_duration_ends_it(page: Page) -> None:
    assert CliRunner().invoke(main, ["tap", "--endpoint", page.address, "--duration", "100ms"]).exit_code == 0


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["--endpoint", "http://127.0.0.1:9"], 1, "no podtrail page at http://127.0.0.1:9"),
        (["--decision", "lost"], 2, "'lost' is not one of"),
        (["--pod", "x" * 300], 2, "at most 256"),
        (["--limit", "0"], 2, "--limit"),
    ],
)
def test_what_can_not_be_tapped_says_why(arguments: list[str], code: int, words: str) -> None:
    done = CliRunner().invoke(main, ["tap", *arguments])
    assert (done.exit_code, done.stdout) == (code, "")
    assert words in " ".join(done.stderr.replace("│", "").split())
