"""What `podtrail capacity` prints: what arrives, which layouts carry it, and what the chosen one takes."""

from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

from podtrail.capacity import Circumstances, Layout, Prices, Tier, Traffic, monthly_cost
from podtrail.cli.sizes import format_size
from podtrail.config.types import format_duration
from podtrail.story import several

_NANOSECONDS: Final = 1_000_000_000
_WORDS: Final = {
    "sidecar": "each podtrail decides alone about what its own scheduler sends",
    "gateway": "agents forward to one gateway, which decides",
    "load_balancing": "agents send each trace to its gateway; what a gateway holds is lost with its disk",
    "kafka": "agents produce into Kafka, gateways decide; none of them is missed when it is gone",
}


_DURABLE: Final = "the gateways' durable pipelines"
_DISK: Final = {
    "sidecar": "disk: of durable pipelines; without, what is undecided ends with its process",
    "gateway": f"disk: the agents' sending_queue::storage for the outage, {_DURABLE}",
    "load_balancing": f"disk: the agents' sending_queue::storage for the outage, {_DURABLE}",
    "kafka": "disk: the agents' sending_queue::storage for the outage, Kafka's retention; gateways write nothing",
}


class Advice(NamedTuple):
    """Which layout is the least that carries the traffic, or would be if anything did."""

    layout: Layout
    reason: str


