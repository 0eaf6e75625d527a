"""What a held span costs in memory, and how long the event loop stands still when 200,000 traces fall due together.

podtrail's own pipeline over loopback, as in `pipeline`, its clock held still while a million spans come in. Memory is
what the process has grown by since it was ready, over the spans it holds. The pause is the longest time between two
turns of the event loop, from the moment all falls due until all that is kept is delivered; that is the compression of
a batch. What deciding alone takes `tail_sampling` measures.
"""

import itertools
import statistics
import tempfile
from contextlib import ExitStack
from pathlib import Path

from benchmarks.load import Load, make_load
from benchmarks.loopback.contenders import configuration
from benchmarks.loopback.holder import Pause, hold
from benchmarks.loopback.processes import beside, free_ports
from benchmarks.loopback.sender import send_all
from benchmarks.loopback.sink import take_all
from benchmarks.loopback.wire import write_requests
from podtrail.otlp import Group, read_request, write_request

TRACES = 28_572
TOGETHER = 200_000
ROUNDS = 3
_HOUR = 3600.0
LIMIT_BYTES, LIMIT_MS = 80, 20


def measure(load: Load) -> tuple[float, Pause]:
    """Return the bytes that a held span takes above its own, and the longest pause."""
    ports = free_ports()
    with ExitStack() as stack, tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "requests"
        write_requests(path, load.requests)
        sink = beside(stack, take_all, ports.sink)
        stack.callback(sink.send, None)
        holder = beside(stack, hold, configuration(ports, wait=_HOUR))
        sender = beside(stack, send_all, path, ports.otlp)
        holder.send("weigh")
        before, _ = holder.recv()
        sender.send("go")
        if isinstance(wrong := sender.recv(), str):
            raise SystemExit(wrong)
        holder.send("weigh")
        after, held = holder.recv()
        if held != load.spans:
            raise SystemExit(f"{load.spans} spans went in, {held} are held")
        holder.send("jump")
        pause: Pause = holder.recv()
    return (after - before - load.span_bytes) / load.spans, pause


def many_traces() -> Load:
    """Return `TOGETHER` traces of a few spans each: runs of spans, each under a trace id of its own."""
    load = Load()
    pattern = make_load(1_000).requests
    numbers = iter(range(1, TOGETHER + 1))
    for request in itertools.cycle(pattern):
        groups = [_renamed(group, number) for group, number in zip(read_request(request).groups, numbers, strict=False)]
        load.requests.append(write_request(groups))
        load.traces += len(groups)
        load.spans += sum(group.span_count for group in groups)
        load.span_bytes += sum(len(group.spans) for group in groups)
        if load.traces >= TOGETHER:
            return load
    raise AssertionError("a cycle has no end")


def _renamed(group: Group, number: int) -> Group:
    trace_id = number.to_bytes(16, "big")
    return group._replace(trace_id=trace_id, spans=group.spans.replace(group.trace_id, trace_id))


def main() -> None:
    """Print both, for a load of whole traces and for one of many small ones."""
    for name, load in (("whole traces", make_load(TRACES, seed=2)), ("small traces", many_traces())):
        runs = [measure(load) for _ in range(ROUNDS)]
        above, clock, cpu = [run[0] for run in runs], [run[1].clock for run in runs], [run[1].cpu for run in runs]
        each, size = load.spans / load.traces, load.span_bytes / load.spans
        print(
            f"{name}: {load.traces} of {each:.0f} spans of {size:.0f} bytes\n"
            f"  held        raw + {min(above):.0f} / {statistics.median(above):.0f} bytes a span\n"
            f"  longest pause {min(clock):.0f} / {statistics.median(clock):.0f} ms, of which at most "
            f"{min(cpu):.0f} / {statistics.median(cpu):.0f} are its own work",
            flush=True,
        )
    print(f"min / median of {ROUNDS}; limits: raw + {LIMIT_BYTES} bytes for whole traces, {LIMIT_MS} ms")


if __name__ == "__main__":
    main()
