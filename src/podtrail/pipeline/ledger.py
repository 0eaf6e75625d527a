"""The ledger read out: one line an exporter, with the equation checked.

    received + created = delivered + sampled_out + rejected + dropped{reason} + in_memory + in_queue

A span that two exporters get is owed twice, so the equation is kept for each of them.
"""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from podtrail.component import Ledger
from podtrail.pipeline.driver import Driver, Outlet
from podtrail.pipeline.sending import SendingQueue


@dataclass(frozen=True, slots=True)
class Balance:
    """The sums of one exporter over all pipelines that feed it, in spans."""

    exporter: str
    received: int
    created: int
    delivered: int
    sampled_out: int
    rejected: int
    in_memory: int
    in_queue: int
    dropped: Mapping[str, int] = field(default_factory=Counter)
    undecided_stored: int = 0
    """Of those in memory: what is on disk as well, or can be read again, for the next start to decide."""
    queued_stored: int = 0
    """Of those in the queue: what is on disk as well, for the next start to deliver."""
    undelivered: int = 0
    """Of those dropped: what was to be delivered. Processors drop for reasons of their own, as configured."""

    @property
    def stored(self) -> int:
        """Of those in memory and in the queue: what outlives the process."""
        return self.undecided_stored + self.queued_stored

    @property
    def missing(self) -> int:
        """Spans that nobody can account for: 0 in a sound pipeline."""
        out = self.delivered + self.sampled_out + self.rejected + sum(self.dropped.values())
        return self.received + self.created - out - self.in_memory - self.in_queue


def balance(
    exporter: str, feeding: Sequence[tuple[Driver, Outlet]], queue: SendingQueue, durable: Collection[str]
) -> Balance:
    """Return the balance of one exporter.

    Args:
        exporter: its id.
        feeding: the pipelines that feed it.
        queue: its queue.
        durable: the pipelines whose spans are on disk, or can be read again, while they are undecided.
    """
    pipelines = [driver.chain.ledger for driver, _ in feeding]
    outlets = [*[outlet.ledger for _, outlet in feeding], queue.recovered]
    dropped: Counter[str] = Counter()
    for driver, outlet in feeding:
        dropped.update(driver.chain.ledger.dropped)
        dropped.update(outlet.ledger.dropped)
    dropped.update(queue.recovered.dropped)
    return Balance(
        exporter=exporter,
        received=sum(ledger.received for ledger in pipelines)
        - sum(outlet.missed for _, outlet in feeding)
        + queue.recovered.received,
        created=sum(ledger.created for ledger in pipelines),
        delivered=sum(ledger.delivered for ledger in outlets),
        sampled_out=sum(ledger.sampled_out for ledger in pipelines),
        rejected=sum(ledger.rejected for ledger in (*pipelines, *outlets)),
        in_memory=sum(driver.held() for driver, _ in feeding),
        in_queue=queue.held(),
        dropped=dropped,
        undecided_stored=sum(driver.held() for driver, _ in feeding if driver.id in durable),
        queued_stored=queue.kept(),
        undelivered=sum(ledger.dropped.total() for ledger in outlets),
    )


def left_so_far(ledger: Ledger, held: int) -> int:
    """Return how many spans have left a pipeline towards its exporters."""
    return ledger.received + ledger.created - ledger.sampled_out - sum(ledger.dropped.values()) - held
