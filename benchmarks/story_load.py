"""What link_stitching takes for 100 nodes at 700 kubelet traces a minute each, and to remember 10,000 Pods.

A node is the recording of one, with ids, uids and namespace of its own.
"""

import gc
import re
import time
from collections.abc import Iterator
from typing import Final

from podtrail_processors.link_stitching.config import Config
from podtrail_processors.link_stitching.processor import LinkStitching

from benchmarks.story_joins import RECORDINGS
from podtrail.component import Context
from podtrail.otlp import Batch, Group, span_reader
from podtrail.recording import Damage, read_recording

NODES: Final = 100
PODS: Final = 10_000
PODS_A_NODE: Final = 10
_UUID: Final = re.compile(rb"([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-)[0-9a-f]{12}")
_LONG_ID: Final = re.compile(rb"([0-9a-f]{56})[0-9a-f]{8}(?![0-9a-f])")
_TRACE_ID: Final = re.compile(rb"(\n\x10).{4}(.{12}\x12\x08)", re.DOTALL)
_KUBELET: Final = b"kubelet"
_APISERVER: Final = b"apiserver"


def node(number: int, groups: list[Group]) -> list[Group]:
    """Return the groups as another node would have sent them: as long, but with ids and a namespace of its own."""
    told = []
    for group in groups:
        spans = _UUID.sub(rb"\g<1>%012x" % number, group.spans)
        spans = _LONG_ID.sub(rb"\g<1>%08x" % number, spans)
        spans = _TRACE_ID.sub(lambda found: found[1] + number.to_bytes(4, "big") + found[2], spans)
        spans = spans.replace(b"default", b"d%06d" % number)
        trace_id = number.to_bytes(4, "big") + group.trace_id[4:]
        told.append(
            group._replace(
                spans=spans, trace_id=trace_id, resource=group.resource.replace(b"node-1", b"n%05d" % number)
            )
        )
    return told


def arrivals() -> Iterator[tuple[int, list[Group]]]:
    """Yield what kubelet, container runtime and scheduler of the recorded node sent."""
    for record in read_recording(RECORDINGS / "podtrail" / "spans.otlp.zst"):
        if not isinstance(record, Damage):
            groups = [group for group in record.intake.groups if _APISERVER not in group.resource]
            if groups:
                yield record.arrival, groups


def run(nodes: range, processor: LinkStitching, recorded: list[tuple[int, list[Group]]]) -> tuple[float, float, int]:
    """Return the CPU seconds that nodes take in the processor, those of reading their spans' ids, and their spans."""
    read = span_reader(("span_id",))
    cost = floor = 0.0
    spans = 0
    for arrival, groups in recorded:
        for number in nodes:
            batch = Batch(node(number, groups), arrival)
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


def main() -> None:
    """Print the figures of one run."""
    recorded = list(arrivals())
    minutes = (recorded[-1][0] - recorded[0][0]) / 60e9
    traces = len({group.trace_id for _, groups in recorded for group in groups if _KUBELET in group.resource})
    processor = LinkStitching(Config(), Context(id="link_stitching"))
    gc.collect()
    cost, floor, spans = run(range(1, NODES + 1), processor, recorded)
    rate, share = f"{traces / minutes:.0f} kubelet traces", f"{spans / NODES / minutes:.0f} spans"
    print(f"a node: {rate} and {share} a minute, the API server's left out")
    print(f"{NODES} nodes: {cost / minutes / 60:.1%} of a core, {cost / spans * 1e6:.1f} us a span", end="")
    print(f", {cost / floor:.1f} times reading the spans' ids")
    context = Context(id="link_stitching")
    processor = LinkStitching(Config(reorder_wait=0), context)
    for first in range(1, PODS // PODS_A_NODE + 1, NODES):
        run(range(first, first + NODES), processor, recorded)
    metrics = context.metrics.snapshot()
    entries = metrics["otelcol_processor_link_stitching_remembered"]
    (size,) = metrics["otelcol_processor_link_stitching_memory_bytes"].values()
    print(f"{PODS:,} Pods: {size / (1 << 20):.0f} MiB by its own upper estimate")
    print("  " + ", ".join(f"{label.rpartition('=')[2]} {count:,.0f}" for label, count in entries.items()))
