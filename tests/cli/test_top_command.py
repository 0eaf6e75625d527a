"""`podtrail top` as a person meets it: a snapshot in a pipe, a screen with keys on a terminal."""

import fcntl
import json
import os
import pty
import re
import select
import struct
import sys
import termios
import time
from collections.abc import Iterator
from typing import Any

import pytest
from click.testing import CliRunner
from rich.cells import cell_len

from podtrail.cli import main
from podtrail.cli.top_screen import Look, draw
from tests.running_page import running_page

PATIENCE = 600.0
HOSTILE = "x\x1b]8;;http://x\x07\u202e\n[red]"
TOLD: dict[str, Any] = {
    "nowUnixNano": "1790000000000000000",
    "live": True,
    "window": 60_000_000_000,
    "attemptsPerSecond": 1.25,
    "attemptsPerSecondLately": 2.5,
    "results": {"Unschedulable": 70, "Success": 5},
    "pods": {"unschedulable": 2, "scheduled": 1200},
    "pending": 2,
    "waiting": [{"pods": 2, "reason": "NodeResourcesFit: Insufficient cpu"}],
    "plugins": [
        {"plugin": "Often", "point": "filter", "attempts": 90, "median": 4_000_000, "longest": 5_000_000},
        {"plugin": "CostScorer", "point": "score", "attempts": 3, "median": 2_000_000, "longest": 1_200_000_000},
    ],
    "refusals": [{"plugin": "NodeResourcesFit", "reason": "Insufficient cpu", "attempts": 70, "pods": 2}],
    "policies": [
        {"policy": "failed", "kept": 70, "spans": 900, "votedYes": 70, "shadow": False},
        {"policy": "", "kept": 3, "spans": 30, "votedYes": 0, "shadow": False},
    ],
    "decided": 100,
    "kept": 73,
    "decidedAfter": 5_000_000_000,
    "pipeline": {
        "exporters": [
            {"exporter": "file", "received": 1000, "delivered": 900, "missing": 0, "queueSize": 5, "queueCapacity": 10}
        ],
        "dropped": {},
        "undecided": 4,
        "memoryBytes": 104_857_600,
        "uptimeSeconds": 90.5,
    },
}


def words(look: Look, **changes: Any) -> list[str]:
    return draw({**TOLD, **changes}, look)


def test_a_screen_says_what_goes_on() -> None:
    lines = words(Look())
    assert lines[:5] == [
        "podtrail top  14:13:20 UTC",
        "Attempts  1.2/s in 1m, 2.5/s in 10 s: 70 Unschedulable, 5 Success",
        "Pods      1,202, 2 pending: 2 unschedulable, 1,200 scheduled",
        "Traces    100 decided in the last hour, 73 kept (73 %), 4 undecided; decided 5 s after the first span",
        "Memory    100 MiB, up 1m 30s",
    ]
    rows = [re.split(r"\s{2,}", line) for line in lines]
    assert ["CostScorer", "score", "1.2 s", "2 ms", "3"] in rows
    assert ["NodeResourcesFit", "Insufficient cpu", "70", "2"] in rows
    assert ["(another reason)", "0", "3", "30"] in rows
    assert next(row for row in rows if row[0] == "file")[-1] == "50 %"


def test_plugins_are_sorted_and_rows_filtered_as_asked() -> None:
    def plugins(look: Look) -> list[str]:
        lines = words(look)
        return [line.split()[0] for line in lines if line.startswith(("Often", "CostScorer"))]

    assert plugins(Look(sort="longest")) == ["CostScorer", "Often"]
    assert plugins(Look(sort="attempts")) == ["Often", "CostScorer"]
    assert plugins(Look(filter="OFTEN")) == ["Often"]
    assert "WAITING FOR" not in "\n".join(words(Look(filter="Often")))


def test_a_filter_that_nothing_matches_says_so_and_hides_no_policy_and_no_exporter() -> None:
    lines = words(Look(filter="frozen"))
    assert "Filter    no reason to wait, plugin or refusal has frozen in it" in lines
    assert [line.split()[0] for line in lines if line.startswith(("POLICY", "EXPORTER"))] == ["POLICY,", "EXPORTER"]
    assert any(line.startswith("file ") for line in lines)
    assert not any(line.startswith("Filter") for line in words(Look(filter="often")))


def test_silence_has_a_length_and_the_tables_their_time() -> None:
    lines = words(Look(), windowEndUnixNano="1789999700000000000")
    assert lines[1] == (
        "Attempts  none for 5m; plugins and refusals are of the 1m until 14:08:20: 70 Unschedulable, 5 Success"
    )


def test_rows_that_differ_at_their_end_are_told_apart() -> None:
    denied = "DefaultBinder: ValidatingAdmissionPolicy 'no-binding' with binding 'no-binding' denied request: "
    ends = ("the freeze lasts until Monday", "the freeze lasts until Friday, or later if need be")
    waiting = [{"reason": denied + end, "pods": count} for end, count in zip(ends, (4, 2), strict=True)]
    lines = [line for line in words(Look(width=100), waiting=waiting) if line.startswith("DefaultBinder")]
    assert "Monday" in lines[0]
    assert "Friday" in lines[1]


@pytest.mark.parametrize(("width", "height"), [(20, 5), (60, 12), (80, 24), (400, 100)])
def test_it_fits_width_and_height(width: int, height: int) -> None:
    lines = words(Look(width=width, height=height), results={f"result {at}": at for at in range(1, 50)})
    assert len(lines) <= height
    assert max(map(len, lines)) <= width


