"""The span tree of KEP-5927 and its attributes, beyond what test_kep_5927.py has of them."""

from collections.abc import Callable, Mapping
from typing import Any

from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.trace import StatusCode
from podtrail_scheduler import AttemptRecord, Simulation

Simulate = Callable[[Mapping[str, object]], tuple[Simulation, list[AttemptRecord], list[ReadableSpan]]]

ONE_POD = {"length": "10s", "arrival_rate": 0.2, "seed": 3}
NODES = [{"name": "node", "count": 3}]


class Tree:
    """The spans of one trace by name, and who is whose child."""

    def __init__(self, spans: list[ReadableSpan], root: ReadableSpan) -> None:
        self.root = root
        self._spans = sorted(
            (span for span in spans if span.context.trace_id == root.context.trace_id),
            key=lambda span: span.start_time or 0,
        )

    def children(self, parent: ReadableSpan) -> list[ReadableSpan]:
        return [span for span in self._spans if span.parent and span.parent.span_id == parent.context.span_id]

    def outline(self, parent: ReadableSpan | None = None) -> dict[str, Any]:
        parent = parent or self.root
        return {span.name: self.outline(span) for span in self.children(parent)}

    def find(self, name: str) -> ReadableSpan:
        [span] = [span for span in self._spans if span.name == name]
        return span


def first_tree(spans: list[ReadableSpan]) -> Tree:
    root = min((span for span in spans if span.name == "SchedulePod"), key=lambda span: span.start_time or 0)
    return Tree(spans, root)


def attributes(span: ReadableSpan) -> dict[str, object]:
    return dict(span.attributes or {})


def test_with_one_feasible_node_nothing_is_scored(simulate: Simulate) -> None:
    _, _, spans = simulate({**ONE_POD, "nodes": [{"name": "only"}], "pods": [{"name": "web"}]})
    cycle = first_tree(spans).outline()["schedulingCycle"]
    assert list(cycle) == ["preFilter", "filter", "reserve", "permit"]


def test_phases_and_plugins_say_what_they_are(simulate: Simulate) -> None:
    _, _, spans = simulate({**ONE_POD, "nodes": NODES, "pods": [{"name": "web"}]})
    tree = first_tree(spans)
    assert attributes(tree.find("filter")) == {
        "scheduler.phase": "filter",
        "scheduler.profile": "default-scheduler",
        "scheduler.nodes.total": 3,
        "scheduler.nodes.evaluated": 3,
        "scheduler.nodes.feasible": 3,
        "scheduler.result": "Success",
    }
    binder = attributes(tree.find("plugin: DefaultBinder"))
    assert binder == {"scheduler.plugin.name": "DefaultBinder", "scheduler.plugin.extension_point": "bind"}
    for name in ("bind", "bindingCycle"):
        assert (
            attributes(tree.find(name))["scheduler.selected_node"] == attributes(tree.root)["scheduler.selected_node"]
        )


def test_a_filter_plugin_counts_its_nodes_and_tells_why_it_refused_them(simulate: Simulate) -> None:
    nodes = [{"name": "small", "count": 12, "allocatable": {"cpu": 1, "memory": "8Gi", "pods": 9}}, {"name": "large"}]
    _, _, spans = simulate({**ONE_POD, "nodes": nodes, "pods": [{"name": "web", "requests": {"cpu": 2}}]})
    fit = first_tree(spans).find("plugin: NodeResourcesFit")
    told = attributes(fit)
    assert (told["scheduler.nodes.evaluated"], told["scheduler.nodes.rejected"]) == (13, 12)
    took = told["scheduler.duration_ns"]
    assert isinstance(took, int)
    assert 0 < took <= (fit.end_time or 0) - (fit.start_time or 0)
    [event] = fit.events
    assert event.name == "plugin rejected"
    assert dict(event.attributes or {}) == {
        "scheduler.result": "UnschedulableAndUnresolvable",
        "scheduler.reason": "Insufficient cpu",
        "scheduler.nodes.count": 12,
        "scheduler.nodes.names": tuple(f"small-{number}" for number in range(10)),
        "scheduler.nodes.names_cut": True,
    }