class CapacityReport(NamedTuple):
    """A plan, to be printed."""

    traffic: Traffic
    around: Circumstances
    found: Sequence[Layout]
    chosen: Layout
    """The one that is shown."""
    advice: Advice
    prices: Prices
    machine: str
    """Where the figures were measured."""
    calibrated: bool

    def lines(self) -> Iterator[str]:
        """Yield it as text."""
        traffic = self.traffic
        yield (
            f"{several(traffic.clusters, 'cluster')}, {_number(traffic.pods_per_second)} Pods/s each: "
            f"{traffic.spans:,.0f} spans/s, {_size(traffic.spans * traffic.span_bytes)}/s; "
            f"{traffic.kept * 100:.3g} % of it kept; {traffic.held:,.0f} spans held at a time"
        )
        yield from self._assumptions()
        yield ""
        yield from _table(
            ("LAYOUT", "CARRIES IT", "PROCESSES", "CORES", "MEMORY", "DISK", *self._cost_head()), self._all()
        )
        for layout in self.found:
            if layout.refusal:
                yield f"not {layout.name}: {layout.refusal}"
        yield from self._advised()
        yield ""
        yield f"{self.chosen.name}: {_WORDS[self.chosen.name]}"
        yield from _table(
            ("", "REPLICAS", "CORES EACH", "BUSY", "MEMORY EACH", "DISK EACH", "ALL RECEIVE/S", "ALL SEND/S"),
            map(_tier, self.chosen.tiers),
        )
        yield from self._notes()

    def _assumptions(self) -> Iterator[str]:
        traffic, around = self.traffic, self.around
        others = f" and {_number(traffic.other_spans)} other spans/s a cluster" if traffic.other_spans else ""
        gateways = f"{around.gateways} gateways" if around.gateways else "as many gateways as it takes"
        yield (
            f"assumed: {several(traffic.schedulers, 'scheduler')} a cluster, attempts for "
            f"each Pod: {_number(traffic.attempts_per_pod)}, of {_number(traffic.spans_per_attempt)} spans of "
            f"{_number(traffic.span_bytes)} B{others}; "
            f"traces held for {_time(traffic.decision_wait)}; {self._resting()}"
        )
        yield (
            f"planned: {gateways}, {around.spare} of them to spare; {_time(around.outage)} of outage; Kafka keeps "
            f"{_time(around.retention)}, replication {around.replication}"
        )
        yield f"cores: {around.utilization:.0%} of each, as fast as on {self.machine}{self._speed()}"

    def _resting(self) -> str:
        period = self.traffic.grace_period
        if not period:
            return "no linked_traces, with which those not kept rest for its grace_period (--grace-period)"
        return f"those not kept rest for {_time(period)} (linked_traces)"

    def _advised(self) -> Iterator[str]:
        layout, why = self.advice
        if layout.refusal:
            yield "advised: none carries this. Are these the Pods of one cluster, and its busiest minute?"
            return
        yield f"advised: {layout.name}, for {why}"

    def as_json(self) -> dict[str, Any]:
        """Return it as JSON has it: sizes in bytes, times in seconds."""
        return {
            "spansPerSecond": self.traffic.spans,
            "bytesPerSecond": self.traffic.spans * self.traffic.span_bytes,
            "heldSpans": self.traffic.held,
            "speed": self.around.speed,
            "assumptions": {**self.traffic._asdict(), **self.around._asdict(), "machine": self.machine},
            "advised": None if self.advice.layout.refusal else self.advice.layout.name,
            "reason": self.advice.reason,
            "chosen": self.chosen.name,
            "layouts": {layout.name: self._layout(layout) for layout in self.found},
        }

    def _layout(self, layout: Layout) -> dict[str, Any]:
        return {
            "carries": not layout.refusal,
            "refusal": layout.refusal or None,
            "cores": layout.cores,
            "memoryBytes": layout.memory,
            "diskBytes": layout.disk,
            "partitions": layout.partitions or None,
            "restingBytesEach": layout.resting,
            "catchUpSeconds": layout.caught_up,
            "costPerMonth": monthly_cost(layout, self.prices),
            "tiers": {
                tier.name: {
                    "replicas": tier.replicas,
                    "coresEach": tier.cores,
                    "busyCores": tier.busy,
                    "memoryBytesEach": tier.memory,
                    "diskBytesEach": tier.disk,
                    "receivedBytesPerSecond": tier.received,
                    "sentBytesPerSecond": tier.sent,
                }
                for tier in layout.tiers
            },
        }

    def _speed(self) -> str:
        return f" times {self.around.speed:.2f}, measured here" if self.calibrated else " (--calibrate: as here)"

    def _cost_head(self) -> tuple[str, ...]:
        return () if self.prices == Prices() else ("COST/MONTH",)

    def _all(self) -> Iterator[tuple[str, ...]]:
        for layout in self.found:
            cost = monthly_cost(layout, self.prices)
            mark = " *" if layout is self.advice.layout and not layout.refusal else ""
            yield (
                layout.name + mark,
                "no" if layout.refusal else "yes",
                f"{sum(tier.replicas for tier in layout.tiers):,}",
                _amount(layout.cores),
                _size(layout.memory),
                _size(layout.disk),
                *(() if cost is None else (f"{cost:,.2f}",)),
            )

    def _notes(self) -> Iterator[str]:
        layout, around = self.chosen, self.around
        yield _DISK[layout.name]
        if layout.resting:
            yield (
                f"linked_traces: grace_max_bytes of {_size(layout.resting)} each, by default 64 MiB; beyond it what "
                "has rested longest is let go (linked_grace_pushed_out)"
            )
        if layout.partitions:
            yield (
                f"topic: {layout.partitions} partitions, replication {around.replication}, "
                f"retention {_time(around.retention)}"
            )
        if layout.caught_up is not None and layout.name != "sidecar" and not layout.refusal:
            yield f"after {_time(around.outage)} of outage caught up in {_time(layout.caught_up)}"
        if layout.name == "sidecar" and self.traffic.clusters * self.traffic.schedulers > 1:
            yield "no trace and no Pod's story is joined across schedulers and clusters"
        if self.prices == Prices():
            yield "cost: give --price-core-hour, --price-gib-hour, --price-disk-gib-month, --price-network-gib"


def _tier(tier: Tier) -> tuple[str, ...]:
    return (
        tier.name,
        f"{tier.replicas:,}",
        _amount(tier.cores),
        f"{tier.busy / (tier.cores * tier.replicas):.0%}",
        _size(tier.memory),
        _size(tier.disk),
        _size(tier.received),
        _size(tier.sent),
    )


def _number(number: float) -> str:
    return f"{number:,.0f}" if number >= 1000 else f"{number:.4g}"


def _amount(cores: float) -> str:
    return f"{cores:,.0f}" if cores >= 100 else f"{cores:.2g}" if cores < 10 else f"{cores:.1f}"


def _size(size: float) -> str:
    return format_size(round(size))


def _time(seconds: float) -> str:
    return format_duration(round(seconds) * _NANOSECONDS)


def _table(head: Sequence[str], rows: Iterator[Sequence[str]]) -> Iterator[str]:
    table = [head, *rows]
    widths = [max(len(row[at]) for row in table) for at in range(len(head))]
    for first, *others in table:
        cells = [f"{cell:>{width}}" for cell, width in zip(others, widths[1:], strict=True)]
        yield "  ".join([f"{first:<{widths[0]}}", *cells])
