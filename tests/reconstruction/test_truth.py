"""What is rebuilt, held against what was done and what the scheduler counted."""

import json
import re
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import pytest

from podtrail.reconstruction.failed_scheduling import read_failure

RUNS = ("v2-text", "v10-text", "v5-json")
ALL = ("log", "pods", "events")
MS = 1_000_000
SECOND = 1_000 * MS


@pytest.mark.parametrize("run", RUNS)
def test_every_attempt_that_the_scheduler_counted_is_found(runs: Any, run: str) -> None:
    result = runs.of(run, *ALL)
    assert dict(result.outcome.attempts) == runs.counted(run)


@pytest.mark.parametrize("run", RUNS)
def test_the_log_alone_gives_every_attempt_and_every_result(runs: Any, run: str) -> None:
    counted: Counter[str] = Counter()
    for (_, result), count in runs.counted(run).items():
        counted[result] += count
    assert Counter(one.draft.result for one in runs.of(run, "log").attempts) == counted


@pytest.mark.parametrize("level", [2, 3, 4])
def test_every_attempt_is_found_from_a_log_at_two_or_higher(runs: Any, level: int) -> None:
    lines = [line for line in runs.lines("v5-json.log") if json.loads(line).get("v", 0) <= level]
    assert len(runs.rebuild([lines]).attempts) == sum(runs.counted("v5-json").values())


@pytest.mark.parametrize("run", RUNS)
def test_every_attempt_has_the_uid_of_its_pod(runs: Any, run: str) -> None:
    created = {action["uid"]: action["pod"] for action in runs.actions(run) if action["action"] == "create pod"}
    for one in runs.of(run, *ALL).attempts:
        assert created[one.identity.uid] == one.identity.pod


@pytest.mark.parametrize("run", RUNS)
@pytest.mark.parametrize("sources", [ALL, ("pods", "events"), ("events",)])
def test_every_bound_pod_has_one_success_on_its_node(runs: Any, run: str, sources: tuple[str, ...]) -> None:
    nodes: dict[str, str] = {}
    for line in runs.lines(f"{run}.pods.jsonl"):
        pod = json.loads(line).get("event", {}).get("object", {})
        if node := pod.get("spec", {}).get("nodeName"):
            nodes[pod["metadata"]["uid"]] = node
    for action in runs.actions(run):
        if "never by the scheduler" in action.get("expect", ""):
            nodes.pop(action["uid"])
    found = [one for one in runs.of(run, *sources).attempts if one.draft.result == "Success"]
    assert {one.identity.uid: one.draft.node for one in found} == nodes
    assert len(found) == len(nodes)


DATA = Path(__file__).parents[1] / "data" / "kube-scheduler"
EXPECTED = json.loads((DATA / "expectations.json").read_text())
FAILS: dict[str, str] = EXPECTED["reasons"]
NEVER = re.compile(EXPECTED["never tried"])


@pytest.mark.parametrize("run", RUNS)
@pytest.mark.parametrize("sources", [ALL, ("pods", "events")])
def test_results_and_reasons_are_right_for_every_pod(runs: Any, run: str, sources: tuple[str, ...]) -> None:
    of: dict[str, list[Any]] = defaultdict(list)
    for one in runs.of(run, *sources).attempts:
        of[one.identity.uid].append(one.draft)
    for action in runs.actions(run):
        if action["action"] != "create pod":
            continue
        expected, drafts = action["expect"], of[action["uid"]]
        if NEVER.search(expected):
            assert not drafts, action
            continue
        reason = next((pattern for words, pattern in FAILS.items() if expected.startswith(words)), None)
        if reason:
            assert drafts[0].result in ("Unschedulable", "Error"), action
            assert re.search(reason, drafts[0].message), (action, drafts[0].message)
        if "bound" in expected and "none bound" not in expected and "may be bound" not in expected:
            assert drafts[-1].result == "Success", action


@pytest.mark.parametrize("run", RUNS)
@pytest.mark.parametrize("sources", [("pods", "events"), ("pods",), ("events",)])
def test_without_the_log_no_attempt_is_invented(runs: Any, run: str, sources: tuple[str, ...]) -> None:
    true: dict[tuple[str, str], list[int]] = defaultdict(list)
    for one in runs.of(run, *ALL).attempts:
        true[one.identity.uid, one.draft.result].append(one.draft.end)
    found = runs.of(run, *sources).attempts
    for one in found:
        ends = true[one.identity.uid, one.draft.result]
        nearest = min(ends, key=lambda end: abs(end - one.draft.end), default=None)
        assert nearest is not None, one
        assert abs(nearest - one.draft.end) < 50 * MS, one
        ends.remove(nearest)  # another must have one of its own
    assert len(found) >= 0.4 * sum(runs.counted(run).values())


