"""A Pod's way on its node: from the binding to the containers' ends, with what kubelet and runtime wait for."""

from collections.abc import Iterator, Sequence
from typing import Final

from podtrail.story.lines import safe
from podtrail.story.node_record import NodeStep
from podtrail.story.on_node import NodeStory
from podtrail.story.pod import PodStory
from podtrail.story.way_steps import WayStep, wait
from podtrail.story.words import several

_NAME: Final = 60
_BACKOFFS: Final = frozenset({"CrashLoopBackOff", "ImagePullBackOff"})
"""What the kubelet calls its waits: they stand as gaps, not as failures."""


def steps_on_node(pod: PodStory, now: int) -> Iterator[WayStep]:
    """Yield what happened to a Pod once it had a node, until `now`."""
    story = pod.on_node
    if story is None:
        return
    yield from _taken_on(pod, story)
    for step in story.of("sandbox"):
        yield _told(step, "sandbox", "sandbox fails")
        for network in story.of("network"):
            if step.start_unix_nano <= network.start_unix_nano <= step.end:
                yield _told(network, "its network", "its network fails")._replace(depth=1)
    yield from _pulls(story, now)
    for name in dict.fromkeys(step.what for step in story.of("start")):
        yield from _container(story, name, now)
    yield from _failures(story)
    for step in story.of("ready")[:1]:
        yield WayStep("moment", "ready", step.start_unix_nano, None, step.trace_id)
    yield from _ending(story)


def _taken_on(pod: PodStory, story: NodeStory) -> Iterator[WayStep]:
    """Yield the way from the binding to the first sandbox."""
    bound = next((one.end_unix_nano for one in reversed(pod.attempts) if one.result == "Success"), None)
    sync = next(iter(story.of("sync")), None)
    if sync is None:
        return
    whose = f" of {safe(story.node, _NAME)}" if story.node else ""
    if bound is not None and sync.start_unix_nano > bound:
        yield wait("bound, until the kubelet takes it on", bound, sync.start_unix_nano)
    yield WayStep("moment", f"kubelet{whose} takes it on", sync.start_unix_nano, None, sync.trace_id)
    sandbox = next(iter(story.of("sandbox")), None)
    if sandbox is not None and sandbox.start_unix_nano > sync.start_unix_nano:
        yield wait("kubelet, before the sandbox (admission, volumes)", sync.start_unix_nano, sandbox.start_unix_nano)


def _pulls(story: NodeStory, now: int) -> Iterator[WayStep]:
    """Yield pulls of images; between a failed one and the next is back-off."""
    failed: dict[str, NodeStep] = {}
    for step in story.of("pull"):
        image = safe(step.what, _NAME) or "of a name not told"
        before = failed.pop(step.what, None)
        if before is not None and step.start_unix_nano > before.end:
            yield wait(f"back-off, until image {image} is pulled again", before.end, step.start_unix_nano)
        if step.error:
            failed[step.what] = step
        yield _told(step, f"image {image} pulled", f"pull of image {image} fails")
    for step in failed.values() if story.state == "image pull failing" else ():
        image = safe(step.what, _NAME) or "of a name not told"
        yield wait(f"back-off, until image {image} is pulled again", step.end, now, open_=True)


def _container(story: NodeStory, name: str, now: int) -> Iterator[WayStep]:
    """Yield the starts of a container, how long it ran, and what was between."""
    called = safe(name, _NAME) or "of a name not told"
    starts = [step for step in story.of("start") if step.what == name]
    ends = [step for step in story.of("exited") if step.what == name]
    over = _over(story)
    for at, step in enumerate(starts):
        following = starts[at + 1] if at + 1 < len(starts) else None
        yield _told(step, f"container {called} started", f"start of container {called} fails")
        if step.error:
            continue
        # Who watches the Pod may tell of an end when the next start is under way.
        until = following.end if following else now
        exited = next((one for one in ends if step.end <= one.start_unix_nano <= until), None)
        if exited is not None or following is not None:
            run = _run(step, called, exited, following)
            yield run
            if following is not None and following.start_unix_nano > run.end:
                yield _again(story, called, run.end, following.start_unix_nano)
            elif following is None and not over and run.bad:
                yield _again(story, called, run.end, now, open_=True)
        elif (over or now) > step.end:
            span = (over or now) - step.end
            yield WayStep("container", f"container {called} runs", step.end, span, depth=1, open=not over)


def _run(start: NodeStep, called: str, exited: NodeStep | None, following: NodeStep | None) -> WayStep:
    """Return how long a container ran: to its end, or to its next start where no one tells of that."""
    ends = [one.start_unix_nano for one in (exited, following) if one]
    how = ", exited" if exited else ""
    how += f" with {safe(exited.reason, _NAME)}" if exited and exited.reason else ""
    return WayStep(
        "container",
        f"container {called} runs{how}",
        start.end,
        max(0, min(ends) - start.end),
        exited.trace_id if exited else b"",
        depth=1,
        bad=exited is not None and bool(exited.reason) and not exited.reason.startswith("0"),
    )


def _again(story: NodeStory, called: str, since: int, until: int, *, open_: bool = False) -> WayStep:
    """Return the gap until a container is started once more."""
    said = (open_ and story.state == "crash loop") or any(
        step.reason == "CrashLoopBackOff" and since <= step.start_unix_nano <= until for step in story.of("failed")
    )
    why = "back-off (CrashLoopBackOff)" if said else "until it is started again"
    return wait(f"{why}: {called}", since, until, open_=open_)


def _failures(story: NodeStory) -> Iterator[WayStep]:
    """Yield other failures, those alike as one."""
    alike: dict[tuple[str, str], list[NodeStep]] = {}
    for step in story.of("failed"):
        if step.reason not in _BACKOFFS:
            alike.setdefault((step.reason, step.what), []).append(step)
    for (reason, what), steps in alike.items():
        of = f" of {safe(what, _NAME)}" if what else ""
        times = f", {several(len(steps), 'time')}" if len(steps) > 1 else ""
        words = f"{safe(reason, _NAME) or 'sync failed'}{of}{times}"
        yield WayStep("moment", words, steps[0].start_unix_nano, None, steps[0].trace_id, bad=True)


def _ending(story: NodeStory) -> Iterator[WayStep]:
    """Yield how it was terminated, and forgotten."""
    ending: Sequence[NodeStep] = story.of("terminating")
    if ending:
        over = max(step.end for step in ending)
        words = "its containers are stopped" if story.stopped else "terminating"
        yield WayStep("node", words, ending[0].start_unix_nano, over - ending[0].start_unix_nano, ending[0].trace_id)
    for step in story.of("terminated")[-1:]:
        yield WayStep("node", "gone from its node", step.start_unix_nano, step.took, step.trace_id)
    for step in [] if story.of("terminated") else story.of("deleted")[:1]:
        yield WayStep("moment", "gone from the API server", step.start_unix_nano, None, step.trace_id)


def _over(story: NodeStory) -> int | None:
    """Return when what ran on its node had ended at the latest; None while it may run."""
    ends = [step.end for kind in ("terminating", "terminated", "finished", "deleted") for step in story.of(kind)]
    return min(ends, default=None)


def _told(step: NodeStep, good: str, bad: str) -> WayStep:
    return WayStep(
        "node", bad if step.error else good, step.start_unix_nano, step.took, step.trace_id, bad=bool(step.error)
    )
