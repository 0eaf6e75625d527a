"""The state of a chain as bytes: what is taken and restored goes on as if nothing had been."""

import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pytest
import yaml

from podtrail.component import Ledger, registry
from podtrail.otlp import Batch, Group
from podtrail.pipeline.chain import SLICE_SPANS, ProcessorChain
from podtrail.pipeline.checkpoint import Checkpointer
from podtrail.pipeline.containment import contained
from podtrail.pipeline.host import Host, make_chain
from podtrail.pipeline.settings import Settings, read_settings
from podtrail.recording.merging import merged
from podtrail.replay.replayer import read_config
from tests.pipeline.arrivals import arrivals
from tests.pipeline.configurations import CONFIGURATIONS, FAILED, ROOT, SOME, Tried, sampler, shipped
from tests.pipeline.interrupted import Arrival, Run, Told
from tests.sizes import large

NODE = ROOT / "tests/data/recordings/node/podtrail/spans.otlp.zst"
GENERATED = arrivals(120, seed=5)
OF_PODS = ("links", "links in little room", "lives", "merged lives", "linked traces of whole Pods")
"""Configurations to which a node's spans are something else than generated ones."""


@pytest.fixture(scope="module")
def node() -> list[Arrival]:
    """Spans of all components of a node."""
    return [(record.arrival, record.intake) for record in merged([NODE], lambda damage: pytest.fail(str(damage)))]


def goes_on(settings: Settings, requests: list[Arrival], at: int, gates: frozenset[str] = frozenset()) -> None:
    """Check that a run interrupted at a point and one that is not do and say the same."""
    of_whole, of_parts = Told(), Told()
    uninterrupted, first = Run(settings, of_whole, gates), Run(settings, of_parts, gates)
    for run in (uninterrupted, first):
        run.feed(requests[:at])
    state = first.taken()
    assert first.says() == uninterrupted.says(), "to take a checkpoint changes nothing"
    second = Run(settings, of_parts, gates, now=first.replayer.now)
    second.restore(state)
    assert second.says() == uninterrupted.says()
    for run in (uninterrupted, second):
        run.feed(requests[at:])
    assert second.says() == uninterrupted.says()
    for run in (uninterrupted, second):
        run.replayer.finish()
    assert of_parts.out == of_whole.out


@pytest.mark.parametrize("name", CONFIGURATIONS)
def test_every_processor_goes_on_from_a_checkpoint_as_if_nothing_had_been(name: str) -> None:
    tried = CONFIGURATIONS[name]
    for at in random.Random(name).sample(range(1, len(GENERATED)), large(1, 10)):
        goes_on(tried.settings(), GENERATED, at, tried.gates)


@pytest.mark.parametrize("name", OF_PODS)
def test_every_processor_goes_on_with_the_spans_of_a_node(name: str, node: list[Arrival]) -> None:
    tried = CONFIGURATIONS[name]
    goes_on(tried.settings(), node, random.Random(name).randrange(60, 200), tried.gates)


