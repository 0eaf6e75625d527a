"""What a store tells of itself, as metrics and in the log."""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from podtrail.component.metrics import Metrics

_PREFIX = "otelcol_extension_file_storage_"


@dataclass(frozen=True, slots=True)
class StorageDamage:
    """What of a store could not be read, and where it is kept."""

    file: str
    reason: str
    """`torn`, `damaged`, `missing`, `unreadable`, `foreign` or `version`."""
    size: int
    """Bytes."""
    told: str
    """What is to be said of it."""


class StorageInstruments:
    """Counters and gauges of one journal, and its log."""

    def __init__(
        self,
        folder: Path,
        metrics: Metrics | None = None,
        log: "logging.LoggerAdapter[logging.Logger] | None" = None,
        extension: str = "",
    ) -> None:
        """Make them for the journal in a folder, of the extension with this id."""
        self.folder = folder
        self._labels = (extension, folder.name)
        metrics = metrics or Metrics()
        self.log = log or logging.LoggerAdapter(logging.getLogger("podtrail"))
        where = ["extension", "storage"]
        self._written = metrics.counter(f"{_PREFIX}written_bytes", "Bytes written to segments.", where)
        self._failures = metrics.counter(
            f"{_PREFIX}failures", "Times that the disk refused something, by what.", [*where, "operation"]
        )
        self._damages = metrics.counter(
            f"{_PREFIX}damages", "Places of the store that could not be read, by what was wrong.", [*where, "reason"]
        )
        self._damaged = metrics.counter(
            f"{_PREFIX}damaged_bytes", "Bytes of the store that could not be read.", [*where, "reason"]
        )
        self._size = metrics.gauge(f"{_PREFIX}size_bytes", "Bytes of the segments on the disk.", where)
        self._failing = metrics.gauge(f"{_PREFIX}failing", "1 while the disk takes nothing.", where)

    def watch(self, size: Callable[[], int], failing: Callable[[], bool]) -> None:
        """Ask for these from now on."""
        self._size.read_from(size, *self._labels)
        self._failing.read_from(lambda: float(failing()), *self._labels)

    def wrote(self, size: int) -> None:
        """Count bytes that were written."""
        self._written.add(size, *self._labels)

    def failed(self, operation: str) -> None:
        """Count something that could not be done."""
        self._failures.add(1, *self._labels, operation)

    def failing_at(self, operation: str, error: OSError, *, first: bool) -> str:
        """Count a failure and return it in words; the first one is told."""
        self.failed(operation)
        reason = f"can't write to {self.folder}: {error.strerror}"
        if first:
            self.log.error("%s; senders are asked to come again until there is room or the disk works", reason)
        return reason

    def recovered(self) -> None:
        """Tell that the disk takes what is written again."""
        self.log.warning("%s takes what is written again", self.folder)

    def damage(self, damage: StorageDamage) -> None:
        """Count and tell what could not be read."""
        self._damages.add(1, *self._labels, damage.reason)
        self._damaged.add(damage.size, *self._labels, damage.reason)
        self.log.warning("%s", damage.told)
