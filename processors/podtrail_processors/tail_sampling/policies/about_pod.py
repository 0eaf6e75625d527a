"""`about_pod`: traces that say which Pod they are about, or that others can say it of."""

from typing import Final

from podtrail.otlp import Decision
from podtrail.otlp.native import has
from podtrail_processors.evidence.evidence import Evidence
from podtrail_processors.tail_sampling.voting.evaluator import Evaluator, PolicyConfig

_SIGNS: Final = {
    b"k8s.pod.uid": "a Pod's uid",
    b"/pods/": "a Pod's name in a path",
    b"/events": "a request about Events",
    b"/token": "a request for a ServiceAccount's token",
    b"sandbox.id": "a sandbox's id",
    b"container.id": "a container's id",
    b"task.id": "a task's id",
    b"cni.id": "a sandbox's id",
}
"""Among the bytes of a trace, looked for without decoding: one that is there by chance costs no more than a yes."""


class AboutPod(Evaluator):
    """Says yes to what may belong to the story of a Pod, and does so at a glance."""

    reason = "it may be about a Pod"

    def vote(self, trace: Evidence) -> Decision:
        """Look for a sign."""
        raw = trace.raw
        for sign in _SIGNS:
            if has(raw, sign):
                return "sampled"
        return "not_sampled"

    def because(self, trace: Evidence) -> str:
        """Tell the sign."""
        sign = next((told for sign, told in _SIGNS.items() if sign in trace.raw), "")
        return f"it has {sign}" if sign else self.reason

    def why_not(self, trace: Evidence) -> str:  # noqa: ARG002 - there is nothing to tell of it
        """Tell what it lacks."""
        return "it says of no Pod, no Event, no sandbox and no container"


class Config(PolicyConfig):
    """Has no settings."""

    def create(self) -> Evaluator:
        """Return the policy."""
        return AboutPod()