@pytest.mark.parametrize("path", shipped(), ids=lambda path: path.name)
def test_what_is_shipped_goes_on(path: Path, node: list[Arrival], monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OTEL_EXPORTER_OTLP_ENDPOINT", "BACKEND"):
        monkeypatch.setenv(name, "http://backend:4317")
    settings = read_settings(read_config(path))
    for requests in (GENERATED[:60], node[:40]):
        goes_on(settings, requests, random.Random(path.name).randrange(1, len(requests)))


@pytest.mark.parametrize("path", sorted((ROOT / "docs/policies/examples").glob("*.yaml")), ids=lambda path: path.stem)
def test_every_policy_goes_on(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(ROOT / "examples/policies")
    processors = next(iter(yaml.safe_load_all(path.read_text(encoding="utf-8"))))["processors"]
    goes_on(Tried(processors).settings(), GENERATED, random.Random(path.name).randrange(1, len(GENERATED)))


def test_every_processor_there_is_stands_among_the_configurations() -> None:
    tried = {id.partition("/")[0] for one in CONFIGURATIONS.values() for id in one.processors}
    ours = [one for one in registry.all_factories() if one.create.__module__.startswith("podtrail_processors.")]
    assert tried == {factory.type for factory in ours if factory.kind == "processor"}


def test_another_process_goes_on_whatever_its_hashes_are(tmp_path: Path) -> None:
    def run(part: str, seed: int) -> Mapping[str, str]:
        done = subprocess.run(
            [sys.executable, "-m", "tests.pipeline.crossing", part, str(tmp_path)],
            cwd=ROOT,
            env={**os.environ, "PYTHONHASHSEED": str(seed)},
            check=True,
            stdout=subprocess.PIPE,
        )
        digests: Mapping[str, str] = json.loads(done.stdout)
        return digests

    expected = run("whole", 1)
    assert expected.keys() == CONFIGURATIONS.keys()
    run("before", 2)
    assert run("after", 3) == expected


@pytest.mark.parametrize("name", CONFIGURATIONS)
def test_what_was_taken_over_on_reload_goes_on_as_well(name: str) -> None:
    tried = CONFIGURATIONS[name]
    requests, at, again = GENERATED, 40, 80
    of_whole, of_parts = Told(), Told()
    runs = []
    for told in (of_whole, of_parts):
        before = Run(tried.settings(), told, tried.gates)
        before.feed(requests[:at])
        after = Run(reloaded(tried).settings(), told, tried.gates, now=before.replayer.now)
        after.take_over(before)
        after.feed(requests[at:again])
        runs.append(after)
    uninterrupted, first = runs
    second = Run(reloaded(tried).settings(), of_parts, tried.gates, now=first.replayer.now)
    second.restore(first.taken())
    assert second.says() == uninterrupted.says()
    for run in (uninterrupted, second):
        run.feed(requests[again:])
        run.replayer.finish()
    assert of_parts.out == of_whole.out


def reloaded(tried: Tried) -> Tried:
    """Return the configuration with a sampler that has another policy besides."""
    processors = dict(tried.processors)
    if "tail_sampling" in processors:
        settings = processors["tail_sampling"]
        processors["tail_sampling"] = {**settings, "policies": [*settings["policies"], {**FAILED, "name": "also"}]}
    return tried._replace(processors=processors)


@pytest.mark.parametrize("name", CONFIGURATIONS)
def test_a_chain_as_it_runs_live_goes_on_with_failures_contained_and_times_measured(name: str) -> None:
    tried = CONFIGURATIONS[name]

    def made() -> tuple[ProcessorChain, Checkpointer]:
        settings = tried.settings()
        host = Host(gates=tried.gates, seed=1, stopwatch=time.perf_counter_ns)
        chain = make_chain(settings.pipelines[0], settings, host, Ledger(), around=contained)
        return chain, Checkpointer(chain)

    def feed(chain: ProcessorChain, requests: Sequence[Arrival]) -> Iterator[list[Group]]:
        for now, intake in requests:
            while chain.advance(now, SLICE_SPANS):
                pass
            while chain.blocked and (due := chain.deadline()):
                chain.advance(due, SLICE_SPANS)
            chain.add(Batch(intake.groups, now), now)
            while chain.outbox:
                yield [*chain.outbox.popleft().groups]

    whole, _ = made()
    (first, taking), (second, restoring) = made(), made()
    before = [*feed(first, GENERATED[:60])]
    assert not restoring.restore(b"".join(taking.take().pieces()))
    assert [*before, *feed(second, GENERATED[60:])] == [*feed(whole, GENERATED)]


def test_votes_of_policies_that_a_reload_has_replaced_are_still_told_though_not_why() -> None:
    shadows = {"shadow_policies": [SOME]}
    linked = {"linked_traces": {"keep": True, "grace_period": "1h"}}
    told = Told()
    never = {"name": "endless", "type": "latency", "latency": {"threshold_ms": 10**6}}
    first = Run(Tried(sampler(never, **shadows, **linked)).settings(), told)
    first.feed(GENERATED[:60])
    replaced = Tried(sampler({**never, "name": "never"}, **linked))
    second, third = (Run(replaced.settings(), told, now=first.replayer.now) for _ in range(2))
    second.take_over(first)
    third.restore(second.taken())
    told.out.clear()
    third.replayer.finish()
    lines = "".join(decided for *_, decided in told.out)
    assert "policy='endless', type='latency', decision='not_sampled', why='the configuration that had" in lines
    assert "policy='some', type='probabilistic'" in lines
