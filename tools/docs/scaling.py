"""The tables of docs/scaling.md: measured figures, what a core takes, plans, and how near they come."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from podtrail.capacity import Circumstances, Figures, Layout, SpanCost, Traffic, layouts, measured, recommended
from podtrail.capacity.figures import FEW, SOURCE
from podtrail.cli.sizes import format_size

POINTS = Path(__file__).parents[2] / "benchmarks" / "capacity" / "points.json"
_CLUSTERS = (1, 10, 100, 1000)
_PODS = (1, 10, 100)
_SIZES = (168, 600)


def replaced(document: str) -> str:
    """Return the document with each table between its two marks.

    Raises:
        ValueError: a mark is missing.
    """
    figures = measured()
    for name, table in (("figures", _figures(figures)), ("cores", _cores(figures)), ("plans", _plans(figures))):
        document = _between(document, name, table)
    return _between(document, "points", _points(json.loads(POINTS.read_text("utf-8"))))


def _between(document: str, name: str, table: Iterator[str]) -> str:
    begin, end = f"<!-- {name}: written by ./dev docs -->", f"<!-- end of {name} -->"
    before, found, rest = document.partition(begin)
    _, closed, after = rest.partition(end)
    if not found or not closed:
        raise ValueError(f"the document needs {begin} and {end}")
    return "\n".join((before + begin, "", *table, "", end)) + after


def _figures(figures: Figures) -> Iterator[str]:
    yield f"On {figures.machine}, by `{SOURCE}`; a turn of the calibration loop takes {figures.turn_us:,.0f} us there."
    yield from ("", "| figure | what | value |", "|---|---|---|")
    for name, field in Figures.model_fields.items():
        value = getattr(figures, name)
        if isinstance(value, SpanCost):
            shown = (
                f"{value.few_us:.2f} us each of the first {FEW:,} a second, {value.span_us:.2f} us each further one, "
                f"{value.byte_ns:.1f} ns a byte"
            )
        elif name.endswith("_bytes"):
            shown = format_size(round(value))
        elif name in {"machine", "turn_us"}:
            continue
        else:
            shown = f"{value:g}"
        yield f"| `{name}` | {field.description} | {shown} |"


def _cores(figures: Figures) -> Iterator[str]:
    around = Circumstances()
    yield (
        f"| one process, {around.utilization:.0%} of a core | "
        + " | ".join(f"spans/s of {size} bytes" for size in _SIZES)
        + " |"
    )
    yield "|---|" + "---|" * len(_SIZES)
    kept = Traffic(pods_per_second=1).kept
    for what, cost in (
        ("sidecar or gateway: samples what comes over OTLP, keeps 5 %", figures.sample.and_then(figures.send, kept)),
        ("gateway on Kafka: samples what it reads, keeps 5 %", figures.sample_from_kafka.and_then(figures.send, kept)),
        ("agent: forwards over OTLP with gzip", figures.forward),
        ("agent: `load_balancing`", figures.balance),
        ("agent: writes into Kafka with zstd", figures.produce),
        ("a Kafka broker: takes in and gives out once", figures.broker),
    ):
        yield f"| {what} | " + " | ".join(f"{cost.spans(around.utilization, size):,.0f}" for size in _SIZES) + " |"


def _plans(figures: Figures) -> Iterator[str]:
    yield "| clusters | Pods/s each | spans/s | least layout | gateways | partitions | memory | disk |"
    yield "|---|---|---|---|---|---|---|---|"
    for clusters in _CLUSTERS:
        for pods in _PODS:
            traffic = Traffic(pods_per_second=pods, clusters=clusters)
            layout = recommended(layouts(traffic, Circumstances(), figures), traffic)
            yield _row(traffic, layout)


def _row(traffic: Traffic, layout: Layout) -> str:
    gateways = sum(tier.replicas for tier in layout.tiers if tier.name == "gateways")
    cells: Sequence[object] = (
        f"{traffic.clusters:,}",
        f"{traffic.pods_per_second:g}",
        f"{traffic.spans:,.0f}",
        f"`{layout.name}`" if not layout.refusal else layout.refusal,
        gateways or "",
        layout.partitions or "",
        format_size(round(sum(tier.memory * tier.replicas for tier in layout.tiers if tier.name == "gateways"))),
        format_size(round(layout.disk)),
    )
    return "| " + " | ".join(map(str, cells)) + " |"


def _points(points: Sequence[dict[str, Any]]) -> Iterator[str]:
    yield from ("| laid out | what | planned | measured | planned : measured |", "|---|---|---|---|---|")
    for point in points:
        for each in point["quantities"]:
            planned, found = (_shown(each["unit"], each[key]) for key in ("planned", "measured"))
            ratio = each["planned"] / each["measured"]
            yield f"| {point['point']} | {each['name']} | {planned} | {found} | {ratio:.2f} |"


def _shown(unit: str, value: float) -> str:
    if unit == "bytes":
        return format_size(round(value))
    return f"{format_size(round(value))}/s" if unit == "bytes a second" else f"{value:.3g} {unit}"
