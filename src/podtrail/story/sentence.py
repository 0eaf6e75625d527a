"""A Pod's story in one or two sentences."""

from podtrail.story.lifetime import node_words
from podtrail.story.on_node import NodeStory
from podtrail.story.pod import PodStory, who_said_no
from podtrail.story.words import duration

_ALL = 99


def sentence(pod: PodStory, now: int) -> str:
    """Return what holds a Pod back, or how it got its node, at `now`. Its words are not escaped."""
    if pod.on_node is not None:
        return _on_node(pod, pod.on_node, now)
    waited = pod.waiting(now)
    least = "" if pod.since_its_first else "at least "
    pending = "Pending" if waited is None else f"Pending for {least}{duration(waited)}"
    last = pod.last
    match pod.state:
        case "scheduled":
            on = f" on {pod.node}" if pod.node else ""
            after = f" in {duration(waited)}" if waited is not None else ""
            slow = f". Slow: {pod.headline}" if pod.slow else ""
            return f"Scheduled{on}{after}{slow}."
        case "deleted":
            left = f"{pod.left_as}: {pod.headline}" if pod.headline else f"{pod.left_as}"
            return f"Deleted while {left}."
        case "gated":
            held = f"Gates left: {', '.join(pod.gates)}" if pod.gates else pod.held_by
            return f"{pending}: gated, the scheduler has not tried it. {held}."
        case "waiting" if not pod.attempts:
            return f"{pending}: the scheduler has not tried it."
        case "waiting":
            return f"{pending}: no attempt with a result was seen."
        case "binding":
            return f"{pending}: being bound to {pod.node}."
        case "bind refused":
            found = f", last {pod.node}" if pod.node else ""
            return f"{pending}: a node was found{found}, but the bind was refused. {_same(pod)}".strip()
        case "preempting":
            node = f" on {pod.node}" if pod.node else ""
            return f"{pending}: preempting{node}. {_refused(pod)}{_same(pod)}".strip()
        case "error":
            said = f" {last.message}" if last and last.message else ""
            return f"{pending}: the last attempt failed with an error.{said}"
        case "unschedulable":
            return f"{pending}: no node fits. {_refused(pod)}{_same(pod)}".strip()
        case _:
            raise AssertionError(f"{pod.state} without a node's story")


def _on_node(pod: PodStory, story: NodeStory, now: int) -> str:
    failure = story.failure if story.failing else None
    said = f" {failure.reason or 'Failure'}: {failure.error}" if failure else ""
    slow = f" Slow: {pod.headline}." if pod.slow else ""
    return f"{pod.state.capitalize()}{node_words(pod, story, now)}.{said}{slow}"


def _refused(pod: PodStory) -> str:
    told = pod.explained
    return f"{who_said_no(told.why, _ALL)}. " if told and told.why.rejections else ""


def _same(pod: PodStory) -> str:
    if pod.same < 2:
        return ""
    if pod.same == pod.seen:
        of = f" of {pod.tries:,}" if pod.tries > pod.seen else ""
        return f"Same in all {pod.seen:,} attempts seen{of}."
    return f"Same in the last {pod.same:,} of {pod.tries:,} attempts."
