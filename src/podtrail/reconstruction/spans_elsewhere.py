"""Which attempts of a log have spans of their own, because podtrail's instrumentation of kube-scheduler exports them.

The scheduler logs at its start which part of its attempts it traces (`instrumentation/go/kubescheduler/reporting.go`).
If these are all, it names each only from -v=2 on; otherwise it names each traced attempt at any verbosity.
"""

from collections import OrderedDict, deque
from typing import Final, NamedTuple

from podtrail.reconstruction.attempt_draft import Draft

_NEAR: Final = 2_000_000_000
"""Nanoseconds between the line that names an attempt and its end, as an Event or a watch of Pods may show it."""
_MOST_PODS: Final = 8_192
_MOST_NAMED: Final = 16
_MOST_CHANGES: Final = 1_024


class _Named(NamedTuple):
    time: int
    result: str


class _Change(NamedTuple):
    time: int
    origin: str
    """The log of one process."""
    of_all: bool
    """Whether this process traces all attempts from then on."""


class SpansElsewhere:
    """Remembers, bounded, which attempts were traced and have not been claimed. Times are Unix nanoseconds."""

    def __init__(self) -> None:
        self._changes: deque[_Change] = deque(maxlen=_MOST_CHANGES)
        self._said: set[str] = set()
        """Processes that have said what they trace and not yet that they start: this comes second."""
        self._named: OrderedDict[str, list[_Named]] = OrderedDict()
        """By Pod, those named last at the end."""

    def turn_on(self, origin: str, time: int, *, of_all: bool) -> None:
        """Note that the scheduler of a log traces all of its attempts or a part of them."""
        self._changes.append(_Change(time, origin, of_all))
        if len(self._said) < _MOST_CHANGES:
            self._said.add(origin)

    def turn_off(self, origin: str, time: int) -> None:
        """Note that the scheduler of a log traces nothing from now on."""
        self._changes.append(_Change(time, origin, of_all=False))

    def begin_anew(self, origin: str, time: int) -> None:
        """Note that a scheduler has started."""
        if origin in self._said:
            self._said.remove(origin)
        else:
            self.turn_off(origin, time)

    def note(self, pod: str, time: int, result: str) -> None:
        """Note that an attempt that ended now was traced."""
        named = self._named.setdefault(pod, [])
        named.append(_Named(time, result))
        self._named.move_to_end(pod)
        del named[:-_MOST_NAMED]
        if len(self._named) > _MOST_PODS:
            self._named.popitem(last=False)

    def claim(self, draft: Draft) -> bool:
        """Return whether an attempt was traced. Each line that names one counts for a single attempt."""
        named = self._named.get(draft.pod, [])
        same = [one for one in named if draft.result in ("", one.result) and abs(one.time - draft.end) <= _NEAR]
        if same:
            named.remove(min(same, key=lambda one: abs(one.time - draft.end)))
            if not named:
                del self._named[draft.pod]
            return True
        # An attempt without a result was cut off by the end of the process, which exported nothing of it. One that only
        # a watch shows is taken for that of the scheduler that said last what it traces.
        return bool(draft.result) and next(
            (
                change.of_all
                for change in reversed(self._changes)
                if change.time <= draft.end and draft.origin in ("", change.origin)
            ),
            False,
        )
