"""How closely `target_rate` keeps to its target, and what it costs a span.

A target of 500 spans a second of scheduling attempts, 7 spans each, whose arrivals are a Poisson process. Printed is
what is kept over the target, each figure over three seconds of pipeline time: at a steady load of 14 times the target,
at a jump from 1.4 times to that, and at the fall back, with one key and with 50 that occur as words do (Zipf). Counts
recovered from the recorded probabilities are set against the true ones, key by key.

Cost is CPU from filing to deciding, beside `rate_limiting` on the same groups, and beside `probabilistic`.
"""

import math
import random
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, NamedTuple

from podtrail_processors.probability import probability_of, read_sampling_state
from podtrail_processors.tail_sampling import FACTORY
from podtrail_processors.tail_sampling.processor import TailSampling

from podtrail.component import Context
from podtrail.otlp import Batch, Group, SpanView, encode_span, frame, resource_header, scope_header, split

SECOND = 1_000_000_000
START = 1_790_000_000 * SECOND
TARGET = 500.0
SPANS = 7
SECONDS = 90
CHANGE_AT = 31.0
SETTLED_AT = 66
STEP = 3
COST_TRACES = 20_000
ROUNDS = 3
KEY = "scheduler.profile"
_TRACE = b"\xa5" * 16
_RESOURCE = resource_header({"service.name": "kube-scheduler"})
_SCOPE = scope_header("k8s.io/kubernetes/pkg/scheduler")


class Run(NamedTuple):
    """What became of a load."""

    kept: Sequence[float]
    """Spans kept over the target, for every `STEP` seconds."""
    worst: float
    """By how many standard errors the recovered count of a key is off at most."""


def sampler(*policies: object) -> TailSampling:
    """Return a sampler of these policies that decides after a second."""
    config = FACTORY.Config.model_validate({"decision_wait": "1s", "num_traces": 1_000_000, "policies": policies})
    made = FACTORY.create(config, Context(id="tail_sampling"))
    assert isinstance(made, TailSampling)
    return made


def target(**settings: object) -> dict[str, object]:
    """Return the policy."""
    return {"name": "target", "type": "target_rate", "target_rate": {"spans_per_second": TARGET} | settings}


def attempts(rng: random.Random) -> Callable[[str], Group]:
    """Return what makes the spans of an attempt with a key."""

    @cache
    def template(key: str) -> bytes:
        return frame(
            encode_span(
                trace_id=_TRACE,
                span_id=number.to_bytes(8, "big"),
                parent_span_id=(1).to_bytes(8, "big") if number > 1 else b"",
                name="SchedulePod" if number == 1 else "filter",
                start=START,
                end=START + 1,
                attributes={KEY: key} if number == 1 else {},
            )
            for number in range(1, SPANS + 1)
        )

    def attempt(key: str) -> Group:
        trace_id = rng.randbytes(16)
        return Group(_RESOURCE, _SCOPE, trace_id, template(key).replace(_TRACE, trace_id), SPANS)

    return attempt


def run(rate: Callable[[float], float], keys: int) -> Run:
    """Send attempts at a rate a second, with as many keys."""
    rng, now, made, tally = random.Random(1), 0.0, sampler(target(key=[KEY])), Tally()
    attempt = attempts(rng)
    names = [f"profile-{number}" for number in range(keys)]
    weights = [1 / (number + 1) for number in range(keys)]
    while (now := now + rng.expovariate(rate(now))) < SECONDS:
        key = rng.choices(names, weights)[0]
        tally.sent[key] += 1
        arrived = START + int(now * SECOND)
        tally.count(due(made, arrived))
        tally.count(made.add(Batch([attempt(key)], arrived), arrived).out)
    tally.count(due(made, START + (SECONDS + 5) * SECOND))
    return Run([spans / STEP / TARGET for spans in tally.kept], tally.worst())


def due(made: TailSampling, now: int) -> list[Batch]:
    """Return what leaves until a time."""
    out: list[Batch] = []
    while (at := made.deadline()) is not None and at <= now:
        out += made.expire(at, 4096)
    return out


class Tally:
    """What was sent and kept, and what kept traces say of how many there were."""

    def __init__(self) -> None:
        self.sent: Counter[str] = Counter()
        self.kept = [0.0] * (SECONDS // STEP)
        self._estimate: defaultdict[str, float] = defaultdict(float)
        self._variance: defaultdict[str, float] = defaultdict(float)

    def count(self, batches: Sequence[Batch]) -> None:
        """Count what leaves."""
        for batch in batches:
            for verdict in batch.verdicts:
                if verdict.decision == "sampled":
                    self.kept[(verdict.arrived - START) // SECOND // STEP] += verdict.spans
            for group in batch.groups:
                root = SpanView(split(group.spans)[0])
                probability = probability_of(read_sampling_state(root.trace_state).threshold or 0)
                key = str(root.attributes[KEY])
                self._estimate[key] += 1 / probability
                # What estimates the variance from those kept alone (Horvitz and Thompson).
                self._variance[key] += (1 - probability) / probability**2

    def worst(self) -> float:
        """Return by how many standard errors the recovered count of a key is off at most."""
        return max(
            abs(self._estimate[key] - number) / math.sqrt(max(self._variance[key], 1.0))
            for key, number in self.sent.items()
        )


def cost(*policies: Any) -> float:
    """Return CPU seconds a span from filing to deciding, the best of some rounds."""
    attempt = attempts(random.Random(1))
    batches = [[attempt("default-scheduler") for _ in range(100)] for _ in range(COST_TRACES // 100)]
    best = math.inf
    for _ in range(ROUNDS):
        made, now = sampler(*policies), START
        began = time.process_time()
        for groups in batches:
            now += SECOND // 10
            due(made, now)
            made.add(Batch(groups, now), now)
        made.drain(now)
        best = min(best, time.process_time() - began)
    return best / COST_TRACES / SPANS


def main() -> None:
    """Print the figures."""
    steady = 14 * TARGET / SPANS
    loads: dict[str, Callable[[float], float]] = {
        "steady": lambda _: steady,
        "jump x10": lambda now: steady / 10 if now < CHANGE_AT else steady,
        "fall /10": lambda now: steady if now < CHANGE_AT else steady / 10,
    }
    for name, load in loads.items():
        for keys in (1, 50):
            found = run(load, keys)
            print(f"{name}, {keys} key{'s' * (keys > 1)}: kept over target, every {STEP} s")
            print("  " + " ".join(f"{share:.2f}" for share in found.kept))
            settled = found.kept[SETTLED_AT // STEP :]
            print(
                f"  mean of the last {len(settled) * STEP} s {sum(settled) / len(settled):.2f}; "
                f"counts recovered within {found.worst:.1f} standard errors for every key"
            )
    limited = cost({"name": "limit", "type": "rate_limiting", "rate_limiting": {"spans_per_second": int(TARGET)}})
    share = {"name": "share", "type": "probabilistic", "probabilistic": {"sampling_percentage": 7}}
    chance = cost(share)
    for name, policy in (("without key", target()), ("by profile", target(key=[KEY]))):
        took = cost(policy)
        print(
            f"{name}: {took * 1e6:.2f} us a span, {took / limited:.2f} of rate_limiting, "
            f"{took / chance:.2f} of probabilistic"
        )


if __name__ == "__main__":
    main()
