"""`podtrail capacity`: what it takes for a rate of Pods, by measured figures."""

import json
from typing import Final

import click

from podtrail.capacity import Circumstances, Figures, Prices, Traffic, layouts, measured, reason, recommended
from podtrail.capacity.calibration import turn_us
from podtrail.cli.amounts import PERCENTAGE, Amount, share_of
from podtrail.cli.capacity_report import Advice, CapacityReport
from podtrail.cli.durations import DURATION, DURATION_OR_NONE

_NANOSECONDS: Final = 1_000_000_000
_LAYOUTS: Final = ("sidecar", "gateway", "load_balancing", "kafka")
_COUNT: Final = Amount(1, 1_000_000, whole=True)


_MOST: Final = 1_000_000_000
_ABOVE_NOTHING: Final = Amount(0.0001, _MOST)
"""Nine a day; of what is next to nothing a plan would be divisions by zero."""
_PRICE: Final = Amount(0, _MOST)


@click.command("capacity")
@click.option(
    "--pods-per-second", type=_ABOVE_NOTHING, required=True, help="Pods that each cluster schedules when busiest."
)
@click.option("--clusters", type=_COUNT, default=1, show_default=True, help="How many clusters.")
@click.option("--schedulers", type=_COUNT, default=3, show_default=True, help="Of each cluster, podtrail beside each.")
@click.option(
    "--attempts-per-pod", type=_ABOVE_NOTHING, default=1.0, show_default=True, help="Scheduling attempts of a Pod."
)
@click.option("--spans-per-attempt", type=_ABOVE_NOTHING, default=35.0, show_default=True, help="Spans of an attempt.")
@click.option(
    "--other-spans",
    type=Amount(0, _MOST),
    default=0.0,
    show_default=True,
    help="Spans a second of each cluster besides: API servers', kubelets', container runtimes'.",
)
@click.option(
    "--bytes-per-span",
    type=_ABOVE_NOTHING,
    default=168.0,
    show_default=True,
    help="As `podtrail recording stat` tells.",
)
@click.option(
    "--kept", type=PERCENTAGE, callback=share_of, default="5%", show_default=True, help="Share of spans that is kept."
)
@click.option("--decision-wait", type=DURATION, default="30s", show_default=True, help="How long a trace is held.")
@click.option(
    "--grace-period",
    type=DURATION_OR_NONE,
    default="0s",
    show_default=True,
    help="Of linked_traces: how long what is not kept rests. 0s: there is no linked_traces.",
)
@click.option(
    "--layout", type=click.Choice(_LAYOUTS), help="Show this one. By default the least that carries the traffic."
)
@click.option(
    "--utilization",
    type=PERCENTAGE,
    callback=share_of,
    default="60%",
    show_default=True,
    help="Share of a core to plan with; the rest is for peaks and for catching up.",
)
@click.option("--gateways", type=_COUNT, help="Plan for so many. By default as many as it takes, and --spare.")
@click.option(
    "--spare", type=Amount(0, 1000, whole=True), default=1, show_default=True, help="Gateways that may be away."
)
@click.option(
    "--outage",
    type=DURATION,
    default="1h",
    show_default=True,
    help="How long gateway, Kafka or backend may be away without a loss.",
)
@click.option("--retention", type=DURATION, default="24h", show_default=True, help="Of Kafka's topic.")
@click.option("--replication", type=Amount(1, 100, whole=True), default=3, show_default=True, help="Of Kafka's topic.")
@click.option("--broker-cores", type=_ABOVE_NOTHING, default=2.0, show_default=True, help="Cores of a broker.")
@click.option(
    "--growth",
    type=Amount(1, 1000),
    default=4.0,
    show_default=True,
    help="Partitions for so many times the gateways needed now.",
)
@click.option("--price-core-hour", type=_PRICE, help="What a core costs an hour, in your currency.")
@click.option("--price-gib-hour", type=_PRICE, help="What a GiB of memory costs an hour.")
@click.option("--price-disk-gib-month", type=_PRICE, help="What a GiB of disk costs a month.")
@click.option("--price-network-gib", type=_PRICE, help="What a GiB costs that a process sends.")
@click.option("--calibrate", is_flag=True, help="Measure how fast this machine is, in a second, and plan for it.")
@click.option("-o", "--output", type=click.Choice(["text", "json"]), default="text", help="By default text.")
def command(
    pods_per_second: float,
    clusters: int,
    schedulers: int,
    attempts_per_pod: float,
    spans_per_attempt: float,
    other_spans: float,
    bytes_per_span: float,
    kept: float,
    decision_wait: int,
    grace_period: int,
    layout: str | None,
    utilization: float,
    gateways: int | None,
    spare: int,
    outage: int,
    retention: int,
    replication: int,
    broker_cores: float,
    growth: float,
    price_core_hour: float | None,
    price_gib_hour: float | None,
    price_disk_gib_month: float | None,
    price_network_gib: float | None,
    calibrate: bool,
    output: str,
) -> None:
    """Say what it takes: replicas, partitions, memory, disk, network, and at your prices money.

    A model of figures that were measured; docs/scaling.md has them, and how near it comes. Plan with the busiest
    minute: what is idle costs memory and no more.
    """
    figures = measured()
    traffic = Traffic(
        pods_per_second=pods_per_second,
        clusters=clusters,
        schedulers=schedulers,
        attempts_per_pod=attempts_per_pod,
        spans_per_attempt=spans_per_attempt,
        other_spans=other_spans,
        span_bytes=bytes_per_span,
        kept=kept,
        decision_wait=decision_wait / _NANOSECONDS,
        grace_period=grace_period / _NANOSECONDS,
    )
    around = Circumstances(
        utilization=utilization,
        gateways=gateways or 0,
        spare=spare,
        outage=outage / _NANOSECONDS,
        retention=retention / _NANOSECONDS,
        replication=replication,
        broker_cores=broker_cores,
        growth=growth,
        speed=_speed(figures) if calibrate else 1.0,
    )
    found = layouts(traffic, around, figures)
    best = recommended(found, traffic)
    chosen = next((each for each in found if each.name == layout), best)
    prices = Prices(price_core_hour, price_gib_hour, price_disk_gib_month, price_network_gib)
    advice = Advice(best, reason(found, traffic))
    report = CapacityReport(traffic, around, found, chosen, advice, prices, figures.machine, calibrated=calibrate)
    if output == "json":
        click.echo(json.dumps(report.as_json()))
        return
    for line in report.lines():
        click.echo(line)


def _speed(figures: Figures) -> float:
    return figures.turn_us / turn_us()
