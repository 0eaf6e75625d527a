"""What kubelet and container runtime did for one Pod, as their spans tell it: steps, each once, bounded."""

from collections import Counter
from dataclasses import dataclass, field
from typing import Final, Literal, NamedTuple

StepKind = Literal[
    "created",
    "unscheduled",
    "gated",
    "scheduled",
    "exited",
    "ready",
    "not ready",
    "disrupted",
    "resize pending",
    "resizing",
    "resized",
    "finished",
    "deleted",
    "seen started",
    "seen waiting",
    "seen deleting",
    "sync",
    "sandbox",
    "network",
    "pull",
    "create",
    "start",
    "stop",
    "failed",
    "terminating",
    "terminated",
]
_MOST_OF_A_KIND: Final = 12
_BEFORE_IT: Final = frozenset({"created", "unscheduled", "gated", "scheduled", "seen deleting", "deleted"})
_ID_LENGTH: Final = 64
_MOST_NAMES: Final = 64
_STEP_SIZE: Final = 400


class NodeStep(NamedTuple):
    """One thing that was done for a Pod on its node."""

    kind: StepKind
    start_unix_nano: int
    took: int
    """Nanoseconds."""
    what: str = ""
    """The container or the image; of a start the container's id until its name is known."""
    reason: str = ""
    """Of a failure, as the kubelet names it: `ErrImagePull`, `CrashLoopBackOff`; "" where it names none."""
    error: str = ""
    trace_id: bytes = b""

    @property
    def end(self) -> int:
        """When it was over, Unix nanoseconds."""
        return self.start_unix_nano + self.took


@dataclass(slots=True)
class NodeRecord:
    """The steps of one Pod, or those of one trace until it is known whose they are."""

    node: str = ""
    steps: dict[tuple[StepKind, bytes], NodeStep] = field(default_factory=dict)
    """By kind and the span of the kubelet: what it asks of the runtime is told by two spans."""
    parts: dict[tuple[StepKind, bytes], NodeStep] = field(default_factory=dict)
    """The same of the trace of its life, by the span that each part stands for: they count where that is not here."""
    let_go: Counter[StepKind] = field(default_factory=Counter)
    """Steps that there were beyond those that are kept: the first of a kind and the latest."""
    names: dict[str, str] = field(default_factory=dict)
    """Containers by id."""
    restarts: dict[str, int] = field(default_factory=dict)
    """How often each container was started again, as the API server counts it."""
    init_containers: set[str] = field(default_factory=set)
    """Names of init and ephemeral containers: that one of these runs does not mean that the Pod does."""
    last_good_sync: int = 0
    """When the latest sync began that succeeded, Unix nanoseconds."""
    watched: bool = False
    """Somebody who watches the Pod told of it, and so would tell that it is ready."""
    taken_on: bool = False
    """A watch showed that the kubelet has begun with the Pod."""
    mirror_uid: str = ""
    """The uid of a static Pod at the API server."""
    life_trace_id: bytes = b""
    """Of the trace of its life, if that told it."""

    @property
    def size(self) -> int:
        """About how many bytes it takes in memory."""
        steps = (*self.steps.values(), *self.parts.values())
        said = sum(_STEP_SIZE + len(step.error) for step in steps)
        return 500 + said + sum(150 + len(name) for name in self.names.values())

    @property
    def on_node(self) -> bool:
        """Whether it tells of more than what happened before the Pod had a node."""
        kinds = {kind for kind, _ in (*self.steps, *self.parts)}
        leaving = "seen deleting" in kinds and "deleted" not in kinds
        return self.taken_on or leaving or not kinds <= _BEFORE_IT

    def add(self, span: bytes, step: NodeStep) -> None:
        """Note a step; of the two spans of a call the kubelet's has the times, the runtime's the names."""
        known = self.steps.get((step.kind, span))
        if known is not None:
            begun, over = min(known.start_unix_nano, step.start_unix_nano), max(known.end, step.end)
            step = NodeStep(
                step.kind,
                begun,
                over - begun,
                known.what or step.what,
                known.reason or step.reason,
                known.error or step.error,
                step.trace_id,
            )
        if _put(self.steps, span, step):
            self.let_go[step.kind] += 1

    def add_part(self, original: bytes, part: NodeStep) -> None:
        """Note a part of the trace of its life, which stands for a span."""
        _put(self.parts, original, part)

    def name(self, container_id: str, name: str) -> None:
        """Note a container's name."""
        if len(self.names) >= _MOST_NAMES:
            del self.names[next(iter(self.names))]
        self.names[container_id] = name

    def join(self, other: "NodeRecord") -> None:
        """Take in what another telling knows."""
        self.node = self.node or other.node
        self.last_good_sync = max(self.last_good_sync, other.last_good_sync)
        self.watched = self.watched or other.watched
        self.taken_on = self.taken_on or other.taken_on
        self.mirror_uid = other.mirror_uid or self.mirror_uid
        for (_, span), step in other.steps.items():
            self.add(span, step)
        for (_, original), part in other.parts.items():
            self.add_part(original, part)
        self.let_go.update(other.let_go)
        for container_id, name in other.names.items():
            self.name(container_id, name)
        for container in other.init_containers:
            self.note_init(container)
        for container, count in other.restarts.items():
            self.count_restarts(container, count)

    def note_init(self, container: str) -> None:
        """Note that a container is an init or an ephemeral one."""
        if len(self.init_containers) < _MOST_NAMES:
            self.init_containers.add(container)

    def count_restarts(self, container: str, count: int) -> None:
        """Note how often a container was started again."""
        if container in self.restarts or len(self.restarts) < _MOST_NAMES:
            self.restarts[container] = max(count, self.restarts.get(container, 0))

    def _name_of(self, container: str) -> str:
        return self.names.get(container, "" if len(container) == _ID_LENGTH else container)

    def in_order(self) -> tuple[NodeStep, ...]:
        """Return the steps by start, containers by name, and the parts of the life whose spans are not here."""
        failed = {(step.reason, step.what) for step in self.steps.values() if step.kind == "failed"}
        at = {(step.kind, step.start_unix_nano) for step in self.steps.values()}
        missing = [
            part
            for key, part in self.parts.items()
            if key not in self.steps
            and (part.kind, part.start_unix_nano) not in at
            and (part.kind != "failed" or (part.reason, part.what) not in failed)
        ]
        named = [
            step._replace(what=self._name_of(step.what)) if step.kind == "start" else step
            for step in (*self.steps.values(), *missing)
        ]
        return tuple(sorted(named, key=lambda step: (step.start_unix_nano, step.end)))


def _put(steps: dict[tuple[StepKind, bytes], NodeStep], span: bytes, step: NodeStep) -> bool:
    """Write a step; return whether another of its kind was let go for it: the first and the latest are kept."""
    new = (step.kind, span) not in steps
    steps[step.kind, span] = step
    of_kind = [key for key in steps if key[0] == step.kind]
    if not new or len(of_kind) <= _MOST_OF_A_KIND:
        return False
    _, second, *_ = sorted(of_kind, key=lambda key: steps[key].start_unix_nano)
    del steps[second]
    return True
