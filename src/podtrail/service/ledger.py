"""The ledger's equation as metrics: every term of it, for every exporter."""

from collections.abc import Callable, Mapping, Sequence

from podtrail.component import Metrics
from podtrail.pipeline.book import Balance

_TERMS = ("received", "created", "delivered", "sampled_out", "rejected", "in_memory", "in_queue", "missing")


def publish_ledger(metrics: Metrics, balances: Callable[[], Sequence[Balance]]) -> None:
    """Publish `podtrail_ledger_spans{exporter,term}` and `podtrail_dropped_spans{exporter,reason}`.

    received + created = delivered + sampled_out + rejected + dropped + in_memory + in_queue; `missing` is what the
    equation lacks and always 0 in a sound pipeline.
    """

    def terms() -> Mapping[tuple[str, ...], float]:
        return {(b.exporter, term): float(getattr(b, term)) for b in balances() for term in _TERMS}

    def dropped() -> Mapping[tuple[str, ...], float]:
        return {(b.exporter, reason): float(spans) for b in balances() for reason, spans in b.dropped.items()}

    metrics.gauge(
        "podtrail_ledger_spans", "Spans by what became of them, per exporter.", ("exporter", "term")
    ).read_all_from(terms)
    metrics.gauge(
        "podtrail_dropped_spans", "Spans lost, by reason, per exporter.", ("exporter", "reason")
    ).read_all_from(dropped)