def test_a_failed_attempt_has_the_text_of_the_event_as_its_status(simulate: Simulate) -> None:
    nodes = [*NODES, {"name": "cp", "taints": [{"key": "control-plane"}]}]
    _, [record, *_], spans = simulate({**ONE_POD, "nodes": nodes, "pods": [{"name": "big", "requests": {"cpu": 64}}]})
    root = first_tree(spans).root
    text = (
        "0/4 nodes are available: 1 node(s) had untolerated taint(s), 3 Insufficient cpu. "
        "preemption: 0/4 nodes are available: 4 Preemption is not helpful for scheduling."
    )
    assert (root.status.status_code, root.status.description) == (StatusCode.ERROR, text)
    assert (attributes(root)["scheduler.result"], record.message) == ("Unschedulable", text)


def test_an_internal_failure_is_an_error_from_the_plugin_up(simulate: Simulate) -> None:
    faults = {"bind_refused": [{"message": "no"}]}
    _, _, spans = simulate({**ONE_POD, "nodes": NODES, "pods": [{"name": "web"}], "faults": faults})
    tree = first_tree(spans)
    for name in ("SchedulePod", "bindingCycle", "bind", "plugin: DefaultBinder"):
        assert tree.find(name).status.status_code is StatusCode.ERROR, name
    assert tree.root.status.description == 'running Bind plugin "DefaultBinder": pods "web-0" is forbidden: no'
    assert attributes(tree.root)["scheduler.result"] == "Error"
    assert "scheduler.selected_node" not in attributes(tree.root)


def test_the_root_lives_until_the_asynchronous_binding_has_ended(simulate: Simulate) -> None:
    slow = {"name": "Volumes", "extension_point": "preBind", "takes": "3s"}
    workload = {**ONE_POD, "nodes": NODES, "pods": [{"name": "web"}], "faults": {"slow_plugins": [slow]}}
    _, _, spans = simulate(workload)
    tree = first_tree(spans)
    assert (tree.root.end_time or 0) >= (tree.find("postBind").end_time or 0)
    assert (tree.root.end_time or 0) - (tree.root.start_time or 0) > 3_000_000_000


def test_every_span_lies_within_its_parent(simulate: Simulate) -> None:
    _, _, spans = simulate({"length": "1m", "faults": {}})
    by_id = {span.context.span_id: span for span in spans}
    for span in spans:
        parent = by_id[span.parent.span_id] if span.parent else span
        assert (parent.start_time or 0) <= (span.start_time or 0) <= (span.end_time or 0) <= (parent.end_time or 0)


def test_waiting_for_permission_has_a_span_of_its_own(simulate: Simulate) -> None:
    slow = {"name": "Quota", "extension_point": "permit", "takes": "5s"}
    workload = {**ONE_POD, "nodes": NODES, "pods": [{"name": "web"}], "faults": {"slow_plugins": [slow]}}
    _, [record, *_], spans = simulate(workload)
    tree = first_tree(spans)
    wait = tree.find("waitOnPermit")
    assert tree.children(tree.find("bindingCycle"))[0] is wait
    assert (wait.end_time or 0) - (wait.start_time or 0) > 4_900_000_000
    assert record.result == "Success"


def test_preemption_is_told_on_the_span_of_its_plugin(simulate: Simulate) -> None:
    pods = [
        {"name": "low", "weight": 9, "requests": {"cpu": 1}},
        {"name": "high", "priority": 5, "requests": {"cpu": 2}},
    ]
    _, records, spans = simulate({"length": "1m", "nodes": [{"name": "node"}], "pods": pods})
    event = next(event for span in spans for event in span.events if event.name == "preemption")
    told = dict(event.attributes or {})
    assert told["scheduler.nominated_node"] == "node-0"
    assert told["scheduler.victims.count"] == len(told["scheduler.victims.names"])  # type: ignore[arg-type]
    nominated = [span for span in spans if "scheduler.nominated_node" in attributes(span)]
    assert {span.name for span in nominated} == {"SchedulePod"}
    assert any("found a potential placement for pod on node node-0" in record.message for record in records)
