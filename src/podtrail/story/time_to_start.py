"""The time until the first container of a Pod ran, in parts. Each part ends at its own end, and waits have names."""

from typing import NamedTuple

from podtrail.story.lines import Line, columns, line, safe
from podtrail.story.node_record import NodeStep
from podtrail.story.on_node import NodeStory
from podtrail.story.pod import PodStory
from podtrail.story.pod_requests import PodRequest
from podtrail.story.words import duration

_ANSWER = 160


class TimePart(NamedTuple):
    """One part of the time until a container ran."""

    what: str
    """Harmless, in one line."""
    took: int
    """Nanoseconds."""


class _Course:
    """Parts that follow one another; each begins where the one before ended."""

    def __init__(self, since: int) -> None:
        self._at = since
        self.parts: dict[str, int] = {}

    def until(self, what: str, moment: int | None) -> None:
        """Go on to a moment, if it lies ahead."""
        if moment is not None and moment > self._at:
            self.parts[what] = self.parts.get(what, 0) + moment - self._at
            self._at = moment


def time_to_start(pod: PodStory, created: PodRequest | None) -> list[TimePart]:
    """Return the parts of the time until the first container ran; nothing before it does."""
    story = pod.on_node
    starts = [step for step in story.of("start") if not step.error] if story else []
    if story is None or not starts:
        return []
    since = _since(pod, story, created)
    if since is None:
        return []
    course = _Course(since)
    _until_bound(course, pod)
    _on_node(course, story, starts[0], bound=bool(pod.attempts))
    return [TimePart(what, took) for what, took in course.parts.items()]


def _since(pod: PodStory, story: NodeStory, created: PodRequest | None) -> int | None:
    if created is not None:
        return created.start_unix_nano
    known = [step.start_unix_nano for kind in ("created", "sync", "sandbox") for step in story.of(kind)[:1]]
    known += [pod.gated_since_unix_nano] if pod.gated_since_unix_nano is not None else []
    known += [pod.attempts[0].start_unix_nano] if pod.attempts else []
    return min(known, default=None)


def _until_bound(course: _Course, pod: PodStory) -> None:
    """Go through gates, queue and attempts."""
    first = pod.attempts[0] if pod.attempts else None
    queued = None if first is None else first.start_unix_nano - (first.queue_wait or 0)
    if pod.gated_since_unix_nano is not None:
        names = ", ".join(pod.gates or pod.past_gates)
        course.until("created, until its gates were seen", pod.gated_since_unix_nano)
        course.until(f"gated{': ' if names else ''}{safe(names, _ANSWER)}", pod.gated_until_unix_nano or queued)
        course.until("free of gates, until the scheduler has it in its queue", queued)
    if first is None:
        return
    course.until("created, until the scheduler has it in its queue", queued)
    course.until("in the active queue", first.start_unix_nano)
    chosen = next((attempt for attempt in reversed(pod.attempts) if attempt.result == "Success"), None)
    if chosen is None:
        course.until("no node for it", pod.attempts[-1].end_unix_nano)
    elif chosen is first:
        course.until("scheduling and binding", chosen.end_unix_nano)
    else:
        course.until("no node for it", chosen.start_unix_nano)
        course.until("the attempt that bound it", chosen.end_unix_nano)


def _on_node(course: _Course, story: NodeStory, start: NodeStep, *, bound: bool) -> None:
    """Go through kubelet, sandbox and images to the start of the first container."""
    sync = next(iter(story.of("sync")), None)
    scheduled = next(iter(story.of("scheduled")), None)
    unknown = "queue and scheduling (not in this source)"
    if not bound and not story.static:
        course.until(unknown, scheduled.start_unix_nano if scheduled else sync.start_unix_nano if sync else None)
    course.until("bound, until the kubelet takes it on", sync.start_unix_nano if sync else None)
    sandboxes = [step for step in story.of("sandbox") if step.start_unix_nano <= start.start_unix_nano]
    if sandboxes:
        course.until("kubelet, before the sandbox (admission, volumes)", sandboxes[0].start_unix_nano)
        course.until("sandboxes that fail", sandboxes[-1].start_unix_nano)
        course.until("sandbox and network", sandboxes[-1].end)
    pulls = [step for step in story.of("pull") if step.end <= start.start_unix_nano]
    failed = False
    for pull in pulls:
        course.until("image pull back-off" if failed else "kubelet, before the image", pull.start_unix_nano)
        failed = bool(pull.error)
        course.until("images", pull.end)
    with_image = "creating and starting the container" if pulls else None
    unseen = f"{'kubelet' if sync or story.static else 'bound'}, until its first container ran"
    there = "image there already, container created and started" if sandboxes else unseen
    course.until(with_image or there, start.end)


def where_the_time_went(pod: PodStory, created: PodRequest | None) -> list[Line]:
    """Return how the time until the first container ran is shared out; nothing before it does."""
    parts = time_to_start(pod, created)
    whole = sum(part.took for part in parts)
    if not parts:
        return []
    rows = [(f"{round(100 * took / whole)} %", what, duration(took)) for what, took in parts]
    return [line(f"{duration(whole)} {_since_when(pod, created)} to its first container:"), *columns(rows, right=1)]


def where_in_a_line(pod: PodStory, created: PodRequest | None) -> list[Line]:
    """Return the three largest of these parts in one line."""
    parts = time_to_start(pod, created)
    whole = sum(part.took for part in parts)
    if not parts:
        return []
    most = sorted(parts, key=lambda part: -part.took)[:3]
    shares = ", ".join(f"{round(100 * took / whole)} % {what}" for what, took in most)
    return [line(f"{duration(whole)} {_since_when(pod, created)} to its first container: {shares}.")]


def _since_when(pod: PodStory, created: PodRequest | None) -> str:
    if created is not None or (pod.on_node and pod.on_node.of("created")):
        return "from its creation"
    return "from its first attempt" if pod.attempts else "from its first sync"
