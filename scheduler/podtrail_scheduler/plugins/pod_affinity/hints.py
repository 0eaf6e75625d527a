"""Which events may turn a refusal by InterPodAffinity."""

from podtrail_scheduler.framework.events import Happening, Hint
from podtrail_scheduler.objects import Node, Pod

from .terms import Term, match_all, match_any, terms_of


def after_assigned_pod(pod: Pod, happening: Happening) -> Hint:
    """Queue when a Pod that is wanted came, one that is not went, or a running Pod's labels made it either."""
    old, new = happening.old, happening.new
    assert old is None or isinstance(old, Pod)
    assert new is None or isinstance(new, Pod)
    if any(each is not None and not each.node_name and not each.nominated_node_name for each in (old, new)):
        return Hint.SKIP
    wanted = terms_of(pod, pod.affinity.pod_affinity.required)
    unwanted = terms_of(pod, pod.affinity.pod_anti_affinity.required)
    if old is not None and new is not None:
        hopeful = (not match_all(wanted, old) and match_all(wanted, new)) or (
            match_any(unwanted, old) and not match_any(unwanted, new)
        )
    elif new is not None:
        hopeful = match_all(wanted, new)
    else:
        assert old is not None
        hopeful = match_any(unwanted, old) or match_any(terms_of(old, old.affinity.pod_anti_affinity.required), pod)
    return Hint.QUEUE if hopeful else Hint.SKIP


def after_node(pod: Pod, happening: Happening) -> Hint:
    """Queue when a node came or changed in a label that a term's topology is about."""
    old, new = happening.old, happening.new
    assert isinstance(new, Node)
    assert old is None or isinstance(old, Node)
    wanted = terms_of(pod, pod.affinity.pod_affinity.required)
    unwanted = terms_of(pod, pod.affinity.pod_anti_affinity.required)
    if old is None:
        hopeful = bool(unwanted) or any(term.topology_key in new.labels for term in wanted)
    else:
        hopeful = any(_gained_or_moved(term, old, new) for term in wanted) or any(
            _gained_or_moved(term, new, old) for term in unwanted
        )
    return Hint.QUEUE if hopeful else Hint.SKIP


def _gained_or_moved(term: Term, old: Node, new: Node) -> bool:
    value = new.labels.get(term.topology_key)
    return value is not None and value != old.labels.get(term.topology_key)
