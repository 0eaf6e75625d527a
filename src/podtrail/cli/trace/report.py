"""What a run tells, on standard error: the trace, the Pods with their uids, how each got ready, and where to see it."""

import asyncio
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from typing import Final

import click
from podtrail_kubernetes.pod_following import PodFollower, PodProgress
from podtrail_kubernetes.tracing_proxy import RequestTrace

from podtrail.cli.running_page import NobodyThere
from podtrail.cli.why_sources import ask_page
from podtrail.config import printable
from podtrail.story import WhyQuestion, several, visible

_MOST_PODS: Final = 20
_MOST_LINES: Final = 5
_MOST_TRACES: Final = 1000
_STORY_SECONDS: Final = 15.0
"""For all stories: a tail sampler that decides by time decides within this, by default."""
_STORY_PAUSE: Final = 0.5
_STARTING: Final = "ContainersNotReady"
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
        self._stories_until = 0.0

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

    def tell_trace(self, refused: int, malformed: int) -> None:
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
        if malformed:
            _say(f"podtrail: {several(malformed, 'request')} that {'is' if malformed == 1 else 'are'} no HTTP refused")

    def tell_progress(self, follower: PodFollower) -> None:
        """Print each Pod that has got where it was to go, and what others wait for."""
        for pod in follower.pods.values():
            if pod.good or pod.ended_badly:
                self._once(pod.uid, f"podtrail: {_steps(pod)}")
            elif pod.waits_for and not pod.waits_for.startswith(_STARTING):
                # The reason alone: messages have numbers that change.
                of_container = pod.waits_for.startswith("container ")
                said = pod.waits_for.split(": ")[: 2 if of_container else 1]
                self._once(f"{pod.uid} {said}", f"podtrail: {_name(pod)} waits: {visible(pod.waits_for)}")

    async def tell_pods(self, followers: list[PodFollower], *, waited: bool) -> None:
        """Print all Pods, those first that are not ready, and what there is to say of each."""
        self._stories_until = asyncio.get_running_loop().time() + _STORY_SECONDS
        pods = [(follower, pod) for follower in followers for pod in follower.pods.values()]
        pods.sort(key=lambda each: each[1].good)
        for follower, pod in pods[:_MOST_PODS]:
            owner = f"  of {visible(pod.owner)}" if pod.owner else ""
            _say(f"  Pod {_name(pod)}  uid {visible(pod.uid)}{owner}")
            if waited and not pod.good:
                await self._tell_waiting(follower, pod)
            if waited and self._endpoint is not None:
                await self._tell_story(pod, self._endpoint)
            for line in self._where(pod):
                _say(f"    {line}")
        if len(pods) > _MOST_PODS:
            _say(f"  and {several(len(pods) - _MOST_PODS, 'Pod')} more")
        for follower in followers:
            self._tell_rest(follower, waited=waited)
        if not pods and self._requests:
            _say(f"  podtrail why trace {self._trace_id}{self._asked()}")

    def lost_spans(self, lost: tuple[int, str]) -> None:
        """Print what could not be sent."""
        number, why = lost
        if number:
            _say(f"podtrail: {several(number, 'span')} of the client could not be sent: {printable(why)}")

    async def _tell_waiting(self, follower: PodFollower, pod: PodProgress) -> None:
        _say(f"    not ready: {visible(pod.waits_for or 'its status does not say why')}")
        event = await follower.last_event(pod)
        if event and event not in pod.waits_for:
            _say(f"    last warning: {visible(event)}")

    def _tell_rest(self, follower: PodFollower, *, waited: bool) -> None:
        if follower.too_many:
            _say(f"  {several(follower.too_many, 'object')} more are not followed")
        for why in follower.gave_up:
            _say(f"  {visible(why)}")
        for workload in follower.missing:
            _say(f"  {visible(workload)} seen so far")
        for workload in follower.unsettled if waited else ():
            _say(f"  {visible(workload)} does not have all its Pods ready yet")
        for failure in follower.failures:
            _say(f"  not known: {visible(failure)}")

    async def _tell_story(self, pod: PodProgress, endpoint: str) -> None:
        """Print what a running page tells of a Pod, once it knows it."""
        question = WhyQuestion.read({"pod": pod.uid})
        while True:
            try:
                reply = await asyncio.to_thread(ask_page, endpoint, question)
            except NobodyThere as problem:
                self._once(endpoint, f"    {printable(str(problem))}")
                return
            if "error" not in reply.told:
                break
            if asyncio.get_running_loop().time() > self._stories_until:
                _say(f"    {printable(str(reply.told['error']))} ({reply.whom})")
                return
            await asyncio.sleep(_STORY_PAUSE)
        for line in reply.told["lines"]:
            _say("    " + "".join(visible(str(piece.get("text", ""))) for piece in line if isinstance(piece, dict)))

    def _where(self, pod: PodProgress) -> Iterator[str]:
        yield f"podtrail why pod {visible(pod.uid)}{self._asked()}"
        if self._endpoint:
            yield f"{self._endpoint.rstrip('/')}/pods/{visible(pod.uid)}"

    def _asked(self) -> str:
        return f" --endpoint {self._endpoint}" if self._endpoint else ""

    def _once(self, what: str, line: str) -> None:
        if what not in self._told:
            self._told.add(what)
            _say(line)


def _name(pod: PodProgress) -> str:
    return visible(f"{pod.namespace}/{pod.name}")


def _steps(pod: PodProgress) -> str:
    """Return where it has got and the steps that it took, in seconds since the command began."""
    told = []
    for step in _ON_ITS_WAY:
        if step in pod.steps:
            node = f" on {visible(pod.node)}" if step == "scheduled" else ""
            told.append(f"{step}{node} {pod.steps[step]:.2f} s")
    *before, last = told
    return f"{_name(pod)} {last} after the command began" + (f" ({', '.join(before)})" if before else "")


def _say(line: str) -> None:
    with suppress(BrokenPipeError):  # nobody reads any more: the exit code is the command's all the same
        click.echo(line, err=True)
