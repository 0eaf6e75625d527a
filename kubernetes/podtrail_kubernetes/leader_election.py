"""Leader election by a Lease (coordination.k8s.io/v1), with the semantics of client-go's leaderelection.

Of all candidates at most one leads. A candidate takes a Lease that nobody holds, or whose holder has not renewed it for
the duration that the holder wrote into it, as seen on the candidate's own clock; the leader gives up when it could not
renew for `renew_deadline`, which is shorter. Clocks need to run equally fast, not to agree, and replicas of several
configurations may run at the same time.

Who loses the Lease must stop at once: `lead` cancels the work and raises LeadershipLost, whereupon the process ends, as
kube-scheduler does. Who is asked to stop gives the Lease back, so that another need not wait.
"""

import asyncio
import logging
import random
from collections.abc import Callable, Coroutine, Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple, Protocol

from .errors import RequestFailed, StatusError
from .rest_client import RestClient

_JITTER = 1.2
"""A candidate looks again after one to 2.2 retry periods, so that candidates don't come all at once."""

_RELEASED_DURATION = 1
"""Seconds for which a Lease that was given back would still be held, as client-go writes it."""

_RELEASE_TIMEOUT = 0.4
"""Seconds in which the Lease is given back, or is not."""

_log = logging.getLogger(__name__)

Lease = Mapping[str, Any]


class LeadershipLost(Exception):
    """The Lease could not be renewed in time, or is another's: somebody else may lead by now."""


class ElectionTiming(NamedTuple):
    """Seconds, by default those of kube-scheduler; lease_duration > renew_deadline > 1.2 * retry_period."""

    lease_duration: float = 15.0
    renew_deadline: float = 10.0
    retry_period: float = 2.0


class ResourceLock(Protocol):
    """Where the Lease is kept; its methods may raise `RequestFailed`."""

    async def get(self) -> Lease | None:
        """Returns the Lease; None when there is none."""
        ...

    async def create(self, spec: Mapping[str, Any]) -> Lease:
        """Creates the Lease and returns it as it is kept."""
        ...

    async def replace(self, lease: Lease, spec: Mapping[str, Any]) -> Lease:
        """Writes the Lease and returns it as it is kept.

        Raises:
            StatusError: It was changed meanwhile: its resourceVersion is not that of `lease`.
        """
        ...


class LeaseLock:
    """A Lease on the API server."""

    def __init__(self, client: RestClient, namespace: str, name: str) -> None:
        self._client = client
        self._collection = f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases"
        self._path = f"{self._collection}/{name}"
        self._kind = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease"}
        self._metadata = {"namespace": namespace, "name": name}

    async def get(self) -> Lease | None:
        """The Lease as it is now, None when there is none.

        Raises:
            RequestFailed: the API server refuses or can't be reached.
        """
        try:
            return await self._client.request("GET", self._path, retries=0)
        except StatusError as refused:
            if refused.code == 404:
                return None
            raise

    async def create(self, spec: Mapping[str, Any]) -> Lease:
        """Creates the Lease.

        Raises:
            RequestFailed: the API server refuses (409: there is one) or can't be reached.
        """
        body = self._kind | {"metadata": self._metadata, "spec": dict(spec)}
        return await self._client.request("POST", self._collection, body, retries=0)

    async def replace(self, lease: Lease, spec: Mapping[str, Any]) -> Lease:
        """Writes `spec` on condition that the resource version is still that of `lease`.

        Raises:
            RequestFailed: the API server refuses (409: somebody else has written) or can't be reached.
        """
        body = self._kind | {"metadata": dict(lease["metadata"]), "spec": dict(spec)}
        return await self._client.request("PUT", self._path, body, retries=0)


