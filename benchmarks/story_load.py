"""What link_stitching takes for 100 nodes at 700 kubelet traces a minute each, and to remember 10,000 Pods.

A node is the recording of one, with ids, uids and namespace of its own.
"""

import gc
import multiprocessing
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final, Literal

from podtrail_processors.link_stitching.config import Config
from podtrail_processors.link_stitching.prefilter import is_marked
from podtrail_processors.link_stitching.processor import LinkStitching

from benchmarks.story_joins import RECORDINGS
from podtrail.component import Context
from podtrail.otlp import Batch, Group, raw_span_reader
from podtrail.recording import Damage, read_recording

NODES: Final = 100
PODS: Final = 10_000
PODS_A_NODE: Final = 10
MODES: Final[tuple[Literal["link", "lifecycle"], ...]] = ("link", "lifecycle")
_ID: Final = re.compile(
    rb"(?P<uuid>[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-)[0-9a-f]{12}|(?P<long>[0-9a-f]{56})[0-9a-f]{8}(?![0-9a-f])"
    rb"|(?P<before>\n\x10).{4}(?P<after>.{12}\x12\x08)|(?P<namespace>default)",
    re.DOTALL,
)
_KUBELET: Final = b"kubelet"
_APISERVER: Final = b"apiserver"
_MIB: Final = 1 << 20


class Template:
    """A recorded group, to be sent by other nodes as well: as long, but with ids and a namespace of its own."""

    def __init__(self, group: Group) -> None:
        self.group = group
        self._pieces: list[bytes] = []
        end = 0
        for found in _ID.finditer(group.spans):
            self._pieces.append(group.spans[end : found.start()] + (found["uuid"] or found["long"] or b""))
            if found["before"]:
                self._pieces[-1] += found["before"]
            self._pieces.append(found.lastgroup.encode() if found.lastgroup else b"")
            self._pieces.append(found["after"] or b"")
            end = found.end()
        self._rest = group.spans[end:]

    def of(self, number: int) -> Group:
        """Return the group as a node sends it."""
        written = {
            b"uuid": b"%012x" % number,
            b"long": b"%08x" % number,
            b"after": number.to_bytes(4, "big"),
            b"namespace": b"d%06d" % number,
        }
        pieces = list(self._pieces)
        pieces[1::3] = [written[kind] for kind in pieces[1::3]]
        return self.group._replace(
            spans=b"".join([*pieces, self._rest]),
            trace_id=number.to_bytes(4, "big") + self.group.trace_id[4:],
            resource=self.group.resource.replace(b"node-1", b"n%05d" % number),
        )


def arrivals(*, of_pods: bool = False) -> Iterator[tuple[int, list[Template]]]:
    """Yield what kubelet, container runtime and scheduler of the recorded node sent; if asked, what tells of Pods."""
    for record in read_recording(RECORDINGS / "podtrail" / "spans.otlp.zst"):
        if not isinstance(record, Damage):
            groups = [group for group in record.intake.groups if _APISERVER not in group.resource]
            groups = [group for group in groups if not of_pods or is_marked(group.spans)]
            if groups:
                yield record.arrival, [Template(group) for group in groups]


def run(nodes: range, processor: LinkStitching, recorded: list[tuple[int, list[Template]]]) -> tuple[float, float, int]:
    """Return the CPU seconds that nodes take in the processor, those of reading their spans' ids, and their spans."""
    read = raw_span_reader(("span_id",))
    cost = floor = 0.0
    spans = 0
    for arrival, groups in recorded:
        for number in nodes:
            batch = Batch([template.of(number) for template in groups], arrival)
            spans += batch.span_count
            began = time.process_time()
            processor.add(batch, arrival)
            while (due := processor.deadline()) is not None and due <= arrival:
                processor.expire(due, 10_000)
            ended = time.process_time()
            for group in batch.groups:
                read(group.spans)
            cost, floor = cost + ended - began, floor + time.process_time() - ended
    return cost, floor, spans


def resident() -> int:
    """Return the resident memory of this process in bytes."""
    return int(re.findall(r"VmRSS:\s+(\d+) kB", Path("/proc/self/status").read_text())[0]) << 10


def remember(mode: Literal["link", "lifecycle"]) -> None:
    """Print what remembering Pods takes in a mode: by how much this process grows, and the processor's estimate."""
    recorded = list(arrivals(of_pods=True))
    context = Context(id="link_stitching")
    processor = LinkStitching(Config(mode=mode, reorder_wait=0), context)
    run(range(1, 2), LinkStitching(Config(mode=mode, reorder_wait=0), Context(id="warm")), recorded)
    gc.collect()
    before = resident()
    run(range(1, PODS // PODS_A_NODE + 1), processor, recorded)
    gc.collect()
    grown = resident() - before
    metrics = context.metrics.snapshot()
    (size,) = metrics["otelcol_processor_link_stitching_memory_bytes"].values()
    print(f"mode: {mode}, {PODS:,} Pods: {grown / _MIB:.0f} MiB, {size / _MIB:.0f} by its own upper estimate")
    entries = metrics["otelcol_processor_link_stitching_remembered"]
    print("  " + ", ".join(f"{label.rpartition('=')[2]} {count:,.0f}" for label, count in entries.items()), flush=True)


def main() -> None:
    """Print the figures of one run."""
    recorded = list(arrivals())
    minutes = (recorded[-1][0] - recorded[0][0]) / 60e9
    groups = [template.group for _, templates in recorded for template in templates]
    traces = len({group.trace_id for group in groups if _KUBELET in group.resource})
    processor = LinkStitching(Config(), Context(id="link_stitching"))
    gc.collect()
    cost, floor, spans = run(range(1, NODES + 1), processor, recorded)
    rate, share = f"{traces / minutes:.0f} kubelet traces", f"{spans / NODES / minutes:.0f} spans"
    print(f"a node: {rate} and {share} a minute, the API server's left out")
    print(f"{NODES} nodes: {cost / minutes / 60:.1%} of a core, {cost / spans * 1e6:.1f} us a span", end="")
    print(f", {cost / floor:.1f} times reading the spans' ids", flush=True)
    for mode in MODES:
        # In a process of its own, so that nothing is left of the one before.
        process = multiprocessing.get_context("spawn").Process(target=remember, args=(mode,))
        process.start()
        process.join()
