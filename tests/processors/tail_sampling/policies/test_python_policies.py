"""`python` asks code that is not ours: it sees everything, changes nothing, and ends nothing when it fails."""

import dataclasses
import itertools
import sys
from collections.abc import Callable, Mapping
from importlib.metadata import EntryPoint, EntryPoints
from types import ModuleType
from typing import Any

import pytest
from podtrail_processors.tail_sampling import FACTORY
from podtrail_processors.tail_sampling.policies import python_loading
from pydantic import ValidationError

from podtrail.component import Context
from podtrail.otlp import Batch
from podtrail.policy import TraceView
from podtrail.testing.attempts import MadeAttempt, no_room

MS = 1_000_000
SECOND = 1_000 * MS
CODE = """
def yes(trace): return True
def no(trace): return False
def silent(trace): pass
def told(trace, *, word="well"): return word
def number(trace): return 7
def passes(): pass
def slow(trace):
    passes()
    return True
def fails(trace): raise LookupError("nothing there")
def half(trace): return "\\ud800 half"
def leaves(trace): raise SystemExit(3)
class Mute(Exception):
    def __str__(self): raise TypeError("no words")
def mute(trace): raise Mute
def loud(trace): raise ValueError("x" * 10_000)
class Cloud:
    def __eq__(self, other): raise ValueError("neither true nor false")
    __hash__ = None
def cloud(trace): return Cloud()
async def later(trace): return True
def drips(trace): yield True
def shy(): return True

class Every:
    def __init__(self, nth=2): self.nth, self.seen = nth, 0
    def vote(self, trace):
        self.seen += 1
        return self.seen % self.nth == 0

class Broken:
    def __init__(self): raise RuntimeError("no way")
    def vote(self, trace): return True

class Quits:
    def __init__(self): raise SystemExit(3)
    def vote(self, trace): return True

class Deaf:
    def vote(self): return True

class Pure:
    stateful = False
    def vote(self, trace): return "pure"

class Empty: pass

constant = 5
"""


