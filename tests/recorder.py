"""Records what each test took and why it failed, and prints the tables of that at the end of a run.

A pytest plugin. `--record-to FILE` writes a line of JSON for each phase of each test and leaves the tables to
`python -m tools.test_summary`, which reads them: .ci/run prints one table for all of its suites. A failure is followed
by the end of the logs of the processes that the test started: `*.log` in its folder, and those given to `report_log`.
"""

import contextlib
import json
import resource
import sys
import time
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import TextIO

import pytest

from tests.forks import cpu_seconds
from tools import test_summary

_STARTS = frozenset(("subprocess.Popen", "os.fork", "os.forkpty"))
_TAIL = 20
"""Lines of each log that a failure shows."""
_WORTH_TABLES = 100
"""Tests of a run from which on its tables tell something."""
_started = 0
_logs: dict[str, Callable[[], str]] = {}


def _count(event: str, _: object) -> None:
    global _started
    if event in _STARTS:
        _started += 1


def _cpu() -> float:
    """Return CPU seconds of this process and of those it has waited for, forks of another one included."""
    used = (resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN))
    return sum(each.ru_utime + each.ru_stime for each in used) + cpu_seconds[0]


@contextlib.contextmanager
def report_log(name: str, read: Callable[[], str]) -> Iterator[None]:
    """Show the end of what `read` returns beside the failures of tests that end within this context."""
    _logs[name] = read
    try:
        yield
    finally:
        _logs.pop(name, None)


def _log_files(item: pytest.Item) -> Iterator[tuple[str, str]]:
    folder = getattr(item, "funcargs", {}).get("tmp_path")
    if isinstance(folder, Path):
        for path in sorted(folder.rglob("*.log")):
            with contextlib.suppress(OSError):
                yield path.name, path.read_text(encoding="utf-8", errors="replace")


class Recorder:
    """Sees every phase of every test, in the process that runs it."""

    def __init__(self) -> None:
        self._before = (0, 0.0)

    def pytest_collection_finish(self) -> None:
        """Begin to count: importing all tests is not the first one's doing."""
        self._before = (_started, _cpu())

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Add CPU seconds and started processes to the report, and to a failure the logs."""
        report = yield
        now = (_started, _cpu())
        vars(report).update(podtrail_processes=now[0] - self._before[0], podtrail_cpu=now[1] - self._before[1])
        self._before = now
        if report.failed:
            logs = [*_log_files(item), *((name, read()) for name, read in _logs.items())]
            for name, text in logs:
                report.sections.append((f"end of {name}", "\n".join(text.splitlines()[-_TAIL:])))
        return report


class Collector:
    """Gathers the reports of all workers, in the process that the user started."""

    def __init__(self, file: Path | None) -> None:
        self._tests: dict[str, test_summary.Test] = {}
        self._out: TextIO | None = None
        if file is not None:
            file.parent.mkdir(parents=True, exist_ok=True)
            self._out = file.open("w", encoding="utf-8")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Take in one phase of one test."""
        text = ""
        if report.failed:
            text = "\n".join([report.longreprtext, *(f"--- {name}\n{text}" for name, text in report.sections)])
        elif report.skipped and isinstance(report.longrepr, tuple):
            text = report.longrepr[2].removeprefix("Skipped: ")
        record = {
            "name": report.nodeid,
            "when": report.when,
            "outcome": report.outcome,
            "seconds": round(report.duration, 3),
            "cpu": round(getattr(report, "podtrail_cpu", 0.0), 3),
            "processes": getattr(report, "podtrail_processes", 0),
            "ended": round(time.time(), 3),
            "text": text,
        }
        test_summary.add(self._tests, record)
        if self._out is not None:
            print(json.dumps(record), file=self._out, flush=True)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> Iterator[None]:
        """Print the tables after all else, unless a command prints them for several runs together."""
        yield
        tests = list(self._tests.values())
        if self._out is None and len(tests) >= _WORTH_TABLES:
            for line in test_summary.report([test_summary.Run("", tests)], test_summary.by_folder(tests)):
                terminalreporter.write_line(line)

    def pytest_unconfigure(self) -> None:
        """Close the file."""
        if self._out is not None:
            self._out.close()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--record-to`."""
    parser.addoption(
        "--record-to", type=Path, metavar="FILE", help="write what each test took, and why it failed, to FILE"
    )


def pytest_configure(config: pytest.Config) -> None:
    """Start to record: with xdist tests in its workers, and their reports in the process that started them."""
    sys.addaudithook(_count)
    config.pluginmanager.register(Recorder(), "podtrail-recorder")
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Collector(config.getoption("--record-to")), "podtrail-collector")
