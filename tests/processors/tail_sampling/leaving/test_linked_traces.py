"""Linked traces are kept together: those that come later, those that are pending, and those that rest."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest
from podtrail_processors.tail_sampling import FACTORY
from podtrail_processors.tail_sampling.config.sampler import Config
from pydantic import ValidationError

from podtrail.otlp import Group, Link, Status, Value, encode_span, frame, resource_header, scope_header
from podtrail.testing.attempts import MadeAttempt, no_room

SECOND = 1_000_000_000
START = 1_790_000_000 * SECOND
UID = "1f3c0a52-0000-4000-8000-000000000001"
ERROR = Status(2, "")
CONSUMER = 5
CHANGED: Mapping[str, Value] = {"podtrail.link.trusted": False, "podtrail.link.type": "configuration"}
Sampler = Any
Make = Callable[..., Sampler]


@dataclass
class Linked:
    """A span of a trace of its own, with what may link it to others."""

    trace: int
    links: Sequence[int] = ()
    failed: bool = False
    attributes: Mapping[str, Value] = field(default_factory=dict)
    resource: Mapping[str, Value] = field(default_factory=dict)
    id: int = 1
    name: str = "work"
    kind: int = 1
    start: int = START
    padding: int = 0
    configuration: int = 0
    """The trace that changed the scheduler's configuration, which it links to."""

    def group(self) -> Group:
        """Return the span as a group of its own."""
        trace_id = self.trace.to_bytes(16, "big")
        raw = encode_span(
            trace_id=trace_id,
            span_id=self.id.to_bytes(8, "big"),
            name=self.name + "x" * self.padding,
            start=self.start,
            end=self.start + SECOND,
            kind=self.kind,
            status=ERROR if self.failed else None,
            attributes=self.attributes,
            links=[
                *(Link(target.to_bytes(16, "big"), b"s" * 8, {}) for target in self.links),
                *([Link(self.configuration.to_bytes(16, "big"), b"s" * 8, CHANGED)] if self.configuration else []),
            ],
        )
        return Group(resource_header(self.resource), scope_header("test"), trace_id, frame([raw]), 1)


@dataclass
class One:
    """An attempt to be sent."""

    attempt: MadeAttempt

    def group(self) -> Group:
        """Return the attempt, which is one group."""
        return self.attempt.groups()[0]


@pytest.fixture(name="linked")
def _linked(sampler: Make, policy: Callable[..., dict[str, object]]) -> Make:
    """Return what makes a sampler that keeps failures and what is linked with them."""

    def make(*policies: object, caches: bool = True, shards: int = 1, **settings: object) -> Sampler:
        size = 1_000 if caches else 0
        cache = {"sampled_cache_size": size, "non_sampled_cache_size": size}
        chosen = policies or (policy("status_code", "failed", status_codes=["ERROR"]),)
        about = {"keep": True, "grace_period": "30s"} | settings
        return sampler(*chosen, linked_traces=about, decision_cache=cache, num_shards=shards)

    return make


def by_uid(trace: int, uid: str = UID, **more: Any) -> Linked:
    return Linked(trace, attributes={"k8s.pod.uid": uid}, **more)


@pytest.mark.parametrize("empty", ["", b"", [], {}, None])
def test_an_empty_value_links_nothing(linked: Make, empty: Value) -> None:
    under_test = linked(join_on=["k8s.pod.uid", "story"])
    for trace, failed in ((1, True), (2, False)):
        empties = {"k8s.pod.uid": empty, "story": empty}
        under_test.send(0, Linked(trace, failed=failed, attributes=empties, resource=empties))
    under_test.stop(100)
    assert under_test.decisions == {1: "sampled", 2: "not_sampled"}


@pytest.mark.parametrize("uid", [0, 0.0, False, b"\0", "ends in\0"])
def test_an_odd_value_links_as_any_other(linked: Make, uid: Value) -> None:
    under_test = linked()
    under_test.send(0, Linked(1, failed=True, attributes={"k8s.pod.uid": uid}))
    under_test.send(0, Linked(2, attributes={"k8s.pod.uid": uid}))
    under_test.pass_time(10)
    assert under_test.decisions == {1: "sampled", 2: "sampled"}
    assert "linked by k8s.pod.uid" in under_test.verdicts[1].reason


