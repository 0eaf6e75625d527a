"""Which Pod a line of kube-scheduler's log is about."""

import re

from podtrail.otlp.remembering import remembering
from podtrail.reconstruction.vocabulary import Kind

_POD = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?/[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?")
_UID = re.compile(
    rb'\{"name":"(?P<name>[a-z0-9.-]{1,253})","(?:generateName":"[^"]{0,253}","|)namespace":"(?P<namespace>[a-z0-9-]{1,63})",'
    rb'(?:"selfLink":"[^"]*",)?"uid":"(?P<uid>[0-9a-fA-F-]{1,64})"'
)
OF_NO_POD = frozenset(
    {
        Kind.PANICKED,
        Kind.PROFILE,
        Kind.VERBOSITY,
        Kind.STARTED,
        Kind.LEADING,
        Kind.LED,
        Kind.WAITING,
        Kind.SPANS_ON,
        Kind.SPANS_OFF,
    }
)


@remembering(65_536, 320)  # a namespace has 63 characters at most, a name 253
def is_pod(name: str) -> bool:
    """Say whether a text is `namespace/name` as the API server admits it: of no other Pod anything is believed."""
    return _POD.fullmatch(name) is not None


def written_out(line: bytes) -> tuple[str, str] | None:
    """Return the name and uid of the Pod that a line has as JSON; None if it has none."""
    found = _UID.search(line)
    if found is None:
        return None
    return f"{found['namespace'].decode()}/{found['name'].decode()}", found["uid"].decode()


def pod_of(kind: Kind, values: dict[str, str], tried: str) -> str:
    """Return the name in a line's values, not yet checked; `tried` is the Pod whose attempt began last.

    1.20 tries one Pod at a time. It writes neither whose score it is, nor the namespace of a Pod that waits for its
    permit.
    """
    pod = values.get("pod") or values.get("entity") or values.get("preemptor") or ""
    if not pod and (kind is Kind.TOTALLED or tried.endswith(f"/{values.get('name', '')}")):
        return tried
    return pod
