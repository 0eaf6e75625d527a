"""What ten policies cost a span, and ten of which five are OTTL conditions, against the usual three.

The sampler alone, in process, and `podtrail run` as a whole over loopback (receive, sample, send with gzip), the sets
of policies taking turns; 1.1 and 1.5 are the limits of the whole.
"""

import statistics
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks.load import make_load
from benchmarks.loopback.contenders import THREE, Contender, Policy
from benchmarks.loopback.wire import write_requests
from benchmarks.pipeline import measure
from benchmarks.tail_sampling import cpu_of
from podtrail.otlp import read_request
from podtrail.service.process import settle_garbage_collector

ALONE_TRACES = 6_000
WHOLE_TRACES = 12_000
ROUNDS = 7
WHOLE_ROUNDS = 3


def _text(name: str, key: str, *values: str, **settings: object) -> Policy:
    return {"name": name, "type": "string_attribute", "string_attribute": {"key": key, "values": values, **settings}}


def _number(name: str, key: str, least: int) -> Policy:
    return {"name": name, "type": "numeric_attribute", "numeric_attribute": {"key": key, "min_value": least}}


def _ottl(name: str, *span: str, **settings: object) -> Policy:
    return {"name": name, "type": "ottl_condition", "ottl_condition": {"span": span, **settings}}


_SLOW_SYSTEM: Policy = {
    "name": "slow-system",
    "type": "and",
    "and": {
        "and_sub_policy": [
            _text("system", "k8s.pod.namespace", "kube-system", "monitoring"),
            {"name": "over-200ms", "type": "latency", "latency": {"threshold_ms": 200}},
        ]
    },
}
_LARGE: Policy = {"name": "large", "type": "span_count", "span_count": {"min_spans": 100}}
_RETRIED: Policy = {
    "name": "retried",
    "type": "boolean_attribute",
    "boolean_attribute": {"key": "retry", "value": True},
}
_FIVE = (
    _number("waited", "scheduler.queue_wait_ms", 996),
    _number("server-error", "http.status_code", 500),
    _SLOW_SYSTEM,
    _LARGE,
    _text("critical", "k8s.pod.name", "^critical-", "-canary$", enabled_regex_matching=True),
)
PLAIN_TEN = (*THREE, *_FIVE, _text("unschedulable", "scheduler.result", "Unschedulable", "Error"), _RETRIED)
FIVE_OTTL = (
    _ottl("server-error", 'attributes["http.status_code"] >= 500'),
    _ottl("preempting", 'IsMatch(name, "^(preempt|evict)")'),
    _ottl("serving", 'resource.attributes["service.name"] == "kube-scheduler" and kind == SPAN_KIND_SERVER'),
    _ottl("over-4s", "end_time_unix_nano - start_time_unix_nano > 4000000000"),
    _ottl("failed-too", 'attributes["scheduler.result"] == "Unschedulable"', "status.code == STATUS_CODE_ERROR"),
)
FIVE_DEEP = (
    _ottl("waited", 'attributes["scheduler.queue_wait_ms"] > 995'),
    _ottl(
        "slow-plugin",
        'attributes["scheduler.plugin.name"] == "VolumeBinding" and end_time - start_time > Duration("1s")',
    ),
    _ottl("critical", 'IsMatch(attributes["k8s.pod.name"], "^critical-")', error_mode="propagate"),
    _ottl(
        "other-profile",
        'attributes["scheduler.profile"] != nil and attributes["scheduler.profile"] != "default-scheduler"',
    ),
    _ottl(
        "odd-child",
        'not IsRootSpan() and attributes["scheduler.phase"] == nil and attributes["scheduler.plugin.name"] == nil',
    ),
)
SETS: Mapping[str, Sequence[Policy]] = {
    "three": THREE,
    "ten": PLAIN_TEN,
    "ten, five of OTTL": (*THREE, *_FIVE[:1], _LARGE, *FIVE_OTTL),
    "ten, five of OTTL on attributes of every trace": (*THREE, *_FIVE[2:4], *FIVE_DEEP),
}
"""What each set is called; the first is what the others are held against."""


def _alone() -> None:
    """Print what the sampler costs by itself."""
    load = make_load(ALONE_TRACES)
    requests = [read_request(request).groups for request in load.requests]
    took: dict[str, list[float]] = {name: [] for name in SETS}
    kept: dict[str, int] = {}
    for _ in range(ROUNDS):
        for name, policies in SETS.items():
            cpu, kept[name] = cpu_of(requests, *policies)
            took[name].append(cpu / load.spans * 1e6)
    print("the sampler alone")
    _print(took, {name: count / load.spans for name, count in kept.items()})


def _whole() -> None:
    """Print what the pipeline costs with it."""
    load = make_load(WHOLE_TRACES)
    took: dict[str, list[float]] = {name: [] for name in SETS}
    kept: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        requests = home / "requests"
        write_requests(requests, load.requests)
        load.requests.clear()
        for _ in range(WHOLE_ROUNDS):
            for name, policies in SETS.items():
                contender = Contender("podtrail", sends=True, samples=True, policies=policies)
                cost = measure(contender, load, requests, home)
                took[name].append(cost.cpu)
                kept[name] = cost.kept
    print("the whole pipeline")
    _print(took, kept)


def _print(took: Mapping[str, Sequence[float]], kept: Mapping[str, float]) -> None:
    usual = next(iter(took.values()))
    for name, cpu in took.items():
        ratios = [own / base for own, base in zip(cpu, usual, strict=True)]
        print(
            f"  {name:<48} {min(cpu):5.3f} / {statistics.median(cpu):5.3f} us a span   "
            f"{min(cpu) / min(usual):.2f} / {statistics.median(ratios):.2f}   {kept[name]:5.1%} kept",
            flush=True,
        )


def main() -> None:
    """Print CPU by set of policies, as minimum / median, and its ratio to the first set."""
    settle_garbage_collector()
    _alone()
    _whole()


if __name__ == "__main__":
    main()