def test_a_text_that_looks_like_a_uid_cut_short_does_no_harm(linked: Make) -> None:
    """`J`, a length, then a KeyValue whose value says that it goes on for longer than it does."""
    text = b"J\x0f\x0a\x0bk8s.pod.uid\x12\x7f".decode()
    under_test = linked()
    for trace, failed in ((1, True), (2, False)):
        under_test.send(0, Linked(trace, failed=failed, attributes={"text": text}))
    under_test.stop(100)
    assert under_test.decisions[1] == "sampled"
    assert len(under_test.verdicts) == 2


def test_failed_attempts_that_were_let_go_come_with_the_slow_one_that_succeeded(
    sampler: Make, policy: Callable[..., dict[str, object]]
) -> None:
    slow = policy("slow_attempt", "slow", threshold="1s")
    under_test = sampler(slow, linked_traces={"keep": True, "grace_period": "60s"})
    attempts = [no_room(number=number, start=START + number * 10 * SECOND) for number in (1, 2, 3)]
    attempts.append(MadeAttempt(number=4, start=START + 40 * SECOND, duration=2 * SECOND))
    for at, attempt in zip((10, 20, 30, 42), attempts, strict=True):
        under_test.send(at, One(attempt))
    under_test.pass_time(45)
    assert [(verdict.trace_id, verdict.decision) for verdict in under_test.verdicts] == [
        (attempt.trace_id, "sampled") for attempt in attempts
    ], "in order of arrival, the one that rescues them last"
    first, *_, last = under_test.verdicts
    assert first.policy == "linked_traces"
    assert first.reason == f"linked by k8s.pod.uid with trace {attempts[3].trace_id.hex()}, which policy slow kept"
    assert last.policy == "slow"


def test_what_comes_after_a_kept_trace_is_kept_with_it(linked: Make) -> None:
    under_test = linked()
    under_test.send(0, by_uid(1, failed=True))
    under_test.send(10, by_uid(2), Linked(3, links=[1]), Linked(4))
    under_test.stop(13)
    assert under_test.decisions == {1: "sampled", 2: "sampled", 3: "sampled", 4: "not_sampled"}
    assert not under_test.counted("linked_quota_hits")


def test_what_is_pending_with_a_kept_trace_is_kept_at_its_own_time(linked: Make) -> None:
    under_test = linked()
    under_test.send(0, Linked(1, links=[2], failed=True))
    under_test.send(1, Linked(2))
    under_test.pass_time(2.5)
    assert under_test.decisions == {1: "sampled"}
    under_test.pass_time(3)
    assert under_test.decisions == {1: "sampled", 2: "sampled"}


def test_what_rests_is_let_go_when_nothing_rescues_it(linked: Make) -> None:
    under_test = linked()
    under_test.send(0, by_uid(1))
    under_test.pass_time(31)
    assert (under_test.decisions, under_test.under_test.held()) == ({}, 1)
    under_test.pass_time(33)
    assert (under_test.decisions, under_test.under_test.held()) == ({1: "not_sampled"}, 0)
    assert under_test.context.ledger.sampled_out == 1
    under_test.send(33, by_uid(2, failed=True))
    under_test.stop(40)
    assert under_test.kept == [(2, 1)]


def test_a_group_is_followed_as_far_as_max_hops(linked: Make) -> None:
    under_test = linked(max_hops=2)
    under_test.send(0, *(Linked(number, links=[number - 1]) for number in (2, 3, 4, 5)))
    under_test.send(5, Linked(1, failed=True))
    under_test.stop(10)
    assert sorted(trace for trace, _ in under_test.kept) == [1, 2, 3]
    assert under_test.verdicts[1].reason.endswith("which is linked with one that policy failed kept")


def test_a_trace_that_was_kept_from_afar_hands_on_more_once_it_is_near(linked: Make) -> None:
    under_test = linked(max_hops=2)
    under_test.send(0, Linked(1, failed=True), Linked(2, links=[1]), Linked(3, links=[2]), Linked(4, links=[3]))
    under_test.pass_time(3)
    assert 4 not in under_test.decisions
    under_test.send(3, Linked(9, links=[3], failed=True))
    under_test.pass_time(5)
    assert under_test.decisions[4] == "sampled"


