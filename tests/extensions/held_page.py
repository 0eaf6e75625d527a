"""A page of its own thread, for tests of commands that ask one."""

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from podtrail_extensions.viewer import FACTORY

from podtrail.component import Context
from podtrail.testing.attempts import START, MadeAttempt
from tests.envtest.control_plane import DEADLINE


@contextmanager
def held_page(*attempts: MadeAttempt) -> Iterator[str]:
    """Serve a page that holds these attempts, all kept; yields its address."""
    started = threading.Event()
    addresses: list[str] = []
    ways_out: list[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = []

    async def serve() -> None:
        ended = asyncio.Event()
        config = FACTORY.Config.model_validate({"endpoint": "localhost:0", "otlp_endpoint": "localhost:0"})
        async with FACTORY.create(config, Context(id="viewer")) as viewer:
            for attempt in attempts:
                viewer.observe("traces", attempt.batch())
                viewer.library.keep(attempt.groups(), START)
            addresses.append(viewer.page)
            ways_out.append((asyncio.get_running_loop(), ended))
            started.set()
            await ended.wait()

    thread = threading.Thread(target=asyncio.run, args=(serve(),))
    thread.start()
    assert started.wait(DEADLINE)
    try:
        yield addresses[0]
    finally:
        loop, ended = ways_out[0]
        loop.call_soon_threadsafe(ended.set)
        thread.join(DEADLINE)
