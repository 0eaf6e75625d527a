"""The threads in which plugins of others run on a real cluster, beside the event loop that everything else runs on.

Our own code, which calls them in the middle of its loops, need not know: a stretch of it is carried to the thread of
the scheduling cycle while the event loop stands still, so that still only one of the two runs at a time; but as long as
the thread is in a plugin, the loop goes on. What a binding cycle calls has a thread of its own each time, coroutines of
plugins have an event loop of their own. All are daemons: a plugin that never returns does not keep the process.
"""

import asyncio
import logging
import threading
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager, nullcontext
from contextvars import copy_context
from inspect import iscoroutinefunction
from queue import SimpleQueue
from typing import Any, NamedTuple, TypeVar, cast

from podtrail_instrumentation.klog import structured

from podtrail_scheduler.framework.aside import Raised, SchedulerSignal

Answer = TypeVar("Answer")

PATIENCE = 10.0
"""Seconds after which a plugin that has not returned is told, and again whenever that time has doubled."""

_log = logging.getLogger(__name__)


class _Abandoned(SchedulerSignal):
    """Nobody waits for the work any more; unwinds it."""


class _Whereabouts(NamedTuple):
    plugin: str
    point: str
    back: "asyncio.Future[None]"
    """Is done when the plugin has returned."""


class _Job:
    """One stretch of our code on the thread of the scheduling cycle."""

    def __init__(self, loop: asyncio.AbstractEventLoop, function: Callable[[], Any]) -> None:
        self._loop = loop
        self._function = function
        self._context = copy_context()
        self.told: SimpleQueue[_Whereabouts | Future[Any]] = SimpleQueue()
        """From the thread: in which plugin it is, or what came of it."""
        self.may_go_on: SimpleQueue[bool] = SimpleQueue()
        """To the thread: whether it may, the loop standing still, or is to give up."""

    def run(self) -> None:
        outcome: Future[Any] = Future()
        try:
            outcome.set_result(self._context.run(self._function))
        except _Abandoned:
            return
        except BaseException as raised:  # noqa: BLE001, raised again where it is waited for
            outcome.set_exception(raised)
        self.told.put(outcome)

    @contextmanager
    def outside(self, plugin: str, point: str) -> Iterator[None]:
        back = self._loop.create_future()
        self.told.put(_Whereabouts(plugin, point, back))
        try:
            yield
        except (KeyboardInterrupt, GeneratorExit) as raised:  # only the main thread gets those from elsewhere
            raise RuntimeError(f"{type(raised).__name__}: {raised}") from raised
        finally:
            try:
                self._loop.call_soon_threadsafe(_said, back)
            except RuntimeError:  # the loop is closed
                raise _Abandoned from None
            if not self.may_go_on.get():
                raise _Abandoned