def test_what_a_drop_policy_dropped_is_never_rescued(linked: Make, policy: Callable[..., dict[str, object]]) -> None:
    probe = policy("string_attribute", "probes", key="probe", values=["yes"])
    drop = {"name": "no probes", "type": "drop", "drop": {"drop_sub_policy": [probe]}}
    under_test = linked(drop, policy("status_code", "failed", status_codes=["ERROR"]))
    under_test.send(0, Linked(1, attributes={"k8s.pod.uid": UID, "probe": "yes"}))
    under_test.pass_time(2)
    assert under_test.decisions == {1: "dropped"}
    under_test.send(3, by_uid(2, failed=True))
    under_test.stop(6)
    assert under_test.kept == [(2, 1)]


def test_late_spans_rest_with_their_trace_and_leave_with_it(linked: Make) -> None:
    for caches in (True, False):
        under_test = linked(caches=caches)
        under_test.send(0, by_uid(1))
        under_test.send(5, Linked(1, id=2))
        assert under_test.under_test.held() == 2
        under_test.send(6, by_uid(2, failed=True))
        under_test.send(9, Linked(1, id=3))
        under_test.stop(20)
        assert sorted(under_test.kept) == [(1, 1), (1, 2), (1, 3), (2, 1)]
        assert [verdict.spans for verdict in under_test.verdicts] == [2, 1]


def test_a_late_span_may_bring_the_link_that_rescues(linked: Make) -> None:
    under_test = linked()
    under_test.send(0, Linked(1, failed=True), Linked(2), Linked(3))
    under_test.pass_time(2)
    under_test.send(5, Linked(2, id=2, links=[1]))
    under_test.send(6, Linked(1, id=2, links=[3]))
    under_test.stop(9)
    assert under_test.kept == [(1, 1), (2, 1), (2, 2), (3, 1), (1, 2)]


def test_bytes_bound_what_rests_and_the_oldest_leaves_first(linked: Make) -> None:
    under_test = linked(grace_max_bytes=30_000)
    for number in range(1, 6):
        under_test.send(number, by_uid(number, padding=6_000))
    under_test.pass_time(10)
    assert under_test.decisions == {1: "not_sampled", 2: "not_sampled"}
    assert under_test.counted("linked_grace_pushed_out") == {"": 2}
    under_test.send(11, by_uid(9, failed=True))
    under_test.stop(20)
    assert [trace for trace, _ in under_test.kept] == [3, 4, 5, 9]


def test_late_spans_push_out_what_rests_as_well(linked: Make) -> None:
    under_test = linked(grace_max_bytes=10_000)
    under_test.send(0, by_uid(1), by_uid(2))
    under_test.send(5, Linked(2, id=2, padding=6_000))
    assert under_test.decisions == {1: "not_sampled"}
    under_test.send(6, Linked(2, id=3, padding=6_000))
    assert under_test.decisions == {1: "not_sampled", 2: "not_sampled"}
    assert under_test.counted("linked_grace_bytes") == {"": 0}


def test_late_spans_take_more_than_their_bytes(linked: Make) -> None:
    under_test, late = linked(), Linked(1, id=2)
    under_test.send(0, by_uid(1))
    under_test.pass_time(5)
    before = under_test.counted("linked_grace_bytes")[""]
    under_test.send(6, late)
    assert under_test.counted("linked_grace_bytes")[""] == before + len(late.group().spans) + 400


def test_nothing_rests_for_less_than_its_time(linked: Make) -> None:
    under_test = linked()
    for number in range(1, 20):
        under_test.send(number / 7, Linked(number))
    under_test.pass_time(60)
    rested = [verdict.decided_at - verdict.arrived - 2 * SECOND for verdict in under_test.verdicts]
    assert len(rested) == 19
    assert all(30 * SECOND <= time < 30.5 * SECOND for time in rested)


