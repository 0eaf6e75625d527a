"""A seed becomes a scenario: a configuration, traffic, and what goes wrong, all drawn from it."""

import random
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Final, get_args

from tests.reliability.simulation.configurations import CHAINS, PIPELINES_OF_TWO
from tests.reliability.simulation.scenario import (
    BackendTurns,
    Crash,
    DiskManner,
    DiskTurns,
    Event,
    Manner,
    Reload,
    Scenario,
    Send,
    Setup,
    Stop,
)
from tests.reliability.simulation.traffic import Piece, Trace, length

_DISK_MANNERS: Final[Sequence[DiskManner]] = get_args(DiskManner)
_MANNERS: Final[Sequence[Manner]] = get_args(Manner)


def generated(seed: int) -> Scenario:
    """Return the scenario of a seed."""
    rng = random.Random(f"scenario {seed}")
    setup = _stored(random.Random(f"stored queues {seed}"), _setup(rng))
    lasts = rng.uniform(3.0, 40.0)
    events: list[Event] = [*_traffic(rng, lasts), *_backends(rng, setup, lasts), *_interruptions(rng, setup, lasts)]
    if setup.durable or setup.stored_queues:
        events += _disk(rng, lasts)
    if setup.durable:
        events += _kill_on_a_full_disk(random.Random(f"full {seed}"), events)
    if setup.stored_queues and not setup.durable:
        events += _kill_at_a_write(random.Random(f"kill {seed}"), events)
    return Scenario(seed, setup, tuple(sorted(events, key=lambda event: event.at)))


def _at(rng: random.Random, lasts: float) -> float:
    return round(rng.uniform(0.0, lasts), 3)


def _setup(rng: random.Random) -> Setup:
    chain = rng.choice(list(CHAINS))
    return Setup(
        chain,
        rng.randrange(len(CHAINS[chain])),
        consumers=rng.choice([1, 1, 1, 3]),
        queue_size=rng.choice([5, 20, 50, 1000]),
        gives_up=rng.random() < 0.1,
        durable=(durable := rng.random() < 0.8),
        fsync=durable and rng.random() < 0.7,
        checkpoint_every=rng.choice([500, 3_000, 20_000, 16 << 20]),
    )


def _stored(rng: random.Random, setup: Setup) -> Setup:
    """Have some of the queues on disk: of durable pipelines, and of others."""
    if rng.random() > (0.2 if setup.durable else 0.5):
        return setup
    return replace(setup, stored_queues=True, fsync=setup.fsync or (not setup.durable and rng.random() < 0.7))


def _traffic(rng: random.Random, lasts: float) -> Iterator[Send]:
    pieces = list(_pieces(rng))
    rng.shuffle(pieces)
    number = 0
    while pieces:
        mine, pieces = pieces[: (many := rng.randint(1, 4))], pieces[many:]
        number += 1
        tries = 1000 if rng.random() < 0.9 else rng.randint(1, 3)
        yield Send(_at(rng, lasts), number, tuple(mine), tries)


def _pieces(rng: random.Random) -> Iterator[Piece]:
    pods = rng.randint(1, 4)
    seen: set[tuple[int, int]] = set()
    for number in range(1, rng.randint(2, 16)):
        trace = Trace(number, rng.randint(1, 5), rng.random() < 0.3)
        if rng.random() < 0.4:
            pod = rng.randint(1, pods)
            attempt = 1 + sum(other == pod for other, _ in seen)
            seen.add((pod, attempt))
            trace = Trace(attempt, 0, trace.failed, pod)
        end = length(trace)
        cuts = sorted({0, end, *(rng.randint(0, end) for _ in range(rng.randint(0, 2)))})
        yield from (Piece(trace, first, last) for first, last in pairwise(cuts))


def _backends(rng: random.Random, setup: Setup, lasts: float) -> Iterator[BackendTurns]:
    for exporter in ["otlp_grpc/backend", *(["otlp_grpc/archive"] if setup.chain in PIPELINES_OF_TWO else [])]:
        for _ in range(rng.choice([0, 0, 1, 2, 4])):
            yield BackendTurns(_at(rng, lasts), exporter, rng.choice(_MANNERS))


def _disk(rng: random.Random, lasts: float) -> Iterator[DiskTurns]:
    for _ in range(rng.choice([0, 0, 0, 1, 2])):
        at = _at(rng, lasts)
        yield DiskTurns(at, rng.choice(_DISK_MANNERS))
        yield DiskTurns(round(at + rng.choice([0.05, 1.0, rng.uniform(0.0, 10.0)]), 3), "well")


def _interruptions(rng: random.Random, setup: Setup, lasts: float) -> Iterator[Event]:
    for _ in range(rng.choice([0, 1, 1, 2, 3])):
        at = _at(rng, lasts)
        kind = rng.random()
        if kind < 0.6:
            yield Crash(
                at,
                power=rng.random() < 0.4,
                down=round(rng.choice([0.1, 1.0, rng.uniform(0.0, 20.0)]), 3),
                wall_step=round(rng.choice([0.0, 0.0, 0.0, -30.0, 5.0]), 3),
                after_operations=rng.choice([0, 0, rng.randint(1, 40)]),
            )
        elif kind < 0.7:
            yield Stop(at, down=round(rng.uniform(0.1, 10.0), 3))
        else:
            yield Reload(at, _another(rng, setup))


def _kill_at_a_write(rng: random.Random, events: Sequence[Event]) -> Iterator[Crash]:
    """Have a queue on disk, of which few stories are, be killed when it is about to write what has just come."""
    sends = [event for event in events if isinstance(event, Send)]
    if sends and rng.random() < 0.4:
        at = rng.choice(sends).at
        yield Crash(at, power=False, down=1.0, wall_step=0.0, after_operations=rng.randint(1, 3))


def _kill_on_a_full_disk(rng: random.Random, events: Sequence[Event]) -> Iterator[Crash]:
    """Have a store that makes room on a full disk, which takes some operations, be killed while it does."""
    full = [event.at for event in events if isinstance(event, DiskTurns) and event.manner == "full"]
    if full and rng.random() < 0.8:
        yield Crash(rng.choice(full), down=12.0, after_operations=rng.randint(8, 40))


def _another(rng: random.Random, setup: Setup) -> Setup:
    if rng.random() < 0.4:
        return setup
    return replace(
        setup,
        variant=rng.randrange(len(CHAINS[setup.chain])),
        consumers=rng.choice([setup.consumers, setup.consumers, 1]),
        queue_size=rng.choice([setup.queue_size, 20]),
    )
