"""How fast `reconstruct` reads a kube-scheduler's log at -v=2, and what an attempt costs.

The log of the recorded run, without its start-up, over and over with Pods of ever new names: 71 of 100 lines are the
end of an attempt, which is as dense as a log at -v=2 gets. Printed are lines a second of CPU for reading alone, for
putting attempts together, for the same through a session as the live source drives it, and for writing their spans,
each the best and the median of three rounds, and how many times what the floor takes: a regular expression for klog's
header and one for its pairs, on every line. The ratios hold on a busy machine, too. Last, the memory that lines of
4 KiB about ever new Pods take at most.
"""

import gzip
import re
import resource
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median

from podtrail.otlp import Group
from podtrail.reconstruction import Correlator, LineCounts, Rebuilt, SchedulerLog, Session, split_lines, trace

LOG = Path(__file__).parents[1] / "tests" / "data" / "kube-scheduler" / "v2-text.log.gz"
START = 1_795_259_525_000_000_000
ROUNDS = 3
TIMES = 40
PIECE = 1 << 16
SECOND = 10**9
HEADER = re.compile(rb"[IWEFD](\d{4} \d\d:\d\d:\d\d\.\d{6}) +(\d+) [^ ]+\] ")
PAIR = re.compile(rb'([^ =]+)=(?:"((?:[^"\\]|\\.)*)"|([^ ]*))')
GOAL = 100_000
HOSTILE = 30_000


def log() -> bytes:
    """Return the run's minute and more from its first attempt on, many times in a row, the names new each time."""
    raw = gzip.decompress(LOG.read_bytes())
    once = raw[raw.index(b'"Unable to schedule pod; no nodes') - 60 :].partition(b"\n")[2]
    return b"".join(_again(once, number) for number in range(TIMES))


def _again(once: bytes, number: int) -> bytes:
    for minute in (12, 13):
        later = b" %02d:%02d:" % divmod(2 * number + minute, 60)
        once = once.replace(b"1121 11:%d:" % minute, b"1121" + later)
    return once.replace(b'pod="default/', b'pod="default/r%d-' % number)


def attempts(lines: Iterator[bytes]) -> Iterator[Rebuilt]:
    """Yield what is rebuilt from lines of a log."""
    correlator = Correlator()
    for told in SchedulerLog("log", START, LineCounts()).read(lines):
        yield from correlator.feed(told)
    yield from correlator.finish()


def floor(raw: bytes) -> Iterator[object]:
    """Yield what two regular expressions find in each line."""
    for line in raw.split(b"\n"):
        if found := HEADER.match(line):
            yield found.groups(), PAIR.findall(line, found.end())


def live(raw: bytes) -> Iterator[Group]:
    """Yield attempts that a session gives for pieces of a file."""
    session, now = Session(START), START + 3_600 * SECOND
    for at in range(0, len(raw), PIECE):
        session.log("log", raw[at : at + PIECE], now)
        now += SECOND // 100
        yield from session.expire(now)
    yield from session.drain(now)


def hostile() -> Iterator[bytes]:
    """Yield long lines about Pods that nothing else tells of."""
    for number in range(HOSTILE):
        stamp = b"I1121 11:%02d:%02d.%06d" % (number // 60_000 % 60, number // 1_000 % 60, number % 1_000)
        words = b'"Unable to schedule pod; no fit; waiting" pod="d/p%d" err="%s"' % (number, b"%d " % number * 500)
        yield stamp + b" 1 schedule_one.go:1194] " + words


def _count(made: Iterator[object]) -> int:
    return sum(1 for _ in made)


def main() -> None:
    """Print the figures."""
    raw = log()
    lines = raw.count(b"\n")
    ways: dict[str, Callable[[], int]] = {
        "floor": lambda: _count(floor(raw)),
        "read": lambda: _count(SchedulerLog("log", START, LineCounts()).read(split_lines([raw]))),
        "put together": lambda: _count(attempts(split_lines([raw]))),
        "live, written": lambda: _count(live(raw)),
        "written": lambda: _count(trace(one) for one in attempts(split_lines([raw]))),
    }
    rates: dict[str, list[float]] = {name: [] for name in ways}
    counts: dict[str, int] = {}
    for _ in range(ROUNDS):
        for name, way in ways.items():
            began = time.process_time()
            counts[name] = way()
            rates[name].append(lines / (time.process_time() - began))
    print(f"{lines:,} lines, {counts['written']:,} attempts; goal {GOAL:,} lines a second")
    for name, rate in rates.items():
        ratio = max(rates["floor"]) / max(rate)
        print(
            f"  {name:14} {max(rate):>10,.0f} / {median(rate):>10,.0f} lines a second of CPU, {ratio:.2f} of the floor"
        )
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    made = _count(attempts(hostile()))
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    print(f"  {made:,} attempts with messages of 4 KiB: {grown:.0f} MiB more at the peak")


if __name__ == "__main__":
    main()
