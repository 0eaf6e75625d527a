"""Which configuration a stock kube-scheduler has, in a few characters: from its `/configz`, as it was read last."""

import hashlib
import json
from collections import deque
from typing import Final, NamedTuple

_DIGITS: Final = 12
_MOST_KNOWN: Final = 64
_DECIDES_NOTHING: Final = (
    *("kind", "apiVersion", "parallelism", "leaderElection", "clientConnection", "enableProfiling"),
    *("enableContentionProfiling", "delayCacheUntilActive", "tracing"),
)


def configz_generation(page: bytes) -> str:
    """Return twelve hexadecimal digits that change with what the configuration of a `/configz` decides.

    Without how the API server is reached and who leads, as podtrail-scheduler reckons them of its own; the documents
    differ, so the digits of the two schedulers can't be compared. Up to 1.35 the page has the scheduler's internal
    form, without a kind and with fields in capitals.

    Raises:
        ValueError: the page is no `/configz` of a kube-scheduler.
    """
    try:
        document = json.loads(page)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error
    found = document.get("componentconfig") if isinstance(document, dict) else None
    if not isinstance(found, dict) or (found.get("kind") != "KubeSchedulerConfiguration" and "Profiles" not in found):
        raise ValueError("it has no `componentconfig` of kind KubeSchedulerConfiguration")
    deciding = {key: value for key, value in found.items() if key[:1].lower() + key[1:] not in _DECIDES_NOTHING}
    whole = json.dumps(deciding, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(whole.encode()).hexdigest()[:_DIGITS]


class _Known(NamedTuple):
    since: int
    until: int
    generation: str


class KnownConfigurations:
    """The configurations that were read, each for as long as it counts. Times are Unix nanoseconds."""

    def __init__(self) -> None:
        self._known: deque[_Known] = deque(maxlen=_MOST_KNOWN)

    def read(self, page: bytes, now: int, valid: int) -> None:
        """Take a page that was read now; it counts for `valid` nanoseconds unless it is read again.

        Raises:
            ValueError: the page is no `/configz` of a kube-scheduler.
        """
        generation = configz_generation(page)
        last = self._known[-1] if self._known else None
        if last is not None and last.generation == generation and now <= last.until:
            self._known[-1] = last._replace(until=now + valid)
            return
        if last is not None:
            self._known[-1] = last._replace(until=min(last.until, now))
        self._known.append(_Known(now, now + valid, generation))

    def at(self, time: int) -> str:
        """Return the generation at a time; "" where none is known."""
        return next((one.generation for one in reversed(self._known) if one.since <= time <= one.until), "")
