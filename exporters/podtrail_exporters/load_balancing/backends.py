"""All backends: those that the resolver names, those that answer, and those that are about to go."""

import asyncio
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from podtrail.component import Context
from podtrail.config.types import SECOND
from podtrail.transport.client_settings import GrpcClientSettings
from podtrail.transport.grpc_client import GrpcClient
from podtrail.transport.user_agent import USER_AGENT
from podtrail_exporters.load_balancing.balancer import Balancer
from podtrail_exporters.load_balancing.config import Config
from podtrail_exporters.load_balancing.connection import BackendConnection
from podtrail_exporters.load_balancing.instruments import BalancingInstruments
from podtrail_exporters.load_balancing.resolver import make_resolver

_ANYWHERE = "localhost:4317"


class Backends:
    """Has a connection to each backend for as long as anything may go there. Told by the resolver, as its `Sink`."""

    def __init__(self, config: Config, context: Context) -> None:
        """Know no backend yet."""
        self._config = config
        self._log = context.log
        kind, self._resolver = make_resolver(config.resolver)
        self.count = BalancingInstruments(context.metrics, context.id, kind)
        self._balancer = Balancer(config.grace / SECOND, config.grace_traces)
        self._backends: dict[str, BackendConnection] = {}
        self._closing: set[asyncio.Task[None]] = set()
        self._unknown: str | None = None
        """Why it can't be found out which backends there are; None when it can."""
        self._forgotten = 0
        self._authenticators: Mapping[str, Any] = {}

    def authenticate_by(self, authenticators: Mapping[str, Any]) -> None:
        """Show what these authenticators give to every backend."""
        self._authenticators = authenticators

    async def start(self) -> None:
        """Find out which backends there are; none is no error, they may come.

        Raises:
            StartError: it can never be found out, or a certificate can't be used.
        """
        balancer = self._balancer
        self.count.watch(lambda: len(balancer.resolved), lambda: len(balancer.down), balancer.remembered)
        async with GrpcClient(GrpcClientSettings.to(_ANYWHERE, self._config.protocol.otlp), USER_AGENT):
            pass  # reads the certificates
        try:
            await self._resolver.start(self)
        except BaseException:
            await self.stop()
            raise

    async def stop(self) -> None:
        """Close all connections."""
        await self._resolver.stop()
        backends, self._backends = self._backends, {}
        await asyncio.gather(*[backend.stop() for backend in backends.values()], *self._closing)

    @property
    def missing(self) -> str:
        """Why there are none."""
        return self._unknown or self._resolver.nobody

    def assign(self, numbers: Sequence[int]) -> Sequence[BackendConnection]:
        """Return the backend of each of these numbers; empty when there is none."""
        names = self._balancer.assign(numbers, _now())
        if self._balancer.forgotten > self._forgotten:
            self.count.forgotten(self._balancer.forgotten - self._forgotten)
            self._forgotten = self._balancer.forgotten
        return list(map(self._backends.__getitem__, names))

    def forget(self) -> float | None:
        """Forget where finished traces went; return in how many seconds there are more, None if none are left."""
        return self._balancer.forget(_now())

    def is_resolved(self, backend: BackendConnection) -> bool:
        """Return whether the resolver names it, so that it is worth waiting for."""
        return backend.name in self._balancer.resolved

    def lose(self, backend: BackendConnection, why: Exception) -> None:
        """Take note that a backend does not answer: others get what is its until it does."""
        name = backend.name
        if self.is_resolved(backend) and name not in self._balancer.down:
            self._log.warning("%s does not answer, the next on the ring gets its traces: %s", name, why)
            backend.ask_again(partial(self.answered, backend))
        self._balancer.lose(name, _now())

    def answered(self, backend: BackendConnection) -> None:
        """Take note that a backend has answered: one that counted as down is back."""
        if backend.name not in self._balancer.down:
            return
        self._log.info("%s answers again", backend.name)
        self._balancer.regain(backend.name, _now())

    def resolved(self, backends: Sequence[str]) -> None:
        """Take note of the backends that there are now."""
        self.count.resolved(success=True)
        if self._unknown is not None:
            self._unknown = None
            self._log.info("finds its backends again")
        before = set(self._balancer.resolved)
        new, gone = sorted(set(backends) - before), sorted(before - set(backends))
        if not new and not gone:
            return
        self.count.updated()
        for name in new:
            if name not in self._backends:
                self._backends[name] = BackendConnection(name, self._config.protocol.otlp, self._authenticators)
        self._balancer.resolve(backends, _now())
        changes = [*(f"+{name}" for name in new), *(f"-{name}" for name in gone)]
        self._log.info("%d backends: %s", len(set(backends)), " ".join(changes))
        if gone:
            self.tidy()
            asyncio.get_running_loop().call_later(self._config.grace / SECOND, self.tidy)

    def failed(self, reason: str) -> None:
        """Take note that it can't be found out which backends there are."""
        self.count.resolved(success=False)
        if reason != self._unknown:
            self._unknown = reason
            known = len(self._balancer.resolved)
            kept = f"the {known} known last are kept" if known else "none is known, spans wait"
            self._log.warning("can't find its backends (%s): %s", kept, reason)

    def tidy(self) -> None:
        """Close the connections to backends that are gone and get nothing any more."""
        kept = self._balancer.kept(_now())
        for name, backend in list(self._backends.items()):
            if name not in kept and not backend.under_way:
                del self._backends[name]
                self.count.forget(backend.endpoint)
                closing = asyncio.create_task(backend.stop())
                self._closing.add(closing)
                closing.add_done_callback(self._closing.discard)


def _now() -> float:
    return asyncio.get_running_loop().time()
