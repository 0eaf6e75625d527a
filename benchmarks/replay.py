"""What replay costs a span by the form of the recording, and that its memory does not grow with the recording.

`podtrail replay` runs as a user runs it, in a process of its own; what it takes on a recording of one request is taken
off. The floor is reading the same recording in another process. The load is that of `load.py`, repeated with other ids
and later times; the sampler is the main job's, with decision caches, and nothing is written.
"""

import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from benchmarks.load import SPANS_A_TRACE, make_load
from podtrail.otlp import read_request
from podtrail.otlp.restamp import stamp, templates
from podtrail.recording import RecordingWriter

TRACES = 8_572
"""300,000 spans; some 50 MB."""
ROUNDS = 3
SMALL, LARGE = 2, 20
"""Repetitions for the two sizes of memory: some 100 MB and 1 GB."""
EVERY = 20_000_000
"""Nanoseconds between two requests."""
PODTRAIL = Path(sys.executable).parent / "podtrail"
CONFIG = """\
receivers: {otlp: {protocols: {grpc: }}}
processors:
  tail_sampling:
    decision_wait: 1s
    num_traces: 1000000
    decision_cache: {sampled_cache_size: 10000, non_sampled_cache_size: 10000}
    policies:
      - {name: failed, type: scheduling_result, scheduling_result: {results: [Unschedulable, Error]}}
      - {name: slow, type: slow_attempt, slow_attempt: {threshold: 500ms}}
      - {name: some, type: probabilistic, probabilistic: {sampling_percentage: 5}}
exporters: {debug: {}}
service: {pipelines: {traces: {receivers: [otlp], processors: [tail_sampling], exporters: [debug]}}}
"""
# What a process took at the most: the system's own count would begin with what its parent took.
_PEAK = """\
import atexit, sys
from pathlib import Path
from podtrail.__main__ import main
status = Path("/proc/self/status")
atexit.register(lambda: print(status.read_text().partition("VmHWM:")[2].split()[0], file=sys.stderr))
main()
"""
_READ = """\
import sys
from podtrail.recording import Damage, read_recording
assert not any(isinstance(record, Damage) for record in read_recording(sys.argv[1]))
"""


def seconds_of(command: Sequence[str]) -> float:
    """Run a command to its end and return the CPU seconds it took."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0, command
    return usage.ru_utime + usage.ru_stime


def peak_of(*arguments: str) -> float:
    """Run podtrail and return how many MiB of memory it took at the most."""
    command = (sys.executable, "-c", _PEAK, *arguments)
    done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=True)
    return int(done.stderr.split()[-1]) / 1024


def write(path: Path, requests: Sequence[bytes], times: int) -> int:
    """Write requests so many times over, with other ids and later times; return the number of spans."""
    made = templates(requests)
    spans = arrival = 0
    with RecordingWriter(path) as writer:
        for number in range(times):
            mark = stamp("bench", number, number * len(requests) * EVERY)
            for template in made:
                groups = read_request(template.stamped(mark)).groups
                arrival += EVERY
                writer.write(groups, arrival)
                spans += sum(group.span_count for group in groups)
    return spans


def main() -> None:
    """Print CPU a span by form, and peak memory by size."""
    load = make_load(TRACES)
    print(f"{load.spans} spans, {SPANS_A_TRACE} a trace, {load.span_bytes / load.spans:.0f} bytes each")
    with tempfile.TemporaryDirectory() as directory:
        folder = Path(directory)
        config = folder / "config.yaml"
        config.write_text(CONFIG)
        replay = (str(PODTRAIL), "replay", "--config", str(config))
        for ending in (".otlp", ".otlp.zst", ".jsonl"):
            _compare(folder / f"one{ending}", folder / f"all{ending}", load.requests, replay)
        peaks = []
        for times in (SMALL, LARGE):
            path = folder / "large.otlp"
            write(path, load.requests, times)
            peaks.append(peak_of(*replay[1:], str(path)))
            print(f"{path.stat().st_size / 1e6:6.0f} MB .otlp: {peaks[-1]:.0f} MiB at the most")
        print(f"memory: {peaks[1] / peaks[0]:.2f} for {LARGE / SMALL:.0f} times the recording")


def _compare(one: Path, everything: Path, requests: Sequence[bytes], replay: Sequence[str]) -> None:
    reading = (sys.executable, "-c", _READ)
    few, many = write(one, requests[:1], 1), write(everything, requests, 1)
    took: dict[str, list[float]] = {"read": [], "replay": []}
    for _ in range(ROUNDS):
        for name, command in (("read", reading), ("replay", replay)):
            start = seconds_of((*command, str(one)))
            took[name].append((seconds_of((*command, str(everything))) - start) / (many - few))
    floor, whole = (min(took[name]) for name in ("read", "replay"))
    print(
        f"{''.join(everything.suffixes):<10} {1 / whole:>9,.0f} spans a second of CPU "
        f"({whole * 1e6:.2f} us), {whole / floor:.2f} of reading alone ({1 / floor:,.0f}, {floor * 1e6:.2f} us)"
    )


if __name__ == "__main__":
    main()
