"""What `tail_sampling` with examples/policies/story.yaml takes for many nodes: CPU beside reading alone, and memory.

A recording of one real node and its control plane is played for so many nodes at once (BENCH_NODES, 20), each with ids,
uids and a namespace of its own. It says what a node sends a minute; the floor is to read the same requests, in the same
process, in turn with the sampler.
"""

import gc
import os
import re
import resource
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import yaml
from podtrail_processors.tail_sampling import FACTORY

from podtrail.component import Context, Metrics
from podtrail.otlp import Batch, Group, read_request, write_request
from podtrail.recording import Damage, read_recording
from podtrail.service.process import settle_allocator, settle_garbage_collector

ROOT: Final = Path(__file__).parents[1]
RECORDING: Final = ROOT / "tests" / "data" / "recordings" / "node" / "podtrail" / "spans.otlp.zst"
POLICIES: Final = ROOT / "examples" / "policies" / "story.yaml"
NODES: Final = int(os.environ.get("BENCH_NODES", "20"))
SECOND: Final = 1_000_000_000
SLICE: Final = 2_048
MIB: Final = 1 << 20
_PREFIX: Final = "otelcol_processor_tail_sampling_linked_"
_ID: Final = re.compile(rb"(?<=\n\x10).{16}", re.DOTALL)
_TEXT_ID: Final = re.compile(rb"[0-9a-f]{64}|[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")

Requests = list[tuple[int, list[Group]]]


def recorded() -> Requests:
    """Return the recording, request by request with its arrival."""
    records = [record for record in read_recording(RECORDING) if not isinstance(record, Damage)]
    return [(record.arrival, list(record.intake.groups)) for record in records]


def of_node(group: Group, node: int, traces: frozenset[bytes]) -> Group:
    """Return a group as another node would send it: the same lengths, ids of its own."""
    mark = node.to_bytes(2, "big")
    text = b"%04x" % node

    def trace(found: re.Match[bytes]) -> bytes:
        return mark + found[0][2:] if found[0] in traces else found[0]

    spans = _ID.sub(trace, group.spans)
    spans = _TEXT_ID.sub(lambda found: text + found[0][4:], spans).replace(b"default", b"ns%05d" % node)
    return Group(group.resource, group.scope, mark + group.trace_id[2:], spans, group.span_count)


def requests(recording: Requests) -> Iterator[tuple[int, bytes]]:
    """Yield what all nodes send, in order of time."""
    traces = frozenset(group.trace_id for _, groups in recording for group in groups)
    for arrival, groups in recording:
        for node in range(NODES):
            yield arrival + node, write_request([of_node(group, node, traces) for group in groups])


def main() -> None:
    """Print what a trace costs, what the sampler holds at most, and what it did."""
    settle_allocator()
    settle_garbage_collector()
    settings: dict[str, Any] = yaml.safe_load(POLICIES.read_text(encoding="utf-8"))
    metrics = Metrics()
    config = FACTORY.Config.model_validate(settings["processors"]["tail_sampling"])
    sampler = FACTORY.create(config, Context("tail_sampling", metrics=metrics))
    recording = recorded()
    minutes = (recording[-1][0] - recording[0][0]) / (60 * SECOND)
    gc.collect()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    reading = sampling = 0.0
    spans = kept = held = resting = 0
    for now, request in requests(recording):
        began = time.process_time()
        groups = read_request(request).groups
        read = time.process_time()
        while (due := sampler.deadline()) is not None and due <= now:
            kept += sum(group.span_count for batch in sampler.expire(due, SLICE) for group in batch.groups)
        kept += sum(group.span_count for batch in sampler.add(Batch(groups, now), now).out for group in batch.groups)
        sampling += time.process_time() - read
        reading += read - began
        spans += sum(group.span_count for group in groups)
        held = max(held, sampler.held())
        resting = max(resting, int(metrics.snapshot()[_PREFIX + "grace_bytes"][""]))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    began = time.process_time()
    while (due := sampler.deadline()) is not None:
        kept += sum(group.span_count for batch in sampler.expire(due, SLICE) for group in batch.groups)
    sampling += time.process_time() - began
    traces = len({group.trace_id for _, groups in recording for group in groups}) * NODES
    rate = traces / NODES / minutes
    print(f"{NODES} nodes, each {rate:,.0f} traces a minute with its control plane; {traces:,} traces, {spans:,} spans")
    print(
        f"reading {1e6 * reading / traces:6.1f} us a trace; tail_sampling {1e6 * sampling / traces:6.1f}: "
        f"{sampling / reading:.1f} times as much; {sampling / (60 * minutes):.1%} of a core at this rate"
    )
    print(
        f"held at most {held:,} spans; resting {resting / MIB:,.0f} MiB as estimated; "
        f"the process grew by {(peak - before) / 1024:,.0f} MiB"
    )
    print(
        f"kept {kept / spans:.1%} of the spans; quota hits "
        f"{sum(metrics.snapshot()[_PREFIX + 'quota_hits'].values()):.0f}, pushed out "
        f"{sum(metrics.snapshot()[_PREFIX + 'grace_pushed_out'].values()):.0f}"
    )


if __name__ == "__main__":
    main()
