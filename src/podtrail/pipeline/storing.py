"""What durable pipelines are kept in, as the graph sees it."""

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from podtrail.component import Ledger, Metrics
from podtrail.otlp import Batch
from podtrail.pipeline.chain import ProcessorChain
from podtrail.pipeline.clock import PipelineClock
from podtrail.pipeline.driver import Driver
from podtrail.pipeline.fan_out import Log
from podtrail.pipeline.settings import PipelineSettings, Settings
from podtrail.storage import StorageProvider

MakeChain = Callable[[PipelineSettings, Settings, Ledger], ProcessorChain]
"""Makes a chain as of some settings, for the ledger of its pipeline."""


class Store(Protocol):
    """Keeps what goes through some pipelines until it is decided and delivered."""

    @property
    def id(self) -> str:
        """The extension that it lives in."""

    @property
    def is_open(self) -> bool:
        """Whether it has been opened."""

    @property
    def arrivals(self) -> Log:
        """Where receivers hand over, once it leads somewhere."""

    def owe(self, pipeline: str) -> Callable[[str, Batch], Callable[[], None]]:
        """Return what the outlets of a pipeline ask for each batch: exporter and batch to what is called at its end."""

    def watch(self, pipeline: str, chain: ProcessorChain) -> None:
        """Have a chain, just made and still empty, be the one of a pipeline."""

    async def open(
        self,
        provider: StorageProvider,
        settings: Settings,
        drivers: Mapping[str, Driver],
        *,
        make: MakeChain,
        retire: Callable[[PipelineSettings], Driver],
        running: bool,
    ) -> None:
        """Bring the pipelines to where an earlier process has left them.

        Args:
            provider: where it is kept.
            settings: as they are now.
            drivers: of the store's pipelines.
            make: makes chains of them.
            retire: makes the driver of a pipeline that is no longer configured.
            running: the pipelines run already, this is a reload.

        Raises:
            StartError: there is something to take up, which running pipelines can't.
            StorageError: it can't be opened.
        """

    async def lead(self, settings: Settings, drivers: Sequence[Driver], durable: Mapping[str, Driver]) -> None:
        """Log what goes to these pipelines from now on.

        Args:
            settings: as they are now.
            drivers: all that the receivers of durable pipelines feed, in an order that all agree on.
            durable: the durable ones among them.
        """

    async def close(self, *, checkpoint: bool) -> None:
        """Let go of everything, after a last checkpoint if asked for."""

    async def discard(self) -> None:
        """Forget everything: the pipelines are no longer durable, what they hold is in memory only."""


class MakeStore(Protocol):
    """Makes the store that lives in the extension `id`."""

    def __call__(
        self,
        id: str,
        clock: PipelineClock,
        metrics: Metrics,
        log: logging.LoggerAdapter[logging.Logger],
        predecessor: Store | None,
    ) -> Store:
        """Return it; `predecessor`: on a reload that changes the extension, the store that it goes on for."""
