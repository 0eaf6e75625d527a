"""Reading the names of sandboxes and containers, as containerd's CRI plugin makes them of the kubelet's metadata.

Their parts are joined by `_` (`makeSandboxName`, `makeContainerName`), which no name in Kubernetes has.
"""

import re
from typing import Final, NamedTuple

_LABEL: Final = r"[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?"
_SUBDOMAIN: Final = r"[a-z0-9](?:[-.a-z0-9]{0,251}[a-z0-9])?"
_POD: Final = rf"(?P<pod>{_SUBDOMAIN})_(?P<namespace>{_LABEL})_(?P<uid>[-0-9A-Za-z]{{1,128}})_[0-9]{{1,10}}"
_SANDBOX: Final = re.compile(_POD)
_CONTAINER: Final = re.compile(rf"{_LABEL}_{_POD}")


class NamedPod(NamedTuple):
    """The Pod in the name of a sandbox or a container."""

    uid: str
    place: str
    """`namespace/name`."""


def pod_of_sandbox(name: object) -> NamedPod | None:
    """Return the Pod that `<pod>_<namespace>_<uid>_<attempt>` names; None for what the kubelet would not write."""
    return _named(_SANDBOX, name)


def pod_of_container(name: object) -> NamedPod | None:
    """Return the Pod that `<container>_<pod>_<namespace>_<uid>_<attempt>` names; None for any other name."""
    return _named(_CONTAINER, name)


def _named(form: re.Pattern[str], name: object) -> NamedPod | None:
    found = form.fullmatch(name) if isinstance(name, str) else None
    return NamedPod(found["uid"], f"{found['namespace']}/{found['pod']}") if found else None
