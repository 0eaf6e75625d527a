"""What a plugin of somebody else's answers or raises fails the attempt it was asked in, and never the scheduler."""

from asyncio import CancelledError
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from podtrail_scheduler.framework.extension_points import PermitResult, PostFilterResult, PreFilterResult
from podtrail_scheduler.framework.status import Code, Status
from podtrail_scheduler.objects import Node
from podtrail_scheduler.runtime.profile import Enabled, Profile

from tests.scheduler.bench import ROOMY, Bench, Binder, pod

NODES = (Node("n1", allocatable=ROOMY), Node("n2", allocatable=ROOMY))
BESIDES: dict[str, dict[str, Any]] = {
    "filter_key": {"filter": lambda *_: None},
    "filter_nodes": {"filter": lambda *_: None},
    "pre_score": {"score": lambda *_: 1},
    "score_key": {"score": lambda *_: 1},
    "score_nodes": {"score": lambda *_: 1},
    "normalize": {"score": lambda *_: 1},
    "reserve": {"unreserve": lambda *_: None},
    "pre_bind_pre_flight": {"pre_bind": lambda *_: None},
    "post_filter": {"filter": lambda *_: Status(Code.UNSCHEDULABLE, ("no",))},
}
POINTS = (
    *("pre_filter", "filter", "filter_key", "filter_nodes", "post_filter", "pre_score", "score", "score_key"),
    *("score_nodes", "normalize", "reserve", "permit", "pre_bind_pre_flight", "pre_bind", "bind"),
)
NONSENSE = (
    *("no", object(), [None], [object()] * 2, [10**30] * 2, (1, 2, 3), Status("x", 5), float("nan")),  # type: ignore[arg-type]
    *(PermitResult("x", "y"), PostFilterResult("x", 5), PreFilterResult(None)),  # type: ignore[arg-type]
)


class Odd(BaseException):
    """No `Exception`, as a plugin's library may have them."""


class Wordless(Exception):
    def __str__(self) -> str:
        raise LookupError("no words")


def raises(error: BaseException) -> Callable[..., Any]:
    def method(*_: Any) -> Any:
        raise error

    return method


def answers(answer: Any) -> Callable[..., Any]:
    return lambda *_: answer


def attempted(point: str, method: Callable[..., Any]) -> Bench:
    """Two attempts with a plugin that behaves so."""
    mine = Enabled(type("Mine", (), {"name": "Mine", **BESIDES.get(point, {}), point: method})())
    bench = Bench(nodes=NODES, profile=lambda _: Profile("default-scheduler", [mine, Enabled(Binder())]))
    for name in ("a", "b"):
        bench.create(pod(name))
    bench.step_until(lambda: len({record.pod.name for record in bench.records}) == 2)
    return bench


@pytest.mark.parametrize("point", POINTS)
def test_what_raises_fails_its_attempt(point: str) -> None:
    for error in (RuntimeError("boom"), StopIteration(), Wordless(), SystemExit(4), CancelledError(), Odd("x")):
        bench = attempted(point, raises(error))
        assert {record.result for record in bench.records} <= {"Error", "Unschedulable"}
        assert any(f"Mine raised {type(error).__name__}" in record.message for record in bench.records)


def test_the_text_of_what_is_raised_is_cut() -> None:
    record = attempted("filter", raises(ValueError("x" * 100_000))).records[0]
    assert "Mine raised ValueError: xxx" in record.message
    assert "… (100,000 characters; all of it is in the log)" in record.message
    assert len(record.message) < 1_300


@pytest.mark.parametrize("point", POINTS)
def test_nonsense_is_lived_with(point: str) -> None:
    for answer in NONSENSE:
        attempted(point, answers(answer))


@pytest.mark.parametrize(
    "point", [each for each in POINTS if each not in ("post_filter", "permit", "pre_bind", "bind")]
)
def test_a_coroutine_where_none_may_be_is_closed_and_told(point: str) -> None:
    async def method(*_: Any) -> None:
        raise AssertionError("nobody waits for it")

    if not point.endswith("_key"):
        assert attempted(point, method).records[0].result == "Error"


@pytest.mark.parametrize(
    ("point", "answer", "text"),
    [
        ("filter", "no", "plugin Mine answered str 'no', which is no answer at filter"),
        ("filter_nodes", [None] * 3, "plugin Mine answered 3 answers for 1 nodes, which is no answer at filter"),
        ("normalize", [1], 'plugin "Mine" normalized 2 scores to 1'),
        ("permit", True, "plugin Mine answered bool True, which is no answer at permit"),
    ],
)
def test_the_message_names_plugin_answer_and_point(point: str, answer: Any, text: str) -> None:
    assert text in attempted(point, answers(answer)).records[0].message