class LeaderElector:
    """One candidate. `wall` gives the time that is written into the Lease; nothing is decided by it."""

    def __init__(
        self,
        store: ResourceLock,
        identity: str,
        rng: random.Random,
        wall: Callable[[], datetime] = lambda: datetime.now(UTC),
        timing: ElectionTiming | None = None,
    ) -> None:
        self._store = store
        self._identity = identity
        self._rng = rng
        self._wall = wall
        self._timing = timing or ElectionTiming()
        self._lease: Lease | None = None
        self._observed_at = 0.0
        self._renewed_at = 0.0
        self._leading = False
        self._released = False
        self._look_again = True

    @property
    def leading(self) -> bool:
        """Whether the Lease is ours at this moment, on our clock."""
        return self._leading and _now() < self._renewed_at + self._timing.renew_deadline

    @property
    def may_report(self) -> bool:
        """Whether it leads, or has given the Lease back in order: what it has done may still be told."""
        return self.leading or self._released

    @property
    def leader(self) -> str:
        """Who held the Lease when it was last looked at; empty for nobody."""
        return _holder(self._lease)

    async def lead(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Waits for the Lease, then runs `work` while it is held.

        Raises:
            LeadershipLost: Another may lead; `work` was cancelled before. Besides what `work` raises.
        """
        await self._acquire()
        _log.info("successfully acquired lease as %s", self._identity)
        working, renewing = asyncio.create_task(work()), asyncio.create_task(self._renew())
        lost = False
        try:
            await asyncio.wait((working, renewing), return_when=asyncio.FIRST_COMPLETED)
            lost = renewing.done()
        finally:
            self._leading = self._leading and not lost
            for task in (working, renewing):
                task.cancel()
            await asyncio.gather(working, renewing, return_exceptions=True)
            if not lost:
                await self._release()
        if lost:
            renewing.result()
        working.result()

    async def _acquire(self) -> None:
        while True:
            if await self._try():
                return
            await asyncio.sleep(self._timing.retry_period * (1 + _JITTER * self._rng.random()))

    async def _renew(self) -> None:
        """Renews until that fails for too long.

        Raises:
            LeadershipLost: It could not be renewed in time, or is another's.
        """
        while True:
            await asyncio.sleep(self._timing.retry_period)
            try:
                async with asyncio.timeout_at(self._renewed_at + self._timing.renew_deadline):
                    while not await self._try():
                        if self.leader != self._identity:
                            raise LeadershipLost(f"the lease is held by {self.leader or 'nobody'}")
                        await asyncio.sleep(self._timing.retry_period)
            except TimeoutError:
                raise LeadershipLost(f"the lease could not be renewed for {self._timing.renew_deadline:g} s") from None

    async def _try(self) -> bool:
        """Takes or renews the Lease; False when it is another's, or when nothing could be learned."""
        asked_at = _now()
        try:
            async with asyncio.timeout(self._timing.renew_deadline / 2):
                written = await self._write()
        except (RequestFailed, TimeoutError) as failure:
            _log.warning("failed to acquire or renew the lease: %s", failure or "no answer in time")
            self._look_again = True
            return False
        if written is None:
            return False
        self._observe(written)
        self._look_again = False
        self._renewed_at = asked_at
        self._leading = True
        return True

    async def _write(self) -> Lease | None:
        """Writes the Lease if it is ours to write, as it was last seen or after looking again."""
        if self._look_again or self._lease is None or not self._leading:
            found = await self._store.get()
            if found is None:
                return await self._store.create(self._spec(None))
            self._observe(found)
        assert self._lease is not None
        holder = _holder(self._lease)
        if holder not in ("", self._identity) and _now() < self._observed_at + self._duration(self._lease):
            return None
        return await self._store.replace(self._lease, self._spec(self._lease))

    def _duration(self, lease: Lease) -> float:
        """Return for how many seconds a Lease is its holder's after each write, which the holder's settings give."""
        written = (lease.get("spec") or {}).get("leaseDurationSeconds")
        return float(written) if isinstance(written, int) and written > 0 else self._timing.lease_duration

    def _observe(self, lease: Lease) -> None:
        if self._lease != lease:  # any write counts, so that a holder whose wall clock stands still is not robbed
            self._observed_at = _now()
        self._lease = lease

    def _spec(self, before: Lease | None) -> dict[str, Any]:
        old = (before or {}).get("spec") or {}
        ours = _holder(before) == self._identity
        now = self._micro_time()
        return dict(old) | {
            "holderIdentity": self._identity,
            "leaseDurationSeconds": max(round(self._timing.lease_duration), 1),
            "acquireTime": old.get("acquireTime") if ours else now,
            "renewTime": now,
            "leaseTransitions": old.get("leaseTransitions", 0) + (0 if ours or before is None else 1),
        }

    async def _release(self) -> None:
        """Gives the Lease back, if that is possible without waiting for long."""
        if not self._leading or self._lease is None or self.leader != self._identity:
            return
        self._leading, self._released = False, True
        spec = dict(self._lease["spec"]) | {
            "holderIdentity": "",
            "leaseDurationSeconds": _RELEASED_DURATION,
            "acquireTime": self._micro_time(),
            "renewTime": self._micro_time(),
        }
        try:
            async with asyncio.timeout(_RELEASE_TIMEOUT):
                if self._look_again:
                    # Our last write may have come through without its answer.
                    found = await self._store.get()
                    if found is None or _holder(found) != self._identity:
                        return
                    self._lease = found
                await self._store.replace(self._lease, spec)
        except (RequestFailed, TimeoutError) as failure:
            _log.warning("failed to release the lease: %s", failure or "no answer in time")

    def _micro_time(self) -> str:
        return self._wall().astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def _now() -> float:
    return asyncio.get_running_loop().time()


def _holder(lease: Lease | None) -> str:
    spec = (lease or {}).get("spec") or {}
    return str(spec.get("holderIdentity") or "")
