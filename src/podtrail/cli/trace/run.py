"""One run: the proxy, the command behind it, the Pods that come of it, and the report."""

import asyncio
import contextlib
import os
import secrets
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import NamedTuple

from podtrail_kubernetes.errors import RequestFailed, RestConfigError
from podtrail_kubernetes.pod_following import PodFollower
from podtrail_kubernetes.tracing_proxy import (
    HOST,
    ClientContexts,
    RequestTrace,
    TracingProxy,
    WrittenObject,
    in_cluster,
    read_contexts,
)

from podtrail.cli.trace.child import Child, interrupted_by_signals
from podtrail.cli.trace.client_spans import ClientSpans
from podtrail.cli.trace.report import RunReport
from podtrail.transport.user_agent import USER_AGENT

_LOOK_SECONDS = 2.0
"""Without --wait: for the Pods that controllers make of what was created."""
INTERRUPTED = 130


class TraceProblem(Exception):
    """Nothing was run; the text says why and what to do."""


class TraceOptions(NamedTuple):
    """What the user asks for."""

    command: tuple[str, ...]
    title: str
    """The command without what may be secret."""
    kubeconfig: str | None
    context: str | None
    wait_seconds: float | None
    """None: not at all."""
    endpoint: str | None
    otlp_endpoint: str | None


async def trace(options: TraceOptions) -> int:
    """Run the command and return the exit code.

    Raises:
        TraceProblem: kubeconfig or credentials can't be used.
        NotRun: the command can't be run.
    """
    try:
        with interrupted_by_signals():
            contexts = read_contexts(options.kubeconfig) if options.kubeconfig else in_cluster()
            current = contexts.chosen(options.context)
            spans = ClientSpans.to(options.otlp_endpoint, options.title)
            async with _Run(options, contexts, current, spans).going() as run:
                return await run.whole()
    except (RestConfigError, ValueError) as error:
        raise TraceProblem(str(error)) from error


class _Run:
    def __init__(
        self, options: TraceOptions, contexts: ClientContexts, current: str, spans: ClientSpans | None
    ) -> None:
        self._options = options
        self._contexts = contexts
        self._current = current
        self._spans = spans
        self._began = time.monotonic()
        self._followers: dict[str, PodFollower] = {}
        self._following: set[asyncio.Task[None]] = set()
        self._trace_id = spans.trace_id if spans else secrets.token_hex(16)
        self._report = RunReport(options.title, self._trace_id, options.endpoint)
        self._proxy: TracingProxy
        self._temporary: Path

    @asynccontextmanager
    async def going(self) -> AsyncIterator["_Run"]:
        """Serve the proxy while it is entered; whatever happens, the temporary files are removed at the end."""
        kubeconfig = self._options.kubeconfig
        self._proxy = TracingProxy(
            Path(kubeconfig) if kubeconfig else None,
            self._contexts,
            self._trace_id,
            agent=f"{USER_AGENT} trace",
            ended=self._request_ended,
            wrote=self._wrote,
        )
        with tempfile.TemporaryDirectory(prefix="podtrail-trace-", ignore_cleanup_errors=True) as folder:
            async with self._proxy.serving(Path(folder), self._current) as self._temporary:
                await self._proxy.client(self._current)  # what is wrong with the credentials shows before the command
                try:
                    yield self
                finally:
                    for follower in self._followers.values():
                        await follower.close()
                if self._spans is not None:
                    self._report.lost_spans(await self._spans.close())

    async def whole(self) -> int:
        """Run the command, follow its Pods, report; return the exit code."""
        async with Child.started(self._options.command, self._environment()) as child:
            code = await child.ended()
            self._report.command_ended(code, time.monotonic() - self._began)
            if self._spans is not None:
                self._spans.command_ended(code)
            await self._settle_followers()
            followers = list(self._followers.values())
            patience = self._options.wait_seconds
            waits = patience is not None and code == 0
            self._report.tell_trace(self._proxy.refused, self._proxy.malformed)
            in_time = await self._look(followers, child, patience if waits and patience else _LOOK_SECONDS, waits=waits)
        await self._report.tell_pods(followers, waited=waits)
        if child.interrupted:
            return code or INTERRUPTED
        return code or int(waits and not in_time)

    def _environment(self) -> Mapping[str, str]:
        """What the command gets."""
        past_http_proxies = os.environ.get("no_proxy") or os.environ.get("NO_PROXY")
        direct = f"{past_http_proxies},{HOST}" if past_http_proxies else HOST
        variables = {
            "KUBECONFIG": str(self._temporary),
            # What is discovered would be kept under an address of this run.
            "KUBECACHEDIR": str(self._temporary.parent / "cache"),
            # Clients that are not of Go ask an HTTP proxy for 127.0.0.1, too.
            "NO_PROXY": direct,
            "no_proxy": direct,
        }
        if self._spans is not None:
            variables["TRACEPARENT"] = self._spans.traceparent
        return os.environ | variables

    def _request_ended(self, request: RequestTrace) -> None:
        self._report.request_ended(request)
        if self._spans is not None:
            self._spans.request_ended(request)

    def _wrote(self, context: str, written: WrittenObject) -> None:
        task = asyncio.create_task(self._follow(context, written))
        self._following.add(task)
        task.add_done_callback(self._following.discard)

    async def _follow(self, context: str, written: WrittenObject) -> None:
        client = await self._proxy.client(context)
        if context not in self._followers:
            self._followers[context] = PodFollower(client, lambda: time.monotonic() - self._began)
        self._followers[context].wrote(written)

    async def _settle_followers(self) -> None:
        await asyncio.gather(*self._following)

    async def _look(self, followers: list[PodFollower], child: Child, seconds: float, *, waits: bool) -> bool:
        """Wait for the Pods, no longer than so; return whether each is ready."""

        def done(follower: PodFollower) -> Callable[[], bool]:
            if waits:
                return lambda: self._tell_progress(follower) or follower.all_good() or follower.hopeless()
            return follower.all_known

        with contextlib.suppress(TimeoutError, RequestFailed):
            async with asyncio.timeout(seconds):
                await child.unless_interrupted(*(each.until(done(each)) for each in followers))
        return all(each.all_good() for each in followers)

    def _tell_progress(self, follower: PodFollower) -> bool:
        self._report.tell_progress(follower)
        return False
