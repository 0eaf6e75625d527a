"""`num_shards` divides traces, room, caches and rates as the Collector does."""

from collections.abc import Callable
from typing import Any

from podtrail_processors.tail_sampling.config.sampler import Config
from podtrail_processors.tail_sampling.shards import shard_of, share_of

Make = Callable[..., Any]


def test_limits_are_divided_but_not_below_one_and_bursts_stay_whole(policy: Make) -> None:
    rates = policy("rate_limiting", spans_per_second=10), policy("bytes_limiting", bytes_per_second=3)
    total = {"max_total_spans_per_second": 9, "composite_sub_policy": [rates[0]]}
    compounds = [
        policy("and", and_sub_policy=[rates[0]]),
        policy("not", not_sub_policy=rates[0]),
        policy("composite", **total),
    ]
    caches = {"sampled_cache_size": 10, "non_sampled_cache_size": -1}
    whole = {"num_shards": 4, "num_traces": 3, "decision_cache": caches, "policies": [*rates, *compounds]}
    share = share_of(Config.model_validate(whole))
    assert share.num_traces == 1
    assert (share.decision_cache.sampled_cache_size, share.decision_cache.non_sampled_cache_size) == (2, -1)
    spans, size, both, neither, composite = share.policies
    assert (spans.rate_limiting.spans_per_second, spans.rate_limiting.burst_capacity) == (2, 20)
    assert (size.bytes_limiting.bytes_per_second, size.bytes_limiting.burst_capacity) == (1, 6)
    parts = (*both.and_.and_sub_policy, neither.not_.not_sub_policy, *composite.composite.composite_sub_policy)
    assert [part.rate_limiting.spans_per_second for part in parts] == [2, 2, 2]
    assert composite.composite.max_total_spans_per_second == 2


def test_traces_are_spread_evenly_even_if_their_ids_are_not() -> None:
    counts = [0] * 8
    for number in range(8_000):
        counts[shard_of(number.to_bytes(16, "big"), 8)] += 1
    assert min(counts) > 800


def test_each_shard_has_room_of_its_own(sampler: Make, span: Make, policy: Make) -> None:
    made = sampler(policy("always_sample"), num_shards=2, num_traces=2)
    traces = range(1, 20)
    made.send(0, *(span(number) for number in traces))
    made.stop(9)
    newest = {shard_of(number.to_bytes(16, "big"), 2): number for number in traces}
    assert sorted(trace for trace, _ in made.kept) == sorted(newest.values())
    assert made.counted("sampling_traces_on_memory") == {"": 2}
