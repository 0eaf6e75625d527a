"""What the span `score` tells of why a node won: the best nodes, their sums, each plugin's part."""

from collections.abc import Mapping, Sequence
from typing import Any

from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan
from podtrail_instrumentation import TracingConfiguration, provider_around
from podtrail_instrumentation.provider import sampler
from podtrail_scheduler.cluster.simulated.identifiers import SeededIdGenerator
from podtrail_scheduler.cluster.simulated.traced_simulation import CollectingSpanProcessor
from podtrail_scheduler.cycles.attempt import ScoreExplanation
from podtrail_scheduler.framework.cycle_state import CycleState
from podtrail_scheduler.framework.node_info import NodeInfo
from podtrail_scheduler.objects import Node, Pod

from tests.scheduler.bench import ROOMY, Bench, pod
from tests.scheduler.cycles.test_extending import Extender

SHARE = "scheduler.score.plugin."


class Likes:
    """Scores nodes as it was told."""

    def __init__(self, scores: Mapping[str, int], name: str = "Likes") -> None:
        self.name = name
        self._scores = scores

    def score(self, _state: CycleState, _pod: Pod, node: NodeInfo) -> int:
        return self._scores.get(node.name, 0)


def nodes(count: int) -> list[Node]:
    return [Node(f"n{number}", allocatable=ROOMY) for number in range(count)]


def scored(
    *plugins: Any, nodes: Sequence[Node], rate: int = 1_000_000, **changes: Any
) -> tuple[Bench, list[ReadableSpan]]:
    collector = CollectingSpanProcessor()
    sampled = sampler(TracingConfiguration(sampling_rate_per_million=rate))
    provider = provider_around(collector, Resource({}), sampler=sampled, id_generator=SeededIdGenerator("test"))
    bench = Bench(*plugins, nodes=nodes, provider=provider, **changes)
    bench.attempt(pod("web"))
    spans = collector.drain(2**63)
    return bench, [span for span in spans if span.name == "score"]


def told(*plugins: Any, nodes: Sequence[Node], **changes: Any) -> tuple[ScoreExplanation, str, dict[str, Any]]:
    bench, [span] = scored(*plugins, nodes=nodes, **changes)
    [explanation] = bench.explanations.values()
    return explanation, bench.records[-1].node, dict(span.attributes or {})


def test_the_winner_stands_first_with_its_sum_and_how_much_more_that_is() -> None:
    explanation, node, span = told(Likes({"n2": 50, "n0": 20}), nodes=nodes(3))
    assert node == "n2"
    assert span["scheduler.score.nodes"] == ["n2", "n0", "n1"]
    assert span["scheduler.score.totals"] == [explanation.totals[name] for name in ("n2", "n0", "n1")]
    assert span["scheduler.score.selected"] == explanation.totals["n2"]
    assert span["scheduler.score.margin"] == 30
    assert span["scheduler.score.ties"] == 1
    assert span["scheduler.nodes.evaluated"] == 3


def test_the_shares_of_plugins_and_extenders_are_weighted_and_add_up_to_the_sums() -> None:
    extender = Extender(prefers={"n1": 40})
    explanation, node, span = told(Likes({"n2": 30}), nodes=nodes(4), extenders=extender)
    shares = {name.removeprefix(SHARE): row for name, row in span.items() if name.startswith(SHARE)}
    for plugin, row in shares.items():
        assert list(row) == [explanation.scores[plugin][name] for name in span["scheduler.score.nodes"]]
    assert list(shares["TaintToleration"]) == [300] * 4
    assert node == "n1"
    assert list(span["scheduler.score.extenders"]) == [40, 0, 0, 0]
    rows = [*shares.values(), span["scheduler.score.extenders"]]
    assert [sum(column) for column in zip(*rows, strict=True)] == span["scheduler.score.totals"]


def test_a_tie_is_told_with_how_many_nodes_share_the_highest_sum() -> None:
    _, node, span = told(nodes=nodes(9))
    assert span["scheduler.score.ties"] == 9
    assert span["scheduler.score.margin"] == 0
    assert span["scheduler.score.nodes"][0] == node
    assert len(set(span["scheduler.score.nodes"])) == 5


def test_of_many_plugins_those_are_told_that_make_a_difference() -> None:
    level = [Likes({f"n{number}": 7 for number in range(3)}, f"Level{number:02}") for number in range(20)]
    _, _, span = told(*level, Likes({"n1": 1}, "Decides"), nodes=nodes(3))
    shares = [name for name in span if name.startswith(SHARE)]
    assert len(shares) == 16
    assert f"{SHARE}Decides" in shares
    assert span["scheduler.score.plugins_cut"] > 4


def test_the_span_ends_when_the_last_plugin_has_answered() -> None:
    class Slow(Extender):
        async def prioritize(self, pod: Pod, nodes: Sequence[str]) -> Mapping[str, int]:
            await bench_of.pop().timeline.sleep(1_000_000_000)
            return await super().prioritize(pod, nodes)

    bench_of: list[Bench] = []
    collector = CollectingSpanProcessor()
    provider = provider_around(collector, Resource({}), id_generator=SeededIdGenerator("test"))
    bench = Bench(nodes=nodes(2), provider=provider, extenders=Slow())
    bench_of.append(bench)
    bench.attempt(pod("web"))
    spans = {span.name: span for span in collector.drain(2**63)}
    score, cycle = spans["score"], spans["schedulingCycle"]
    assert (score.end_time or 0) + 1_000_000_000 <= (cycle.end_time or 0)


def test_nothing_is_collected_for_an_attempt_that_is_not_sampled() -> None:
    bench, spans = scored(nodes=nodes(3), rate=0)
    assert bench.records[-1].result == "Success"
    assert spans == []


def test_a_plugin_that_fails_ends_the_span_without_a_winner() -> None:
    class Fails(Likes):
        def score(self, _state: CycleState, _pod: Pod, _node: NodeInfo) -> int:
            return 1000

    _, [span] = scored(Fails({}), nodes=nodes(2))
    assert (span.attributes or {})["scheduler.result"] == "Error"
    assert "scheduler.score.nodes" not in (span.attributes or {})
