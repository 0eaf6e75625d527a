"""What Pods wait for, in words that are the same for Pods that wait for the same thing."""

from podtrail.otlp import read_message
from podtrail.story.bind import read_bind_refusal
from podtrail.story.pod import GATES, PodStory


def waits_for(pod: PodStory) -> str:
    """Return what a Pod waits for: `NodeResourcesFit: Insufficient cpu`."""
    if pod.state == "gated":
        return f"{GATES}: {', '.join(pod.gates)}" if pod.gates else pod.held_by
    if pod.state == "preempting":
        return "Pods on their nominated node to go"
    if pod.state == "bind refused" and pod.last:
        return str(read_bind_refusal(pod.last.bind_error))
    if pod.state == "error" and pod.last and pod.last.message:
        return pod.last.message  # not what refused other nodes before it failed
    blocker = pod.blocker
    if not pod.attempts and pod.condition_message:
        said = read_message(pod.condition_message).rejections
        blocker = max(said, key=lambda no: no.nodes or 0, default=None)
    if not blocker:
        return f"an attempt ({pod.state})"
    return f"{blocker.plugin}: {blocker.reason}" if blocker.plugin else blocker.reason
