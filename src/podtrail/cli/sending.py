"""Sends requests to an OTLP endpoint when they are due, and counts what becomes of them."""

import asyncio
import json
import random
import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from typing import Any, Literal

import click
from pydantic import ValidationError

from podtrail.cli.traffic import TrafficRequest
from podtrail.component import DeliveryError, Retryable
from podtrail.config import printable
from podtrail.config.types import client_target
from podtrail.otlp.response_reading import MalformedAnswer, read_export_response
from podtrail.pipeline.sending.plan import Backoff
from podtrail.pipeline.sending.retry_sender import RetrySender
from podtrail.story import several
from podtrail.transport.client_settings import GrpcClientSettings, HttpClientSettings
from podtrail.transport.user_agent import USER_AGENT

Protocol = Literal["grpc", "http"]
Export = Callable[[bytes], Awaitable[bytes]]

_HTTP_PORT = 4318
_UNDER_WAY = 16
_BACKOFF = Backoff(first=0.5, longest=5.0, multiplier=1.5, randomization=0.5, give_up_after=30.0)
_GRACE = 5.0
"""Seconds that requests under way get when everything is to end."""
_NANOSECONDS = 1_000_000_000


@dataclass
class Sent:
    """Counts of spans that were to be sent: accepted, rejected, lost; and of tries that were refused."""

    requests: int = 0
    spans: int = 0
    """Of the requests that were sent, tried again or not."""
    accepted: int = 0
    rejected: int = 0
    """By a partial success, for good."""
    lost: int = 0
    """Not taken, whatever was tried."""
    refused: int = 0
    """Tries that were to be repeated: back-pressure, or nobody there."""
    why: str = ""
    """The last reason of a refusal or loss."""
    late: float = 0.0
    """By how many seconds a request was sent after it was due, at worst."""
    took: float = 0.0
    """Seconds, from the first to the last."""
    stopped: bool = False
    """By the user, before the end."""


Settings = GrpcClientSettings | HttpClientSettings


def client_settings(endpoint: str, protocol: Protocol | None) -> Settings:
    """Return the settings of a client; without a protocol the port or a path decides.

    Raises:
        ValueError: for a bad endpoint.
    """
    if protocol is None:
        target = client_target(endpoint)
        protocol = "http" if target.port == _HTTP_PORT or target.path not in ("", "/") else "grpc"
    plain = {} if "://" in endpoint else {"tls": {"insecure": True}}
    where = endpoint if protocol == "grpc" or "://" in endpoint else f"http://{endpoint}"
    values: dict[str, Any] = {"compression": "none"}
    try:
        if protocol == "grpc":
            return GrpcClientSettings.model_validate({**values, **plain, "endpoint": where})
        key = "traces_endpoint" if client_target(where).path not in ("", "/") else "endpoint"
        return HttpClientSettings.model_validate({**values, key: where})
    except ValidationError as error:
        raise ValueError(error.errors()[0]["msg"].removeprefix("Value error, ")) from None


@asynccontextmanager
async def exporting(settings: Settings) -> AsyncIterator[Export]:
    """Connect to an endpoint; yields what sends it a serialized request and returns its answer."""
    if isinstance(settings, GrpcClientSettings):
        from podtrail.transport.grpc_client import GrpcClient

        async with GrpcClient(settings, USER_AGENT) as grpc_client:
            yield grpc_client.export
        return
    from podtrail.transport.http_client import HttpClient

    async with HttpClient(settings, USER_AGENT) as http_client:

        async def export(request: bytes) -> bytes:
            return (await http_client.export(request)).body

        yield export


class Sender:
    """Sends requests in their order, each not before it is due; a late one at once."""

    def __init__(self, sent: Sent, told: Callable[[], None] = lambda: None) -> None:
        """Count into `sent`; `told` is called whenever it has changed."""
        self.sent = sent
        self._told = told
        self._end = asyncio.Event()
        """Nothing more is begun."""
        self._stop = asyncio.Event()
        """What is under way has a few seconds."""
        self._rng = random.Random()  # noqa: S311 - jitter
        self._free = asyncio.Semaphore(_UNDER_WAY)
        self._under_way: set[asyncio.Task[None]] = set()

    def stop(self) -> None:
        """Send nothing more; what is under way has a few seconds."""
        self.sent.stopped = True
        self._hurry()

    def _hurry(self) -> None:
        self._end.set()
        self._stop.set()

    async def send(
        self, parcels: Iterable[TrafficRequest], settings: Settings, clock: Callable[[], int], until: int | None = None
    ) -> None:
        """Send them all, or what can be sent `until` then.

        `clock` says the time in the nanoseconds in which they are due.
        """
        loop = asyncio.get_running_loop()
        began = loop.time()
        if until is not None:
            loop.call_later((until - clock()) / _NANOSECONDS, self._end.set)
        async with exporting(settings) as export:
            for parcel in parcels:
                if not await self._wait(parcel.due, clock):
                    break
                task = asyncio.create_task(self._deliver(parcel, export))
                self._under_way.add(task)
                task.add_done_callback(self._done)
            await self._finish()
        self.sent.took = loop.time() - began

    async def _wait(self, due: int, clock: Callable[[], int]) -> bool:
        """Wait until a request is due and may go; return whether it is to be sent at all."""
        while (ahead := (due - clock()) / _NANOSECONDS) > 0 and not self._end.is_set():
            with suppress(TimeoutError):
                async with asyncio.timeout(ahead):
                    await self._end.wait()
        if self._free.locked():
            await _unless(self._end, asyncio.ensure_future(self._free.acquire()))
        else:
            await self._free.acquire()
        self.sent.late = max(self.sent.late, (clock() - due) / _NANOSECONDS)
        return not self._end.is_set()

    def _done(self, task: "asyncio.Task[None]") -> None:
        self._under_way.discard(task)
        self._free.release()

    async def _finish(self) -> None:
        """Wait for what is under way; once stopped, for a few seconds."""
        if not self._under_way:
            return
        everything = asyncio.ensure_future(asyncio.wait(set(self._under_way)))
        await _unless(self._stop, everything)
        await asyncio.wait({everything}, timeout=_GRACE)
        if not everything.done():
            for task in self._under_way:
                task.cancel()
            await everything

    async def _deliver(self, parcel: TrafficRequest, export: Export) -> None:
        sent = self.sent
        sent.requests += 1
        sent.spans += parcel.spans

        async def attempt(request: bytes) -> int:
            return _rejected(await export(request))

        retrying = RetrySender(attempt, _BACKOFF, hurry=self._stop, rng=self._rng, on_failure=self._refused)
        try:
            rejected = await retrying.send(parcel.request)
        except DeliveryError as error:
            sent.lost += parcel.spans
            sent.why = str(error)
            if not sent.accepted:
                self._hurry()
        except asyncio.CancelledError:
            sent.lost += parcel.spans
            raise
        else:
            sent.rejected += rejected
            sent.accepted += parcel.spans - rejected
        finally:
            self._told()

    def _refused(self, failure: Retryable, _seconds: float) -> None:
        self.sent.refused += 1
        self.sent.why = str(failure)
        self._told()


