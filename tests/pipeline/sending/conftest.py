"""A loop in virtual time, an exporter that does what it is told, and batches to send."""

import asyncio
import inspect
import logging
import selectors
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from typing import Any

import pytest

from podtrail.component import Ledger, Metrics
from podtrail.config.types import DeliverySettings
from podtrail.otlp import Batch, Group, encode_span, frame, resource_header, scope_header
from podtrail.pipeline.sending import SendingQueue

RESOURCE = resource_header({"service.name": "kube-scheduler"})
SCOPE = scope_header("scheduler")


class _JumpingSelector(selectors.SelectSelector):
    """Waits for nothing: the time that would be waited is added to the clock."""

    now = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None:
            raise AssertionError("everything waits for something that will never happen")
        self.now += max(timeout, 0)
        return super().select(0)


class VirtualLoop(asyncio.SelectorEventLoop):
    """Runs ahead to the next timer whenever nothing else is to be done."""

    def __init__(self) -> None:
        self._jumping = _JumpingSelector()
        super().__init__(self._jumping)

    def time(self) -> float:
        return self._jumping.now


def run_virtually(main: Coroutine[Any, Any, None]) -> None:
    """Run a coroutine in virtual time."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        runner.run(main)


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run a test that is a coroutine in virtual time."""
    test = pyfuncitem.obj
    if not inspect.iscoroutinefunction(test):
        return None
    run_virtually(test(**{name: pyfuncitem.funcargs[name] for name in inspect.signature(test).parameters}))
    return True


Answer = Callable[[Batch], Awaitable[int]]


class Scripted:
    """An exporter that answers from a script, then takes everything; remembers when it was given what."""

    wants_verdicts = False

    def __init__(self, script: Iterable[int | Exception | Answer] = ()) -> None:
        self.script = list(script)
        self.seen: list[tuple[float, Batch]] = []

    async def __aenter__(self) -> "Scripted":
        return self

    async def __aexit__(self, *exc: object) -> None:
        return None

    async def send(self, batch: Batch) -> int:
        self.seen.append((asyncio.get_running_loop().time(), batch))
        answer = self.script.pop(0) if self.script else 0
        if isinstance(answer, Exception):
            raise answer
        return answer if isinstance(answer, int) else await answer(batch)

    @property
    def times(self) -> list[float]:
        """When it was tried, seconds from the start, rounded."""
        return [round(at, 3) for at, _ in self.seen]


def make_batch(spans: int = 1, *, groups: int = 1, name: str = "Filter", number: int = 1) -> Batch:
    """Return a batch of so many spans in so many groups."""

    def group(at: int) -> Group:
        trace_id = (number << 32 | at + 1).to_bytes(16, "big")
        raw = [
            encode_span(trace_id=trace_id, span_id=(i + 1).to_bytes(8, "big"), name=name, start=1, end=2)
            for i in range(spans)
        ]
        return Group(RESOURCE, SCOPE, trace_id, frame(raw), spans)

    return Batch([group(at) for at in range(groups)], arrived=0)


class Desk:
    """A queue with its ledger."""

    def __init__(self, exporter: Scripted, settings: DeliverySettings | None = None) -> None:
        self.exporter = exporter
        self.ledger = Ledger()
        self.metrics = Metrics()
        log = logging.LoggerAdapter(logging.getLogger("podtrail.test"))
        self.queue = SendingQueue(exporter, "otlp", settings, self.metrics, log)

    @property
    def entered(self) -> int:
        """All spans that ended."""
        ledger = self.ledger
        return ledger.delivered + ledger.rejected + ledger.dropped.total()

    async def settled(self) -> None:
        """Until nothing is held."""
        while self.queue.held():
            await self.queue.room()


def steady(retry: dict[str, Any] | None = None, queue: dict[str, Any] | None = None, **more: Any) -> DeliverySettings:
    """Return delivery settings without jitter; queue and retry settings as given."""
    return DeliverySettings.model_validate(
        {"retry_on_failure": {"randomization_factor": 0.0, **(retry or {})}, "sending_queue": queue or {}, **more}
    )
