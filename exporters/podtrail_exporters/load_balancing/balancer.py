"""Where each key goes: to its backend on the ring, unless it began elsewhere and its trace is not decided yet.

Nothing is remembered of a trace but that it was there: a slice of time has the keys that came in it, and the ring that
held then. While that is still today's ring, it is all that is needed. When the ring changes, a key of an earlier slice
stays where that slice's ring had it, for `grace` since the last that came in the slice. A backend that is down or gone
keeps nobody: who was there moves on, and stays where it moved to, also when the backend is back.

Keys are CRC-32s, what the ring goes by: two with the same one belong together on every ring.
"""

from collections import deque
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from podtrail_exporters.load_balancing.ring import POSITIONS, Ring

_SLICES = 4
"""In so many slices a grace is parted: what is remembered is at most a quarter of it too old."""
_MOST_SLICES = 32
"""However often the ring changes: each takes 300 kB."""


@dataclass(slots=True)
class _Slice:
    """The keys that came while one ring held."""

    ring: Ring
    since: float
    last: float
    """When something last came in it."""
    keys: set[int] = field(default_factory=set)


class Balancer:
    """Assigns keys to backends. A state machine: told the time, in seconds of any clock that only goes forward."""

    def __init__(self, grace: float, most: int) -> None:
        """Begin without a backend.

        Args:
            grace: seconds that a key stays where it last was when the ring changes.
            most: keys remembered at once; the oldest are forgotten early.
        """
        self.forgotten = 0
        """Keys that were forgotten early."""
        self._grace = grace
        self._most = most
        self._resolved: frozenset[str] = frozenset()
        self._leaving: dict[str, float] = {}
        """No longer resolved: until when they keep what they have."""
        self._down: set[str] = set()
        self._ring = Ring(())
        self._slices: deque[_Slice] = deque()
        self._stays: dict[int, tuple[str, float]] = {}
        """Keys that are not where the ring has them: where, and until when."""

    @property
    def resolved(self) -> Collection[str]:
        """The backends that there are, by the resolver."""
        return self._resolved

    @property
    def down(self) -> Collection[str]:
        """Those that do not answer."""
        return self._down

    def remembered(self) -> int:
        """Return how many keys are remembered."""
        return sum([len(each.keys) for each in self._slices]) + len(self._stays)

    def kept(self, now: float) -> Collection[str]:
        """Return the backends that keys may be assigned to: those resolved, and those that keep what they have."""
        self._leaving = {backend: until for backend, until in self._leaving.items() if now < until}
        return self._resolved | self._leaving.keys()

    def resolve(self, backends: Collection[str], now: float) -> None:
        """Take note of the backends that there are from now on."""
        before, self._resolved = self._resolved, frozenset(backends)
        self._leaving |= dict.fromkeys(before - self._down, now + self._grace)
        self._leaving = {backend: until for backend, until in self._leaving.items() if backend not in self._resolved}
        self._down &= self._resolved
        self._change(now)

    def lose(self, backend: str, now: float) -> None:
        """Take note that a backend does not answer: the next on the ring has what is its."""
        self._leaving.pop(backend, None)
        if backend in self._resolved and backend not in self._down:
            self._down.add(backend)
            self._change(now)

    def regain(self, backend: str, now: float) -> None:
        """Take note that a backend answers again: it gets new keys, those that moved on stay where they are."""
        if backend in self._down:
            self._down.remove(backend)
            self._change(now)

    def assign(self, keys: Sequence[int], now: float) -> Sequence[str]:
        """Return the backend of each key; empty when there is none."""
        ring = self._ring
        if not ring.backends:
            return ()
        self._turn(now)
        if not self._stays and all(each.ring is ring for each in self._slices):
            self._slices[-1].keys.update(keys)
            backends, owners = ring.backends, ring.owners
            return [backends[owners[key % POSITIONS]] for key in keys]
        return [self._place(key, now) for key in keys]

    def forget(self, now: float) -> float | None:
        """Forget keys that are too old; return in how many seconds more are, None if none is remembered."""
        slices = self._slices
        self._stays = {key: stays for key, stays in self._stays.items() if now < stays[1]}
        while slices and now >= slices[0].last + self._grace:
            slices.popleft()
        if not slices and self._ring.backends:
            slices.append(_Slice(self._ring, now, now))
        if not self.remembered():
            return None
        due = min([*(each.last + self._grace for each in slices), *(until for _, until in self._stays.values())])
        return max(due - now, self._grace / _SLICES)

    def _change(self, now: float) -> None:
        # With all of them down any may be the first to be back: as good a guess as another is whose turn it would be.
        self._ring = Ring(self._resolved - self._down or self._resolved)
        if self._slices and not self._slices[-1].keys:
            self._slices.pop()
        if self._ring.backends:
            self._slices.append(_Slice(self._ring, now, now))

    def _turn(self, now: float) -> None:
        """Begin a new slice where it is time to, forget those that are too old or too many."""
        slices = self._slices
        newest = slices[-1]
        if now >= newest.since + self._grace / _SLICES or len(newest.keys) >= self._most // _SLICES:
            slices.append(_Slice(self._ring, now, now))
            self._stays = {key: stays for key, stays in self._stays.items() if now < stays[1]}
        slices[-1].last = now
        while len(slices) > 1 and now >= slices[0].last + self._grace:
            slices.popleft()
        while len(slices) > 1 and (len(slices) > _MOST_SLICES or self.remembered() > self._most):
            self.forgotten += len(slices.popleft().keys)

    def _place(self, key: int, now: float) -> str:
        owner = self._ring.backend(key)
        if (stays := self._stays.get(key)) is not None:
            if now < stays[1] and self._answers(stays[0]):
                return stays[0]
            del self._stays[key]
        elif key not in self._slices[-1].keys and (stays := self._began(key, owner)) is not None and now < stays[1]:
            if len(self._stays) < self._most:
                self._stays[key] = stays
                return stays[0]
            self.forgotten += 1
        self._slices[-1].keys.add(key)
        return owner

    def _began(self, key: int, owner: str) -> tuple[str, float] | None:
        """Return where a key last was and until when it stays there; None where that is with its owner, or nowhere."""
        for each in reversed(self._slices):
            if key in each.keys:
                backend = each.ring.backend(key)
                return (backend, each.last + self._grace) if backend != owner and self._answers(backend) else None
        return None

    def _answers(self, backend: str) -> bool:
        return backend not in self._down and (backend in self._resolved or backend in self._leaving)
