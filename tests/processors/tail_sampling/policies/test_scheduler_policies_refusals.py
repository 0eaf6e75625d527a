"""`rejected_by` and `new_reason`: who said no, and whether that is new."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from podtrail_processors.tail_sampling.policies.new_reason import general

from podtrail.otlp import Event, Group, Value, encode_span, frame
from podtrail.testing.attempts import MS, START, MadeAttempt, No, no_room, nodes
from tests.sizes import large

SECOND = 1_000 * MS
HOUR = 3_600 * SECOND
Watch = Any


@dataclass(frozen=True, kw_only=True)
class Refused(MadeAttempt):
    """An attempt with a plugin span that says what one likes."""

    refusal: Mapping[str, Value]

    def groups(self) -> list[Group]:
        (group,) = super().groups()
        events = [Event(self.start, "plugin rejected", self.refusal)]
        more = encode_span(
            trace_id=self.trace_id, span_id=b"refusing", name="plugin: ", start=self.start, end=0, events=events
        )
        return [group._replace(spans=group.spans + frame([more]), span_count=group.span_count + 1)]


def rejected_by(settings: str) -> str:
    return f"{{name: p, type: rejected_by, rejected_by: {{{settings}}}}}"


NO_CLAIM = No(plugin="DynamicResources", reason="No new claims to deallocate", nodes=(), point="postFilter")
NEW_REASON = "{name: p, type: new_reason, new_reason: {forget_after: 1h}}"


@pytest.mark.parametrize(
    ("settings", "kept"),
    [
        ("plugins: [NodeResourcesFit]", True),
        ("plugins: [NodePorts, TaintToleration]", True),
        ("plugins: [NodePorts]", False),
        ("plugins: [NodeAffinity], min_nodes: 31", True),
        ("plugins: [NodeAffinity], min_nodes: 32", False),
        ("min_nodes: 31", True),
        ("min_nodes: 34", False),
        ("reason: Insufficient", True),
        ("plugins: [NodeAffinity], reason: Insufficient", False),
        ("plugins: [NodeAffinity], extension_points: [filter]", True),
        ("plugins: [NodeAffinity], extension_points: [preFilter, permit]", False),
        ("plugins: [DynamicResources]", False),
        ("reason: deallocate", False),
        ("extension_points: [postFilter]", True),
        ("plugins: [DynamicResources], extension_points: [filter, postFilter]", True),
    ],
)
def test_an_attempt_is_kept_when_one_of_the_plugins_refused_enough_nodes_for_such_a_reason(
    watch: Watch, settings: str, kept: bool
) -> None:
    refusals = [*no_room().refusals, NO_CLAIM]
    assert watch(rejected_by(settings), [no_room(refusals=refusals), MadeAttempt(number=2)]).kept == (
        [0] if kept else []
    )


def test_the_refusals_of_one_plugin_for_several_reasons_add_up(watch: Watch) -> None:
    cpu = No(plugin="NodeResourcesFit", reason="Insufficient cpu", nodes=nodes(3))
    memory = No(plugin="NodeResourcesFit", reason="Insufficient memory", nodes=nodes(2, "big"))
    seen = watch(rejected_by("plugins: [NodeResourcesFit], min_nodes: 5"), [no_room(refusals=[cpu, memory])])
    assert seen.reasons == ["NodeResourcesFit said no to 5 nodes: Insufficient cpu; Insufficient memory"]


def test_an_attempt_that_succeeded_counts_as_well(watch: Watch) -> None:
    tainted = No(plugin="TaintToleration", reason="untolerated taint(s)", nodes=["cp-0"])
    seen = watch(rejected_by("plugins: [TaintToleration]"), [MadeAttempt(refusals=[tainted])])
    assert seen.reasons == ["TaintToleration said no to 1 node: untolerated taint(s)"]


@pytest.mark.parametrize(
    ("settings", "kept"),
    [
        ("plugins: [NodeResourcesFit], min_nodes: 2", True),
        ("plugins: [NodeResourcesFit], min_nodes: 3", False),
        ("plugins: [NodeAffinity]", True),
        ("plugins: [NodePorts]", False),
    ],
)
def test_without_events_the_message_tells_who_refused(watch: Watch, settings: str, kept: bool) -> None:
    assert watch(rejected_by(settings), [no_room(refusals=[])]).kept == ([0] if kept else [])


def test_who_said_no_instead_is_told_of_what_was_not_kept(watch: Watch) -> None:
    seen = watch(rejected_by("plugins: [NodePorts]"), [no_room(), MadeAttempt(number=2)])
    others = "TaintToleration: untolerated taint(s); NodeAffinity: no match; NodeResourcesFit: Insufficient cpu"
    assert seen.explained == [
        f"it is not so that NodePorts said no; what was said: {others}",
        "it is not so that NodePorts said no; nobody did",
    ]


@pytest.mark.parametrize(
    "refusal",
    [
        {"scheduler.plugin.name": 7, "scheduler.reason": ["x"], "scheduler.nodes.count": "many"},
        {"scheduler.nodes.count": float("nan"), "scheduler.nodes.names": "all"},
        {"scheduler.nodes.count": -(1 << 62), "scheduler.nodes.names": [1, None, {"a": "b"}]},
        {"scheduler.plugin.name": "P" * 100_000, "scheduler.reason": "R" * 100_000},
    ],
)
def test_refusals_that_make_no_sense_harm_nobody(watch: Watch, refusal: dict[str, Any]) -> None:
    policies = f"{rejected_by('min_nodes: 1')}, {NEW_REASON.replace('name: p', 'name: q')}"
    (verdict,) = watch(policies, [Refused(result="Unschedulable", refusal=refusal)]).verdicts
    assert verdict.votes["p"] == "not_sampled"
    assert sum(len(vote.why) for vote in verdict.explained()) < 3_000


def test_the_first_failure_of_each_kind_is_kept(watch: Watch) -> None:
    attempts = [failing("cpu"), failing("cpu"), failing("taint"), failing("cpu", "taint"), failing("taint", "cpu")]
    seen = watch(NEW_REASON, numbered(attempts))
    assert seen.kept == [0, 2, 3]
    assert seen.reasons[2] == "not seen in the last 1h: TaintToleration: untolerated taint {a: b}"


def test_a_kind_is_new_again_when_it_was_not_seen_for_long(watch: Watch) -> None:
    at = [0, HOUR - 10 * SECOND, 2 * HOUR - 20 * SECOND, 3 * HOUR]
    seen = watch(NEW_REASON, numbered([failing("cpu", start=START + time) for time in at]))
    assert seen.kept == [0, 3]
    assert seen.explained[1] == "last seen 59.8 min before: NodeResourcesFit: Insufficient cpu"


def test_numbers_nodes_and_the_pods_own_name_make_no_new_kind(watch: Watch) -> None:
    def attempt(number: int) -> MadeAttempt:
        name = f"web-x{'y' * number}"
        reason = f'{number} nodes: claim "data-web-{number}" of shop/{name} not found on ip-10-0-0-{number}'
        no = No(plugin="VolumeBinding", reason=reason, nodes=nodes(number))
        return no_room(namespace="shop", name=name, refusals=[no], number=number, start=START + number * SECOND)

    assert watch(NEW_REASON, map(attempt, range(1, 9))).kept == [0]


def test_an_error_is_a_kind_of_its_own(watch: Watch) -> None:
    def error(message: str, number: int) -> MadeAttempt:
        refused = no_room().refusals[: number % 3]
        start = START + number * SECOND
        return MadeAttempt(number=number, result="Error", bind_error=message, refusals=refused, start=start)

    said = ["etcdserver: request timed out", "etcdserver: request timed out", "admission webhook denied the request"]
    seen = watch(NEW_REASON, [error(message, number) for number, message in enumerate(said)])
    assert seen.kept == [0, 2]
    assert seen.reasons[0] == "not seen in the last 1h: etcdserver: request timed out"


def test_success_and_other_traces_are_no_kind(watch: Watch, sampler: Any, span: Any, policy: Any) -> None:
    seen = watch(NEW_REASON, [MadeAttempt(refusals=no_room().refusals)])
    assert (seen.kept, seen.explained) == ([], ["it did not fail, or does not tell why"])
    made = sampler(policy("new_reason"))
    made.send(0, span(1, name="GET"))
    made.stop(3)
    assert made.verdicts[0].explained()[0].why == "it is no scheduling attempt"


def test_kinds_are_learnt_from_attempts_that_a_policy_was_not_asked_about(watch: Watch) -> None:
    never = "{name: never, type: span_count, span_count: {min_spans: 1000}}"
    both = f"{{name: p, type: and, and: {{and_sub_policy: [{never}, {NEW_REASON}]}}}}"
    alone = NEW_REASON.replace("name: p", "name: alone")
    first = "{name: first, type: probabilistic, probabilistic: {sampling_percentage: 100}}"
    attempts = numbered([failing("cpu"), failing("cpu")])
    assert watch(f"{both}, {alone}", attempts).kept == [0]
    seen = watch(f"{first}, {alone}", attempts, settings="sample_on_first_match: true")
    assert [verdict.votes for verdict in seen.verdicts] == [{"first": "sampled"}] * 2


def test_the_oldest_kind_is_forgotten_when_there_are_too_many_and_that_is_counted(watch: Watch) -> None:
    few = "{name: p, type: new_reason, new_reason: {max_kinds: 2}}"
    seen = watch(few, numbered([failing("cpu"), failing("taint"), failing("ports"), failing("cpu"), failing("ports")]))
    assert seen.kept == [0, 1, 2, 3]
    assert seen.counted("policy_forgotten") == {"policy=p,reason=full": 2}


@settings(max_examples=large(40, 100))
@given(st.text(max_size=600), st.lists(st.text(max_size=20), max_size=3))
def test_a_reason_in_general_has_no_digits_and_is_its_own_generalisation(reason: str, own: list[str]) -> None:
    once = general(reason, own)
    assert not any(map(str.isdigit, once))
    assert len(once) <= 500 + len(reason)
    assert general(once, own)[:499] == once[:499] or '"' in reason


def failing(*kinds: str, start: int = 0) -> MadeAttempt:
    said = {
        "cpu": No(plugin="NodeResourcesFit", reason="Insufficient cpu", nodes=nodes(3)),
        "taint": No(plugin="TaintToleration", reason="untolerated taint {a: b}", nodes=nodes(2, "t")),
        "ports": No(plugin="NodePorts", reason="no free ports", nodes=nodes(1, "p")),
    }
    return no_room(refusals=[said[kind] for kind in kinds], start=start)


def numbered(attempts: Sequence[MadeAttempt]) -> list[MadeAttempt]:
    """Return the attempts a second apart, unless they have a time."""
    return [
        MadeAttempt(
            result=made.result,
            message=made.message,
            refusals=made.refusals,
            number=number,
            start=made.start or START + number * SECOND,
        )
        for number, made in enumerate(attempts)
    ]
