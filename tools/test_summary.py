"""Tables of what test runs took, and why they failed, from the records that tests/recorder.py writes.

    python -m tools.test_summary RECORDS...

A file of records is one run: its name without `.jsonl` is the name of the suite. `NAME.retry.jsonl` is the second try
of what failed in `NAME.jsonl`. Times are seconds of one worker: side by side they add up to more than the run took.
"""

import json
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

LINES = 100
"""Lines that the failures of a run may take together: what is kept of a run in some places is its end."""
RETRY = ".retry"


@dataclass
class Test:
    """One test of a run: seconds by phase, CPU seconds with the processes it waited for, and how it ended."""

    name: str
    suite: str = ""
    setup: float = 0.0
    call: float = 0.0
    teardown: float = 0.0
    cpu: float = 0.0
    processes: int = 0
    outcome: str = "passed"
    text: str = ""
    """Of a failure its traceback and the logs of the processes that the test started; of a skip the reason."""

    @property
    def seconds(self) -> float:
        """All its phases."""
        return self.setup + self.call + self.teardown


@dataclass
class Run:
    """The tests of one run, and the seconds from its first to its last."""

    suite: str
    tests: list[Test] = field(default_factory=list)
    seconds: float = 0.0


Groups = dict[str, tuple[float, list[Test]]]
"""Seconds and tests by the name of a suite or folder."""


def add(tests: dict[str, Test], record: dict[str, object]) -> None:
    """Add a record of one phase (`name`, `when`, `seconds`, `cpu`, `processes`, `outcome`, `text`) to its test."""
    name, when, outcome = str(record["name"]), str(record["when"]), str(record["outcome"])
    test = tests.setdefault(name, Test(name))
    setattr(test, when, float(record["seconds"]))  # type: ignore[arg-type]
    test.cpu += float(record["cpu"])  # type: ignore[arg-type]
    test.processes += int(record["processes"])  # type: ignore[call-overload]
    if outcome == "failed" or (outcome == "skipped" and test.outcome == "passed"):
        test.outcome = outcome
    test.text += str(record.get("text") or "")


def read(path: Path) -> Run:
    """Read the records of one run; a file that is missing or cut off is a run of what it holds."""
    run = Run(path.name.removesuffix(".jsonl"))
    tests: dict[str, Test] = {}
    times: list[float] = []
    for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else []:
        try:
            record = json.loads(line)
        except ValueError:
            continue  # the last line of a run that was killed
        add(tests, record)
        times += [record["ended"] - record["seconds"], record["ended"]]
    run.tests = list(tests.values())
    for test in run.tests:
        test.suite = run.suite
    run.seconds = max(times) - min(times) if times else 0.0
    return run


def _table(title: str, head: Sequence[str], rows: Iterable[Sequence[object]]) -> list[str]:
    """Return a title and rows, all columns but the last right-aligned, or nothing if there are no rows."""
    cells = [[f"{cell:.1f}" if isinstance(cell, float) else str(cell) for cell in row] for row in rows]
    if not cells:
        return []
    widths = [max(len(row[column]) for row in [head, *cells]) for column in range(len(head) - 1)]
    aligned = ["  ".join([*map(str.rjust, row[:-1], widths), row[-1]]) for row in [head, *cells]]
    return ["", title, *aligned]


def folder(test: Test) -> str:
    """Return the folder directly below tests/ that a test is in."""
    parts = test.name.partition("::")[0].split("/")
    return parts[1] if len(parts) > 2 else parts[-1]


def tables(groups: Groups) -> list[str]:
    """Return the tables of suites, slowest tests and slowest set-ups; a group has its seconds and its tests."""
    tests = [test for _, group in groups.values() for test in group]
    lines = _table(
        "Suites",
        ("minutes", "CPU min", "tests", "skipped", "suite"),
        [
            (
                seconds / 60,
                sum(test.cpu for test in group) / 60,
                sum(test.outcome != "skipped" for test in group),
                sum(test.outcome == "skipped" for test in group),
                name,
            )
            for name, (seconds, group) in groups.items()
        ],
    )
    slowest = sorted(tests, key=lambda test: -test.call)[:25]
    lines += _table("Slowest tests", ("s", "CPU s", "test"), [(test.call, test.cpu, test.name) for test in slowest])
    set_ups = sorted(tests, key=lambda test: -test.setup)[:10]
    lines += _table("Slowest set-ups", ("s", "test that needed it"), [(test.setup, test.name) for test in set_ups])
    started = [test for test in tests if test.processes]
    everything = sum(test.seconds for test in tests)
    share = sum(test.seconds for test in started) / 60
    lines += [
        "",
        f"{len(started)} of {len(tests)} tests start a process, {share:.1f} of {everything / 60:.1f} minutes",
    ]
    return lines


