"""Stories of Pods: whole when every attempt is kept, broken when some are, gone when none is."""

from collections import Counter, OrderedDict
from dataclasses import dataclass, field
from typing import Final, Literal, NamedTuple

from podtrail.otlp import Attempt

MOST_PODS: Final = 50_000
"""Held at a time: the story of one that had no attempt for so many others is over."""
MOST_BROKEN: Final = 200

Story = Literal["whole", "broken", "gone"]


class BrokenPod(NamedTuple):
    """A Pod of whose attempts only some are kept by the candidate, or by the baseline."""

    pod: str
    uid: str
    attempts: int
    kept: tuple[int, ...]
    """By side."""
    stories: tuple[Story, ...]
    """By side."""
    dangling: tuple[int, ...]
    """By side: links of kept spans to traces that were not kept."""


@dataclass(slots=True)
class _OpenStory:
    name: str
    uid: str
    attempts: int
    kept: list[int]
    dangling: list[int]


@dataclass(slots=True)
class PodStories:
    """Counts stories of Pods on each side."""

    sides: int
    stories: list[Counter[Story]] = field(init=False)
    """By side."""
    newly_broken: int = 0
    """Whole with the baseline, broken with the candidate."""
    mended: int = 0
    """The other way round."""
    _open: OrderedDict[str, _OpenStory] = field(default_factory=OrderedDict)
    _newly: list[BrokenPod] = field(default_factory=list)
    _still: list[BrokenPod] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Start with nothing counted."""
        self.stories = [Counter() for _ in range(self.sides)]

    def add(self, attempt: Attempt, bits: int, dangling: list[int]) -> None:
        """Count an attempt that was kept by the sides in `bits`, with links that lead nowhere on each side."""
        name = pod_name(attempt)
        key = attempt.pod_uid or name
        pod = self._open.pop(key, None) or _OpenStory(name, attempt.pod_uid, 0, [0] * self.sides, [0] * self.sides)
        self._open[key] = pod
        pod.attempts += 1
        for side in range(self.sides):
            pod.kept[side] += bits >> side & 1
            pod.dangling[side] += dangling[side]
        if len(self._open) > MOST_PODS:
            self._close(self._open.popitem(last=False)[1])

    def finish(self) -> None:
        """End all stories."""
        while self._open:
            self._close(self._open.popitem(last=False)[1])

    @property
    def broken(self) -> list[BrokenPod]:
        """Pods whose story is broken on some side: those first that the candidate breaks."""
        return (self._newly + self._still)[:MOST_BROKEN]

    def _close(self, pod: _OpenStory) -> None:
        stories = tuple(_story(kept, pod.attempts) for kept in pod.kept)
        for counted, story in zip(self.stories, stories, strict=True):
            counted[story] += 1
        newly = stories[-1] == "broken" and stories[0] == "whole"
        self.newly_broken += newly
        self.mended += stories[0] == "broken" and stories[-1] == "whole"
        listed = self._newly if newly else self._still
        if "broken" in stories and len(listed) < MOST_BROKEN:
            kept, dangling = tuple(pod.kept), tuple(pod.dangling)
            listed.append(BrokenPod(pod.name, pod.uid, pod.attempts, kept, stories, dangling))


def pod_name(attempt: Attempt) -> str:
    """Return how the Pod of an attempt is called: `namespace/name`, or its uid."""
    return f"{attempt.namespace}/{attempt.name}" if attempt.name else attempt.pod_uid or "(no name)"


def _story(kept: int, attempts: int) -> Story:
    if kept == attempts:
        return "whole"
    return "broken" if kept else "gone"
