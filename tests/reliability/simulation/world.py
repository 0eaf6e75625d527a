"""Runs a scenario: lives of podtrail one after the other, clients and backends that outlive them, and the verdict."""

import asyncio
import sys
import warnings
from dataclasses import dataclass, field
from functools import partial
from math import inf
from typing import Any
from unittest.mock import patch

from podtrail.component import StartError
from tests.reliability.simulation.backends import Backends
from tests.reliability.simulation.clients import Clients
from tests.reliability.simulation.configurations import Components
from tests.reliability.simulation.judging import digest, judge, name_of
from tests.reliability.simulation.life import Life
from tests.reliability.simulation.memory_storage import Storages
from tests.reliability.simulation.model import LifeEnd, Past
from tests.reliability.simulation.podtrail_process import Podtrail, VirtualClock
from tests.reliability.simulation.scenario import (
    BackendTurns,
    Crash,
    DiskManner,
    DiskTurns,
    Reload,
    Scenario,
    Send,
    Setup,
    Stop,
)
from tests.reliability.simulation.traffic import keys_of_pieces
from tests.reliability.simulation.virtual_loop import NeverQuiet, NothingLeft, VirtualLoop
from tests.reliability.simulation.witness import Witness

_MOST_ENDINGS = 20
_LOOKS_ON = 30.0
_MENDS_IN = 3.0
"""Seconds in which a store finds out that a disk is well again."""
_SETTLES_IN = 900.0
"""Virtual seconds after which everything must be delivered once all is well."""


@dataclass(slots=True)
class Outcome:
    """How a story went."""

    wrong: list[str] = field(default_factory=list)
    story: list[str] = field(default_factory=list)
    """Everything that happened, in lines."""
    digest: str = ""
    """Of everything that could be seen; equal for equal stories."""


class Wrong(Exception):
    """Something is not as it must be."""


