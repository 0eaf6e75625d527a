"""The ledger's equation as metrics: every term, for every exporter; and an error in the log when it does not hold."""

import logging
import time
from collections.abc import Callable, Mapping, Sequence

from podtrail.component import Metrics
from podtrail.pipeline.ledger import Balance

_SILENCE_SECONDS = 60.0
_TERMS = ("received", "created", "delivered", "sampled_out", "rejected", "in_memory", "in_queue", "missing")

_HINT = (
    "a processor has lost spans, or counts them twice: put those of others through podtrail.testing.contracts, and if "
    "it is one of podtrail's own, report it with the configuration"
)


def publish_ledger(metrics: Metrics, balances: Callable[[], Sequence[Balance]]) -> None:
    """Publish `podtrail_ledger_spans{exporter,term}` and `podtrail_dropped_spans_total{exporter,reason}`.

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
        "podtrail_dropped_spans_total", "Spans lost, by reason, per exporter.", ("exporter", "reason")
    ).read_all_from(dropped)


def equation(balance: Balance, *, ended: bool = False) -> str:
    """Return the equation of one exporter in words, terms that are 0 left out: `7 received = 5 delivered + …`.

    Once all has `ended` nothing is in memory: what is to be decided by the next start is told as that.
    """
    kept = balance.undecided_stored if ended else 0
    dropped = ", ".join(f"{reason} {spans}" for reason, spans in balance.dropped.items() if spans)
    terms = {
        "delivered": balance.delivered,
        "sampled out": balance.sampled_out,
        "rejected": balance.rejected,
        f"dropped ({dropped})": sum(balance.dropped.values()),
        "kept for the next start": kept,
        "in memory": balance.in_memory - kept,
        "in queue": balance.in_queue,
        "missing": balance.missing,
    }
    became = " + ".join(f"{spans} {term}" for term, spans in terms.items() if spans)
    created = f" + {balance.created} created" if balance.created else ""
    return f"{balance.received} received{created} = {became or '0 delivered'}"


class Auditor:
    """Looks at the ledger and says when it does not balance: of each exporter what is new, once a minute at most."""

    def __init__(self, log: logging.Logger) -> None:
        self._log = log
        self._said: dict[str, tuple[float, int]] = {}
        """When it was said of an exporter, and how many spans were missing."""

    def look(self, balances: Sequence[Balance], *, at_last: bool = False) -> None:
        """Look at the ledger as it stands; `at_last`: nothing is to be left unsaid."""
        now = time.monotonic()
        for balance in balances:
            when, said = self._said.get(balance.exporter, (now - _SILENCE_SECONDS, 0))
            if balance.missing != said and (at_last or now - when >= _SILENCE_SECONDS):
                self._said[balance.exporter] = (now, balance.missing)
                self._log.error("%s: the books do not balance: %s; %s", balance.exporter, equation(balance), _HINT)
