"""Backends that are listed."""

from podtrail_exporters.load_balancing.config import StaticResolver
from podtrail_exporters.load_balancing.resolver import Sink


class ListedBackends:
    """Knows them from the configuration."""

    nobody = "none is listed"

    def __init__(self, settings: StaticResolver) -> None:
        self._hostnames = tuple(dict.fromkeys(settings.hostnames))

    async def start(self, sink: Sink) -> None:
        """Tell of them."""
        sink.resolved(self._hostnames)

    async def stop(self) -> None:
        """Nothing is to end."""
