"""What components keep in memory fits into the limit, ends with its time, and shrinks before a span is refused."""

import gc
import tracemalloc
from collections.abc import Iterable, Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from podtrail.component import Context, EnrichingMemories, Ledger, Refused
from podtrail.component.container import container_limit
from podtrail.component.registry import find
from podtrail.config import Document
from podtrail.config.types import SECOND
from podtrail.otlp import Batch
from podtrail.pipeline.host import Host, make_chain
from podtrail.pipeline.memory_budget import PROCESS_BYTES, excess, memory_budget
from podtrail.pipeline.settings import Settings, read_settings
from podtrail.story.library import Library
from podtrail.testing.attempts import START, MadeAttempt
from tests.sizes import large

MIB = 1 << 20
ROOT = Path(__file__).parents[2]
PIPELINE = """
receivers: {otlp: {protocols: {grpc: }}}
processors:
  memory_limiter: {check_interval: 1s, limit_mib: 160, spike_limit_mib: 40}
  tail_sampling:
    decision_wait: 10s
    decision_wait_after_root_received: 1s
    linked_traces: {keep: true, grace_period: 5m}
    policies: [{name: failed, type: scheduling_result, scheduling_result: {results: [Unschedulable]}}]
  link_stitching: {mode: MODE}
exporters: {debug: }
service: {pipelines: {traces: {receivers: [otlp], processors: [tail_sampling, link_stitching], exporters: [debug]}}}
"""


def configured(text: str) -> Settings:
    return read_settings(Document.from_text(text, "c.yaml", {}))


def failing(numbers: Iterable[int], start: int = START) -> Batch:
    """Return the failed first attempts of so many Pods."""
    made = [
        MadeAttempt(
            uid=f"00000000-0000-4000-8000-{number:012}", name=f"web-{number}", result="Unschedulable", start=start
        )
        for number in numbers
    ]
    return Batch([group for one in made for group in one.groups()], start)


def size_after(host: Host) -> int:
    """Return the traced bytes once all memories have shrunk."""
    while host.enriching.size() > MIB // 8:
        host.enriching.shrink()
    gc.collect()
    return tracemalloc.get_traced_memory()[0]


@pytest.mark.parametrize("mode", ["link", "lifecycle", "merge"])
def test_what_takes_memory_after_the_last_span_has_left_shrinks(mode: str) -> None:
    given_settings = configured(PIPELINE.replace("MODE", mode))
    pods = large(600, 6_000)  # caches of 4,096 texts weigh most in the small size
    host, library = Host(seed=1), Library(max_mib=64, max_decisions_mib=16)
    host.enriching.register(library)
    chain = make_chain(given_settings.pipelines[0], given_settings, host, Ledger())

    def pass_through(numbers: Sequence[int], now: int) -> None:
        chain.add(failing(numbers, now), now)
        while chain.held() - sum(batch.span_count for batch in chain.outbox):
            due = chain.deadline()
            assert due is not None
            chain.advance(due, 1000)
        while chain.outbox:
            batch = chain.outbox.popleft()
            library.decide("traces", batch)
            library.keep(batch.groups, now)

    pass_through(range(20), START)
    tracemalloc.start()
    try:
        empty = size_after(host)
        for first in range(20, pods, 20):
            pass_through(range(first, first + 20), START + first * SECOND)
        gc.collect()
        full = tracemalloc.get_traced_memory()[0] - empty
        left = size_after(host) - empty
    finally:
        tracemalloc.stop()
    assert left < full / large(3, 4)


@settings(max_examples=large(15, 60), deadline=None)
@given(st.lists(st.tuples(st.integers(0, 400), st.integers(0, 120)), min_size=1, max_size=12))
def test_the_limiter_never_refuses_for_long_while_no_span_is_held(bursts: list[tuple[int, int]]) -> None:
    """Memory in use is that of an empty process, of spans held and of all that components say they remember."""
    text = PIPELINE.replace("MODE", "link").replace("[tail_sampling", "[memory_limiter, tail_sampling")
    given_settings = configured(
        text.replace("limit_mib: 160, spike_limit_mib: 40", "limit_mib: 105, spike_limit_mib: 3")
    )
    enriching = EnrichingMemories()

    def used() -> int:
        return PROCESS_BYTES + enriching.size() + 500 * chain.held()

    def reclaim(*, collect: bool) -> int:
        return used()

    host = Host(seed=1, enriching=enriching, memory_used=lambda: used(), reclaim_memory=reclaim)
    chain = make_chain(given_settings.pipelines[0], given_settings, host, Ledger())
    now, number = START, 0
    for pods, seconds in bursts:
        batch = failing(range(number, number + pods), now)
        number += pods
        try:
            chain.admit(batch, now)
            chain.add(batch, now)
        except Refused:
            pass
        now += seconds * SECOND
        while (due := chain.deadline()) is not None and due <= now:
            chain.advance(now, 10_000)
        chain.outbox.clear()
    while chain.held() and (due := chain.deadline()) is not None:
        now = max(now, due)
        chain.advance(now, 10_000)
        chain.outbox.clear()
    chain.admit(failing([0]), now + SECOND)


@pytest.mark.parametrize(
    ("type_", "config", "gauge"),
    [
        ("link_stitching", {"ttl": 10 * SECOND, "reorder_wait": SECOND}, "otelcol_processor_link_stitching_remembered"),
        (
            "tail_sampling",
            {
                "decision_wait": 2 * SECOND,
                "linked_traces": {"keep": True, "grace_period": 8 * SECOND},
                "policies": [{"name": "all", "type": "always_sample"}],
            },
            "otelcol_processor_tail_sampling_linked_remembered",
        ),
    ],
)
def test_memories_end_with_their_time_though_nothing_comes(type_: str, config: dict[str, object], gauge: str) -> None:
    factory = find("processor", type_)
    assert factory is not None
    context = Context(id=type_)
    made = factory.create(factory.Config.model_validate(config), context)
    made.add(failing(range(200)), START)
    while (due := made.deadline()) is not None:
        assert due <= START + 60 * SECOND
        made.expire(due, 10_000)
    assert set(context.metrics.snapshot()[gauge].values()) == {0}


def test_bounds_beyond_the_limit_are_reported_with_the_largest_first() -> None:
    text = PIPELINE.replace("MODE", "link").replace("[tail_sampling", "[memory_limiter, tail_sampling")
    found = configured(text.replace("grace_period: 5m", "grace_period: 5m, grace_max_bytes: 209715200"))
    budget = memory_budget(found)
    assert budget == 120 * MIB - PROCESS_BYTES
    assert excess(found, budget).startswith(
        "components may keep 270 MiB in memory, but the limit leaves them 20 MiB (besides 100 MiB for the process "
        "itself): spans may be refused for long; raise limit_mib, or lower: "
        "processors::tail_sampling::linked_traces::grace_max_bytes 200 MiB, "
    )


def test_without_a_limiter_the_containers_limit_counts_and_without_both_nothing_does(tmp_path: Path) -> None:
    found = configured(PIPELINE.replace("MODE", "link"))
    assert memory_budget(found, 1000 * MIB) == 800 * MIB - PROCESS_BYTES
    assert memory_budget(found) == 0
    assert excess(found, 0) == ""
    assert container_limit() >= 0


@pytest.mark.parametrize("path", ["docker/sidecar.yaml", "pipeline.yaml"])
def test_the_bounds_of_shipped_configurations_fit_their_limit(path: str) -> None:
    environ = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://localhost:5"}
    found = read_settings(Document.from_text((ROOT / path).read_text(encoding="utf-8"), path, environ))
    assert excess(found, memory_budget(found)) == ""
