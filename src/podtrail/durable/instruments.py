"""What the durable pipelines of a store tell of themselves, as metrics and in the log."""

import logging
import time
from typing import Final

from podtrail.component import Metrics
from podtrail.durable.recovery import RecoveredPipelines
from podtrail.pipeline.host import report_decided_early

_PREFIX: Final = "otelcol_extension_file_storage_"
_SECOND: Final = 1e9


class DurableInstruments:
    """The counters of one store."""

    def __init__(self, id: str, metrics: Metrics, log: logging.LoggerAdapter[logging.Logger]) -> None:
        """Make them for the store that lives in the extension `id`."""
        self._id = id
        self._log = log
        self._metrics = metrics
        labels = ("extension",)
        self._repeated = metrics.counter(
            f"{_PREFIX}repeated_spans",
            "Spans of requests that had been taken already and came again: acknowledged, not taken.",
            labels,
        )
        self._restored = metrics.counter(f"{_PREFIX}recovered_spans", "Spans replayed or restored at start.", labels)
        self._kept_back = metrics.counter(
            f"{_PREFIX}kept_back_batches", "Batches that were not delivered again at a recovery.", labels
        )
        self._unreadable = metrics.counter(f"{_PREFIX}unreadable_entries", "What a recovery could not use.", labels)
        self._abandoned = metrics.counter(
            f"{_PREFIX}abandoned_spans",
            "Spans for exporters, or from receivers, that are no longer configured.",
            labels,
        )
        self._missing = metrics.counter(
            f"{_PREFIX}missing_checkpoints",
            "Starts without a checkpoint on a log that does not reach back: what was remembered of decisions is lost.",
            labels,
        )
        self._checkpoints = metrics.counter(f"{_PREFIX}checkpoints", "Checkpoints written.", labels)
        for counter in (
            self._repeated,
            self._restored,
            self._kept_back,
            self._abandoned,
            self._missing,
            self._checkpoints,
        ):
            counter.add(0, id)

    def repeated(self, spans: int) -> None:
        """Count spans of a request that was taken before."""
        self._repeated.add(spans, self._id)

    def checkpointed(self) -> None:
        """Count a checkpoint that is on disk."""
        self._checkpoints.add(1, self._id)

    def recovered(self, found: RecoveredPipelines, seconds: float) -> None:
        """Count and tell what a recovery has found, and how long it took."""
        self._restored.add(found.spans, self._id)
        self._kept_back.add(found.kept_back, self._id)
        self._unreadable.add(found.unreadable, self._id)
        self._abandoned.add(found.abandoned, self._id)
        if found.forgets:
            self._missing.add(1, self._id)
            begin = f" before {_told(found.segments[0][1])}" if found.segments else ""
            self._log.warning(
                "there is no checkpoint, and the log does not reach back: what was decided%s is not remembered, late "
                "spans of it are decided anew, numbers of attempts begin anew",
                begin,
            )
        if found.abandoned:
            self._log.error(
                "%d spans are for exporters, or from receivers, that are no longer configured, and dropped",
                found.abandoned,
            )
        for pipeline, left in found.decided_early.items():
            report_decided_early(self._metrics, pipeline, left)
        if not found.spans:
            self._log.info("nothing to recover")
            return
        since = f" that came since {_told(found.since)}" if found.since is not None else ""
        kept_back = f", {found.kept_back} batches of which were delivered before" if found.kept_back else ""
        self._log.info("recovered %d spans%s in %.1f s%s", found.spans, since, seconds, kept_back)


def _told(moment: int) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(moment / _SECOND))
