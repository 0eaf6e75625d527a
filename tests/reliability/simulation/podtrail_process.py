"""Podtrail in one life of a story: its graph started, reloaded and stopped as the service does it."""

import asyncio
from collections.abc import Callable, Sequence

from podtrail.component import StartError
from podtrail.durable.store import DurableStore
from podtrail.pipeline.clock import PipelineClock
from podtrail.pipeline.graph import Graph
from podtrail.pipeline.host import Host
from podtrail.pipeline.ledger import Balance
from podtrail.pipeline.settings import Settings
from podtrail.service.service import SHUTDOWN_SECONDS
from podtrail.testing.attempts.made import START
from tests.reliability.simulation.life import Life
from tests.reliability.simulation.scenario import Setup
from tests.reliability.simulation.witness import Witness


class VirtualClock(PipelineClock):
    """Pipeline time, as far from the loop's time as the clock on the wall is."""

    def __init__(self, life: Life, wall_step: float) -> None:
        super().__init__()
        self._life = life
        self._begin = START + round(wall_step * 1e9)

    def not_before(self, moment: int) -> None:
        """Go on from `moment` if that is later."""
        self._begin = max(self._begin, moment - round(self._life.now() * 1e9))

    def now(self) -> int:
        """Return the time, Unix nanoseconds."""
        return self._begin + round(self._life.now() * 1e9)


class Podtrail:
    """Starts, reloads and stops."""

    def __init__(
        self, life: Life, clock: VirtualClock, witness: Witness, settings_of: Callable[[Setup], Settings], seed: int
    ) -> None:
        self._life = life
        self._clock = clock
        self._witness = witness
        self._settings_of = settings_of
        self.host = Host(seed=seed)
        self.graph: Graph | None = None
        self.told_to_stop = False
        self._changing = False
        """While graphs are swapped, spans are on their way from one to the other."""
        self._running: asyncio.Task[None] | None = None

    def _made(self, settings: Settings, predecessor: Graph | None = None) -> Graph:
        graph = Graph(
            settings,
            self.host,
            self._clock,
            observers=[self._witness],
            predecessor=predecessor,
            make_store=DurableStore,
        )
        for driver in graph.drivers:
            self._witness.meet(driver.id, driver.chain.ledger)
        return graph

    async def start(self, setup: Setup) -> None:
        """Start.

        Raises:
            StartError: it can't.
        """
        self._changing = True
        self.graph = self._made(self._settings_of(setup))
        self._witness.setup = setup
        await self.graph.start()
        self._witness.setup = None
        self._changing = False
        self._running = asyncio.create_task(self.graph.run())

    async def reload(self, setup: Setup) -> bool:
        """Go on with another configuration, as at SIGHUP, or with the one before; return whether it could be started.

        Raises:
            StartError: neither could be, until it was told to stop.
        """
        assert self.graph is not None
        before, graph = self.graph, self._made(self._settings_of(setup), self.graph)
        self._changing = True
        self._end_running()
        await before.stop_receiving(graph)
        self._witness.setup = setup
        graph.take_over()
        self._witness.setup = None
        await before.stop(SHUTDOWN_SECONDS)
        self.graph = graph
        error = failed = await _failed(graph)
        while error is not None:
            if self.told_to_stop:
                raise error
            self.graph = self._made(before.settings, self.graph)
            self.graph.take_over()
            if (error := await _failed(self.graph)) is not None:
                await asyncio.sleep(1.0)
        self._changing = False
        self._running = asyncio.create_task(self.graph.run())
        return failed is None

    async def stop(self) -> None:
        """Stop, as at SIGTERM."""
        assert self.graph is not None
        self._end_running()
        await self.graph.stop(SHUTDOWN_SECONDS)

    def _end_running(self) -> None:
        if self._running is not None:
            self._running.cancel()
            self._running = None

    def broken(self) -> BaseException | None:
        """Return what ended a receiver or a timer that should have gone on."""
        running = self._running
        return running.exception() if running is not None and running.done() and not running.cancelled() else None

    def balances(self) -> Sequence[Balance]:
        """Return the ledger, when it must be right."""
        return () if self._changing or self.graph is None else self.graph.balances()

    def settled(self) -> bool:
        """Say whether everything that has arrived is decided and delivered."""
        return self.graph is not None and not self._changing and self.graph.settled(self._clock.now())


async def _failed(graph: Graph) -> StartError | None:
    """Start a graph; return why it can't be."""
    try:
        await graph.start()
    except StartError as error:
        return error
    return None
