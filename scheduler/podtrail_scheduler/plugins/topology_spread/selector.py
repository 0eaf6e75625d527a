"""Selectors that are put together from several."""

from collections.abc import Hashable, Mapping
from typing import NamedTuple

from podtrail_scheduler.objects import LabelSelector, Pod


class Selector(NamedTuple):
    """All parts must match; None selects nothing."""

    parts: tuple[LabelSelector, ...] | None

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Whether `labels` are selected."""
        return self.parts is not None and all(part.matches(labels) for part in self.parts)

    @property
    def empty(self) -> bool:
        """Whether it has no condition."""
        return self.parts is not None and all(part.empty for part in self.parts)

    @property
    def question(self) -> Hashable:
        """A hashable stand-in: equal for equal selectors."""
        return None if self.parts is None else tuple(part.question for part in self.parts)

    def matching_pods(self, pods: Mapping[str, Pod], namespace: str) -> int:
        """How many of the Pods are selected, in the namespace and not on their way out; none when it is empty."""
        if self.empty:
            return 0
        return sum(
            other.deletion_timestamp is None and other.namespace == namespace and self.matches(other.labels)
            for other in pods.values()
        )
