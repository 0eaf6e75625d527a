"""Attempts that are no longer held with their Pod, in brief: with them, those of a range of time are all counted.

Bounded in bytes. Times are Unix nanoseconds.
"""

from collections import Counter, OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from podtrail.lru import Lru
from podtrail.otlp import Why
from podtrail.story.attempt import AttemptStory, SpanFindings
from podtrail.story.pod import PodStory
from podtrail.story.refusal_index import plugins_that_refused

_SLOW: Final = 1_000_000_000
_SHARED: Final = 1_000
"""Reasons that are remembered, so that attempts that met the same have it once."""
_SIZE: Final = 750


class CountedAttempt(NamedTuple):
    """An attempt with what is needed to count it."""

    attempt: AttemptStory
    key: str
    """The Pod's."""
    cluster: str


@dataclass(frozen=True, slots=True)
class PastAttempts:
    """What is known of attempts that are no longer held. It does not change."""

    attempts: tuple[CountedAttempt, ...] = ()
    gone: int = 0
    """Attempts that not even this knows."""
    gone_until: int = 0
    """When the latest of those that are gone ended; 0 for none."""

    def by_pod(self, pods: Iterable[PodStory]) -> dict[str, list[AttemptStory]]:
        """Return those that these Pods don't hold by the key of their Pod."""
        found: dict[str, list[AttemptStory]] = {}
        for one in self._without(pods):
            found.setdefault(one.key, []).append(one.attempt)
        return found

    def with_held(self, pods: Sequence[PodStory]) -> Iterator[CountedAttempt]:
        """Yield these and those that are held, in no order, each once."""
        yield from self._without(pods)
        for pod in pods:
            for attempt in pod.attempts:
                yield CountedAttempt(attempt, pod.key, pod.cluster)

    def _without(self, pods: Iterable[PodStory]) -> Iterator[CountedAttempt]:
        # An attempt that was told again after its Pod was forgotten is held once more.
        if self.attempts:
            held = {_which(attempt) for pod in pods for attempt in pod.attempts}
            yield from (one for one in self.attempts if _which(one.attempt) not in held)

    def all_since(self, start: int) -> bool:
        """Return whether every attempt that was seen and ended from a moment on is known."""
        return not self.gone or self.gone_until < start


class PastAttemptRing:
    """Takes in attempts as they are let go of; the oldest of these go for good."""

    def __init__(self) -> None:
        self.size = 0
        """About how many bytes are held."""
        self._ring: OrderedDict[tuple[bytes, bytes], tuple[CountedAttempt, int]] = OrderedDict()
        self._reasons: Lru[Why, Why] = Lru(_SHARED)
        self.refused = Counter[str]()
        """In how many of these attempts each plugin said no."""
        self._gone = 0
        self._gone_until = 0

    def note(self, attempt: AttemptStory, key: str, cluster: str) -> None:
        """Take in an attempt that its Pod lets go of; nothing where it was taken in before."""
        if _which(attempt) not in self._ring:
            self._put(attempt, key, cluster)

    def found(self, trace_id: bytes, span_id: bytes, findings: SpanFindings) -> None:
        """Take in what the spans of an attempt tell that come after it was let go of; nothing for any other."""
        told = self._ring.get((trace_id, span_id))
        if told is None:
            return
        (attempt, key, cluster), size = told
        better = attempt.found(findings)
        if _brief(better, better.why) != attempt:
            self.size -= size
            self.refused.subtract(plugins_that_refused(attempt))
            self._put(better, key, cluster)

    def _put(self, attempt: AttemptStory, key: str, cluster: str) -> None:
        known = self._reasons.get(attempt.why)
        if known is None:
            self._reasons.put(attempt.why, attempt.why)
        brief = _brief(attempt, known or attempt.why)
        size = _SIZE + len(brief.message) + len(brief.bind_error) + 200 * len(brief.phases)
        size += 0 if known else attempt.size
        self._ring[_which(attempt)] = CountedAttempt(brief, key, cluster), size
        self.size += size
        self.refused.update(plugins_that_refused(brief))

    def shrink(self, most: int) -> None:
        """Let go of the oldest until so many bytes are held at most."""
        while self.size > most and self._ring:
            _, ((attempt, _, _), size) = self._ring.popitem(last=False)
            self.size -= size
            self.refused.subtract(plugins_that_refused(attempt))
            self._gone += 1
            self._gone_until = max(self._gone_until, attempt.end_unix_nano, attempt.start_unix_nano)

    @property
    def gone_until(self) -> int:
        """When the latest of those ended that not even this knows; 0 for none."""
        return self._gone_until

    def told(self) -> PastAttempts:
        """Return what is known of them."""
        return PastAttempts(tuple(one for one, _ in self._ring.values()), self._gone, self._gone_until)


def _which(attempt: AttemptStory) -> tuple[bytes, bytes]:
    return attempt.trace_id, attempt.span_id


def _brief(attempt: AttemptStory, why: Why) -> AttemptStory:
    """Return an attempt without what no sum asks for; where the time went is left for slow ones."""
    slow = (attempt.duration or 0) >= _SLOW
    return replace(
        attempt,
        why=why,
        message="" if why.rejections else attempt.message,
        reason="",
        scores=None,
        victims=None,
        slowest=attempt.slowest if slow else None,
        phases=attempt.phases if slow else (),
        phase_sums=attempt.phase_sums,
    )
