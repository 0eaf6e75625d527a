"""A Pod after it was bound: what its node says of it, as a state and as steps."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from podtrail.otlp.pod_transition import WARNINGS
from podtrail.story.node_record import NodeRecord, NodeStep, StepKind
from podtrail.story.pod_state import PodState

_IMAGE_REASONS: Final = frozenset(
    {
        "ErrImagePull",
        "ImagePullBackOff",
        "ErrImageNeverPull",
        "InvalidImageName",
        "ImageInspectError",
        "RegistryUnavailable",
        "SignatureValidationFailed",
    }
)
"""What the kubelet calls a failure to get an image (its `pkg/kubelet/images`)."""


_LOOP: Final = 15 * 60 * 1_000_000_000
"""Nanoseconds between failures of one loop: at most 5 minutes of back-off, which ends once a container ran for 10."""


@dataclass(frozen=True, slots=True)
class NodeStory:
    """What a node's spans tell of a Pod."""

    node: str
    """As the kubelet's resource names it; "" where it does not."""
    state: PodState
    since_unix_nano: int
    failure: NodeStep | None
    """The latest failure."""
    failing: bool
    """Nothing succeeded since."""
    containers: tuple[str, ...]
    """Those that were started and whose names are told."""
    ran: bool
    """A container was started."""
    restarts: int
    ready_unix_nano: int | None
    """Since when it is ready; None where it is not, or nobody tells who watches the Pod."""
    unready_unix_nano: int | None
    """Since when it is no longer ready; None where it is, was never, or that is unknown."""
    initializing: tuple[str, ...]
    """Init containers that have started and not ended, while no other container has started."""
    watched: bool
    """Somebody watches the Pod: were it ready, that would be told."""
    static: bool
    """Its kubelet has it from a file: it is never scheduled, and runs on when its mirror is deleted."""
    stopped: bool | None
    """Its containers were running and were stopped, or had ended when it was terminated; None where nobody tells."""
    finalizers: str
    """Names of the finalizers that keep a Pod whose deletion was asked for; "" if there are none."""
    steps: tuple[NodeStep, ...]
    """By start."""
    more: int
    """Steps that are not held."""

    def of(self, kind: str) -> list[NodeStep]:
        """Return the steps of a kind by start."""
        return [step for step in self.steps if step.kind == kind]


def tell_node(record: NodeRecord) -> NodeStory:
    """Return the story that a record tells; it has at least one step."""
    steps = _of_latest_mirror(_without_echoes(record.in_order()), static=bool(record.mirror_uid))
    starts = [step for step in steps if step.kind == "start" and not step.error]
    failures = [step for step in steps if step.kind == "failed"]
    failure = failures[-1] if failures else None
    good = max(record.last_good_sync, *(step.end for step in starts), 0)
    ready, unready = _readiness(steps)
    failing = failure is not None and failure.start_unix_nano >= good
    if failure is not None and failure.reason in WARNINGS and ready is not None:
        failing = False  # a volume of a Pod that serves can't be mounted again, for example
    own = [step for step in starts if step.what not in record.init_containers]
    state, since = _state(steps, own, failure if failing else None, whole=not record.let_go["failed"])
    return NodeStory(
        node=record.node,
        state=state,
        since_unix_nano=since,
        failure=failure,
        failing=failing,
        containers=tuple(dict.fromkeys(step.what for step in starts if step.what)),
        ran=bool(starts),
        restarts=max(_restarts(starts) + record.let_go["start"], sum(record.restarts.values())),
        ready_unix_nano=ready,
        unready_unix_nano=unready,
        initializing=() if own else _going_on(steps, starts),
        watched=record.watched,
        static=bool(record.mirror_uid),
        stopped=_stopped(record),
        finalizers=_finalizers(steps),
        steps=steps,
        more=record.let_go.total(),
    )


