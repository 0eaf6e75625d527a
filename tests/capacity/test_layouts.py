"""What the model says of layouts, held against what is reckoned by hand."""

import pytest

from podtrail.capacity import Circumstances, Figures, Layout, Prices, SpanCost, Traffic, layouts, measured, monthly_cost
from podtrail.capacity import recommended as least
from podtrail.capacity.figures import FEW

MIB = 1 << 20
FLAT = SpanCost(few_us=4, span_us=4, byte_ns=10)
"""5 microseconds for a span of 100 bytes, however many come."""
FREE = SpanCost(few_us=0, span_us=0, byte_ns=0)
FIGURES = Figures(
    machine="made up",
    turn_us=1000,
    sample=FLAT,
    sample_from_kafka=FLAT,
    send=FREE,
    forward=FLAT,
    balance=FLAT,
    produce=FLAT,
    broker=FLAT,
    process_bytes=50 * MIB,
    held_overhead=20,
    peak=1.5,
    partition_bytes=1000,
    broker_bytes=500 * MIB,
    gzip=0.1,
    wire=1.0,
    kafka=0.5,
    stored=1.0,
)
TRAFFIC = Traffic(pods_per_second=10, spans_per_attempt=100, span_bytes=100, kept=0.1, decision_wait=30)
"""1,000 spans and 100 kB a second, of each of its clusters."""


AROUND = Circumstances()


def planned(name: str, traffic: Traffic = TRAFFIC, around: Circumstances = AROUND) -> Layout:
    return next(each for each in layouts(traffic, around, FIGURES) if each.name == name)


def recommended(traffic: Traffic) -> str:
    return least(layouts(traffic, Circumstances(), FIGURES), traffic).name


def test_one_scheduler_needs_a_sidecar_and_no_more() -> None:
    assert recommended(TRAFFIC._replace(schedulers=1)) == "sidecar"


def test_several_schedulers_meet_in_a_gateway_as_long_as_one_is_enough() -> None:
    assert recommended(TRAFFIC) == "gateway"
    assert recommended(TRAFFIC._replace(clusters=120)) == "gateway"
    assert recommended(TRAFFIC._replace(clusters=121)) == "kafka"


def test_what_is_too_much_for_one_gateway_is_said() -> None:
    assert (
        planned("gateway", TRAFFIC._replace(clusters=240)).refusal == "one gateway would need 2.0 cores and can use one"
    )


def test_gateways_are_as_many_as_keep_below_the_utilization_and_some_to_spare() -> None:
    _, gateways = planned("load_balancing", TRAFFIC._replace(clusters=240)).tiers
    assert gateways.replicas == 3
    assert gateways.busy == pytest.approx(1.2)

    _, _, of_kafka = planned("kafka", TRAFFIC._replace(clusters=240), Circumstances(spare=2)).tiers
    assert of_kafka.replicas == 4


def test_a_given_number_of_gateways_is_planned_with_or_found_too_few() -> None:
    traffic = TRAFFIC._replace(clusters=240)
    enough = planned("kafka", traffic, Circumstances(gateways=5))
    few = planned("kafka", traffic, Circumstances(gateways=2))
    assert (enough.tiers[2].replicas, enough.refusal) == (5, "")
    assert few.refusal == "2 gateways are too few: it takes 2, and 1 to spare"


def test_memory_is_for_what_is_held_when_the_spare_gateway_is_away() -> None:
    _, gateways = planned("load_balancing", TRAFFIC._replace(clusters=240)).tiers
    held = 240_000 * 30 / 2
    assert gateways.memory == pytest.approx(50 * MIB + 16 * MIB + held * 120 * 1.5)


def test_what_rests_for_linked_traces_is_planned_as_what_is_undecided() -> None:
    traffic = TRAFFIC._replace(clusters=240, grace_period=60)
    layout, plain = planned("load_balancing", traffic), planned("load_balancing", traffic._replace(grace_period=0))
    rests = 240_000 / 2 * 0.9 * 60
    assert layout.resting == pytest.approx(rests * (100 + 2200 / 100))
    assert layout.tiers[1].memory - plain.tiers[1].memory == pytest.approx(layout.resting * 1.5)
    assert layout.tiers[1].disk - plain.tiers[1].disk == pytest.approx(7 * rests * 100)
    assert plain.resting == 0
    kafka = planned("kafka", traffic, Circumstances(retention=3600 + 89, outage=3600))
    assert kafka.refusal == "Kafka's retention is shorter than the outage that it has to cover"