def test_what_rests_is_held_since_its_first_span(linked: Make) -> None:
    under_test = linked()
    under_test.send(1, Linked(1))
    under_test.send(3, Linked(2))
    under_test.pass_time(10)
    assert under_test.under_test.held_since() == START + SECOND
    under_test.send(11, Linked(1, id=2))
    assert under_test.under_test.held_since() == START + SECOND
    under_test.pass_time(33.9)
    assert under_test.under_test.held_since() == START + 3 * SECOND


def test_of_too_many_kept_traces_the_oldest_is_forgotten(linked: Make) -> None:
    under_test = linked(max_remembered=4)
    for number in (1, 2, 3):
        under_test.send(number, by_uid(number, f"pod-{number}", failed=True))
    under_test.pass_time(6)
    assert under_test.counted("linked_forgotten_early") == {"": 1}
    assert under_test.counted("linked_remembered") == {"": 4}
    under_test.send(7, *(by_uid(number + 10, f"pod-{number}") for number in (1, 2, 3)))
    under_test.stop(12)
    assert under_test.decisions == {1: "sampled", 2: "sampled", 3: "sampled", 11: "not_sampled"} | dict.fromkeys(
        (12, 13), "sampled"
    )


def test_one_uid_on_a_thousand_traces_keeps_no_more_than_the_quota(linked: Make) -> None:
    under_test = linked(max_linked_traces=10)
    under_test.send(0, *(by_uid(number) for number in range(1, 501)))
    under_test.send(5, by_uid(1_000, failed=True))
    under_test.send(9, *(by_uid(number) for number in range(501, 1_000)))
    under_test.stop(12)
    assert len(under_test.kept) == 11
    assert under_test.counted("linked_traces_kept") == {"by=k8s.pod.uid": 10}
    assert under_test.counted("linked_quota_hits")[""] > 0


def test_links_beyond_the_quota_are_counted(linked: Make) -> None:
    under_test = linked(max_linked_traces=1)
    under_test.send(0, by_uid(1), by_uid(2))
    under_test.send(5, by_uid(3, failed=True))
    under_test.pass_time(9)
    assert under_test.counted("linked_quota_hits") == {"": 1}


def test_attempts_under_one_configuration_are_not_kept_for_one_another(linked: Make) -> None:
    under_test = linked()
    under_test.send(0, *(Linked(number, links=[number + 1], configuration=90) for number in (1, 3, 5)), Linked(90))
    under_test.send(0, Linked(2), Linked(4), Linked(6, failed=True))
    under_test.stop(10)
    assert sorted(trace for trace, _ in under_test.kept) == [5, 6]


@pytest.mark.parametrize("keep", [True, False])
@pytest.mark.parametrize("caches", [True, False])
@pytest.mark.parametrize("idle", ["drop", "not_sampled"])
def test_the_change_that_made_a_kept_attempts_configuration_is_kept_and_no_other_reconcile(
    linked: Make, policy: Callable[..., dict[str, object]], keep: bool, caches: bool, idle: str
) -> None:
    failed = policy("status_code", "failed", status_codes=["ERROR"])
    reconciles = policy("ottl_condition", "reconciles", span=['name == "reconcile"'])
    drop = [policy("drop", "idle", drop_sub_policy=[reconciles])] if idle == "drop" else []
    under_test = linked(*drop, failed, caches=caches, keep=keep)
    under_test.send(0, *(Linked(number, kind=CONSUMER, name="reconcile") for number in (90, 91, 92)))
    attempts = [Linked(1, configuration=90), Linked(2, failed=True, configuration=91)]
    under_test.send(3_600, *attempts)
    under_test.send(3_610, Linked(3, failed=True, configuration=91))
    under_test.send(3_620, Linked(91, id=2, kind=CONSUMER, name="reconcile"))
    under_test.stop(3_700)
    assert sorted(under_test.kept) == [(2, 1), (3, 1), (91, 1), (91, 2)]
    kept = [verdict for verdict in under_test.verdicts if verdict.policy == "configuration"]
    assert [verdict.reason for verdict in kept] == [f"it changed the configuration of attempt {2:032x}"]
    ledger = under_test.context.ledger
    assert under_test.received + ledger.created == len(under_test.kept) + ledger.sampled_out