def _state(
    steps: Sequence[NodeStep], starts: Sequence[NodeStep], failing: NodeStep | None, *, whole: bool
) -> tuple[PodState, int]:
    over = {step.kind: step.end for step in steps}
    if "terminated" in over or "deleted" in over:
        return "terminated", over.get("deleted", over.get("terminated", 0))
    if "finished" in over:
        return "terminated", over["finished"]
    ending = [step for step in steps if step.kind in ("terminating", "seen deleting")]
    if ending:
        return "terminating", ending[0].start_unix_nano
    if failing is not None:
        since = _failing_since(steps, failing, whole=whole)
        if failing.reason in _IMAGE_REASONS:
            return "image pull failing", since
        return ("crash loop" if failing.reason == "CrashLoopBackOff" else "start failing"), since
    if starts:
        return "running", starts[-1].end
    if (ready := _readiness(steps)[0]) is not None:
        return "running", ready
    first = next((step for step in steps if step.kind not in ("created", "unscheduled", "gated")), steps[0])
    return "starting", first.start_unix_nano


def _failing_since(steps: Sequence[NodeStep], failing: NodeStep, *, whole: bool) -> int:
    """Return when the failures began that a failure is the latest of; not `whole` means that some are not held."""
    alike = _IMAGE_REASONS if failing.reason in _IMAGE_REASONS else {failing.reason}
    since = failing.start_unix_nano
    for step in reversed(steps):
        near = not whole or since - step.start_unix_nano <= _LOOP
        if step.kind == "failed" and step.reason in alike and step.start_unix_nano < since and near:
            since = step.start_unix_nano
    return since


_ECHOES: Final[dict[str, StepKind]] = {"seen started": "start", "seen waiting": "failed"}
"""What a watch tells that the kubelet tells better."""


def _without_echoes(steps: Sequence[NodeStep]) -> tuple[NodeStep, ...]:
    """Leave out what the watch tells of what the kubelet told; where the kubelet is silent the watch's word counts."""
    kinds = {step.kind for step in steps}
    told = []
    for step in steps:
        better = _ECHOES.get(step.kind)
        if better is None:
            told.append(step)
        elif better not in kinds:
            told.append(step._replace(kind=better, error=step.error if better == "failed" else ""))
    return tuple(told)


def _of_latest_mirror(steps: tuple[NodeStep, ...], *, static: bool) -> tuple[NodeStep, ...]:
    """Leave out that a mirror Pod is deleted, and the end of one that was made again: the static Pod goes on."""
    if static:
        steps = tuple(step for step in steps if step.kind != "seen deleting")
    created = [step.start_unix_nano for step in steps if step.kind == "created"]
    if len(created) < 2:
        return steps
    ends = ("seen deleting", "deleted")
    return tuple(step for step in steps if step.kind not in ends or step.start_unix_nano > created[-1])


def _finalizers(steps: Sequence[NodeStep]) -> str:
    deleting = [step.what for step in steps if step.kind == "seen deleting"]
    return deleting[-1] if deleting and not any(step.kind == "deleted" for step in steps) else ""


def _stopped(record: NodeRecord) -> bool | None:
    kinds = {kind for kind, _ in record.steps}
    if "stop" in kinds:
        return True
    return False if "terminating" in kinds else None


def _readiness(steps: Sequence[NodeStep]) -> tuple[int | None, int | None]:
    """Return since when a Pod is ready, and since when it no longer is."""
    since = lost = None
    for step in steps:
        if step.kind == "ready":
            since, lost = step.start_unix_nano, None
        elif step.kind in ("not ready", "exited", "finished", "terminating", "terminated", "deleted"):
            since, lost = None, lost if since is None else step.start_unix_nano
    return since, lost


def _going_on(steps: Sequence[NodeStep], starts: Sequence[NodeStep]) -> tuple[str, ...]:
    """Return the containers that have started and not ended."""
    ended = {step.what: step.start_unix_nano for step in steps if step.kind == "exited"}
    begun = {step.what: step.start_unix_nano for step in starts}
    return tuple(name for name, start in begun.items() if name and ended.get(name, -1) < start)


def _restarts(starts: Sequence[NodeStep]) -> int:
    counts = Counter(step.what for step in starts if step.what)
    return sum(counts.values()) - len(counts)
