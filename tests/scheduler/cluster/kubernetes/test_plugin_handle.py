"""The handle of plugins of others goes with the configuration that they were made for."""

import asyncio
import gc
import threading

from podtrail_scheduler.cluster.kubernetes.clock import AsyncioClock
from podtrail_scheduler.cluster.kubernetes.plugin_handle import handle_of_others
from podtrail_scheduler.cluster.kubernetes.plugin_threads import PluginThreads
from podtrail_scheduler.cluster.simulated.api_server import SimulatedApiServer
from podtrail_scheduler.cluster.simulated.timeline import Timeline
from podtrail_scheduler.framework.handle import Handle
from podtrail_scheduler.framework.listers import Listers
from podtrail_scheduler.objects.storage import StorageClass


class CountedListers(Listers):
    """Says how many hear of changes."""

    @property
    def subscribers(self) -> int:
        return len(self._subscribers)


def test_who_is_no_longer_asked_no_longer_hears_of_changes() -> None:
    async def main() -> None:
        gc.freeze()  # only what this test makes is looked through
        threads, listers = PluginThreads(), CountedListers()
        api_server = SimulatedApiServer(Timeline(0, "test"), 0)
        own = Handle(AsyncioClock(), api_server, lambda: (), listers)
        handles = [handle_of_others(own, threads) for _ in range(10)]
        told = threading.Event()
        handles[0].listers.subscribe(told.set)
        assert listers.subscribers == 10
        del handles[1:]
        gc.collect()
        gc.unfreeze()
        listers.put(StorageClass("fast"))
        assert listers.subscribers == 1
        assert await asyncio.to_thread(told.wait, 120)
        threads.close()

    asyncio.run(main())
