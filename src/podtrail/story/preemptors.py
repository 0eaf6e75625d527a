"""The preemptors of Pods, by the names of victims in the spans of attempts."""

from typing import Final

from podtrail.lru import Lru
from podtrail.story.attempt import AttemptStory
from podtrail.story.pod_end import PreemptingAttempt
from podtrail.story.pod_facts import in_cluster_of

_MOST: Final = 20_000
_MOST_OF_ONE: Final = 8
_BEFORE: Final = 1_000_000_000
_AFTER: Final = 60_000_000_000
"""Nanoseconds before and after the end of a preemptor's attempt in which a victim's end begins."""


class Preemptors:
    """Attempts that evicted others, by the names of these."""

    def __init__(self) -> None:
        self._of: Lru[str, tuple[PreemptingAttempt, ...]] = Lru(_MOST)

    def note(self, pod: str, cluster: str, attempt: AttemptStory) -> None:
        """Note the victims of an attempt for `pod`, `namespace/name`."""
        for victim in attempt.victims.names if attempt.victims else ():
            key = in_cluster_of(cluster, victim)
            told = PreemptingAttempt(pod, attempt.number or 0, attempt.trace_id, attempt.end_unix_nano)
            others = [one for one in self._of.get(key) or () if one.trace_id != attempt.trace_id]
            self._of.put(key, (*others, told)[-_MOST_OF_ONE:])

    def of(self, pod: str, cluster: str, ending: int) -> PreemptingAttempt | None:
        """Return the attempt that a Pod of this name was preempted for, if its end began at `ending`."""
        known = self._of.get(in_cluster_of(cluster, pod)) or ()
        near = [one for one in known if -_BEFORE <= ending - one.end_unix_nano <= _AFTER]
        return min(near, key=lambda one: abs(ending - one.end_unix_nano), default=None)