def test_neither_is_the_change_that_failed_for_all_that_came_after_it(linked: Make) -> None:
    under_test = linked()
    under_test.send(0, Linked(90, failed=True), *(Linked(number, configuration=90) for number in (1, 2)))
    under_test.stop(10)
    assert under_test.kept == [(90, 1)]


def test_links_to_no_trace_link_nothing(linked: Make) -> None:
    under_test = linked()
    under_test.send(0, Linked(1, links=[0]), Linked(2, links=[0], failed=True))
    under_test.stop(9)
    assert under_test.kept == [(2, 1)]


def test_a_request_comes_with_the_pod_of_its_name_in_its_own_cluster(linked: Make) -> None:
    east, west = {"k8s.cluster.name": "east"}, {"k8s.cluster.name": "west"}
    named = {"k8s.pod.uid": UID, "k8s.namespace.name": "default", "k8s.pod.name": "web-0"}
    request = {"url.path": "/api/v1/namespaces/default/pods/web-0/status", "audit-id": "a"}
    under_test = linked()
    under_test.send(0, Linked(1, attributes=request, resource=west, kind=2))
    under_test.send(0, Linked(2, attributes=request | {"audit-id": "b"}, resource=east, kind=2))
    under_test.send(0, Linked(3, attributes=request | {"audit-id": "c"}, kind=2))
    under_test.send(0, Linked(4, failed=True, attributes=named, resource=east))
    under_test.stop(100)
    assert under_test.decisions == {1: "not_sampled", 2: "sampled", 3: "not_sampled", 4: "sampled"}


def test_join_on_chooses_what_is_shared_on_spans_and_on_resources(linked: Make) -> None:
    under_test = linked(join_on=["job", "cell"])
    job, cell = {"job": "nightly"}, {"cell": 7}
    under_test.send(0, by_uid(1), Linked(2, attributes=job), Linked(3, resource=cell), Linked(4, resource={"cell": 8}))
    under_test.send(5, Linked(5, resource=job, attributes=cell | {"k8s.pod.uid": UID}, failed=True))
    under_test.stop(9)
    assert [trace for trace, _ in under_test.kept] == [2, 3, 5]
    assert under_test.counted("linked_traces_kept") == {"by=job": 1, "by=cell": 1}


def test_shutdown_decides_what_is_pending_honours_links_and_lets_go_of_the_rest(linked: Make) -> None:
    under_test = linked()
    under_test.send(0, by_uid(1), Linked(2))
    under_test.send(5, by_uid(3, failed=True))
    under_test.stop(5.5)
    assert under_test.decisions == {1: "sampled", 3: "sampled", 2: "not_sampled"}
    assert under_test.under_test.held() == 0


def test_a_reload_keeps_what_rests_and_what_is_remembered(linked: Make) -> None:
    old, new = linked(), linked()
    old.send(0, by_uid(1), by_uid(2, uid="another", failed=True))
    old.pass_time(5)
    new.under_test.take_over(old.under_test, START + 6 * SECOND)
    assert old.under_test.held() == 0
    new.send(7, by_uid(3, failed=True), by_uid(4, uid="another"))
    new.stop(10)
    assert new.decisions == {1: "sampled", 3: "sampled", 4: "sampled"}


def test_a_reload_that_turns_it_off_lets_go_of_what_rests(linked: Make) -> None:
    old, new = linked(), linked(keep=False)
    old.send(0, by_uid(1))
    old.pass_time(5)
    new.under_test.take_over(old.under_test, START + 6 * SECOND)
    new.pass_time(6)
    assert new.decisions == {1: "not_sampled"}


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        ({"num_shards": 2}, "linked_traces needs num_shards: 1"),
        ({"sampling_strategy": "span-ingest"}, 'linked_traces needs sampling_strategy "trace-complete"'),
        ({"linked_traces": {"keep": True, "max_hops": 0}}, "greater than or equal to 1"),
        ({"linked_traces": {"join_on": [""]}}, "1 to 120 bytes"),
    ],
)
def test_what_cannot_work_is_an_error(settings: dict[str, object], complaint: str) -> None:
    with pytest.raises(ValidationError, match=complaint):
        FACTORY.Config.model_validate({"linked_traces": {"keep": True}} | settings)