@pytest.mark.parametrize("answer", ["no", 42, Status("x", 5), RuntimeError("boom"), SystemExit(4), Odd("x")])  # type: ignore[arg-type]
def test_a_pre_enqueue_that_fails_holds_its_pod_back_and_nobody_else(answer: Any) -> None:
    def pre_enqueue(_: Any, each: Any) -> Any:
        if each.name == "b":
            return None
        if isinstance(answer, BaseException):
            raise answer
        return answer

    mine = Enabled(type("Mine", (), {"name": "Mine", "pre_enqueue": pre_enqueue})())
    bench = Bench(nodes=NODES, profile=lambda _: Profile("default-scheduler", [mine, Enabled(Binder())]))
    bench.create(pod("a"))
    assert bench.attempt(pod("b")).pod.name == "b"


@pytest.mark.parametrize(
    "sort_key",
    [
        raises(KeyError("x")),
        raises(SystemExit(4)),
        raises(CancelledError()),
        answers(None),
        answers(("a",)),
        answers(()),
    ],
)
def test_a_pod_whose_place_in_the_queue_a_plugin_cannot_tell_comes_last(sort_key: Callable[..., Any]) -> None:
    def tells(_: Any, entry: Any) -> Any:
        return sort_key() if entry.pod.name == "a" else (entry.queued_at,)

    sorts = type("Mine", (Binder,), {"sort_key": tells})()
    bench = Bench(nodes=NODES, profile=lambda _: Profile("default-scheduler", [Enabled(sorts)]))
    for name in ("a", "b", "c"):
        bench.create(pod(name))
    bench.step_until(lambda: len(bench.records) == 3)
    assert [record.pod.name for record in bench.records] == ["b", "c", "a"]


CHANGES: Sequence[Callable[[Any, Any, Any], Any]] = (
    lambda _, nodes, __: nodes.clear(),
    lambda _, nodes, __: nodes.sort(key=id),
    lambda _, nodes, __: nodes[0].requested.clear(),
    lambda _, nodes, __: nodes[0].requested.update(cpu=10**9),
    lambda _, nodes, __: nodes[0].pods.clear(),
    lambda _, nodes, __: nodes[0].add(pod("ghost")),
    lambda _, nodes, __: nodes[0].set_node(Node("n3")),
    lambda _, nodes, __: setattr(nodes[0], "node", Node("n3")),
    lambda _, nodes, __: setattr(nodes[0], "nonzero_cpu", 0),
    lambda _, nodes, __: nodes[0].node.labels.update(zone="a"),
    lambda _, nodes, __: nodes[0].node.allocatable.clear(),
    lambda _, nodes, __: nodes[0].ports.setdefault(("TCP", 1), {}).clear() or nodes[0].node.images.clear(),
    lambda each, _, __: each.requests.clear(),
    lambda each, _, __: each.labels.setdefault("a", "b"),
    lambda each, _, __: each.changed(labels={"a": "b"}).labels.clear(),
    lambda _, __, handle: handle.nodes().clear(),
    lambda _, __, handle: handle.nodes()[0].pods.clear(),
    lambda _, __, handle: handle.listers.put(Node("n3")),
    lambda _, __, handle: handle.listers.remove(Node("n1")),
    lambda _, __, handle: handle.waiting.clear(),
)


@pytest.mark.parametrize("change", CHANGES, ids=range(len(CHANGES)))
@pytest.mark.parametrize("point", ["pre_filter", "filter", "pre_score", "score"])
def test_what_a_plugin_is_given_it_cannot_change(point: str, change: Callable[..., Any]) -> None:
    class Mine:
        name = "Mine"

        def __init__(self, handle: Any, _: Any) -> None:
            self.handle = handle

        if point == "pre_score":

            def score(self, *_: Any) -> int:
                return 1

    def method(self: Any, _: Any, each: Any, nodes: Any) -> Any:
        if each.name == "a":
            change(each, nodes if isinstance(nodes, tuple) else (nodes,), self.handle)
        return 1 if point == "score" else None

    setattr(Mine, point, method)
    bench = Bench(
        nodes=NODES,
        profile=lambda handle: Profile(
            "default-scheduler", [Enabled(Mine(handle.for_others(), None)), Enabled(Binder())]
        ),
    )
    before = state_of(bench)
    assert bench.attempt(pod("a")).result == "Error"
    assert state_of(bench) == before
    assert bench.attempt(pod("b")).result == "Success"


def state_of(bench: Bench) -> Any:
    return [
        (node.node, dict(node.pods), dict(node.requested), node.nonzero_cpu, dict(node.ports))
        for node in bench.handle.nodes()
    ]


def test_a_plugin_may_change_its_copy_of_a_node() -> None:
    def method(_: Any, __: Any, ___: Any, node: Any) -> None:
        copy = node.clone()
        copy.add(pod("ghost"))
        copy.set_node(Node("n3", images={"image": 1}))
        assert "ghost" in copy.pods
        assert copy.images.get("image").nodes == 1
        assert "ghost" not in node.pods

    mine = type("Mine", (), {"name": "Mine", "filter": method})()
    bench = Bench(nodes=NODES, profile=lambda _: Profile("default-scheduler", [Enabled(mine), Enabled(Binder())]))
    assert bench.attempt(pod("a")).result == "Success"
    assert all(node.images.get("image") is None for node in bench.handle.nodes())
