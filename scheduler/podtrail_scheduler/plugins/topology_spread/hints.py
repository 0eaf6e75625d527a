"""Which events may turn a refusal by PodTopologySpread."""

from collections.abc import Callable, Sequence

from podtrail_scheduler.framework.events import Happening, Hint
from podtrail_scheduler.objects import Node, Pod

from .constraints import Constraint, has_keys

HardConstraints = Callable[[Pod], Sequence[Constraint]]


class SpreadHints:
    """Looks at events with the constraints of the Pod that waits."""

    def __init__(self, constraints: HardConstraints) -> None:
        self._constraints = constraints

    def after_assigned_pod(self, pod: Pod, happening: Happening) -> Hint:
        """A Pod that counts came, went or changed its labels."""
        old, new = happening.old, happening.new
        assert old is None or isinstance(old, Pod)
        assert new is None or isinstance(new, Pod)
        if any(each is not None and not _involved(each, pod) for each in (old, new)):
            return Hint.SKIP
        constraints = self._constraints(pod)
        if old is not None and new is not None:
            return _after_label_change(old, new, constraints)
        changed = new or old
        assert changed is not None
        return Hint.QUEUE if any(each.selector.matches(changed.labels) for each in constraints) else Hint.SKIP

    def after_target_pod(self, pod: Pod, happening: Happening) -> Hint:
        """The Pod itself tolerates more where that counts, or has other labels."""
        old, new = happening.old, happening.new
        assert isinstance(old, Pod)
        assert isinstance(new, Pod)
        constraints = self._constraints(pod)
        if old.tolerations != new.tolerations and any(each.honors_taints for each in constraints):
            return Hint.QUEUE
        return _after_label_change(old, new, constraints)

    def after_node(self, pod: Pod, happening: Happening) -> Hint:
        """A node with the labels came or went, got or lost them, moved to another domain, or has other taints."""
        old, new = happening.old, happening.new
        assert old is None or isinstance(old, Node)
        assert new is None or isinstance(new, Node)
        constraints = self._constraints(pod)
        was = old is not None and has_keys(old.labels, constraints)
        is_now = new is not None and has_keys(new.labels, constraints)
        if old is None or new is None:
            hopeful = was or is_now
        elif was != is_now:
            hopeful = True
        else:
            moved = any(old.labels.get(c.topology_key) != new.labels.get(c.topology_key) for c in constraints)
            hopeful = is_now and (moved or old.taints != new.taints)
        return Hint.QUEUE if hopeful else Hint.SKIP


def _involved(other: Pod, pod: Pod) -> bool:
    return bool(other.node_name or other.nominated_node_name) and other.namespace == pod.namespace


def _after_label_change(old: Pod, new: Pod, constraints: Sequence[Constraint]) -> Hint:
    if old.labels == new.labels:
        return Hint.SKIP
    changed = any(each.selector.matches(old.labels) != each.selector.matches(new.labels) for each in constraints)
    return Hint.QUEUE if changed else Hint.SKIP
