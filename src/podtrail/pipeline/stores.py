"""The stores of a graph's durable pipelines: made, opened, led to, left."""

import asyncio
from collections.abc import Callable, Coroutine, Mapping, Sequence, Set
from functools import partial

from podtrail.component import Extension, StartError
from podtrail.pipeline.clock import PipelineClock
from podtrail.pipeline.driver import Driver, Owe
from podtrail.pipeline.host import Host
from podtrail.pipeline.running import LONGEST_STOP, Running
from podtrail.pipeline.settings import PipelineSettings, Settings
from podtrail.pipeline.storing import MakeChain, MakeStore, Store
from podtrail.storage import StorageError, StorageProvider


class Stores:
    """One store for each extension that durable pipelines name."""

    def __init__(
        self,
        settings: Settings,
        host: Host,
        clock: PipelineClock,
        extensions: Mapping[str, Running[Extension]],
        make: MakeStore | None,
        before: "Stores | None",
    ) -> None:
        """Make them, or go on with those of `before` (on reload) whose extension goes on as it is."""
        self._settings = settings
        self._host = host
        self._clock = clock
        self._extensions = extensions
        self._make = make
        ids = dict.fromkeys(pipeline.durable for pipeline in settings.pipelines if pipeline.durable is not None)
        theirs = before._all() if before else {}
        self._stores = {id: self._store(id, before, theirs.get(id)) for id in ids}
        self._former = {id: store for id, store in theirs.items() if id not in self._stores}
        """Those of `before` that no pipeline is durable by any more: until this has started, it may be gone back."""
        self._added: Set[str] = self._stores.keys() - theirs.keys()
        """Those that are new, until this has started."""
        self._begun: list[Store] = []
        """Those that this reload has added and opened: what is in them is in memory as well."""

    def _all(self) -> Mapping[str, Store]:
        """Return those that what the pipelines hold was written to; not what a start that failed has added."""
        return self._former | {id: store for id, store in self._stores.items() if id not in self._added}

    def _store(self, id: str, before: "Stores | None", predecessor: Store | None) -> Store:
        if before and predecessor and before._extensions.get(id) is self._extensions[id]:
            return predecessor
        assert self._make is not None, "who runs durable pipelines says how they are stored"
        context = self._host.context(id)
        return self._make(id, self._clock, context.metrics, context.log, predecessor)

    def of(self, pipeline: PipelineSettings) -> Store | None:
        """Return the store of a pipeline, None when it has none."""
        return None if pipeline.durable is None else self._stores[pipeline.durable]

    def of_any(self, drivers: Sequence[Driver]) -> Store | None:
        """Return the store of those of some pipelines that are durable; the settings have one at most."""
        ids = {driver.id for driver in drivers}
        stores = (self.of(pipeline) for pipeline in self._settings.pipelines if pipeline.id in ids)
        return next((store for store in stores if store is not None), None)

    async def start(
        self,
        drivers: Sequence[Driver],
        *,
        make: MakeChain,
        retire: Callable[[PipelineSettings, Owe], Driver],
        running: bool,
    ) -> None:
        """Open those that are not, and have them log what goes to these pipelines.

        Args:
            drivers: of all pipelines.
            make: makes chains of durable ones.
            retire: makes the driver of a pipeline that is no longer configured, given who keeps what it delivers.
            running: the pipelines run already, this is a reload.

        Raises:
            StartError: one can't be opened.
        """
        for store in self._stores.values():
            wired = list(zip(self._settings.pipelines, drivers, strict=True))
            durable = {pipeline.id: driver for pipeline, driver in wired if pipeline.durable == store.id}
            if not store.is_open:
                provider = self._extensions[store.id].component
                assert isinstance(provider, StorageProvider), "the settings name storages only"
                try:
                    await store.open(
                        provider,
                        self._settings,
                        durable,
                        make=make,
                        retire=partial(_retired, store, retire),
                        running=running,
                    )
                except StorageError as error:
                    raise StartError(f"extensions::{store.id}: {error.reason}") from error
                if running and store.id in self._added:
                    self._begun.append(store)
            fed = {id for pipeline, _ in wired if pipeline.id in durable for id in pipeline.receivers}
            reached = [driver for pipeline, driver in wired if fed & set(pipeline.receivers)]
            await store.lead(self._settings, reached, durable)

    async def started(self) -> None:
        """Empty those that no pipeline is durable by any more: all has started, what is in them is in memory."""
        for id, store in self._former.items():
            await self._limited(id, store.discard())
        self._former.clear()
        self._added = set()

    async def undo(self) -> None:
        """Empty what a reload that fails has begun: its predecessor delivers that, and a start on it would again."""
        for store in self._begun:
            await self._limited(store.id, store.discard())
        self._begun.clear()

    async def leave(self, owner: "Stores | None", successor: "Stores | None", *, checkpoint: bool) -> None:
        """Let go of them, but for those that belong to `owner`.

        Args:
            owner: of another graph that runs, or is about to.
            successor: on reload, holds in memory what is in them.
            checkpoint: whether a last one is taken where nobody follows.
        """
        await asyncio.gather(
            *(self._leave(id, store, owner, successor, checkpoint) for id, store in self._stores.items())
        )

    async def _leave(
        self, id: str, store: Store, owner: "Stores | None", successor: "Stores | None", checkpoint: bool
    ) -> None:
        if owner and owner._all().get(id) is store and owner._extensions.get(id) is self._extensions[id]:
            return
        if successor is None:
            await self._limited(id, store.close(checkpoint=checkpoint))
        else:  # which goes on with it, or empties it once all has started
            await self._limited(id, store.close(checkpoint=False))

    async def _limited(self, id: str, leaving: Coroutine[None, None, None]) -> None:
        """Have a store be left, as long as its disk does not hang."""
        try:
            async with asyncio.timeout(LONGEST_STOP):
                await leaving
        except TimeoutError as error:
            self._host.failures(id).report("stop", error, "the disk hangs; what is in the store is left as it is")


def _retired(store: Store, retire: Callable[[PipelineSettings, Owe], Driver], pipeline: PipelineSettings) -> Driver:
    return retire(pipeline, store.owe(pipeline.id))
