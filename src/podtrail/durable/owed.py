"""What left the chains and no exporter is done with yet: kept for the checkpoint, noted in the log at its end."""

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence

from podtrail.durable.records import LoggedDeliveries, key_of
from podtrail.otlp import Batch
from podtrail.storage import Journal

Way = tuple[str, str]
"""A pipeline and one of its exporters."""


def _later() -> None:
    """Note nothing: the journal is not open yet."""


class Owed:
    """The batches that exporters owe to the pipelines of one store."""

    def __init__(self) -> None:
        self.spans = 0
        """In all of it."""
        self._write: Callable[[], None] = _later
        self._owed: dict[Way, dict[int, tuple[bytes, Batch]]] = defaultdict(dict)
        self._ended: dict[Way, list[bytes]] = defaultdict(list)
        self._number = 0

    def written_by(self, write: Callable[[], None]) -> None:
        """Call `write` when there is something to be noted and there was nothing before, and now if there is."""
        self._write = write
        if self._ended:
            write()

    def begin(self, pipeline: str, exporter: str, batch: Batch) -> Callable[[], None]:
        """Owe a batch to an exporter; return what is to be called when it is done with it."""
        key = key_of(batch)
        way = (pipeline, exporter)
        self._number += 1
        number = self._number
        self._owed[way][number] = (key, batch)
        self.spans += batch.span_count

        def end() -> None:
            del self._owed[way][number]
            self.spans -= batch.span_count
            if not self._ended:
                self._write()
            self._ended[way].append(key)

        return end

    def note(self, journal: Journal, now: int) -> None:
        """Have it written what has ended by `now`, Unix nanoseconds."""
        for (pipeline, exporter), keys in self._ended.items():
            journal.add(LoggedDeliveries(pipeline, exporter, now, keys).entry())
        self._ended.clear()

    def batches(self) -> Sequence[tuple[Way, Batch]]:
        """Return what is owed, in the order in which it left the chains, exporter by exporter."""
        return [(way, batch) for way, owed in self._owed.items() for _, batch in owed.values()]

    def since(self) -> int | None:
        """Return the arrival of the oldest of it, Unix nanoseconds."""
        return min((batch.arrived for owed in self._owed.values() for _, batch in owed.values()), default=None)


class Suppressed:
    """What a predecessor has delivered: when it leaves the chains once more, it goes nowhere."""

    def __init__(self) -> None:
        self._keys: dict[Way, Counter[bytes]] = defaultdict(Counter)
        self.batches = 0
        """How many have been kept back."""

    def learn(self, done: LoggedDeliveries) -> None:
        """Take note of deliveries."""
        self._keys[done.pipeline, done.exporter].update(done.keys)

    def keeps_back(self, pipeline: str, exporter: str, batch: Batch) -> bool:
        """Say whether a batch was delivered; each delivery keeps back one."""
        keys = self._keys.get((pipeline, exporter))
        if not keys or not keys[key := key_of(batch)]:
            return False
        keys[key] -= 1
        self.batches += 1
        return True