def test_an_error_that_comes_late_rescues_its_trace_with_those_linked(sampler: Make) -> None:
    under_test = sampler(linked_traces={"keep": True}, rescue_late_errors=True)
    under_test.send(0, by_uid(1), by_uid(2))
    under_test.pass_time(5)
    under_test.send(6, Linked(2, id=2, failed=True))
    under_test.stop(9)
    assert under_test.kept == [(1, 1), (2, 1), (2, 2)]
    assert [verdict.policy for verdict in under_test.verdicts] == ["linked_traces", "rescue_late_errors"]


def test_an_error_that_comes_after_its_trace_was_let_go_rescues_those_that_still_rest(sampler: Make) -> None:
    under_test = sampler(
        linked_traces={"keep": True, "grace_period": "10s"},
        rescue_late_errors=True,
        decision_cache={"sampled_cache_size": 10, "non_sampled_cache_size": 10},
    )
    under_test.send(0, by_uid(1))
    under_test.send(10, by_uid(2))
    under_test.pass_time(14)
    assert under_test.decisions == {1: "not_sampled"}
    under_test.send(15, by_uid(1, id=2, failed=True))
    assert under_test.kept == [(1, 2), (2, 1)]
    assert under_test.verdicts[-1].reason.endswith("which policy rescue_late_errors kept")


def test_a_trace_that_a_late_error_rescued_is_remembered_for_a_while(sampler: Make) -> None:
    under_test = sampler(
        linked_traces={"keep": True, "grace_period": "10s"},
        rescue_late_errors=True,
        decision_cache={"sampled_cache_size": 10, "non_sampled_cache_size": 10},
    )
    under_test.send(0, by_uid(1))
    under_test.send(15, by_uid(1, id=2, failed=True))
    under_test.send(18, by_uid(2))
    under_test.send(40, by_uid(3))
    under_test.stop(60)
    assert under_test.kept == [(1, 2), (2, 1)]


def test_a_trace_that_stress_relief_keeps_rescues_those_that_rest(sampler: Make) -> None:
    linking = {"linked_traces": {"keep": True, "grace_period": "30s"}}
    calm, stressed = (
        sampler(**linking),
        sampler(stress_relief={"mode": "always", "sampling_percentage": 100}, **linking),
    )
    calm.send(0, by_uid(1))
    calm.pass_time(3)
    stressed.under_test.take_over(calm.under_test, START + 4 * SECOND)
    stressed.send(5, by_uid(2))
    assert stressed.kept == [(1, 1), (2, 1)]
    assert [verdict.policy for verdict in stressed.verdicts] == ["linked_traces", "stress_relief"]


def test_settings_that_have_no_effect_are_told_of() -> None:
    about = {"policies": [{"name": "all", "type": "always_sample"}], "linked_traces": {"max_hops": 3}}
    assert Config.model_validate(about).warnings() == [(("linked_traces",), "has no effect without keep: true")]


def request(trace: int, at: int, **attributes: Value) -> Linked:
    dotted = {key.replace("_", "-", 1) if key == "audit_id" else key: value for key, value in attributes.items()}
    return Linked(trace, name="Create etcd3" if "key" in attributes else "GET", kind=2, start=at, attributes=dotted)


def attempt(trace: int, at: int, uid: str, *, failed: bool = False) -> Linked:
    pod = {"k8s.pod.uid": uid, "k8s.namespace.name": "ns", "k8s.pod.name": "web-0"}
    return Linked(trace, start=at, attributes=pod, failed=failed)


def test_of_two_pods_of_one_name_the_requests_go_with_the_one_that_they_were_for(linked: Make) -> None:
    later = START + 100 * SECOND
    under_test = linked()
    under_test.send(0, request(1, START, key="/pods/ns/web-0"), attempt(2, START + SECOND, "old"))
    under_test.send(1, request(3, later, key="/pods/ns/web-0"), attempt(4, later + SECOND, "new", failed=True))
    under_test.send(2, request(5, START + 3 * SECOND, url="/api/v1/namespaces/ns/pods/web-0/status", audit_id="a"))
    under_test.send(2, request(6, later + 3 * SECOND, url="/api/v1/namespaces/ns/pods/web-0/status", audit_id="b"))
    under_test.stop(9)
    assert sorted(trace for trace, _ in under_test.kept) == [3, 4, 6]