SHARES = {
    ("v2-text", ("pods", "events")): 407,
    ("v2-text", ("events",)): 402,
    ("v2-text", ("pods",)): 343,
    ("v10-text", ("pods", "events")): 125,
    ("v10-text", ("events",)): 109,
    ("v10-text", ("pods",)): 60,
    ("v5-json", ("pods", "events")): 41,
    ("v5-json", ("events",)): 41,
    ("v5-json", ("pods",)): 30,
}


@pytest.mark.parametrize(("run", "sources"), list(SHARES))
def test_the_share_found_without_the_log_is_what_the_page_says(runs: Any, run: str, sources: tuple[str, ...]) -> None:
    assert len(runs.of(run, *sources).attempts) == SHARES[run, sources]


def test_times_are_those_of_the_log(runs: Any) -> None:
    begun: dict[str, int] = {}
    logged: dict[str, list[tuple[int, int]]] = defaultdict(list)
    ends = {
        "Successfully bound pod to node",
        "Unable to schedule pod; no fit; waiting",
        "Error scheduling pod; retrying",
    }
    for line in runs.lines("v5-json.log"):
        told = json.loads(line)
        time = round(told["ts"] * MS)
        if told["msg"] == "Attempting to schedule pod":
            begun[told["pod"]["name"]] = time
        elif told["msg"] in ends:
            logged[told["pod"]["name"]].append((begun.pop(told["pod"]["name"]), time))
    result = runs.of("v5-json", *ALL)
    for name, times in logged.items():
        drafts = [one.draft for one in result.of(f"default/{name}")]
        for draft, (start, end) in zip(drafts, times, strict=True):
            assert abs(draft.start - start) <= 2 * MS
            assert abs(draft.end - end) <= 2 * MS


def test_below_two_traces_and_errors_join_what_events_tell(runs: Any) -> None:
    quiet = [line for line in runs.lines("v5-json.log") if json.loads(line).get("v", 0) == 0]
    watches = [runs.lines("v5-json.pods.jsonl"), runs.lines("v5-json.events.jsonl")]
    result = runs.rebuild([quiet], watches)
    assert len(result.attempts) == SHARES["v5-json", ("pods", "events")]
    (slow,) = result.of("default/sluggish-0")
    assert (slow.draft.result, slow.draft.node) == ("Success", "n02")
    assert 284 * MS <= slow.draft.end - slow.draft.start < SECOND


def test_preemption_names_the_node_and_the_victims(runs: Any) -> None:
    first, *_, last = [one.draft for one in runs.of("v2-text", "log").of("default/pre-boss")]
    assert (first.nominated, first.victim_count) == ("tight0", 2)
    assert first.victims == ["default/pre-victim-0", "default/pre-victim-2"]
    assert (last.result, last.node) == ("Success", "tight0")


def test_victims_are_told_by_events_where_there_is_no_log(runs: Any) -> None:
    first = runs.of("v2-text", "pods", "events").of("default/pre-boss")[0].draft
    assert set(first.victims) == {"default/pre-victim-0", "default/pre-victim-2"}


def test_pods_of_a_group_that_were_not_tried_count_as_unschedulable(runs: Any) -> None:
    drafts = [one.draft for one in runs.of("v10-text", "log").of("default/ring-misses-13")]
    assert [draft.result for draft in drafts] == ["Unschedulable"] * 4
    assert {draft.group for draft in drafts} == {"default/ring-misses"}


@pytest.mark.parametrize("run", RUNS)
def test_reasons_count_every_node_once(runs: Any, run: str) -> None:
    messages = [one.draft.message for one in runs.of(run, "log").attempts if one.draft.result == "Unschedulable"]
    failures = [failure for failure in map(read_failure, messages) if failure.nodes]
    assert len(failures) > 5
    for failure in failures:
        if all(refusal.nodes is not None for refusal in failure.refusals):
            assert sum(refusal.nodes or 0 for refusal in failure.refusals) == failure.nodes
        assert all(refusal.plugin for refusal in failure.refusals)