class PluginThreads:
    """Implements podtrail_scheduler.framework.aside.Aside; made and used on the event loop of everything else."""

    def __init__(self, patience: float = PATIENCE) -> None:
        self.loop = asyncio.get_running_loop()
        """Of everything else."""
        self._patience = patience
        self._one_at_a_time = asyncio.Lock()
        self._jobs: SimpleQueue[_Job] | None = None
        self._here = threading.local()
        self._coroutines: asyncio.AbstractEventLoop | None = None
        self._is_ended = False

    @property
    def coroutines(self) -> asyncio.AbstractEventLoop:
        """The event loop of the coroutines of plugins."""
        if self._coroutines is None:
            self._coroutines = asyncio.new_event_loop()
            self._start("coroutines of plugins", self._run, self._coroutines)
        return self._coroutines

    async def work(self, pod: str, function: Callable[..., Answer], *args: Any) -> Answer:
        """What `function` returns; the loop stands still but while a plugin is busy."""
        async with self._one_at_a_time:
            job = _Job(self.loop, lambda: function(*args))
            self._carrier().put(job)
            while isinstance(told := job.told.get(), _Whereabouts):
                try:
                    await self._watched(told.back, pod, told.plugin, told.point)
                except BaseException:
                    job.may_go_on.put(False)
                    raise
                job.may_go_on.put(True)
            return cast("Answer", told.result())

    @contextmanager
    def outside(self, plugin: str, point: str) -> Iterator[None]:
        """Lets the loop go on as long as it is entered, unless it is the loop that enters."""
        job: _Job | None = getattr(self._here, "job", None)
        with nullcontext() if job is None else job.outside(plugin, point):
            yield

    async def call(
        self, pod: str, plugin: str, point: str, function: Callable[..., Awaitable[Answer] | Answer], *args: Any
    ) -> Answer | Raised:
        """What a plugin's method comes to, in a thread of its own or, if it is a coroutine, on the loop of those."""
        given: Any
        if iscoroutinefunction(function):
            given = function(*args)
        else:
            given = await self._watched(self._in_thread(f"{plugin} {point}", function, *args), pod, plugin, point)
        if isinstance(given, Awaitable):
            given = await self._watched(self._on_loop(given), pod, plugin, point)
        return cast("Answer | Raised", given)

    def close(self) -> None:
        """Ends the loop of coroutines; threads that are in a plugin end with it, or with the process."""
        if self._coroutines is not None:
            asyncio.run_coroutine_threadsafe(self._end(), self._coroutines)

    def _run(self, loop: asyncio.AbstractEventLoop) -> None:
        """Run the loop of coroutines to its end, also where a plugin stops it or a task of one's own ends it."""
        while not self._is_ended:
            try:
                loop.run_forever()
            except BaseException:  # noqa: BLE001, whatever ends it
                _log.exception("a task that a plugin has begun ended the event loop of plugins: it goes on")
            else:
                if not self._is_ended:
                    _log.error("a plugin has stopped the event loop of plugins: it goes on")
        loop.close()

    async def _end(self) -> None:
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._is_ended = True
        asyncio.get_running_loop().stop()

    def _carrier(self) -> "SimpleQueue[_Job]":
        if self._jobs is None:
            self._jobs = SimpleQueue()
            self._start("scheduling cycle", self._carry, self._jobs)
        return self._jobs

    def _carry(self, jobs: "SimpleQueue[_Job]") -> None:
        while True:
            self._here.job = jobs.get()
            self._here.job.run()

    def _in_thread(self, name: str, function: Callable[..., Any], *args: Any) -> "asyncio.Future[Any]":
        answer: Future[Any] = Future()
        context = copy_context()

        def run() -> None:
            _settle(answer, lambda: context.run(function, *args))

        self._start(name, run)
        return asyncio.wrap_future(answer)

    def _on_loop(self, work: Awaitable[Any]) -> "asyncio.Future[Any]":
        return asyncio.wrap_future(asyncio.run_coroutine_threadsafe(_outcome(work), self.coroutines))

    async def _watched(self, answer: "asyncio.Future[Any]", pod: str, plugin: str, point: str) -> Any:
        """What it comes to; says so when that takes long."""
        told = self.loop.create_task(self._tell(pod, plugin, point))
        try:
            return await answer
        except asyncio.CancelledError as raised:
            if _is_cancelled():
                raise
            return Raised(raised)  # the loop of coroutines has ended, and with it the plugin's
        finally:
            told.cancel()

    async def _tell(self, pod: str, plugin: str, point: str) -> None:
        waits = waited = self._patience
        while True:
            await asyncio.sleep(waits)
            text = structured("A plugin has not returned yet", plugin=plugin, point=point, pod=pod, seconds=waited)
            _log.warning("%s", text)
            waits, waited = waited, 2 * waited

    @staticmethod
    def _start(name: str, run: Callable[..., None], *args: Any) -> None:
        threading.Thread(target=run, args=args, name=name, daemon=True).start()


def _said(back: "asyncio.Future[None]") -> None:
    if not back.done():
        back.set_result(None)


def _settle(answer: Future[Any], work: Callable[[], Any]) -> None:
    """Has `answer` be what comes of `work`, unless nobody wants it any more."""
    try:
        outcome = work()
    except BaseException as raised:  # noqa: BLE001, in a thread of its own all is the plugin's
        outcome = Raised(raised)
    if answer.set_running_or_notify_cancel():
        answer.set_result(outcome)


async def _outcome(work: Awaitable[Any]) -> Any:
    try:
        return await work
    except BaseException as raised:
        if isinstance(raised, asyncio.CancelledError) and _is_cancelled():
            raise
        return Raised(raised)


def _is_cancelled() -> bool:
    """Return whether somebody cancels the running task: else a CancelledError is of a task that it waits for."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
