"""`scheduling_metrics` counts every attempt once, whatever order its spans come in and whatever is kept of them."""

from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from podtrail_processors.scheduling_metrics import FACTORY, Config
from pydantic import ValidationError

from podtrail.component import Context
from podtrail.otlp import Batch, Group, frame, split
from podtrail.testing import replay
from podtrail.testing.attempts import MS, START, MadeAttempt, No, no_room, nodes
from podtrail.testing.contracts import Arrival, check_processor
from tests.sizes import large

METRICS = "podtrail_scheduling_"


class Counts:
    """A processor, and what it counted."""

    def __init__(self, **settings: object) -> None:
        self.context = Context(id="scheduling_metrics")
        self.made = FACTORY.create(Config.model_validate(settings), self.context)

    def send(self, *groups: Group) -> None:
        """Send groups in one batch, which must pass as it is."""
        batch = Batch(groups, 1)
        assert self.made.add(batch, 1).out == (batch,)

    def __getitem__(self, name: str) -> Mapping[str, float]:
        return self.context.metrics.snapshot().get(METRICS + name, {})


def parts(attempt: MadeAttempt) -> tuple[Group, Group]:
    """Return an attempt's root, and the rest of it."""
    (group,) = attempt.groups()
    root, *rest = split(group.spans)
    return group._replace(spans=frame([root]), span_count=1), group._replace(spans=frame(rest), span_count=len(rest))


REFUSED = {
    "plugin=NodeAffinity,profile=default-scheduler": 31,
    "plugin=NodeResourcesFit,profile=default-scheduler": 2,
    "plugin=TaintToleration,profile=default-scheduler": 1,
}


def test_counts_attempts_by_profile_and_result() -> None:
    counts = Counts()
    counts.send(*no_room().groups(), *MadeAttempt(number=2).groups(), *MadeAttempt(number=3).groups())
    assert counts["attempts_total"] == {
        "profile=default-scheduler,result=Success": 2,
        "profile=default-scheduler,result=Unschedulable": 1,
    }


def test_an_attempt_counts_once_and_under_each_plugin_that_said_no() -> None:
    counts = Counts()
    counts.send(*no_room().groups())
    assert sum(counts["attempts_total"].values()) == 1
    assert counts["rejections_total"] == dict.fromkeys(REFUSED, 1)
    assert counts["rejected_nodes_total"] == REFUSED


@pytest.mark.parametrize("order", [[0, 1], [1, 0], [0, 1, 0, 1], [1, 0, 1, 0], [1, 1, 0]])
def test_the_parts_of_an_attempt_may_come_in_any_order_and_more_than_once(order: Sequence[int]) -> None:
    counts = Counts()
    sent = parts(no_room(message=""))
    for part in order:
        counts.send(sent[part])
    assert sum(counts["attempts_total"].values()) == 1
    assert counts["rejected_nodes_total"] == REFUSED


def test_without_plugin_spans_the_message_tells_who_said_no() -> None:
    counts = Counts()
    counts.send(*no_room(refusals=()).groups())
    assert counts["rejected_nodes_total"] == REFUSED


SOME = [No(plugin="TaintToleration", reason="untolerated taint(s)", nodes=["cp-0", "cp-1"])]
TAINTED = "plugin=TaintToleration,profile=default-scheduler"


@pytest.mark.parametrize("order", [[0, 1], [1, 0]])
def test_an_attempt_that_found_another_node_counts_under_no_plugin(order: Sequence[int]) -> None:
    counts = Counts()
    sent = parts(MadeAttempt(refusals=SOME))
    for part in order:
        counts.send(sent[part])
    assert counts["rejections_total"] == {}
    assert counts["rejected_nodes_total"] == {TAINTED: 2}
    assert counts["pending_pods"] == {}


@pytest.mark.parametrize("order", [[0, 1], [1, 0]])
def test_an_attempt_whose_bind_was_refused_counts_under_who_binds_and_not_under_who_refused_other_nodes(
    order: Sequence[int],
) -> None:
    counts = Counts()
    sent = parts(
        MadeAttempt(
            result="Error",
            refusals=[*SOME, No(plugin="DefaultBinder", reason="not today", nodes=[], point="bind")],
            bind_error='running Bind plugin "DefaultBinder": not today',
        )
    )
    for part in order:
        counts.send(sent[part])
    binder = {"plugin=DefaultBinder,profile=default-scheduler": 1}
    assert counts["rejections_total"] == counts["pending_pods"] == binder
    assert counts["rejected_nodes_total"] == {TAINTED: 2, **dict.fromkeys(binder, 0)}


def test_without_plugin_spans_the_message_of_an_error_tells_who_was_running() -> None:
    counts = Counts()
    message = 'running PreBind plugin "VolumeBinding": binding volumes: context deadline exceeded'
    counts.send(*MadeAttempt(result="Error", message=message).groups())
    assert counts["rejections_total"] == {"plugin=VolumeBinding,profile=default-scheduler": 1}


