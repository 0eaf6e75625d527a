"""What a run tells, on standard error: the trace, the Pods with their uids, how each got ready, and where to see it."""

import asyncio
from collections import Counter
from collections.abc import Iterator
from typing import Final

import click
from podtrail_kubernetes.pod_following import PodFollower, PodProgress
from podtrail_kubernetes.tracing_proxy import RequestTrace

from podtrail.cli.why_sources import NobodyThere, ask_page
from podtrail.config import printable
from podtrail.story import WhyQuestion, several, visible

_MOST_PODS: Final = 20
_MOST_LINES: Final = 5
_MOST_TRACES: Final = 1000
_STORY_SECONDS: Final = 15.0
"""A tail sampler that decides by time decides within this, by default."""
_STORY_PAUSE: Final = 0.5
_ON_ITS_WAY: Final = ("created", "scheduled", "started", "ready", "succeeded", "failed", "deleted")


class RunReport:
    """Gathers and prints."""

    def __init__(self, title: str, trace_id: str, endpoint: str | None) -> None:
        """Gather of a command by that title."""
        self._title = title
        self._trace_id = trace_id
        self._endpoint = endpoint
        self._requests = 0
        self._own: Counter[str] = Counter()
        self._unanswered: Counter[str] = Counter()
        self._code = 0
        self._seconds = 0.0
        self._told: set[str] = set()

    def request_ended(self, request: RequestTrace) -> None:
        """Count a request."""
        self._requests += 1
        if request.reason:
            self._unanswered[request.reason] += 1
        if request.own and request.trace_id != self._trace_id and len(self._own) < _MOST_TRACES:
            self._own[request.trace_id] += 1

    def command_ended(self, code: int, seconds: float) -> None:
        """Take how it ended."""
        self._code, self._seconds = code, seconds

    def tell_trace(self, refused: int) -> None:
        """Print the trace id."""
        code = f", exit code {self._code}" if self._code else ""
        requests = several(self._requests, "request")
        _say(f"podtrail: trace {self._trace_id}: {self._title}, {requests} in {self._seconds:.2f} s{code}")
        for trace_id, number in self._own.most_common(_MOST_LINES):
            _say(f"podtrail: trace {trace_id}: {several(number, 'request')} that the command traces itself")
        for reason, number in self._unanswered.most_common(_MOST_LINES):
            _say(f"podtrail: {several(number, 'request')}: {visible(reason)}")
        if not self._requests:
            _say("podtrail: no request came through: nothing was asked, or the command does not read KUBECONFIG")
        if refused:
            _say(f"podtrail: {several(refused, 'request')} without this run's token refused")

    def tell_progress(self, follower: PodFollower) -> None:
        """Print each Pod that has got where it was to go."""
        for pod in follower.pods.values():
            if (pod.good or pod.ended_badly) and pod.uid not in self._told:
                self._told.add(pod.uid)
                _say(f"podtrail: {_name(pod)} {_steps(pod)}")

    async def tell_pods(self, followers: list[PodFollower], *, waited: bool) -> None:
        """Print all Pods, and what there is to say of those that are not ready."""
        pods = [pod for follower in followers for pod in follower.pods.values()]
        for pod in pods[:_MOST_PODS]:
            owner = f"  of {visible(pod.owner)}" if pod.owner else ""
            _say(f"  Pod {_name(pod)}  {visible(pod.uid)}{owner}")
        if len(pods) > _MOST_PODS:
            _say(f"  and {several(len(pods) - _MOST_PODS, 'Pod')} more")
        for follower in followers:
            if follower.too_many:
                _say(f"podtrail: {several(follower.too_many, 'Pod')} more are not followed")
            if waited:
                await self._tell_waiting(follower)
            else:
                for workload in follower.missing:
                    _say(f"  {visible(workload)} seen so far")
            for failure in follower.failures:
                _say(f"podtrail: not known: {visible(failure)}")
        if waited and self._endpoint is not None:
            for pod in pods[:_MOST_PODS]:
                await self._tell_story(pod, self._endpoint)
        for line in self._where(pods):
            _say(f"  {line}")

    def lost_spans(self, lost: tuple[int, str]) -> None:
        """Print what could not be sent."""
        number, why = lost
        if number:
            _say(f"podtrail: {several(number, 'span')} of the client could not be sent: {printable(why)}")

    async def _tell_waiting(self, follower: PodFollower) -> None:
        for why in follower.gave_up:
            _say(f"podtrail: {visible(why)}")
        for pod in follower.pods.values():
            if pod.good or (pod.owner and "deleted" in pod.steps):
                continue
            event = await follower.last_event(pod)
            reached = f" ({_steps(pod)})"
            _say(f"podtrail: {_name(pod)} is not ready{reached}: {visible(pod.waits_for or 'its status says no more')}")
            if event and event not in pod.waits_for:
                _say(f"    last warning: {visible(event)}")
        for workload in follower.unsettled:
            _say(f"podtrail: {visible(workload)} does not have all its Pods ready yet")

    async def _tell_story(self, pod: PodProgress, endpoint: str) -> None:
        """Print what a running page tells of a Pod, once it knows it."""
        question = WhyQuestion.read({"pod": pod.uid})
        loop = asyncio.get_running_loop()
        until = loop.time() + _STORY_SECONDS
        while True:
            try:
                reply = await asyncio.to_thread(ask_page, endpoint, question)
            except NobodyThere as problem:
                _say(f"podtrail: {printable(str(problem))}")
                return
            if "error" not in reply.told:
                break
            if loop.time() > until:
                _say(f"podtrail: {printable(str(reply.told['error']))} ({reply.whom})")
                return
            await asyncio.sleep(_STORY_PAUSE)
        for line in reply.told["lines"]:
            _say("  " + "".join(visible(str(piece.get("text", ""))) for piece in line if isinstance(piece, dict)))

    def _where(self, pods: list[PodProgress]) -> Iterator[str]:
        asked = f" --endpoint {self._endpoint}" if self._endpoint else ""
        if not pods:
            yield f"podtrail why trace {self._trace_id}{asked}"
        for pod in pods[:_MOST_PODS]:
            yield f"podtrail why pod {visible(pod.uid)}{asked}"
            if self._endpoint:
                yield f"{self._endpoint.rstrip('/')}/pods/{visible(pod.uid)}"


def _name(pod: PodProgress) -> str:
    return visible(f"{pod.namespace}/{pod.name}")


def _steps(pod: PodProgress) -> str:
    """Return the steps that it took, in seconds since the command began."""
    told = []
    for step in _ON_ITS_WAY:
        if step in pod.steps:
            node = f" on {visible(pod.node)}" if step == "scheduled" else ""
            told.append(f"{step}{node} at {pod.steps[step]:.2f} s")
    return ", ".join(told)


def _say(line: str) -> None:
    click.echo(line, err=True)
