"""What finds out which backends there are."""

from collections.abc import Sequence
from typing import Protocol

from podtrail_exporters.load_balancing.config import ResolverSettings


class Sink(Protocol):
    """Who wants to know."""

    def resolved(self, backends: Sequence[str]) -> None:
        """Take note of the backends that there are now, as the ring names them."""

    def failed(self, reason: str) -> None:
        """Take note that it can't be found out now: those known last remain."""


class BackendResolver(Protocol):
    """Finds out which backends there are, and tells its sink: first when it is started, then when it learns more."""

    nobody: str
    """What to say when there are none."""

    async def start(self, sink: Sink) -> None:
        """Begin; return when it is known for the first time, or can't be known now.

        Raises:
            StartError: it never can be.
        """

    async def stop(self) -> None:
        """End."""


def make_resolver(settings: ResolverSettings) -> tuple[str, BackendResolver]:
    """Return the resolver that is configured, and its kind."""
    if settings.dns is not None:
        from podtrail_exporters.load_balancing.dns_resolver import DnsLookups

        return "dns", DnsLookups(settings.dns)
    if settings.k8s is not None:
        from podtrail_exporters.load_balancing.k8s_resolver import EndpointSliceWatch

        return "k8s", EndpointSliceWatch(settings.k8s)
    from podtrail_exporters.load_balancing.static_resolver import ListedBackends

    assert settings.static is not None
    return "static", ListedBackends(settings.static)