def test_measures_how_long_attempts_took_and_pods_waited() -> None:
    counts = Counts()
    counts.send(*MadeAttempt(duration=9 * MS, queue_wait_ms=2500).groups())
    labels = "profile=default-scheduler,result=Success"
    assert counts["attempt_duration_seconds_sum"] == {labels: pytest.approx(0.009)}
    assert counts["queue_wait_seconds_sum"] == {labels: 2.5}
    assert counts["queue_wait_seconds_count"] == {labels: 1}


def test_an_attempt_that_does_not_say_how_long_is_counted_all_the_same() -> None:
    counts = Counts()
    counts.send(*MadeAttempt(duration=-5, attributes={"scheduler.queue_wait_ms": "long"}).groups())
    assert sum(counts["attempts_total"].values()) == 1
    assert counts["attempt_duration_seconds_count"] == counts["queue_wait_seconds_count"] == {}


def test_label_values_are_bounded_in_number_and_length() -> None:
    counts = Counts(max_series=3)
    for number in range(10):
        counts.send(*MadeAttempt(number=number, attributes={"scheduler.profile": f"{number}" * 1000}).groups())
    assert len(counts["attempts_total"]) == 4
    assert counts["attempts_total"]["profile=other,result=other"] == 7
    assert max(map(len, counts["attempts_total"])) < 200


def test_plugins_of_an_attempt_whose_root_never_comes_count_without_a_profile() -> None:
    counts = Counts(remembered_attempts=1)
    first, second = (parts(no_room(number=number))[1] for number in (1, 2))
    counts.send(first)
    assert counts["rejections_total"] == {}
    counts.send(second)
    assert counts["rejections_total"]["plugin=NodeAffinity,profile="] == 1
    counts.made.drain(1)
    assert counts["rejections_total"]["plugin=NodeAffinity,profile="] == 2


def test_what_is_remembered_outlives_a_reload() -> None:
    before, after = Counts(), Counts()
    root, rest = parts(no_room(message=""))
    before.send(rest)
    after.made.take_over(before.made, 1)
    after.send(root)
    assert after["rejected_nodes_total"] == REFUSED


def test_counts_what_a_sampler_behind_it_drops() -> None:
    from podtrail.otlp import write_request

    config = {
        "receivers": {"otlp": {"protocols": {"grpc": {}}}},
        "processors": {"scheduling_metrics": {}, "tail_sampling": {"policies": []}},
        "exporters": {"debug": {}},
        "service": {
            "pipelines": {
                "traces": {
                    "receivers": ["otlp"],
                    "processors": ["scheduling_metrics", "tail_sampling"],
                    "exporters": ["debug"],
                }
            }
        },
    }
    run = replay(config, [(1, write_request(no_room().groups()))])
    assert run.kept == {}
    assert sum(run.metrics[METRICS + "attempts_total"].values()) == 1


def test_bounds_that_do_not_rise_are_refused() -> None:
    with pytest.raises(ValidationError, match="must rise"):
        Config.model_validate({"queue_wait_buckets": ["1s", "1s"]})


@settings(max_examples=large(15, 100))
@given(st.lists(st.sampled_from([1, 2, 3]), min_size=1, max_size=5), st.integers(0, 2))
def test_keeps_the_contract_of_processors(numbers: list[int], remembered: int) -> None:
    config = Config(remembered_attempts=remembered)
    refusals = [No(plugin="NodeAffinity", reason="no match", nodes=nodes(2))]
    batches = [Batch(MadeAttempt(number=number, refusals=refusals).groups(), at) for at, number in enumerate(numbers)]
    check_processor(
        lambda context: FACTORY.create(config, context), [Arrival(at, batch) for at, batch in enumerate(batches)]
    )


def test_pods_that_wait_in_several_pipelines_are_added_up_and_go_with_their_processor() -> None:
    one, other = Counts(), Counts()
    other.context = one.context
    other.made = FACTORY.create(Config(), one.context)
    waits = "plugin=NodeResourcesFit,profile=default-scheduler"
    one.send(*no_room(uid="a", start=START + 10**9).groups())
    other.send(*no_room(uid="b", start=START).groups())
    assert one["pending_pods"][waits] == 2
    first = no_room(start=START)
    assert one["pending_since_timestamp_seconds"][waits] == (first.start + first.duration) / 10**9
    after = FACTORY.create(Config(), one.context)
    after.take_over(other.made, 1)
    assert one["pending_pods"][waits] == 2
    after.drain(1)
    assert one["pending_pods"][waits] == 1
    one.made.drain(1)
    assert one["pending_pods"] == {}
