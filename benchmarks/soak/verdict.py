"""What a soak came to: a line a promise, with what was seen and whether it holds."""

from collections.abc import Iterator, Sequence
from statistics import linear_regression
from typing import NamedTuple

from benchmarks.soak.backend import Backend
from benchmarks.soak.clients import Clients
from benchmarks.soak.lives import Life, Lives, Sample

_MIB = 1 << 20
_MINUTE = 60.0
_ENOUGH = 12
"""Samples of a life that can tell growth from beginning."""
_WARM = 720.0
"""Seconds until allocators have settled: under the same requests a life has 119.3 MB after 3 minutes, 123.0 after 8,
123.4 after 13, 123.6 after 15."""
_MORE_MEMORY, _MORE_SHARE = 12 * _MIB, 0.1
_YOUNG_MEMORY = 40 * _MIB
"""What a life that is younger may have grown by: +12.1 MiB in 43 s were seen of one that then stayed level."""
_MORE_DESCRIPTORS = 10
_MORE_THREADS = 6
_LARGEST_STORE = 96 * _MIB
_IN_FLIGHT = 4 * 8192
"""Spans that can be on their way to the backend at a kill: so many consumers of the queue, with a batch each."""


class Line(NamedTuple):
    """A promise."""

    what: str
    seen: str
    holds: bool


class Verdict:
    """The lines."""

    def __init__(self, clients: Clients, backend: Backend, lives: Lives) -> None:
        lost = backend.missing(clients.acknowledged)
        store = [sample.store for life in lives.all for sample in life.samples]
        failures = lives.failures()
        often = f"{lives.kills} kills, {lives.reloads} reloads, {len(lives.all)} starts"
        ready = max(life.ready for life in lives.all)
        self._lines = [
            Line("acknowledged spans", f"{clients.spans:,}, {clients.tries} tries; {often}", clients.spans > 0),
            Line("to be kept, acknowledged and lost", f"{lost:,}", lost == 0),
            Line("not to be kept, and delivered", f"{backend.unwanted:,}", backend.unwanted == 0),
            Line("delivered twice", f"{backend.repeated:,}", backend.repeated <= lives.kills * _IN_FLIGHT),
            Line("refused for good", "; ".join(clients.errors[:3]) or "0", not clients.errors),
            *_growth(lives.all),
            Line(
                "store on disk",
                f"{max(store) / _MIB:.1f} MiB at most, {store[-1] / _MIB:.1f} at the end",
                store[-1] < _LARGEST_STORE,
            ),
            Line("ledger's term missing", f"{lives.missing:g}", lives.missing == 0),
            Line("ends by SIGTERM", "; ".join(lives.bad_ends) or "in order", not lives.bad_ends),
            Line("errors in the log", "; ".join(failures[:3]) or "0", not failures),
            Line("longest start", f"{ready:.1f} s", True),
        ]

    @property
    def broken(self) -> bool:
        """Whether a promise does not hold."""
        return not all(line.holds for line in self._lines)

    def table(self) -> str:
        """Return the lines as text."""
        return "\n".join(f"{'ok  ' if line.holds else 'FAIL'} {line.what:<36} {line.seen}" for line in self._lines)


def _growth(lives: Sequence[Life]) -> Iterator[Line]:
    """Yield what grew in the later part of each life, which is when it has what it needs; the worst of all.

    That is what comes after the warm-up where a life is long enough for it, and else the second half of each.
    """
    spans = [life.samples for life in lives if len(life.samples) >= _ENOUGH]
    if warm := [late for samples in spans if len(late := _warm(samples)) >= _ENOUGH]:
        parts, which, least = warm, f"once a life is {_WARM / _MINUTE:g} min old", _MORE_MEMORY
    else:
        parts = [samples[len(samples) // 2 :] for samples in spans]
        which, least = "in the second half of a life", _YOUNG_MEMORY
    if not parts:
        yield Line("growth", "no life was long enough to tell", True)
        return
    worst = max(parts, key=_memory_growth)
    grown, had = _memory_growth(worst), worst[0].memory
    yield Line(
        f"memory, {which}",
        f"{grown / _MIB:+.1f} MiB of {had / _MIB:.0f} in {(worst[-1].time - worst[0].time):.0f} s",
        grown <= max(least, _MORE_SHARE * had),
    )
    descriptors = max(part[-1].descriptors - part[0].descriptors for part in parts)
    yield Line("descriptors, likewise", f"{descriptors:+}", descriptors <= _MORE_DESCRIPTORS)
    threads = max(part[-1].threads - part[0].threads for part in parts)
    yield Line("threads, likewise", f"{threads:+}", threads <= _MORE_THREADS)


def _warm(samples: Sequence[Sample]) -> Sequence[Sample]:
    return [sample for sample in samples if sample.time >= _WARM]


def _memory_growth(samples: Sequence[Sample]) -> float:
    """Return by how many bytes memory grew, as a straight line through the samples has it."""
    slope = linear_regression([sample.time for sample in samples], [float(s.memory) for s in samples]).slope
    return slope * (samples[-1].time - samples[0].time)
