"""Whatever is linked with whatever, in whatever order: the same is kept, bounds hold, each trace has one verdict."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from hypothesis import given
from hypothesis import settings as examples
from hypothesis import strategies as st
from podtrail_processors.tail_sampling import FACTORY

from podtrail.component import Context, Ledger
from podtrail.otlp import Batch, Group, Link, Status, encode_span, frame, resource_header, scope_header
from podtrail.testing.contracts import Arrival, check_processor
from tests.sizes import large

SECOND = 1_000_000_000
START = 1_790_000_000 * SECOND
NUMBERS = range(1, 9)
POLICIES = [
    {"name": "failed", "type": "status_code", "status_code": {"status_codes": ["ERROR"]}},
    {
        "name": "never",
        "type": "drop",
        "drop": {
            "drop_sub_policy": [
                {"name": "n", "type": "string_attribute", "string_attribute": {"key": "drop", "values": ["yes"]}}
            ]
        },
    },
]
CACHES = {"sampled_cache_size": 100, "non_sampled_cache_size": 100}


def trace_id(number: int) -> bytes:
    return number.to_bytes(8, "big") * 2


@st.composite
def groups(draw: st.DrawFn, number: int | None = None) -> Group:
    """Return a span of a trace (any, or this one) with links, a Pod's uid or a request's path."""
    trace = trace_id(number or draw(st.sampled_from(NUMBERS)))
    attributes: dict[str, Any] = {}
    about = draw(
        st.sampled_from(["nothing", "uid", "place", "both", "created", "event", "container", "sandbox", "drop"])
    )
    pod = draw(st.integers(1, 3))
    if about in ("uid", "both"):
        attributes["k8s.pod.uid"] = f"uid-{pod}"
    if about == "both":
        attributes |= {"k8s.namespace.name": "default", "k8s.pod.name": f"pod-{pod}"}
    if about == "place":
        attributes |= {"url.path": f"/api/v1/namespaces/default/pods/pod-{pod}/binding", "audit-id": f"audit-{pod}"}
    if about == "created":
        attributes |= {"key": f"/pods/default/pod-{pod}", "audit-id": f"audit-{pod}"}
    if about == "event":
        attributes |= {"key": f"/events/default/pod-{pod}.18ea6d555c1047a2", "audit-id": f"event-{pod}"}
    if about in ("container", "sandbox"):
        attributes |= {"sandbox.id": f"sandbox-{pod}"}
    if about == "container":
        attributes |= {"k8s.pod.uid": f"uid-{pod}", "container.id": f"container-{pod}"}
    if about == "drop":
        attributes["drop"] = "yes"
    raw = encode_span(
        trace_id=trace,
        span_id=draw(st.integers(1, 9)).to_bytes(8, "big"),
        name="Create etcd3" if about == "created" else "x" * draw(st.sampled_from([1, 900])),
        start=START,
        end=START + 1,
        kind=2,
        status=Status(draw(st.sampled_from([0, 0, 0, 2])), ""),
        attributes=attributes,
        links=[Link(trace_id(n), b"s" * 8, {}) for n in draw(st.lists(st.sampled_from(NUMBERS), max_size=3))],
    )
    return Group(resource_header({}), scope_header("any"), trace, frame([raw]), 1)


@st.composite
def arrivals(draw: st.DrawFn) -> list[Arrival]:
    """Return batches in order of time."""
    times = sorted(draw(st.lists(st.integers(0, 60), max_size=12)))
    batches = [Batch(draw(st.lists(groups(), min_size=1, max_size=3)), START + time * SECOND // 4) for time in times]
    return [Arrival(batch.arrived, batch) for batch in batches]


links: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
    {
        "keep": st.just(True),
        "max_hops": st.sampled_from([1, 2, 4]),
        "whole_pods": st.booleans(),
        "grace_period": st.sampled_from(["1s", "5s"]),
        "grace_max_bytes": st.sampled_from([0, 6_000, 1_000_000]),
        "max_linked_traces": st.sampled_from([1, 3, 50]),
        "max_remembered": st.sampled_from([3, 1_000]),
    }
)
settings: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
    {
        "policies": st.just(POLICIES),
        "linked_traces": links,
        "decision_wait": st.sampled_from(["1s", "3s"]),
        "num_traces": st.sampled_from([2, 50]),
        "decision_cache": st.sampled_from([{}, CACHES]),
        "maximum_trace_size_bytes": st.sampled_from([0, 2_500]),
        "rescue_late_errors": st.booleans(),
        "dry_run": st.booleans(),
    }
)


def _create(about: Mapping[str, object]) -> Callable[[Context], Any]:
    config = FACTORY.Config.model_validate(about)
    return lambda context: FACTORY.create(config, context)


def run(about: Mapping[str, object], arriving: Sequence[Arrival], ledger: Ledger | None = None) -> list[Batch]:
    """Return all that leaves."""
    under_test = _create(about)(Context(id="tail_sampling", ledger=ledger or Ledger()))
    out: list[Batch] = []
    for now, batch in arriving:
        while (due := under_test.deadline()) is not None and due <= now:
            out += under_test.expire(due, 2)
        out += under_test.add(batch, now).out
    while (due := under_test.deadline()) is not None and due <= START + 30 * SECOND:
        out += under_test.expire(due, 2)
    out += under_test.drain(START + 30 * SECOND)
    return out


@examples(max_examples=large(15, 100))
@given(arrivals(), settings)
def test_keeps_the_contract_of_processors(arriving: list[Arrival], about: dict[str, Any]) -> None:
    check_processor(_create(about), arriving)


@examples(max_examples=large(25, 100))
@given(arrivals(), settings)
def test_each_trace_has_one_verdict_and_only_the_kept_leave(arriving: list[Arrival], about: dict[str, Any]) -> None:
    plain = {"rescue_late_errors": False, "dry_run": False, "num_traces": 50, "decision_cache": CACHES}
    decisions: dict[bytes, str] = {}
    for batch in run(about | plain, arriving):
        for verdict in batch.verdicts:
            assert verdict.trace_id not in decisions, "decided twice"
            decisions[verdict.trace_id] = verdict.decision
        assert all(decisions[group.trace_id] == "sampled" for group in batch.groups)
    assert decisions.keys() == {group.trace_id for _, batch in arriving for group in batch.groups}


@examples(max_examples=large(25, 100))
@given(arrivals(), settings)
def test_links_keep_no_more_than_the_quota_for_each_trace_that_a_policy_kept(
    arriving: list[Arrival], about: dict[str, Any]
) -> None:
    policies = [verdict.policy for batch in run(about, arriving) for verdict in batch.verdicts]
    founders = sum(policy in ("failed", "rescue_late_errors") for policy in policies)
    assert policies.count("linked_traces") <= founders * about["linked_traces"]["max_linked_traces"]


@examples(max_examples=large(25, 100))
@given(arrivals(), settings)
def test_what_rests_stays_within_its_bytes(arriving: list[Arrival], about: dict[str, Any]) -> None:
    context = Context(id="tail_sampling")
    under_test = _create(about)(context)
    for now, batch in arriving:
        while (due := under_test.deadline()) is not None and due <= now:
            under_test.expire(due, 2)
        under_test.add(batch, now)
        shown = context.metrics.snapshot()
        prefix = "otelcol_processor_tail_sampling_linked_"
        assert shown[prefix + "grace_bytes"][""] <= about["linked_traces"]["grace_max_bytes"]
        assert shown[prefix + "remembered"][""] <= about["linked_traces"]["max_remembered"]


@examples(max_examples=large(40, 100))
@given(st.data(), st.sampled_from([1, 2, 4]), st.booleans())
def test_in_any_order_within_the_grace_period_the_same_is_kept(
    data: st.DataObject, max_hops: int, whole_pods: bool
) -> None:
    """Given that no bound is hit, that a Pod's name is that of one Pod, and that each trace comes in one piece."""
    whole = [data.draw(groups(number)) for number in NUMBERS]
    about = {
        "policies": POLICIES,
        "decision_wait": "1s",
        "decision_cache": CACHES,
        "linked_traces": {"keep": True, "max_hops": max_hops, "whole_pods": whole_pods, "grace_period": "60s"},
    }
    kept = set()
    for _ in range(2):
        order = data.draw(st.permutations(whole))
        gaps = data.draw(st.lists(st.integers(0, 2), min_size=len(order), max_size=len(order)))
        at, arriving = START, []
        for group, gap in zip(order, gaps, strict=True):
            at += gap * SECOND
            arriving.append(Arrival(at, Batch([group], at)))
        kept.add(frozenset(group.trace_id for batch in run(about, arriving) for group in batch.groups))
    assert len(kept) == 1