def test_what_is_missing_or_lost_is_said_in_red_and_in_a_word() -> None:
    lost = {"exporters": [{"exporter": "file", "missing": 7}], "dropped": {"late_span": 3}}
    lines = words(Look(colour=True), pipeline=lost)
    assert "\x1b[31m!         file: 7 spans are missing\x1b[0m" in lines
    assert "\x1b[31m!         spans lost: 3 late_span\x1b[0m" in lines


def test_that_nothing_later_is_known_is_said_first_in_red_within_the_width() -> None:
    lines = words(Look(colour=True, width=80, problem="no podtrail page at http://localhost:15927 (timed out)"))
    begun = "podtrail top  14:13:20 UTC, nothing later: no podtrail page at http://localhost"
    assert lines[0] == f"\x1b[31m{begun}…\x1b[0m"


@pytest.mark.parametrize("told", [{}, {"pods": 5, "plugins": [1, {}], "waiting": [{"reason": HOSTILE}], "pipeline": 3}])
def test_a_page_that_says_anything_has_no_power_over_the_terminal(told: dict[str, Any]) -> None:
    assert all(line.isprintable() for line in draw(told, Look(width=80, height=24)))


@pytest.mark.parametrize("name", ["\u8c03\u5ea6\u5668" * 12, "e\u0301" * 60, "\U0001f40c" * 40, "a\u5668" * 30])
@pytest.mark.parametrize("width", [1, 20, 60, 61, 100])
def test_no_line_is_wider_than_the_terminal_whatever_its_letters_take(name: str, width: int) -> None:
    rows = [
        {"plugin": name, "point": "filter", "reason": name, "pods": 1},
        {"plugin": "Fit", "reason": "no", "pods": 2},
    ]
    lines = words(Look(width=width, height=40), waiting=rows, plugins=rows, refusals=rows)
    assert max(map(cell_len, lines)) <= width
    assert max(map(cell_len, words(Look(width=width, filter=name, height=40)))) <= width
    numbers = [line for line in lines if line.endswith(("  1", "  2"))]
    assert width < 60 or len({cell_len(line) for line in numbers[:2]}) == 1


VIEWER = """
viewer.observe("traces", no_room().batch(reason="scheduler.result=Unschedulable"))
"""


@pytest.fixture(scope="module")
def page() -> Iterator[str]:
    """The address of a running page."""
    with running_page(VIEWER) as running:
        yield running.address


def test_in_a_pipe_one_snapshot_is_printed_without_colours(page: str) -> None:
    done = CliRunner().invoke(main, ["top", "--endpoint", page])
    assert done.exit_code == 0
    assert done.stdout.startswith("podtrail top  ")
    assert "1 pending: 1 unschedulable" in done.stdout
    assert "\x1b" not in done.stdout
    told = json.loads(CliRunner().invoke(main, ["top", "--endpoint", page, "-o", "json"]).stdout)
    assert (told["pending"], told["pods"]) == (1, {"unschedulable": 1})


def test_nobody_there_is_said_and_exit_code_1() -> None:
    done = CliRunner().invoke(main, ["top", "--endpoint", "http://127.0.0.1:9"])
    assert (done.exit_code, done.stdout) == (1, "")
    assert "no podtrail page at http://127.0.0.1:9" in done.stderr


class Terminal:
    """A program on a terminal of its own."""

    def __init__(self, *command: str, term: str = "xterm") -> None:
        self.child, self._file = pty.fork()
        if not self.child:
            os.execve(command[0], command, {**os.environ, "TERM": term})
        fcntl.ioctl(self._file, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 100, 0, 0))
        self._seen = ""

    def until(self, expected: str) -> str:
        """Return what was written up to what is expected."""
        deadline = time.monotonic() + PATIENCE
        while expected not in self._seen:
            assert time.monotonic() < deadline, self._seen
            if select.select([self._file], [], [], 1)[0]:
                self._seen += os.read(self._file, 65536).decode()
        before, _, self._seen = self._seen.partition(expected)
        return before + expected

    def press(self, keys: str) -> None:
        os.write(self._file, keys.encode())

    def end(self) -> int:
        """Wait for its end; return the exit code."""
        _, status = os.waitpid(self.child, 0)
        os.close(self._file)
        return os.waitstatus_to_exitcode(status)


def test_keys_sort_filter_pause_help_and_end(page: str) -> None:
    terminal = Terminal(sys.executable, "-m", "podtrail", "top", "--endpoint", page, "--interval", "100ms")
    assert "\x1b[?1049h" in terminal.until("sorted by longest")
    terminal.press("s")
    terminal.until("sorted by median")
    terminal.press("/Taint")
    terminal.until("/Taint_")
    terminal.press("\r")
    terminal.until("filter: Taint")
    terminal.press("p")
    terminal.until("paused; filter: Taint   q ends, ? helps, s: sorted by median")
    terminal.press("?")
    terminal.until("Esc clears it")
    terminal.press("\x1b")
    terminal.until("paused   q ends")
    terminal.press("q")
    terminal.until("\x1b[?1049l")
    assert terminal.end() == 0


def test_a_page_that_ends_is_said_until_the_reader_ends() -> None:
    with running_page(VIEWER) as running:
        asked = ("--endpoint", running.address, "--interval", "100ms")
        terminal = Terminal(sys.executable, "-m", "podtrail", "top", *asked)
        terminal.until("sorted by longest")
    terminal.until("nothing later: no podtrail page at")
    terminal.press("\x03")
    assert terminal.end() == 0


def test_on_a_terminal_without_a_cursor_one_snapshot_is_printed(page: str) -> None:
    terminal = Terminal(sys.executable, "-m", "podtrail", "top", "--endpoint", page, term="dumb")
    seen = terminal.until("POLICY, LAST HOUR")
    assert terminal.end() == 0
    assert "\x1b" not in seen
