"""What is said of a Pod that is not held: who has nearly that name, and how to ask the cluster."""

import re
from collections.abc import Iterable
from typing import NamedTuple

from podtrail.story import PodStory
from podtrail_extensions.viewer.views import PodRow

_ALIKE = 5
_UID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_NAMED = re.compile(r"(?:([a-z0-9][a-z0-9-]{0,62})/)?([a-z0-9][a-z0-9.-]{0,252})")


class UnknownPod(NamedTuple):
    """A Pod that is not held."""

    key: str
    """As it was asked for: a uid, a name or NAMESPACE/NAME."""
    alike: tuple[PodRow, ...]
    """Some whose names have this name in them."""
    command: str
    """What asks the cluster for its Events; "" where this is no name."""


def unknown_pod(asked: str, pods: Iterable[PodStory]) -> UnknownPod:
    """Return what is said of a Pod that is not among `pods`."""
    name = asked.rpartition("/")[2]
    alike = sorted((pod.namespace, pod.name, pod.key, pod) for pod in pods if name and name in pod.name)
    return UnknownPod(asked, tuple(PodRow.of(pod) for *_, pod in alike[:_ALIKE]), _command(asked))


def _command(asked: str) -> str:
    if _UID.fullmatch(asked):
        return f"kubectl get events --all-namespaces --field-selector involvedObject.uid={asked}"
    named = _NAMED.fullmatch(asked)
    if named is None:
        return ""
    where = f"-n {named[1]} get events" if named[1] else "get events --all-namespaces"
    return f"kubectl {where} --field-selector involvedObject.name={named[2]}"
