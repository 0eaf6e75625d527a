"""What linked traces tell of themselves."""

from collections.abc import Callable

from podtrail.component import Metrics
from podtrail_processors.tail_sampling.leaving.linked.joins import join_of
from podtrail_processors.tail_sampling.leaving.linked.web import Tie

_PREFIX = "otelcol_processor_tail_sampling_linked_"


class LinkInstruments:
    """The instruments, made once."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics
        self._kept = metrics.counter(
            _PREFIX + "traces_kept",
            "Traces that no policy kept, kept because they are linked with one that is: by a link or an attribute.",
            ("by",),
        )
        self.pushed_out = metrics.counter(
            _PREFIX + "grace_pushed_out", "Traces that stopped resting early to stay within grace_max_bytes."
        )
        self.refused = metrics.counter(
            _PREFIX + "quota_hits", "How often traces were not kept for want of max_linked_traces."
        )
        self.forgotten = metrics.counter(
            _PREFIX + "forgotten_early", "Kept traces forgotten before their time to stay within max_remembered."
        )

    def kept_by(self, tie: Tie) -> None:
        """Count a linked trace that is kept."""
        self._kept.add(1, join_of(tie.key))

    def watch(self, *, traces: Callable[[], float], size: Callable[[], float], keys: Callable[[], float]) -> None:
        """Have the state shown."""
        self._metrics.gauge(_PREFIX + "grace_traces", "Traces that rest, to be rescued or let go.").read_from(traces)
        self._metrics.gauge(_PREFIX + "grace_bytes", "Bytes that they take.").read_from(size)
        self._metrics.gauge(_PREFIX + "remembered", "Ids and values by which kept traces are remembered.").read_from(
            keys
        )
