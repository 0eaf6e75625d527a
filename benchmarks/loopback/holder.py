"""podtrail's pipeline in a process of its own, with a clock that stands still until it is told to jump."""

import asyncio
import time
from multiprocessing.connection import Connection
from pathlib import Path
from typing import NamedTuple

from podtrail.config import Document
from podtrail.pipeline.clock import PipelineClock
from podtrail.pipeline.graph import Graph
from podtrail.pipeline.host import Host
from podtrail.pipeline.settings import read_settings
from podtrail.service.process import settle_allocator, settle_garbage_collector

_PAGE = 4096
_JUMP = 7200 * 1_000_000_000


class Pause(NamedTuple):
    """The longest time between two turns of the event loop, in milliseconds."""

    clock: float
    """By the clock, with what others took of the machine."""
    cpu: float
    """Of work."""


class _Still(PipelineClock):
    def __init__(self) -> None:
        super().__init__()
        self.at = super().now()

    def now(self) -> int:
        return self.at


def hold(configuration: str, told: Connection) -> None:
    """Run it. Told "weigh": answers `(resident bytes, spans held)`; "jump": a `Pause`, then ends."""
    asyncio.run(_hold(configuration, told))


def _resident() -> int:
    return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * _PAGE


async def _hold(configuration: str, told: Connection) -> None:
    clock = _Still()
    graph = Graph(read_settings(Document.from_text(configuration)), Host(), clock)
    await graph.start()
    settle_garbage_collector()
    settle_allocator()
    told.send("ready")
    while await asyncio.to_thread(told.recv) != "jump":
        told.send((_resident(), _held(graph)))
    turning = asyncio.create_task(_longest_turn(graph))
    await asyncio.sleep(0)
    clock.at += _JUMP
    for driver in graph.drivers:
        driver.wake()
    told.send(await turning)
    await graph.stop(10)


def _held(graph: Graph) -> int:
    return sum(driver.chain.held() for driver in graph.drivers)


async def _longest_turn(graph: Graph) -> Pause:
    """Return the longest time between two turns of the event loop until nothing is held."""
    clock = cpu = 0.0
    began, worked = time.perf_counter(), time.thread_time()
    while _held(graph) or any(queue.component.held() for queue in graph.queues.values()):
        await asyncio.sleep(0)
        ended, done = time.perf_counter(), time.thread_time()
        clock, cpu = max(clock, ended - began), max(cpu, done - worked)
        began, worked = ended, done
    return Pause(clock * 1e3, cpu * 1e3)
