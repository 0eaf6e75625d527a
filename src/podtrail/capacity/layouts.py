"""The four ways to lay podtrail out, each with what it takes for a traffic, and whether it carries it at all.

A gateway is one process that keeps one core busy, so a layout grows by replicas. What arrives is taken at its busiest;
what a replica is planned with is `utilization` of its core.
"""

from math import ceil
from typing import NamedTuple

from podtrail.capacity.figures import Figures, SpanCost
from podtrail.capacity.traffic import Circumstances, Traffic

_MIB = 1 << 20
_STORE_FACTOR, _STORE_LEAST = 7, 64 * _MIB
"""How much a durable pipeline takes on disk: docs/reliability.md, "How much disk"."""
_QUEUE_IN_MEMORY = 16 * _MIB
"""Of a queue on disk: docs/overload.md."""
_PAGES = 60.0
"""Seconds of what comes that a broker keeps in its page cache, so that nobody waits for its disk."""
_LEAST_PARTITIONS = 6


class Tier(NamedTuple):
    """Processes that do the same."""

    name: str
    replicas: int
    cores: float
    """To be reserved for each."""
    busy: float
    """Cores that all of them together keep busy."""
    memory: float
    """Bytes of each."""
    disk: float
    """Bytes of each."""
    received: float
    """Bytes a second, of all together."""
    sent: float
    """Bytes a second, of all together."""


class Layout(NamedTuple):
    """One way to lay podtrail out."""

    name: str
    tiers: tuple[Tier, ...]
    refusal: str
    """Why it does not carry the traffic; "" where it does."""
    partitions: int = 0
    """Of Kafka's topic."""
    caught_up: float | None = None
    """Seconds that gateways take, all being back, for what came in an outage; None where they never do."""
    resting: float = 0.0
    """Bytes that `linked_traces` counts for what rests in one process that decides."""

    @property
    def cores(self) -> float:
        """Cores that are reserved, of all tiers."""
        return sum(tier.cores * tier.replicas for tier in self.tiers)

    @property
    def memory(self) -> float:
        """Bytes of memory, of all tiers."""
        return sum(tier.memory * tier.replicas for tier in self.tiers)

    @property
    def disk(self) -> float:
        """Bytes of disk, of all tiers."""
        return sum(tier.disk * tier.replicas for tier in self.tiers)


def layouts(traffic: Traffic, around: Circumstances, figures: Figures) -> tuple[Layout, ...]:
    """Return all four, from the least to the most."""
    plan = _Plan(traffic, around, figures)
    return plan.sidecar(), plan.gateway(), plan.load_balancing(), plan.kafka()


def recommended(found: tuple[Layout, ...], traffic: Traffic) -> Layout:
    """Return the least that carries a traffic and sees each trace and each Pod's story whole.

    A sidecar sees what its scheduler does and no more: of several schedulers a Pod's attempts are in several.
    Where one gateway is too few Kafka is proposed, as a gateway that dies loses nothing there.
    """
    sidecar, gateway, _, kafka = found
    if traffic.clusters == traffic.schedulers == 1 and not sidecar.refusal:
        return sidecar
    return kafka if gateway.refusal else gateway


def reason(found: tuple[Layout, ...], traffic: Traffic) -> str:
    """Return why the layout is the least one that `recommended` returns."""
    least = recommended(found, traffic)
    if least.refusal:
        return least.refusal
    if least.name == "sidecar":
        return "there is one scheduler, and one process carries what it sends"
    if least.name == "gateway":
        return "what several schedulers send meets in it, and one process carries it"
    others = "" if found[2].refusal else "; load_balancing carries it where there is no Kafka"
    return found[1].refusal + others