class World:
    """One story as it happens."""

    def __init__(self, scenario: Scenario) -> None:
        self._scenario = scenario
        self._setup = scenario.setup
        self._setups: dict[int, Setup] = {}
        """How each life began."""
        self._now = 0.0
        self._wall_step = 0.0
        self._next = 0
        """The first event that has not happened yet."""
        self._is_over = False
        """Whether everything has settled."""
        self._down_for: float | None = 0.0
        """Seconds after which podtrail starts again; None: never."""
        self._clients = Clients(scenario.seed)
        self._backends = Backends(scenario.seed)
        self._storages = Storages(scenario.seed)
        self._unwell: list[tuple[float, float]] = []
        self._components = Components(self._clients.receiver, self._backends.exporter, self._storages.extension)
        self._witness = Witness()
        self._ends: list[LifeEnd] = []
        self._consumers = scenario.setup.consumers
        self._podtrail: Podtrail | None = None
        self._reloads: set[asyncio.Task[None]] = set()
        """The one that is under way."""
        self._failure: BaseException | None = None
        self._loops: list[VirtualLoop] = []
        self._graveyard: list[asyncio.Task[Any]] = []
        self.outcome = Outcome()

    def happen(self) -> Outcome:
        """Run it all."""
        for event in self._scenario.events:
            if isinstance(event, Send):
                keys = keys_of_pieces(event.pieces)
                self._witness.requests.update(dict.fromkeys(keys, event.request))
        try:
            with (
                self._witness.watching(),
                patch("podtrail.durable.pace._LEAST_LOG", self._scenario.setup.checkpoint_every),
                patch("podtrail.durable.pace._LOG_TO_CHECKPOINT", 0),
            ):
                while self._down_for is not None:
                    self._pass_by(self._now + self._down_for)
                    self._live()
            past = self._past()
            self.outcome.wrong += judge(past, self._setups, self._components.settings, self._scenario.seed)
        except (Wrong, NothingLeft, NeverQuiet) as wrong:
            self.outcome.wrong.append(str(wrong) or "nothing moves any more")
        self.outcome.digest = digest(self._past(), (*self.outcome.story, *self.outcome.wrong))
        return self.outcome

    def _past(self) -> Past:
        return Past(
            self._scenario.setup,
            self._clients.requests,
            self._witness.steps,
            self._witness.decisions,
            sorted((d for b in self._backends.all() for d in b.deliveries), key=lambda delivery: delivery.at),
            self._ends,
            left=self._witness.left,
            unwell=self._unwell,
            ever_consumers=self._consumers,
            names=partial(name_of, requests=self._clients.requests),
        )

    def bury(self) -> None:
        """Let go of what was left of lives that ended: have it end, with nobody there whom that concerns."""
        before, sys.unraisablehook = sys.unraisablehook, lambda _: None
        try:
            with warnings.catch_warnings(action="ignore"):
                for task in self._graveyard:
                    _close(task)
                for loop in self._loops:
                    loop.close()
        finally:
            sys.unraisablehook = before

    def _tell(self, at: float, line: str) -> None:
        self.outcome.story.append(f"{at:9.3f} s  {line}")

    def _pass_by(self, until: float) -> None:
        """Let events happen while podtrail is down."""
        events = self._scenario.events
        while self._next < len(events) and events[self._next].at < until:
            event = events[self._next]
            self._next += 1
            if isinstance(event, Send | BackendTurns | DiskTurns):
                self._tell(event.at, str(event))
                self._turn(event)
            elif isinstance(event, Reload):  # the file is changed
                self._tell(event.at, f"for the next start: {event.setup}")
                self._setup = event.setup
                self._consumers = max(self._consumers, event.setup.consumers)
        self._now = until

    def _turn(self, event: Send | BackendTurns | DiskTurns) -> None:
        match event:
            case Send():
                self._clients.send(event)
            case BackendTurns():
                self._backends[event.exporter].turn(event.manner)
            case DiskTurns():
                self._turn_disk(event.at, event.manner)

    def _turn_disk(self, at: float, manner: DiskManner) -> None:
        self._storages.disk.turn(manner)
        if self._unwell and self._unwell[-1][1] == inf:
            self._unwell[-1] = (self._unwell[-1][0], at + _MENDS_IN)
        if manner != "well":
            self._unwell.append((at, inf))

    def _live(self) -> None:
        """One life of podtrail."""
        loop = VirtualLoop(self._now, self._look)
        life = Life(len(self._ends) + 1, loop, self._tell)
        loop.set_exception_handler(partial(self._complain, life))
        self._witness.life, self._witness.now = life.number, life.now
        self._setups[life.number] = self._setup
        self._witness.over = self._witness.stopping = False
        self._backends.begin(life)
        self._storages.begin(life.number)
        self._tell(self._now, f"podtrail starts ({life.number})")
        clock = VirtualClock(life, self._wall_step)
        self._podtrail = Podtrail(life, clock, self._witness, self._components.settings, self._scenario.seed)
        self._clients.begin(life)
        self._failure = None
        asyncio.set_event_loop(None)
        main = loop.create_task(self._main(life))
        main.add_done_callback(self._ended)
        loop.run_forever()
        life.over = self._witness.over = True
        self._now = loop.time()
        self._clients.end()
        self._reloads.clear()
        self._loops.append(loop)
        self._graveyard += asyncio.all_tasks(loop)
        self._podtrail = None
        if self._failure is not None:
            raise self._failure if isinstance(self._failure, Wrong) else Wrong(f"podtrail broke: {self._failure!r}")

    def _complain(self, life: Life, _: asyncio.AbstractEventLoop, complaint: dict[str, Any]) -> None:
        """Asyncio tells of an error that nobody has looked at; of a life that is over there are many."""
        if not life.over:
            self.outcome.wrong.append(f"asyncio complains: {complaint}")

    def _ended(self, main: "asyncio.Task[None]") -> None:
        if not main.cancelled() and main.exception() is not None:
            self._failure = main.exception()
            main.get_loop().stop()

    def _look(self) -> None:
        """Look at the ledger; called when all that happens at one time has happened."""
        if self._podtrail is None:
            return
        for balance in self._podtrail.balances():
            if balance.missing:
                raise Wrong(f"the ledger misses {balance.missing} spans: {balance}")
        if (broken := self._podtrail.broken()) is not None:
            raise Wrong(f"podtrail broke: {broken!r}")

    async def _main(self, life: Life) -> None:
        assert self._podtrail is not None
        try:
            await self._podtrail.start(self._setup)
        except StartError as error:
            await self._did_not_start(life, error)
        events = self._scenario.events
        while self._next < len(events):
            event = events[self._next]
            await asyncio.sleep(max(0.0, event.at - life.now()))
            self._next += 1
            life.tell(str(event))
            match event:
                case Crash():
                    await self._crash(life, event)
                case Stop():
                    self._podtrail.told_to_stop = True
                    await asyncio.gather(*self._reloads)
                    await self._stop(life, event.down)
                    return
                case Reload():
                    await self._begin_reload(life, event)
                case _:
                    self._turn(event)
        if self._is_over:  # what is delivered is not delivered again, however often it starts
            await asyncio.sleep(_LOOKS_ON)
            await self._stop(life, None)
            return
        await self._settle(life)
        self._is_over = True
        await self._stop(life, 1.0 if self._setup.durable or self._setup.stored_queues else None)

    async def _did_not_start(self, life: Life, error: StartError) -> None:
        """It ends, and is started again."""
        life.tell(f"podtrail does not start: {error}")
        if not self._disk_is_unwell(life.now()):
            raise Wrong(f"podtrail did not start: {error}") from error
        self._ends.append(LifeEnd(life.number, life.now(), killed=True))
        self._down_for = 1.0
        life.end()
        await asyncio.Event().wait()

    def _disk_is_unwell(self, now: float) -> bool:
        return any(begin <= now <= end for begin, end in self._unwell)

    async def _crash(self, life: Life, event: Crash) -> None:
        if event.after_operations:
            self._storages.disk.kill_after(event.after_operations, lambda: self._die(life, event))
            return
        self._die(life, event)
        await asyncio.Event().wait()

    def _die(self, life: Life, event: Crash) -> None:
        if life.over:
            return
        if event.after_operations:
            life.tell("power is lost" if event.power else "podtrail is killed")
        checkpoint = not self._setup.durable or self._storages.disk.has(".state")
        if not checkpoint:
            life.tell("there is no checkpoint on the disk")
        self._down_for = event.down
        self._wall_step += event.wall_step
        self._ends.append(
            LifeEnd(
                life.number,
                life.now(),
                killed=True,
                power=event.power,
                wall_step=event.wall_step,
                checkpoint=checkpoint,
                lost=0 if self._setup.durable else self._lost(),
            )
        )
        self._witness.over = True
        if event.power:
            self._storages.disk.lose_power()
        life.end()

    async def _stop(self, life: Life, down: float | None) -> None:
        assert self._podtrail is not None
        at = life.now()
        self._witness.stopping = True
        await self._podtrail.stop()
        self._witness.stopping = False
        self._look()
        failures = self._podtrail.host.metrics.snapshot().get("podtrail_component_failures_total", {})
        if failed := {labels for labels, times in failures.items() if times}:
            raise Wrong(f"components failed: {', '.join(sorted(failed))}")
        self._ends.append(LifeEnd(life.number, at, killed=False, lost=self._lost()))
        life.tell("podtrail has stopped")
        self._down_for = down
        life.end()

    def _lost(self) -> int:
        """Return the spans of which the ledger says that they were dropped behind the processors, or rejected."""
        assert self._podtrail is not None
        return sum(balance.undelivered + balance.rejected for balance in self._podtrail.balances())

    async def _begin_reload(self, life: Life, event: Reload) -> None:
        """Reload; where the disk is unwell that may take until it is well, and other things happen meanwhile."""
        self._setup = event.setup  # the file is changed by now, whatever becomes of the reload
        self._consumers = max(self._consumers, event.setup.consumers)
        if self._reloads:
            return
        reload = asyncio.create_task(self._reload(life, event))
        self._reloads.add(reload)
        reload.add_done_callback(self._reloads.discard)
        reload.add_done_callback(self._ended)
        await asyncio.wait({reload}, timeout=0.0 if self._disk_is_unwell(life.now()) else None)

    async def _reload(self, life: Life, event: Reload) -> None:
        assert self._podtrail is not None
        began = life.now()
        try:
            reloaded = await self._podtrail.reload(event.setup)
        except StartError as error:
            await self._did_not_start(life, error)
        else:
            if not reloaded:
                life.tell("podtrail goes on as before")
                if not any(since <= life.now() and began <= until for since, until in self._unwell):
                    raise Wrong("a reload failed")

    async def _settle(self, life: Life) -> None:
        """From now on all is well: wait until everything is acknowledged, decided and delivered."""
        assert self._podtrail is not None
        life.tell("all is well from here on")
        for backend in self._backends.all():
            backend.turn("well")
        self._turn_disk(life.now(), "well")
        until = life.now() + _SETTLES_IN
        while self._clients.waiting or not self._podtrail.settled():
            if life.now() > until:
                raise Wrong(f"not settled {_SETTLES_IN:g} s after all was well again")
            await asyncio.sleep(1.0)


def _close(task: "asyncio.Task[Any]") -> None:
    coroutine = task.get_coro()
    for _ in range(_MOST_ENDINGS):  # one that waits for something at its end is told again
        try:
            coroutine.close()
        except RuntimeError:
            continue
        except Exception:  # noqa: BLE001 - whatever a dead process says
            pass
        return


def happened(scenario: Scenario) -> Outcome:
    """Run a scenario from its beginning."""
    world = World(scenario)
    outcome = world.happen()
    world.bury()
    return outcome