def test_a_request_follows_the_pod_of_an_attempt_that_is_gone(linked: Make) -> None:
    under_test = linked()
    under_test.send(0, attempt(1, START, "uid", failed=True))
    under_test.send(6, request(2, START + SECOND, key="/pods/ns/web-0"))
    under_test.stop(9)
    assert [trace for trace, _ in under_test.kept] == [1, 2]


def test_a_request_that_learns_its_pod_is_near_all_of_its_traces(linked: Make) -> None:
    under_test = linked(max_hops=1)
    under_test.send(0, by_uid(1, "uid", failed=True), request(2, START + SECOND, key="/pods/ns/web-0"))
    under_test.send(5, attempt(3, START, "uid"))
    under_test.pass_time(9)
    assert under_test.decisions == {1: "sampled", 2: "sampled", 3: "sampled"}


def test_spans_with_one_audit_id_belong_together(linked: Make) -> None:
    under_test = linked()
    url = {"url": "/api/v1/namespaces/ns/pods"}
    under_test.send(0, request(1, START, audit_id="a", **url), request(2, START, audit_id="b", **url))
    under_test.send(1, Linked(3, attributes={"audit-id": "a", "key": "/pods/ns/web-0"}, failed=True))
    under_test.stop(9)
    assert [trace for trace, _ in under_test.kept] == [1, 3]
    assert under_test.counted("linked_traces_kept") == {"by=audit-id": 1}


def test_a_request_from_before_its_pod_was_seen_goes_with_the_only_pod_of_that_name(linked: Make) -> None:
    """A stock scheduler says nothing, and writes that there is no room seconds before a kubelet knows the Pod."""
    under_test = linked()
    path = "/api/v1/namespaces/ns/pods/web-0/status"
    under_test.send(0, request(1, START, url=path, audit_id="a"), request(2, START, url=path, audit_id="b"))
    under_test.send(5, attempt(3, START + 5 * SECOND, "uid", failed=True))
    under_test.stop(9)
    assert under_test.decisions == {1: "sampled", 2: "sampled", 3: "sampled"}


def of_pod(trace: int, uid: str = UID, **more: Any) -> Linked:
    return Linked(trace, attributes={"k8s.pod.uid": uid, **more.pop("also", {})}, **more)


def test_traces_of_one_pod_count_as_one(linked: Make) -> None:
    """Without that what an attempt links to is too far from a start that failed."""
    near = [Linked(1), of_pod(2, links=[1]), of_pod(3, failed=True), Linked(4, attributes={"sandbox.id": "s"})]
    near[2].attributes |= {"container.id": "s"}  # type: ignore[operator]
    for whole, kept in ((True, {1, 2, 3, 4}), (False, {2, 3, 4})):
        under_test = linked(max_hops=1, whole_pods=whole)
        under_test.send(0, *near)
        under_test.stop(9)
        assert {trace for trace, decision in under_test.decisions.items() if decision == "sampled"} == kept


def test_a_pod_is_not_kept_for_another_that_the_same_request_made(linked: Make) -> None:
    under_test = linked(max_hops=1, whole_pods=True)
    under_test.send(0, Linked(1), of_pod(2, links=[1], failed=True), of_pod(3, "another", links=[1]))
    under_test.send(1, of_pod(4, "another"))
    under_test.stop(9)
    assert under_test.decisions == {1: "sampled", 2: "sampled", 3: "not_sampled", 4: "not_sampled"}


def test_a_trace_about_several_pods_brings_none_for_the_sake_of_another(linked: Make) -> None:
    """A kubelet's collection of garbage: containers of many Pods."""
    ids = {"container.id": "a", "sandbox.id": "b", "task.id": "c"}
    under_test = linked(max_hops=1, whole_pods=True)
    under_test.send(
        0, of_pod(1, failed=True, also={"container.id": "a"}), of_pod(2, "another", also={"container.id": "c"})
    )
    under_test.send(0, Linked(3, attributes=ids))
    under_test.stop(9)
    assert under_test.decisions == {1: "sampled", 2: "not_sampled", 3: "sampled"}
