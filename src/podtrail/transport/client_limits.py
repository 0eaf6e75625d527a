"""What one client may use of a server, so that one that floods it leaves the others their share.

A client is who it has shown to be: the user of `basicauth`, else the name of its certificate, else its address. Rates
are token buckets that may go below nothing: the size of a request is known when it has come.
"""

import time
from collections.abc import Callable, Collection
from typing import Final

from pydantic import Field

from podtrail.config.types import SECOND, Model, PositiveDuration
from podtrail.lru import Lru

_CLIENTS: Final = 10_000
"""Clients that are told apart; who was not heard of for longest begins anew."""
_RETRY_AFTER: Final = 1.0
"""Seconds after which a client with too many connections is told to try again."""


class ClientLimits(Model):
    """What one client may use: a user of `basicauth`, else the name of a certificate, else an address."""

    requests_per_second: float = Field(
        0, ge=0, allow_inf_nan=False, description="Requests a second of one client; 0: no limit."
    )
    bytes_per_second: int = Field(
        0, ge=0, description="Bytes a second of one client, as they come and as they are decompressed; 0: no limit."
    )
    connections: int = Field(
        0,
        ge=0,
        description="Connections of one client that send, at once; 0: no limit. Of gRPC counted on Linux alone.",
    )
    burst: PositiveDuration = Field(
        5 * SECOND, description="What may come at once after a pause: as much as the rates allow in this time."
    )


class OverLimit(Exception):
    """A client has used what it may. `after`: seconds until it may go on."""

    def __init__(self, limit: str, after: float) -> None:
        super().__init__(limit)
        self.limit = limit
        self.after = after


class _Budget:
    """What is left to one client, as of a moment."""

    __slots__ = ("at", "requests", "size")

    def __init__(self, requests: float, size: float, at: int) -> None:
        self.requests = requests
        self.size = size
        self.at = at

    def charge(self, size: int) -> None:
        """Take off what has come."""
        self.size -= size


Charge = Callable[[int], None]
"""Told of the bytes of a request as they come."""


class ClientBudgets:
    """The budgets of all clients of a receiver."""

    def __init__(self, limits: ClientLimits, clock: Callable[[], int] = time.monotonic_ns) -> None:
        """Give each client its share; `clock` gives nanoseconds since any moment."""
        self._limits = limits
        self._clock = clock
        burst = limits.burst / SECOND
        self._most_requests = max(limits.requests_per_second * burst, 1.0)
        self._most_size = limits.bytes_per_second * burst
        self._budgets: Lru[str, _Budget] = Lru(_CLIENTS)

    def admit(self, client: str) -> Charge:
        """Take one request off what a client may; return what is to be told of its bytes.

        Raises:
            OverLimit: it has used its share.
        """
        limits, now = self._limits, self._clock()
        budget = self._budgets.get(client) or _Budget(self._most_requests, self._most_size, now)
        self._budgets.put(client, budget)
        passed = (now - budget.at) / SECOND
        budget.at = now
        budget.requests = min(budget.requests + passed * limits.requests_per_second, self._most_requests)
        budget.size = min(budget.size + passed * limits.bytes_per_second, self._most_size)
        if limits.bytes_per_second and budget.size <= 0:
            raise OverLimit("bytes_per_second", (1 - budget.size) / limits.bytes_per_second)
        if limits.requests_per_second:
            if budget.requests < 1:
                raise OverLimit("requests_per_second", (1 - budget.requests) / limits.requests_per_second)
            budget.requests -= 1
        return budget.charge


Connection = tuple[str, int]
"""Host and port of the client."""


class ClientConnections:
    """The connections over which each client has sent, of one server."""

    def __init__(self, most: int, alive: Callable[[], Collection[Connection] | None]) -> None:
        """Let a client have `most`. `alive` tells which there still are; None when nobody can tell."""
        self._most = most
        self._alive = alive
        self._of: Lru[str, dict[Connection, None]] = Lru(_CLIENTS)

    def enter(self, client: str, connection: Connection) -> None:
        """A request of a client comes over this connection.

        Raises:
            OverLimit: the client has as many others as it may.
        """
        has = self._of.get(client)
        if has is None:
            has = {}
        self._of.put(client, has)
        if connection in has:
            return
        if len(has) >= self._most:
            alive = self._alive()
            for gone in [one for one in has if alive is not None and one not in alive]:
                del has[gone]
            if alive is None:  # one of them has most likely ended
                has.pop(next(iter(has)))
        if len(has) >= self._most:
            raise OverLimit("connections", _RETRY_AFTER)
        has[connection] = None

    def leave(self, connection: Connection, client: str) -> None:
        """A connection has ended."""
        has = self._of.get(client)
        if has is not None:
            has.pop(connection, None)
            if not has:
                del self._of[client]