async def _unless(over: asyncio.Event, task: "asyncio.Future[Any]") -> None:
    """Wait for a task until it is over."""
    waiting = asyncio.ensure_future(over.wait())
    await asyncio.wait({task, waiting}, return_when=asyncio.FIRST_COMPLETED)
    waiting.cancel()


def _rejected(answer: bytes) -> int:
    try:
        return max(read_export_response(answer).rejected, 0)
    except MalformedAnswer:
        return 0  # it has taken them, and says so in words of its own


def send(
    parcels: Iterable[TrafficRequest], settings: Settings, clock: Callable[[], int], until: int | None = None
) -> Sent:
    """Send requests, with progress on a terminal; Ctrl-C and SIGTERM end it, a second one at once.

    It also ends when the first that was sent could not be delivered, whatever was tried.
    """
    sent = Sent()

    async def run() -> None:
        with _progress(sent) as told:
            sender = Sender(sent, told)
            with _ended_by_signals(sender.stop):
                await sender.send(parcels, settings, clock, until)

    asyncio.run(run())
    return sent


@contextmanager
def _ended_by_signals(stop: Callable[[], None]) -> Iterator[None]:
    loop = asyncio.get_running_loop()
    signals = (signal.SIGINT, signal.SIGTERM)

    def once() -> None:
        stop()
        for number in signals:
            loop.remove_signal_handler(number)

    for number in signals:
        loop.add_signal_handler(number, once)
    try:
        yield
    finally:
        for number in signals:
            loop.remove_signal_handler(number)


@contextmanager
def _progress(sent: Sent) -> Iterator[Callable[[], None]]:
    """Yield what is to be called when the sums have changed."""
    if not sys.stderr.isatty():
        yield lambda: _say_once(sent)
        return
    from rich.console import Console
    from rich.markup import escape
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    with Progress(
        SpinnerColumn(),
        TextColumn("{task.description}"),
        TimeElapsedColumn(),
        console=Console(stderr=True),
        transient=True,
    ) as progress:
        task = progress.add_task("sending", total=None)

        def told() -> None:
            waits = f", {sent.refused:,} refused: {escape(printable(sent.why))}" if sent.refused else ""
            progress.update(task, description=f"{sent.accepted:,} spans taken{waits}")

        yield told


def _say_once(sent: Sent) -> None:
    if sent.refused == 1 and not sent.accepted:
        click.echo(f"podtrail: not taken, trying again: {printable(sent.why)}", err=True)


def report(sent: Sent, *, as_json: bool) -> int:
    """Print what became of the spans; return the exit code: 1 when some were not taken."""
    rate = sent.accepted / sent.took if sent.took else 0.0
    if as_json:
        told = {
            "requests": sent.requests,
            "spans": sent.spans,
            "acceptedSpans": sent.accepted,
            "rejectedSpans": sent.rejected,
            "lostSpans": sent.lost,
            "refusedTries": sent.refused,
            "seconds": round(sent.took, 3),
            "spansPerSecond": round(rate, 1),
            "longestDelaySeconds": round(sent.late, 3),
            "stopped": sent.stopped,
        }
        click.echo(json.dumps(told))
    else:
        click.echo(
            f"{several(sent.requests, 'request')}, {several(sent.spans, 'span')} sent in {sent.took:.1f} s: "
            f"{rate:,.0f} spans/s taken\n"
            f"{sent.accepted:,} accepted, {sent.rejected:,} rejected, {sent.lost:,} lost; "
            f"{sent.refused:,} tries refused; sent at most {sent.late:.1f} s late"
        )
    if sent.lost:
        click.echo(f"podtrail: {sent.lost:,} spans were not taken: {printable(sent.why) or 'no answer'}", err=True)
    return int(bool(sent.lost))
