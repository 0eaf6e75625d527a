"""What components keep in memory fits into the limit, ends with its time, and shrinks before a span is refused."""

import gc
import re
import tracemalloc
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from podtrail.component import Context, EnrichingMemories, Ledger, Refused
from podtrail.component.container import container_limit
from podtrail.component.contracts import BoundsMemory
from podtrail.component.registry import find
from podtrail.config import Document
from podtrail.config.types import HOUR, SECOND
from podtrail.otlp import Batch
from podtrail.pipeline.host import Host, make_chain
from podtrail.pipeline.memory_budget import PROCESS_BYTES, excess, memory_budget
from podtrail.pipeline.settings import Settings, read_settings
from podtrail.story.library import Library
from podtrail.testing.attempts import START, MadeAttempt, No
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


LEARNERS: Sequence[dict[str, object]] = [
    {
        "name": "again",
        "type": "attempts",
        "attempts": {"min_attempts": 3, "forget_after": 20 * SECOND, "max_pods": 150},
    },
    {
        "name": "either",
        "type": "and",
        "and": {
            "and_sub_policy": [
                {
                    "name": "not",
                    "type": "not",
                    "not": {
                        "not_sub_policy": {
                            "name": "recovered",
                            "type": "recovered",
                            "recovered": {"forget_after": 30 * SECOND, "max_pods": 150},
                        }
                    },
                }
            ]
        },
    },
    {
        "name": "total",
        "type": "composite",
        "composite": {
            "max_total_spans_per_second": 1000,
            "composite_sub_policy": [
                {"name": "new", "type": "new_reason", "new_reason": {"forget_after": 10 * SECOND, "max_kinds": 100}}
            ],
        },
    },
    {
        "name": "slow",
        "type": "latency_quantile",
        "latency_quantile": {"window": 40 * SECOND, "max_profiles": 10, "min_attempts": 10},
        "shadow": True,
    },
    {"name": "rate", "type": "target_rate", "target_rate": {"traces_per_second": 1.0, "max_keys": 5}},
]
SAMPLER = {
    "decision_wait": 2 * SECOND,
    "linked_traces": {"keep": True, "grace_period": 8 * SECOND, "max_remembered": 200, "grace_max_bytes": 1000},
    "policies": LEARNERS,
    "shadow_policies": LEARNERS[:1],
    "num_traces": 200,
}


@pytest.mark.parametrize(
    ("type_", "config", "metric", "left"),
    [
        (
            "link_stitching",
            {"ttl": 10 * SECOND, "reorder_wait": SECOND},
            "otelcol_processor_link_stitching_remembered",
            {0},
        ),
        ("tail_sampling", SAMPLER, "otelcol_processor_tail_sampling_linked_remembered", {0}),
        # Each of 150 Pods, the one kind of failure, the one profile; 50 Pods were beyond the most.
        ("tail_sampling", SAMPLER, "otelcol_processor_tail_sampling_policy_forgotten", {150, 50, 1}),
        (
            "scheduling_metrics",
            {"pending_forgotten_after": 20 * SECOND},
            "podtrail_scheduling_pending_pods",
            set(),
        ),
    ],
)
def test_memories_end_with_their_time_though_nothing_comes(
    type_: str, config: dict[str, object], metric: str, left: set[int]
) -> None:
    factory = find("processor", type_)
    assert factory is not None
    context = Context(id=type_)
    made = factory.create(factory.Config.model_validate(config), context)
    made.add(failing(range(200)), START)
    values = [set(context.metrics.snapshot()[metric].values())]
    longest = (24 * HOUR if type_ == "tail_sampling" else 0) + 60 * SECOND  # the longest: what explains votes
    while (due := made.deadline()) is not None:
        assert due <= START + longest
        assert made.expire(due, 10_000) or type_ == "scheduling_metrics"
        values.append(set(context.metrics.snapshot()[metric].values()))
    assert values[-1] == left
    assert any(one != left for one in values)


