"""What spans of the kubelet and the container runtime say, as Kubernetes 1.37 and containerd 2 write it (KEP-2831)."""

import re
from typing import Final, NamedTuple

SYNCS: Final = frozenset({"syncPod", "syncTerminatingPod", "syncTerminatedPod"})
"""The kubelet's spans of a Pod: each is the root of a trace, and has the Pod's uid."""

_LABEL: Final = r"[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?"
_SUBDOMAIN: Final = r"[a-z0-9](?:[-.a-z0-9]{0,251}[a-z0-9])?"
_POD: Final = (
    rf"(?P<pod>{_SUBDOMAIN})_(?P<namespace>{_LABEL})_(?P<uid>[-0-9A-Za-z]{{1,128}})_(?P<attempt>[0-9]{{1,10}})"
)
_SANDBOX: Final = re.compile(_POD)
_CONTAINER: Final = re.compile(rf"(?P<container>{_LABEL})_{_POD}")
_FAILURE: Final = re.compile(
    r'failed to "(?P<step>\w{1,64})" for "(?P<what>[^"]{1,300})" with (?P<reason>\w{1,64}): (?:"(?P<error>.*)")?',
    re.DOTALL,
)
_LONGEST_MESSAGE: Final = 4_000


class NamedPod(NamedTuple):
    """The Pod in the name of a sandbox or a container."""

    uid: str
    namespace: str
    name: str
    container: str
    """"" in the name of a sandbox."""
    attempt: int
    """How often the sandbox or the container was made before."""

    @property
    def place(self) -> str:
        """`namespace/name`."""
        return f"{self.namespace}/{self.name}"


class StartFailure(NamedTuple):
    """Why a `syncPod` failed."""

    step: str
    """What the kubelet was about: `StartContainer`, `CreatePodSandbox`."""
    what: str
    """The container; of a sandbox the Pod."""
    reason: str
    """`ErrImagePull`, `CrashLoopBackOff`."""
    error: str
    """"" where the message is cut off."""


def pod_of_sandbox(name: object) -> NamedPod | None:
    """Return the Pod that `<pod>_<namespace>_<uid>_<attempt>` names; None for what the kubelet would not write.

    The parts are joined by `_` (containerd's `makeSandboxName`, `makeContainerName`), which no name in Kubernetes has.
    """
    return _named(_SANDBOX, name)


def pod_of_container(name: object) -> NamedPod | None:
    """Return the Pod that `<container>_<pod>_<namespace>_<uid>_<attempt>` names; None for any other name."""
    return _named(_CONTAINER, name)


def _named(form: re.Pattern[str], name: object) -> NamedPod | None:
    found = form.fullmatch(name) if isinstance(name, str) else None
    if found is None:
        return None
    container = found["container"] if form is _CONTAINER else ""
    return NamedPod(found["uid"], found["namespace"], found["pod"], container, int(found["attempt"]))


def start_failure_in(message: str) -> StartFailure | None:
    """Return why a `syncPod` failed, by its status message; None where that says it in other words."""
    found = _FAILURE.search(message[:_LONGEST_MESSAGE])
    if found is None:
        return None
    return StartFailure(found["step"], found["what"], found["reason"], (found["error"] or "").replace('\\"', '"'))
