"""What passes a filter of `podtrail tap`, and the lines that are sent."""

import json
from typing import Any

import pytest

from podtrail.otlp import Batch
from podtrail.otlp.json_reading import read_json_request
from podtrail.story import Library
from podtrail.story.tap import TapFilter, decision_told, span_told, spans_of
from podtrail.testing.attempts import MadeAttempt, no_room

KEPT = no_room()
DROPPED = MadeAttempt(uid="two", namespace="prod", name="api-1")


def batches() -> list[Batch]:
    kept = KEPT.batch(reason="scheduler.result=Unschedulable")
    kept.verdicts[0].votes = {"failed": "sampled", "slow": "sampled"}
    return [kept, DROPPED.batch("not_sampled", "", "no policy said yes")]


def passing(**query: str) -> tuple[list[str], set[str]]:
    """Return the Pods whose decisions pass, and the names of the spans that do."""
    library = Library()
    wanted = TapFilter.read(query)
    pods, names = [], set()
    for batch in batches():
        library.decide("traces", batch)
        pods += [
            json.loads(decision_told("traces", verdict))["decision"]["podName"]
            for verdict in batch.verdicts
            if wanted.wants_decision(verdict, library.stories)
        ]
        names |= {
            span.name
            for group in batch.groups
            for span in spans_of(group)
            if wanted.wants_span(span, group, library.stories)
        }
    return pods, names


@pytest.mark.parametrize(
    ("query", "pods"),
    [
        ({}, ["web-0", "api-1"]),
        ({"policy": "failed"}, ["web-0"]),
        ({"policy": "slow"}, ["web-0"]),
        ({"decision": "not_sampled"}, ["api-1"]),
        ({"decision": "dropped"}, ["api-1"]),
        ({"decision": "Not-Kept"}, ["api-1"]),
        ({"decision": "kept"}, ["web-0"]),
        ({"pod": "prod/api-1"}, ["api-1"]),
        ({"pod": "web-*"}, ["web-0"]),
        ({"pod": KEPT.uid}, ["web-0"]),
        ({"namespace": "prod"}, ["api-1"]),
        ({"namespace": "prod", "pod": "web-0"}, []),
        ({"name": "SchedulePod"}, ["web-0", "api-1"]),
        ({"name": "POST *"}, []),
    ],
)
def test_decisions_pass_by_policy_decision_pod_namespace_and_name(query: dict[str, str], pods: list[str]) -> None:
    assert passing(**query)[0] == pods


def test_spans_pass_by_name_by_the_pod_of_their_trace_and_by_what_was_decided() -> None:
    everything = passing()[1]
    assert "SchedulePod" in everything
    assert passing(name="plugin: *")[1] == {name for name in everything if name.startswith("plugin: ")}
    assert passing(pod="web-0")[1] == everything  # also spans that do not name it
    assert passing(pod="api-1")[1] == set()
    assert passing(policy="failed", decision="sampled")[1] == everything
    assert passing(policy="other")[1] == set()


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ({"nonsense": "x"}, "nonsense is none of"),
        ({"pod": "x" * 257}, "at most 256"),
        ({"decision": "lost"}, "decision is one of sampled, kept, not_sampled, not_kept, dropped"),
        ({"spans": "perhaps"}, "true or false"),
        ({"decisions": "false"}, "Ask for decisions, spans or both"),
    ],
)
def test_what_can_not_be_asked_says_why(query: dict[str, str], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        TapFilter.read(query)


def test_a_filter_is_its_own_query() -> None:
    asked = {"spans": "true", "pod": "web-*", "policy": "failed"}
    wanted = TapFilter.read(asked)
    assert (wanted.spans, wanted.decisions) == (True, False)
    assert TapFilter.read(wanted.query()) == wanted


def test_a_span_is_a_line_with_its_pod_and_as_otlp_on_request() -> None:
    library = Library()
    (kept, _) = batches()
    library.decide("traces", kept)
    (group,) = kept.groups
    plugin = next(span for span in spans_of(group) if span.name == "plugin: NodeAffinity")
    told: dict[str, Any] = json.loads(span_told("traces", plugin, group, library.stories, otlp=True))
    assert (told["kind"], told["pipeline"]) == ("span", "traces")
    assert (
        told["span"] | {"name": "plugin: NodeAffinity", "podName": "web-0", "service": "kube-scheduler"} == told["span"]
    )
    (again,) = read_json_request(json.dumps(told["otlp"]).encode()).groups
    assert (again.trace_id, [span.name for span in spans_of(again)]) == (KEPT.trace_id, ["plugin: NodeAffinity"])