class _Plan:
    def __init__(self, traffic: Traffic, around: Circumstances, figures: Figures) -> None:
        self._traffic, self._around, self._figures = traffic, around, figures
        self._bytes = traffic.spans * traffic.span_bytes
        self._kept_bytes = self._bytes * traffic.kept

    def sidecar(self) -> Layout:
        """Each scheduler's podtrail decides by itself."""
        figures, traffic = self._figures, self._traffic
        sidecars = self._beside_schedulers("sidecars", figures.sample.and_then(figures.send, traffic.kept))._replace(
            memory=self._memory(traffic.cluster_spans),
            disk=self._store(traffic.cluster_spans),
            sent=self._kept_bytes * figures.gzip,
        )
        refusal = self._too_much("a sidecar", sidecars.cores)
        return Layout("sidecar", (sidecars,), refusal, resting=traffic.resting(traffic.cluster_spans))

    def gateway(self) -> Layout:
        """Agents forward to one gateway."""
        agents = self._agents(self._figures.forward, self._figures.gzip)
        gateways = self._gateways(self._figures.sample, 1, self._figures.gzip)
        refusal = self._too_much("an agent", agents.cores)
        refusal = refusal or self._too_much("one gateway", gateways.busy / self._around.utilization)
        return self._layout("gateway", (agents, gateways), refusal)

    def load_balancing(self) -> Layout:
        """Agents send each trace to the gateway that a ring gives it to."""
        agents = self._agents(self._figures.balance, self._figures.gzip)
        gateways = self._gateways(self._figures.sample, self._replicas(self._figures.sample), self._figures.gzip)
        refusal = self._too_much("an agent", agents.cores) or self._too_few(self._figures.sample)
        return self._layout("load_balancing", (agents, gateways), refusal)

    def kafka(self) -> Layout:
        """Agents produce into a topic, gateways consume its partitions. Kafka is their log, so they need no disk."""
        figures, around = self._figures, self._around
        agents = self._agents(figures.produce, figures.kafka)
        replicas = self._replicas(figures.sample_from_kafka)
        partitions = max(_LEAST_PARTITIONS, ceil(replicas * around.growth))
        gateways = self._gateways(figures.sample_from_kafka, replicas, figures.kafka)
        # Whoever is left takes over the partitions of those who are away.
        each = ceil(partitions / self._left(replicas))
        gateways = gateways._replace(memory=gateways.memory + each * figures.partition_bytes, disk=0)
        refusal = self._too_much("an agent", agents.cores) or self._too_few(figures.sample_from_kafka)
        if around.retention < around.outage + self._traffic.decision_wait + self._traffic.grace_period:
            refusal = refusal or "Kafka's retention is shorter than the outage that it has to cover"
        return self._layout("kafka", (agents, self._brokers(), gateways), refusal, partitions)

    def _layout(self, name: str, tiers: tuple[Tier, ...], refusal: str, partitions: int = 0) -> Layout:
        """Return a layout whose last tier decides."""
        gateways = tiers[-1]
        resting = self._traffic.resting(self._traffic.spans / self._left(gateways.replicas))
        return Layout(name, tiers, refusal, partitions, self._caught_up(gateways), resting)

    def _memory(self, spans: float) -> float:
        """Return the memory of a process that holds what so many spans a second leave undecided, or resting."""
        traffic, figures, held = self._traffic, self._figures, spans * self._traffic.decision_wait
        of_held = held * (traffic.span_bytes + figures.held_overhead) * figures.peak
        return figures.process_bytes + of_held + traffic.resting(spans) * figures.peak + _QUEUE_IN_MEMORY

    def _store(self, spans: float) -> float:
        """Return the disk of a durable pipeline that so many spans a second come to."""
        traffic = self._traffic
        undelivered = traffic.kept * self._around.outage
        waiting = traffic.decision_wait + (1 - traffic.kept) * traffic.grace_period
        return _STORE_FACTOR * spans * traffic.span_bytes * (waiting + undelivered) + _STORE_LEAST

    def _too_much(self, who: str, needed: float) -> str:
        return f"{who} would need {needed:.1f} cores and can use one" if needed > 1 else ""

    def _beside_schedulers(self, name: str, cost: SpanCost) -> Tier:
        """Return a process a scheduler, each of which can carry what its cluster sends; one of them does."""
        traffic, around, figures = self._traffic, self._around, self._figures
        busy = cost.cores(traffic.cluster_spans, traffic.span_bytes) / around.speed
        return Tier(
            name,
            traffic.clusters * traffic.schedulers,
            cores=busy / around.utilization,
            busy=busy * traffic.clusters,
            memory=figures.process_bytes + _QUEUE_IN_MEMORY,
            disk=0,
            received=self._bytes * figures.wire,
            sent=self._bytes,
        )

    def _agents(self, cost: SpanCost, sent: float) -> Tier:
        traffic = self._traffic
        waiting = traffic.cluster_spans * traffic.span_bytes * self._figures.stored * self._around.outage
        return self._beside_schedulers("agents", cost)._replace(disk=waiting, sent=self._bytes * sent)

    def _replicas(self, cost: SpanCost) -> int:
        return self._around.gateways or self._needed(cost) + self._around.spare

    def _needed(self, cost: SpanCost) -> int:
        """Return how many gateways must be there."""
        traffic, around = self._traffic, self._around
        whole = cost.and_then(self._figures.send, traffic.kept)
        return ceil(traffic.spans / whole.spans(around.utilization * around.speed, traffic.span_bytes))

    def _too_few(self, cost: SpanCost) -> str:
        around, needed = self._around, self._needed(cost)
        if not around.gateways or around.gateways >= needed + around.spare:
            return ""
        return f"{around.gateways} gateways are too few: it takes {needed}, and {around.spare} to spare"

    def _left(self, replicas: int) -> int:
        return max(1, replicas - self._around.spare)

    def _gateways(self, cost: SpanCost, replicas: int, received: float) -> Tier:
        traffic, figures = self._traffic, self._figures
        whole = cost.and_then(figures.send, traffic.kept)
        most = traffic.spans / self._left(replicas)
        return Tier(
            "gateways",
            replicas,
            cores=1.0,
            busy=whole.cores(traffic.spans / replicas, traffic.span_bytes) / self._around.speed * replicas,
            memory=self._memory(most),
            disk=self._store(most),
            received=self._bytes * received,
            sent=self._kept_bytes * figures.gzip,
        )

    def _brokers(self) -> Tier:
        figures, around, traffic = self._figures, self._around, self._traffic
        # A copy is read from the leader and written by a follower: what a span costs that is taken in and given out.
        copied = traffic.spans * around.replication
        busy = copied * figures.broker.cores(1, traffic.span_bytes) / around.speed
        brokers = max(around.replication, ceil(busy / around.utilization / around.broker_cores))
        written = self._bytes * figures.kafka * around.replication
        return Tier(
            "brokers",
            brokers,
            cores=around.broker_cores,
            busy=busy,
            memory=figures.broker_bytes + written * _PAGES / brokers,
            disk=written * around.retention / brokers,
            received=written,
            sent=written,
        )

    def _caught_up(self, gateways: Tier) -> float | None:
        """Return the seconds until nothing is left of what came while gateways or what is behind them were away."""
        room = gateways.replicas - gateways.busy
        return self._around.outage * gateways.busy / room if room > 0 else None