def by_folder(tests: Iterable[Test]) -> Groups:
    """Group the tests of one run by their folder, the longest first."""
    groups: defaultdict[str, list[Test]] = defaultdict(list)
    for test in tests:
        groups[folder(test)].append(test)
    seconds = {name: sum(test.seconds for test in group) for name, group in groups.items()}
    return {name: (seconds[name], groups[name]) for name in sorted(groups, key=lambda name: -seconds[name])}


def flaky(runs: Sequence[Run]) -> list[Test]:
    """Return the tests that failed at first and passed when they were tried again."""
    again = {run.suite.removesuffix(RETRY): run for run in runs if run.suite.endswith(RETRY)}
    found = []
    for run in runs:
        if run.suite in again:
            passed = {test.name for test in again[run.suite].tests if test.outcome == "passed"}
            found += [test for test in run.tests if test.outcome == "failed" and test.name in passed]
    return found


def failed(runs: Sequence[Run]) -> list[Test]:
    """Return the tests that failed, and were not seen to pass when they were tried again."""
    passed = {test.name for test in flaky(runs)}
    found = {
        (test.suite.removesuffix(RETRY), test.name): test
        for run in runs
        for test in run.tests
        if test.outcome == "failed" and test.name not in passed
    }
    return list(found.values())


def skipped(tests: Iterable[Test]) -> list[str]:
    """Return a line for each reason to skip tests, with their number, the most frequent first."""
    reasons = Counter(test.text.strip() for test in tests if test.outcome == "skipped")
    return _table("Skipped", ("tests", "reason"), [(count, reason) for reason, count in reasons.most_common()])


def explained(tests: Sequence[Test], lines: int = LINES) -> list[str]:
    """Return name, command and the end of the message of each test that failed, in at most so many lines together."""
    if not tests:
        return []
    shown = tests[: max(1, lines // 8)]
    each = max(2, (lines - 2) // len(shown) - 2)
    out = [f"{len(tests)} failed" + (f", {len(shown)} of them here:" if len(shown) < len(tests) else ":")]
    for test in shown:
        out.append(f"FAILED {test.name} ({test.seconds:.0f} s) repeat: ./dev test -n0 '{test.name}'")
        message, _, logs = test.text.partition("\n--- ")
        of_logs = logs.rstrip().splitlines()[-(each // 3) :]
        of_message = message.rstrip().splitlines()[-(each - len(of_logs)) :]
        out += ["  " + line[:300] for line in [*of_message, *(["  logs:"] if of_logs else []), *of_logs]]
    return out


def report(runs: Sequence[Run], groups: Groups) -> list[str]:
    """Return all that is to say of runs, what matters most last: tables, skips, FLAKY lines, failures."""
    tests = [test for run in runs for test in run.tests if not run.suite.endswith(RETRY)]
    lost, retried = failed(runs), flaky(runs)
    left_out = sum(test.outcome == "skipped" for test in tests)
    passed = sum(test.outcome == "passed" for test in tests) + len(retried)
    return [
        *tables(groups),
        *skipped(tests),
        "",
        *(f"FLAKY {test.name} ({test.suite}): failed, and passed when tried again" for test in retried),
        *explained(lost),
        f"{passed} passed, {len(lost)} failed, {left_out} skipped",
    ]


def main(paths: Sequence[str]) -> int:
    """Print the report of the runs whose records the paths name; returns 1 if a test failed for good."""
    runs = [read(Path(path)) for path in paths]
    print("\n".join(report(runs, {run.suite: (run.seconds, run.tests) for run in runs})))
    return 1 if failed(runs) else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
