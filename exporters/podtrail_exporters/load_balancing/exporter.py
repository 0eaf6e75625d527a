"""The exporter: parts batches by backend, sends the parts side by side, moves on what a backend could not take."""

import asyncio
from collections.abc import Coroutine, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import TracebackType
from typing import Any, NamedTuple, Self

from podtrail.component import Context, DeliveryError, Retryable
from podtrail.config.types import SECOND
from podtrail.expiry import ExpiryTimer
from podtrail.otlp import Batch, Group, write_request
from podtrail.otlp.response_reading import read_export_response
from podtrail.pod_identity import PodKeys, most_bytes_of_keys
from podtrail.recent import first
from podtrail_exporters.load_balancing.backends import Backends
from podtrail_exporters.load_balancing.config import Config
from podtrail_exporters.load_balancing.connection import BackendConnection, Unanswered
from podtrail_exporters.load_balancing.routing import SERVICE, Route, by_attributes, by_pod, by_trace
from podtrail_exporters.otlp_answer import rejected_spans

_MILLISECONDS = 1_000.0


class _Part(NamedTuple):
    """What of a batch goes to one backend."""

    backend: BackendConnection
    groups: Sequence[Group]

    @property
    def spans(self) -> int:
        return sum([group.span_count for group in self.groups])


class _CutOff(Retryable):
    """There was no more time for it."""


_Outcome = int | Retryable
"""How a part ended: so many spans were rejected, or it was not delivered."""


@dataclass(slots=True)
class _Progress:
    """How far a batch has come."""

    ahead: Sequence[Group]
    left: list[Group] = field(default_factory=list)
    """What can't be delivered now."""
    rejected: int = 0
    silent: set[BackendConnection] = field(default_factory=set)
    """Those that did not answer."""
    failures: list[Retryable] = field(default_factory=list)

    def failure(self, batch: Batch) -> Retryable:
        """Return what is to be said of a batch of which something is left."""
        rest = None if len(self.left) == len(batch.groups) else replace(batch, groups=self.left, verdicts=())
        after = max([each.after for each in self.failures if each.after is not None], default=None)
        return Retryable("; ".join(dict.fromkeys(map(str, self.failures))), after, rest=rest, rejected=self.rejected)


class LoadBalancingExporter:
    """Sends each trace to one of several backends."""

    def __init__(self, config: Config, context: Context) -> None:
        """Know no backend yet."""
        self._log = context.log
        self._pods = PodKeys(most_bytes=most_bytes_of_keys(context.memory_budget))
        self._route = _route(config, self._pods)
        self._backends = Backends(config, context)
        self._came = 0.0
        self._expiry = ExpiryTimer(self._forget)

    def authenticate_by(self, authenticators: Mapping[str, Any]) -> None:
        """Show every backend what the authenticator gives that is configured, if one is."""
        self._backends.authenticate_by(authenticators)

    async def __aenter__(self) -> Self:
        """Find out which backends there are; none is no error, they may come.

        Raises:
            StartError: it can never be found out, or a certificate can't be used.
        """
        await self._backends.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._expiry.cancel()
        await self._backends.stop()

    async def send(self, batch: Batch) -> int:
        """Deliver a batch; return how many of its spans the backends rejected for good.

        Raises:
            Retryable: a backend can't take its part now, which is the `rest`; or there is no backend.
        """
        progress = _Progress(batch.groups)
        self._came = asyncio.get_running_loop().time()
        while progress.ahead:
            parts = self._parts(progress)
            outcomes = await _side_by_side([self._deliver(part) for part in parts])
            for part, outcome in zip(parts, outcomes, strict=True):
                self._enter(part, outcome, progress)
            if any(isinstance(outcome, _CutOff) for outcome in outcomes):
                progress.left += progress.ahead
                break
        self._backends.tidy()
        self._expiry.arm()
        if progress.left:
            raise progress.failure(batch)
        return progress.rejected

    def _forget(self) -> float | None:
        """Forget what is too old of Pods and of where traces went; return when there will be more."""
        idle = asyncio.get_running_loop().time() - self._came
        pods = self._pods.forget(int(idle * SECOND))
        return first((None if pods is None else pods / SECOND, self._backends.forget()))

    def _parts(self, progress: _Progress) -> Sequence[_Part]:
        """Part what is ahead by where it goes. What goes where nobody answered is left."""
        groups, progress.ahead = progress.ahead, ()
        backends = self._backends.assign(self._route(groups))
        if not backends:
            progress.failures.append(Retryable(f"no backend: {self._backends.missing}"))
            progress.left += groups
        parts: dict[BackendConnection, list[Group]] = {}
        for backend, group in zip(backends, groups, strict=False):
            found = parts.get(backend)
            if found is None:
                parts[backend] = [group]
            else:
                found.append(group)
        for backend in [each for each in parts if each in progress.silent]:
            progress.left += parts.pop(backend)
        return [_Part(backend, of_one) for backend, of_one in parts.items()]

    async def _deliver(self, part: _Part) -> _Outcome:
        loop = asyncio.get_running_loop()
        began, endpoint = loop.time(), part.backend.endpoint
        try:
            response = await part.backend.export(write_request(part.groups))
        except DeliveryError as error:
            self._backends.count.answered(endpoint, (loop.time() - began) * _MILLISECONDS, success=False)
            if isinstance(error, Retryable):
                return error
            self._log.error("%s rejected %d spans: %s", endpoint, part.spans, error)
            return part.spans
        self._backends.answered(part.backend)
        self._backends.count.answered(endpoint, (loop.time() - began) * _MILLISECONDS, success=True)
        return rejected_spans(response, read_export_response, self._log)

    def _enter(self, part: _Part, outcome: _Outcome, progress: _Progress) -> None:
        """Enter how a part ended: what a backend that is down or gone could not take goes to the next."""
        if not isinstance(outcome, Retryable):
            progress.rejected += min(outcome, part.spans)
            return
        progress.failures.append(type(outcome)(f"{part.backend.name}: {outcome}", outcome.after))
        removed = not self._backends.is_resolved(part.backend)
        if isinstance(outcome, _CutOff) or not (removed or isinstance(outcome, Unanswered)):
            progress.left += part.groups
            return
        self._backends.lose(part.backend, outcome)
        progress.silent.add(part.backend)
        progress.ahead = [*progress.ahead, *part.groups]
        self._backends.count.moved(part.spans, removed=removed)


async def _side_by_side(deliveries: Sequence[Coroutine[None, None, _Outcome]]) -> Sequence[_Outcome]:
    """Return how each ended. Whoever cancels this learns what had ended by then."""
    tasks = [asyncio.create_task(delivery) for delivery in deliveries]
    try:
        await asyncio.gather(*tasks)
    except asyncio.CancelledError:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        return [_CutOff("no answer in time") if task.cancelled() else task.result() for task in tasks]
    return [task.result() for task in tasks]


def _route(config: Config, pods: PodKeys) -> Route:
    match config.routing_key:
        case "traceID":
            return by_trace
        case "service":
            return by_attributes(SERVICE)
        case "attributes":
            return by_attributes(config.routing_attributes)
        case "pod":
            return by_pod(pods)
