"""A load like a busy scheduler's: attempts of 35 spans, many under way at once, so that a trace comes in pieces.

Deterministic for a seed. The library's own codecs write it; what is measured starts at the requests' bytes.
"""

import random
from collections.abc import Iterator
from dataclasses import dataclass, field

from podtrail.otlp import Group, Status, Value, encode_span, frame, resource_header, scope_header, write_request

MS = 1_000_000
EPOCH = 1_790_000_000_000_000_000
SPANS_A_TRACE = 35
SPANS_A_REQUEST = 512
FAILED_SHARE = SLOW_SHARE = 0.03
SLOW_MS = 500

_TRACE, _BASE, _POD = b"\xa5" * 16, b"\x5a" * 6, b"u" * 32
"""What stands in a pattern for a trace's own id, the first bytes of its spans' ids, and the uid of its Pod."""
_UNDER_WAY = 64
_TURN = (4, 10)
_RESOURCE = resource_header({"service.name": "kube-scheduler", "host.name": "control-plane-1"})
_SCOPE = scope_header("k8s.io/kubernetes/pkg/scheduler")
_PHASES: dict[str, tuple[str, ...]] = {
    "preFilter": ("NodeAffinity", "NodePorts", "NodeResourcesFit", "PodTopologySpread", "VolumeRestrictions"),
    "filter": (
        "NodeName",
        "NodeUnschedulable",
        "TaintToleration",
        "NodeAffinity",
        "NodePorts",
        "NodeResourcesFit",
        "PodTopologySpread",
        "InterPodAffinity",
        "VolumeRestrictions",
    ),
    "preScore": ("NodeAffinity", "TaintToleration"),
    "score": (
        "ImageLocality",
        "NodeAffinity",
        "NodeResourcesBalancedAllocation",
        "NodeResourcesFit",
        "PodTopologySpread",
        "TaintToleration",
    ),
    "reserve": ("VolumeBinding",),
    "permit": (),
}


@dataclass
class Load:
    """Requests in the order of their sending, and what is in them."""

    requests: list[bytes] = field(default_factory=list)
    spans: int = 0
    span_bytes: int = 0
    traces: int = 0
    telling: set[bytes] = field(default_factory=set)
    """Ids of the traces that failed or took longer than `SLOW_MS`."""


class _Pattern:
    """One attempt, written once; each trace made of it gets ids of its own."""

    def __init__(self, rng: random.Random, kind: str, padding: int = 0) -> None:
        self._count = 0
        self._padding: dict[str, Value] = {"scheduler.message": rng.randbytes(padding // 2).hex()} if padding else {}
        total = rng.randrange(SLOW_MS + 100, 3000) if kind == "slow" else rng.randrange(5, 300)
        self._step = total * MS // 40
        root: dict[str, Value] = {
            "k8s.pod.name": f"web-{rng.randrange(10_000):04}",
            "k8s.pod.namespace": "prod",
            "k8s.pod.uid": _POD.decode(),
            "scheduler.queue_wait_ms": rng.randrange(1000),
            "scheduler.result": "Unschedulable" if kind == "failed" else "Success",
        }
        status = Status(2, "0/5 nodes are available") if kind == "failed" else None
        spans = [self._span("SchedulePod", 0, 40, None, root, status), *self._phases()]
        self.framed = [frame([raw]) for _, raw in sorted(spans, key=lambda span: span[0])]

    def _span(
        self,
        name: str,
        at: int,
        steps: int,
        parent: int | None,
        attributes: dict[str, Value],
        status: Status | None = None,
    ) -> tuple[int, bytes]:
        number, self._count = self._count, self._count + 1
        end = EPOCH + (at + steps) * self._step
        raw = encode_span(
            trace_id=_TRACE,
            span_id=_BASE + number.to_bytes(2, "big"),
            parent_span_id=b"" if parent is None else _BASE + parent.to_bytes(2, "big"),
            name=name,
            start=EPOCH + at * self._step,
            end=end + (parent is None),
            attributes=attributes | self._padding,
            status=status,
        )
        return end + (parent is None), raw

    def _phases(self) -> Iterator[tuple[int, bytes]]:
        at = 0
        yield self._phase("schedulingCycle", 0, 34, 0)
        for phase, plugins in _PHASES.items():
            number = self._count
            yield self._phase(phase, at, len(plugins) + 1, 1)
            for plugin in plugins:
                about: dict[str, Value] = {
                    "scheduler.plugin.name": plugin,
                    "scheduler.plugin.extension_point": phase,
                }
                yield self._span(f"plugin: {plugin}", at, 1, number, about)
                at += 1
        number = self._count
        yield self._phase("bindingCycle", 34, 5, 0)
        for phase in ("preBind", "bind", "postBind"):
            yield self._phase(phase, 35, 1, number)

    def _phase(self, name: str, at: int, steps: int, parent: int) -> tuple[int, bytes]:
        about: dict[str, Value] = {"scheduler.phase": name, "scheduler.profile": "default-scheduler"}
        return self._span(name, at, steps, parent, about)


def make_load(traces: int, *, spans_a_request: int = SPANS_A_REQUEST, seed: int = 1, padding: int = 0) -> Load:
    """Return requests of interleaved traces: `_UNDER_WAY` take turns, 4 to 10 spans a turn, the root last.

    `padding` are characters of an attribute that each span has besides.
    """
    rng = random.Random(seed)
    patterns = {kind: [_Pattern(rng, kind, padding) for _ in range(50)] for kind in ("normal", "failed", "slow")}
    load = Load(traces=traces)
    pending: list[Group] = []
    held = 0
    for group in _turns(rng, patterns, load):
        pending.append(group)
        held += group.span_count
        load.spans += group.span_count
        load.span_bytes += len(group.spans)
        if held >= spans_a_request:
            load.requests.append(write_request(pending))
            pending, held = [], 0
    if pending:
        load.requests.append(write_request(pending))
    return load


def _turns(rng: random.Random, patterns: dict[str, list[_Pattern]], load: Load) -> Iterator[Group]:
    started = 0
    under_way: list[tuple[bytes, list[bytes]]] = []
    while under_way or started < load.traces:
        while len(under_way) < _UNDER_WAY and started < load.traces:
            started += 1
            draw = rng.random()
            kind = "failed" if draw < FAILED_SHARE else "slow" if draw < FAILED_SHARE + SLOW_SHARE else "normal"
            trace_id, base = rng.randbytes(16), rng.randbytes(6)
            if kind != "normal":
                load.telling.add(trace_id)
            pattern = rng.choice(patterns[kind])
            uid = b"%032x" % rng.getrandbits(128)
            left = [raw.replace(_TRACE, trace_id).replace(_BASE, base).replace(_POD, uid) for raw in pattern.framed]
            under_way.append((trace_id, left))
        for trace_id, left in under_way:
            count = min(rng.randint(*_TURN), len(left))
            yield Group(_RESOURCE, _SCOPE, trace_id, b"".join(left[:count]), count)
            del left[:count]
        under_way = [(trace_id, left) for trace_id, left in under_way if left]