@pytest.fixture(autouse=True)
def theirs(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """Put the user's module where it can be imported."""
    module = ModuleType("theirs")
    exec(compile(CODE, "theirs.py", "exec"), vars(module))
    monkeypatch.setitem(sys.modules, "theirs", module)
    return module


def settings(target: str, **more: object) -> dict[str, Any]:
    """Return a sampler with one such policy."""
    return {"policies": [{"name": "own", "type": "python", "python": {"policy": target, **more}}]}


class Asked:
    """A sampler that decided on attempts, one after the other."""

    def __init__(self, config: Mapping[str, Any], attempts: int = 1, stopwatch: Callable[[], int] = lambda: 0) -> None:
        self.context = Context(id="tail_sampling", stopwatch=stopwatch)
        made = FACTORY.create(FACTORY.Config.model_validate(config), self.context)
        self.verdicts = []
        for number in range(attempts):
            made.add(Batch(MadeAttempt(number=number).groups(), number), number)
            for batch in made.drain(number):
                self.verdicts += batch.verdicts
        self.decisions = [verdict.decision for verdict in self.verdicts]
        self.metrics = self.context.metrics.snapshot()


@pytest.mark.parametrize(
    ("target", "args", "reason"),
    [
        ("theirs:yes", {}, "theirs:yes says yes"),
        ("theirs:told", {}, "well"),
        ("theirs:told", {"word": "so"}, "so"),
        ("theirs:Every", {"nth": 1}, "theirs:Every says yes"),
        ("theirs:Pure", {}, "pure"),
        ("theirs:half", {}, "? half"),
    ],
)
def test_true_and_a_text_mean_yes(target: str, args: dict[str, object], reason: str) -> None:
    (verdict,) = Asked(settings(target, args=args)).verdicts
    assert (verdict.decision, verdict.reason) == ("sampled", reason)


@pytest.mark.parametrize("target", ["theirs:no", "theirs:silent", "theirs:Every"])
def test_false_and_none_mean_no(target: str) -> None:
    assert Asked(settings(target)).decisions == ["not_sampled"]


def test_an_object_of_a_class_is_asked_about_all_traces() -> None:
    assert Asked(settings("theirs:Every", args={"nth": 3}), 6).decisions == [*["not_sampled"] * 2, "sampled"] * 2


@pytest.mark.parametrize(
    ("target", "told"),
    [
        ("fails", "LookupError: nothing there"),
        ("number", "returned int"),
        ("leaves", "SystemExit: 3"),
        ("mute", "Mute: <exception str() failed>"),
        ("cloud", "returned Cloud"),
    ],
)
def test_what_fails_has_no_vote_and_is_counted_and_logged_once_a_minute(
    target: str, told: str, caplog: pytest.LogCaptureFixture
) -> None:
    run = Asked(settings(f"theirs:{target}"), 3)
    assert run.decisions == ["not_sampled"] * 3
    assert "without a vote, for they failed: own" in run.verdicts[0].reason
    assert run.metrics["podtrail_python_policy_errors_total"] == {"policy=own": 3}
    (line,) = [line for line in caplog.messages if "policy own" in line]
    assert told in line


def test_what_an_exception_says_is_cut() -> None:
    (verdict,) = Asked(settings("theirs:loud")).verdicts
    assert all(len(vote.why) < 1_000 for vote in verdict.explained())


def test_a_policy_that_fails_leaves_the_others_their_votes() -> None:
    config = settings("theirs:fails")
    config["policies"].append({"name": "all", "type": "always_sample"})
    assert Asked(config).decisions == ["sampled"]


def clock(theirs: ModuleType, *durations: int) -> Callable[[], int]:
    """Return a stopwatch on which votes of `slow` take so long, the last of these for ever after."""
    steps = itertools.chain(durations, itertools.repeat(durations[-1]))
    passed: list[int] = []
    vars(theirs)["passes"] = lambda: passed.append(next(steps))
    return lambda: sum(passed)


def test_a_policy_that_keeps_exceeding_its_budget_is_switched_off(
    theirs: ModuleType, caplog: pytest.LogCaptureFixture
) -> None:
    config = settings("theirs:slow", budget="1ms", overdraft="10ms")
    run = Asked(config, 12, clock(theirs, 3 * MS))
    assert run.decisions == [*["sampled"] * 6, *["not_sampled"] * 6]
    assert run.metrics["podtrail_python_policy_switched_off"] == {"policy=own": 1}
    (line,) = [line for line in caplog.messages if "SWITCHED OFF" in line]
    assert "budget of 1ms a trace (12ms in all, the last one took 3ms)" in line


def test_one_slow_vote_is_paid_back_by_quick_ones(theirs: ModuleType) -> None:
    config = settings("theirs:slow", budget="1ms", overdraft="10ms")
    slow_now_and_then = itertools.chain.from_iterable(itertools.repeat((9 * MS, *[0] * 8), 5))
    assert set(Asked(config, 45, clock(theirs, *slow_now_and_then)).decisions) == {"sampled"}


def test_without_a_budget_nothing_is_switched_off(theirs: ModuleType) -> None:
    config = settings("theirs:slow", budget="0s")
    assert set(Asked(config, 5, clock(theirs, 1000 * SECOND)).decisions) == {"sampled"}


@pytest.mark.parametrize(
    ("target", "args", "problem"),
    [
        ("", {}, "must name what votes"),
        ("nowhere.at_all:yes", {}, "there is no module 'nowhere'; put it beside the configuration file"),
        ("theirs:maybe", {}, "theirs has no 'maybe'; there are Broken"),
        ("theirs:Every.ask", {}, "theirs:Every has no 'ask'; there are vote"),
        ("theirs:", {}, "not of the form module:object"),
        ("theirs:constant", {}, "neither a function nor a class but int"),
        ("theirs:later", {}, "asynchronous"),
        ("theirs:drips", {}, "is a generator"),
        ("theirs:Quits", {}, "making theirs:Quits failed: SystemExit: 3"),
        ("theirs:shy", {}, r"theirs:shy\(\) can't be called with a trace"),
        ("theirs:told", {"words": 1}, r"can't be called with a trace and args words: .*unexpected keyword"),
        ("theirs:Every", {"n": 1}, r"theirs:Every\(nth=2\) can't be called with args n"),
        ("theirs:Broken", {}, "making theirs:Broken failed: RuntimeError: no way"),
        ("theirs:Deaf", {}, r"theirs:Deaf.vote\(\) can't be called with a trace"),
        ("theirs:Empty", {}, r"has no method vote\(trace\)"),
        ("unknown", {}, "no entry point 'unknown' in the group podtrail.policies"),
    ],
)
def test_what_can_not_vote_is_refused_with_what_is_there(target: str, args: dict[str, object], problem: str) -> None:
    with pytest.raises(ValidationError, match=problem):
        FACTORY.Config.model_validate(settings(target, args=args))


def test_a_module_that_can_not_be_imported_says_why(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    (tmp_path / "half_done.py").write_text("import nothing_of_this_name\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(
        ValidationError, match=r"importing half_done failed: ModuleNotFoundError: .*nothing_of_this_name"
    ):
        FACTORY.Config.model_validate(settings("half_done:yes"))


def test_an_entry_point_is_named_without_a_colon(monkeypatch: pytest.MonkeyPatch) -> None:
    points = EntryPoints([EntryPoint("mine", "theirs:told", "podtrail.policies")])
    monkeypatch.setattr(python_loading, "entry_points", lambda group: points.select(group=group))
    assert Asked(settings("mine")).verdicts[0].reason == "well"
    with pytest.raises(ValidationError, match="there are mine"):
        FACTORY.Config.model_validate(settings("yours"))


def test_span_ingest_refuses_what_may_remember() -> None:
    for target, refused in [("theirs:yes", False), ("theirs:Pure", False), ("theirs:Every", True)]:
        config = settings(target) | {"sampling_strategy": "span-ingest"}
        if refused:
            with pytest.raises(ValidationError, match="stateful"):
                FACTORY.Config.model_validate(config)
        else:
            FACTORY.Config.model_validate(config)


def test_the_view_tells_everything_about_a_trace() -> None:
    made = no_room(attributes={"list": [1, {"a": [2]}]})
    trace = TraceView(made.groups(), 5 * SECOND)
    assert (trace.trace_id, trace.now, trace.span_count) == (made.trace_id.hex(), 5 * SECOND, len(trace.spans))
    assert trace.root is not None
    assert (trace.root.name, trace.root.kind, trace.root.failed) == ("SchedulePod", "internal", True)
    assert trace.root.duration == trace.duration == made.duration
    assert trace.root.attributes["list"] == (1, {"a": (2,)})
    assert trace.root.resource["service.name"] == trace.root.scope == "kube-scheduler"
    assert trace.attempt is not None
    assert trace.attempt.namespace == "default"
    (plugin,) = trace.named("plugin: NodeAffinity")
    assert plugin.parent_span_id
    assert plugin.events[0].attributes["scheduler.nodes.count"] == 31
    assert trace.mentions("NodeAffinity")
    assert not trace.mentions("NodePorts")


def test_nothing_can_be_changed_through_the_view() -> None:
    trace = TraceView(no_room(attributes={"map": {"a": [1]}}).groups(), 1)
    root: Any = trace.root
    with pytest.raises(dataclasses.FrozenInstanceError):
        trace.now = 2  # type: ignore[misc]
    with pytest.raises(AttributeError):
        root.name = "other"
    with pytest.raises(TypeError):
        root.attributes["new"] = 1
    with pytest.raises(TypeError):
        root.attributes["map"]["a"] = 1
    with pytest.raises(AttributeError):
        root.attributes["map"]["a"].append(2)
    with pytest.raises(TypeError):
        root.resource["new"] = 1
    with pytest.raises(AttributeError):
        trace.spans.append(root)  # type: ignore[attr-defined]


def test_spans_keep_the_resource_they_came_under(theirs: ModuleType) -> None:
    seen: list[TraceView] = []
    vars(theirs)["look"] = seen.append
    made = FACTORY.create(FACTORY.Config.model_validate(settings("theirs:look")), Context(id="tail_sampling"))
    (group,) = MadeAttempt().groups()
    (other,) = MadeAttempt(number=2).groups()
    foreign = other._replace(trace_id=group.trace_id, spans=other.spans.replace(other.trace_id, group.trace_id))
    from podtrail.otlp import resource_header

    made.add(Batch([group, foreign._replace(resource=resource_header({"service.name": "etcd"}))], 1), 1)
    made.drain(1)
    services = [span.resource["service.name"] for span in seen[0].spans]
    assert services == ["kube-scheduler"] * group.span_count + ["etcd"] * other.span_count