def test_each_agent_can_carry_its_cluster_alone_and_keep_it_for_the_outage() -> None:
    agents, _ = planned("gateway", TRAFFIC._replace(clusters=2), Circumstances(outage=100)).tiers
    assert agents.replicas == 6
    assert agents.busy == pytest.approx(0.010)
    assert agents.cores == pytest.approx(0.005 / 0.6)
    assert agents.disk == pytest.approx(100_000 * 100)


def test_a_cluster_that_one_process_cannot_carry_is_carried_by_no_layout() -> None:
    found = layouts(TRAFFIC._replace(pods_per_second=2000), Circumstances(), FIGURES)
    assert [each.refusal for each in found] == [
        "a sidecar would need 1.7 cores and can use one",
        *["an agent would need 1.7 cores and can use one"] * 3,
    ]


def test_kafka_keeps_its_retention_in_as_many_copies_as_it_replicates() -> None:
    layout = planned("kafka", around=Circumstances(retention=7200, outage=60))
    _, brokers, gateways = layout.tiers
    assert brokers.replicas == 3
    assert brokers.disk == pytest.approx(100_000 * 0.5 * 7200)
    assert brokers.received == pytest.approx(100_000 * 0.5 * 3)
    assert gateways.disk == 0


def test_a_retention_that_is_shorter_than_the_outage_is_refused() -> None:
    layout = planned("kafka", around=Circumstances(retention=3600, outage=3600))
    assert layout.refusal == "Kafka's retention is shorter than the outage that it has to cover"


def test_partitions_leave_room_for_more_gateways() -> None:
    assert planned("kafka").partitions == 8
    assert planned("kafka", TRAFFIC._replace(clusters=240), Circumstances(growth=10)).partitions == 30
    assert planned("kafka", around=Circumstances(growth=1)).partitions == 6


def test_what_a_span_costs_falls_where_many_come() -> None:
    cost = SpanCost(few_us=8, span_us=4, byte_ns=0)
    assert cost.cores(FEW, 100) == pytest.approx(FEW * 8 / 1e6)
    assert cost.cores(3 * FEW, 100) == pytest.approx(FEW * 16 / 1e6)


@pytest.mark.parametrize("spans", [100, FEW, 10 * FEW])
def test_how_many_spans_a_core_takes_is_the_reverse_of_what_they_cost(spans: float) -> None:
    cost = SpanCost(few_us=8, span_us=4, byte_ns=3)
    assert cost.spans(cost.cores(spans, 200), 200) == pytest.approx(spans)


def test_a_machine_twice_as_fast_carries_twice_as_much() -> None:
    traffic = TRAFFIC._replace(clusters=240)
    assert planned("kafka", traffic, Circumstances(speed=2.0)).tiers[2].replicas == 2
    assert not planned("gateway", traffic, Circumstances(speed=2.0)).refusal


def test_after_an_outage_gateways_catch_up_with_what_they_have_left() -> None:
    layout = planned("load_balancing", TRAFFIC._replace(clusters=100), Circumstances(outage=3000))
    assert layout.caught_up == pytest.approx(3000 * 0.5 / 1.5)


def test_without_prices_there_is_no_cost_and_with_them_each_counts() -> None:
    layout = planned("sidecar", TRAFFIC._replace(schedulers=1))
    (sidecar,) = layout.tiers
    assert monthly_cost(layout, Prices()) is None
    assert monthly_cost(layout, Prices(core_hour=2)) == pytest.approx(sidecar.cores * 730 * 2)
    assert monthly_cost(layout, Prices(gib_hour=3)) == pytest.approx(sidecar.memory / 2**30 * 730 * 3)
    assert monthly_cost(layout, Prices(disk_gib_month=5)) == pytest.approx(sidecar.disk / 2**30 * 5)
    assert monthly_cost(layout, Prices(network_gib=7)) == pytest.approx(sidecar.sent * 730 * 3600 / 2**30 * 7)


def test_the_figures_that_podtrail_comes_with_are_whole() -> None:
    figures = measured()
    for name in Figures.model_fields:
        value = getattr(figures, name)
        assert value, name
        assert not isinstance(value, SpanCost) or value.few_us >= value.span_us > 0, name