def hostile(number: int, now: int) -> Batch:
    """Return a trace of three failed attempts, with texts as long as a sender likes."""
    refusals = [No(plugin=f"{plugin}" + "p" * 300, reason="r" * 600, nodes=["node-1"]) for plugin in range(20)]
    groups = [
        group
        for attempt in (1, 2, 3)
        for group in MadeAttempt(
            uid=f"{number:0>4000}",
            number=attempt,
            result="Unschedulable",
            start=now,
            message="m" * 5_000,
            refusals=refusals,
            attributes={"scheduler.profile": f"{number}" + "f" * 4_000},
        ).groups()
    ]
    return Batch([group._replace(trace_id=groups[0].trace_id) for group in groups], now)


@pytest.mark.parametrize(
    ("type_", "config"),
    [
        ("tail_sampling", SAMPLER),
        ("tail_sampling", {"stress_relief": {"mode": "always"}}),
        ("scheduling_metrics", {"remembered_attempts": 200, "max_pending_pods": 100}),
    ],
)
def test_what_is_remembered_stays_within_the_bounds_that_are_added_up(type_: str, config: dict[str, object]) -> None:
    factory = find("processor", type_)
    assert factory is not None
    settings = factory.Config.model_validate(config)
    assert isinstance(settings, BoundsMemory)
    made = factory.create(settings, Context(id=type_))
    gc.collect()
    tracemalloc.start()
    try:
        for number in range(large(250, 3_000)):
            now = START + number * SECOND // 100
            made.add(hostile(number, now), now)
        while made.held():
            made.expire(made.deadline(), 10_000)
        gc.collect()
        kept = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert kept < sum(settings.memory_bounds(0).values()) + MIB  # for instruments, and caches of the process


def test_bounds_beyond_the_limit_are_reported_with_the_largest_first() -> None:
    text = PIPELINE.replace("MODE", "link").replace("[tail_sampling", "[memory_limiter, tail_sampling")
    found = configured(text.replace("grace_period: 5m", "grace_period: 5m, grace_max_bytes: 209715200"))
    budget = memory_budget(found)
    assert budget == 120 * MIB - PROCESS_BYTES
    assert excess(found, budget).startswith(
        "components may keep 274 MiB in memory, but the limit leaves them 20 MiB (besides 100 MiB for the process "
        "itself): spans may be refused for long; raise limit_mib, or lower: "
        "processors::tail_sampling::linked_traces::grace_max_bytes 200 MiB, "
    )


def test_without_a_limiter_the_containers_limit_counts_and_without_both_nothing_does(tmp_path: Path) -> None:
    found = configured(PIPELINE.replace("MODE", "link"))
    assert memory_budget(found, 1000 * MIB) == 800 * MIB - PROCESS_BYTES
    assert memory_budget(found) == 0
    assert excess(found, 0) == ""
    assert container_limit() >= 0


def shipped() -> Iterator[tuple[Path, str]]:
    """Yield every configuration of a pipeline that the project ships, also those in manifests, with its file."""
    folders = [ROOT / "docker", ROOT / "examples"]
    for path in [ROOT / "pipeline.yaml", *sorted(file for folder in folders for file in folder.rglob("*.yaml"))]:
        whole = path.read_text(encoding="utf-8")
        manifests = [one for one in yaml.safe_load_all(whole) if isinstance(one, dict) and one.get("kind")]
        maps = [one["data"].values() for one in manifests if one["kind"] == "ConfigMap"]
        for text in [text for texts in maps for text in texts] if manifests else [whole]:
            if all(f"\n{section}:" in f"\n{text}" for section in ("receivers", "service")):
                yield path, text


def test_the_bounds_of_shipped_configurations_fit_their_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    # The example's components are installed with it, and hold nothing.
    seen = [(path, text) for path, text in shipped() if path.parent.name != "components"]
    assert len(seen) > 30
    for path, text in seen:
        monkeypatch.chdir(path.parent)
        monkeypatch.syspath_prepend(path.parent)
        environ = dict.fromkeys(re.findall(r"\$\{env:(\w+)\}", text), "localhost:5")
        found = read_settings(Document.from_text(text, str(path), environ))
        assert excess(found, memory_budget(found)) == "", path
