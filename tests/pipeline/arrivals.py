"""Arrivals that give processors something to remember: attempts of Pods that fail and succeed, spans that come late."""

import random
from collections.abc import Iterator

from podtrail.otlp import (
    Group,
    Intake,
    Link,
    Status,
    encode_span,
    frame,
    read_request,
    resource_header,
    scope_header,
    split,
)
from podtrail.otlp.request import write_request
from podtrail.testing.attempts.made import MadeAttempt, No, nodes

SECOND = 1_000_000_000
START = 1_800_000_000 * SECOND
_RESULTS = ("Success", "Success", "Unschedulable", "Unschedulable", "Error")
_REASONS = ("Insufficient cpu", "Insufficient memory", "node(s) had untolerated taint(s)")
_PLUGINS = ("NodeResourcesFit", "TaintToleration", "NodeAffinity")


def arrivals(requests: int, seed: int) -> list[tuple[int, Intake]]:
    """Return so many requests, up to 20 s apart, of spans in pieces: what is late comes requests later."""
    rng = random.Random(seed)
    now, numbers, known = START, dict[int, int](), [bytes(15) + b"\1"]
    pending: list[tuple[int, Group]] = []
    out = []
    for at in range(requests):
        now += rng.choice([0, SECOND // 10, SECOND // 2, SECOND, 3 * SECOND, 20 * SECOND if at % 40 == 39 else 0])
        groups = [group for due, group in pending if due <= at]
        pending = [(due, group) for due, group in pending if due > at]
        for _ in range(rng.randint(1, 4)):
            group = _attempt(rng, now, numbers, known) if rng.random() < 0.6 else _other(rng, now, known)
            known.append(group.trace_id)
            parts = list(_pieces(rng, group))
            groups.append(parts[0])
            pending += [(at + rng.choice([1, 2, 10, 60]), part) for part in parts[1:]]
        out.append((now, read_request(write_request(groups))))
    return out


def _attempt(rng: random.Random, now: int, numbers: dict[int, int], known: list[bytes]) -> Group:
    pod = rng.randint(1, 25)
    numbers[pod] = number = numbers.get(pod, 0) + 1
    result = rng.choice(_RESULTS)
    which = rng.randrange(3)
    attempt = MadeAttempt(
        uid=f"1f3c0a52-0000-4000-8000-{pod:012}",
        name=f"web-{pod}",
        number=number,
        result=result,
        message="" if result == "Success" else f"0/34 nodes are available: 34 {_REASONS[which]}.",
        start=now - rng.choice([SECOND // 50, SECOND, 4 * SECOND]),
        duration=rng.choice([SECOND // 100, SECOND // 2, 3 * SECOND]),
        queue_wait_ms=rng.choice([2, 5_000]),
        refusals=[] if result == "Success" else [No(plugin=_PLUGINS[which], reason=_REASONS[which], nodes=nodes(34))],
        stitched=False,
        links=[Link(rng.choice(known[-20:]), b"\7" * 8, {})] if rng.random() < 0.2 else [],
    )
    return attempt.groups()[0]


def _other(rng: random.Random, now: int, known: list[bytes]) -> Group:
    trace_id = rng.randbytes(16)
    count, start = rng.randint(1, 6), now - rng.choice([SECOND // 100, SECOND])
    spans = [
        encode_span(
            trace_id=trace_id,
            span_id=rng.randbytes(8),
            parent_span_id=bytes(8) if not at else b"\1" * 8,
            name=rng.choice(["GET /", "syncPod", "Update"]),
            start=start,
            end=start + rng.choice([SECOND // 100, SECOND]),
            status=Status(2, "failed") if rng.random() < 0.1 else None,
            attributes={
                "k8s.pod.uid": f"1f3c0a52-0000-4000-8000-{rng.randint(1, 25):012}",
                "k8s.pod.name": f"web-{rng.randint(1, 25)}",
                "http.route": rng.choice(["/a", "/b", "/c"]),
                "http.response.status_code": rng.choice([200, 404, 500]),
                "vip": rng.random() < 0.3,
            },
            links=[Link(rng.choice(known[-20:]), b"\7" * 8, {})] if rng.random() < 0.3 else [],
        )
        for at in range(count)
    ]
    resource = resource_header(
        {"service.name": rng.choice(["api", "kubelet"]), "host.name": f"node-{rng.randint(1, 3)}"}
    )
    return Group(resource, scope_header("test"), trace_id, frame(spans), count)


def _pieces(rng: random.Random, group: Group) -> Iterator[Group]:
    spans = split(group.spans)
    while spans:
        many = rng.randint(1, len(spans))
        yield group._replace(spans=frame(spans[:many]), span_count=many)
        spans = spans[many:]
