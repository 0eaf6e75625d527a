"""Attempts from everything that tells of them, in the order of time: streaming, and bounded whatever comes."""

from collections import Counter, deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final

from podtrail.component import ObservedPod
from podtrail.reconstruction.attempt_draft import AttemptEnd, Draft, PodIdentity, Rebuilt
from podtrail.reconstruction.claims import SECOND, Claims
from podtrail.reconstruction.clock_skew import ClockSkew
from podtrail.reconstruction.log_story import LogStory
from podtrail.reconstruction.pods import FOREVER, Incarnation, PodRegistry
from podtrail.reconstruction.scheduler_log import LineMeaning
from podtrail.reconstruction.watch import PRINTED, EventSeen, LeaderSeen, PodSeen

HOLD = 5 * SECOND
"""How long an attempt that has ended waits for what else is told of it."""
_TAKES_OVER = 12 * SECOND
"""Another replica needs longer than this to become leader: a lease lasts 15 s after it was renewed, by default."""
_SEEN_LATE = SECOND // 2
"""A watch shows what a leader did while it led until then: another needs longer to notice that it may lead."""
_WEIGH_EVENT = 1 * SECOND
_WEIGH_POD = 2 * SECOND
_MOST_HELD = 8_192
_MOST_WAITING = 4_096
_NEVER = 1 << 70
_OF_LEADER: Final = "attempts of another scheduler, which was the leader"
HAVE_SPANS: Final = "attempts whose spans the scheduler exports itself"
WITHOUT_LINES: Final = "attempts without a line in the log, taken for those of another replica"

Heard = LineMeaning | EventSeen | PodSeen | LeaderSeen


@dataclass(slots=True)
class Outcome:
    """Counts of the attempts that were rebuilt, and of what nothing told."""

    attempts: Counter[tuple[str, str]] = field(default_factory=Counter)
    """By profile and result; "" where these are not known."""
    sources: Counter[str] = field(default_factory=Counter)
    """By what told of them, joined by ` + `."""
    notes: Counter[str] = field(default_factory=Counter)
    """What happened on the way."""
    lacking: Counter[str] = field(default_factory=Counter)
    """How many attempts nothing tells this of."""


class Correlator:
    """Feed it what is heard, by time; it gives attempts back once nothing more is expected of them."""

    def __init__(
        self,
        told_until: int = 0,
        pods: Iterable[Incarnation] = (),
        *,
        own_only: bool = False,
        with_spans: bool = True,
    ) -> None:
        """Attempts that ended until `told_until` are told already, as are those that `pods` say.

        With `own_only`, what Events and Pods alone tell is another's where the log says that its scheduler is not the
        leader, or that there are elections and of its own attempts it would tell.

        Without `with_spans`, attempts are left out whose spans the scheduler exports itself, as its log says.
        """
        self._own_only = own_only
        self._with_spans = with_spans
        self.outcome = Outcome()
        self._book = PodRegistry()
        self._book.restore(pods)
        self._told_until = told_until
        self._held: deque[tuple[int, AttemptEnd]] = deque()
        """Each with when it was known to have ended."""
        self._log = LogStory(self._book, self._hold, self.outcome.notes)
        self._claims = Claims(self._book, self._log, self._hold)
        self._events: deque[EventSeen] = deque()
        self._pods: deque[tuple[PodSeen, Incarnation, bool]] = deque()
        self._ahead = 0
        """The skew by which the times of `_pods` are corrected."""
        self._skew = ClockSkew()
        self._now = 0
        self._due = 0
        self._confirmed = 0
        """Until when the scheduler of the log is known to have been alive and not to have lost its lease."""

    def feed(self, heard: Heard, now: int | None = None) -> Iterator[Rebuilt]:
        """Take in one thing; yield attempts that are complete by `now`, or by its own time."""
        if (now := heard.time if now is None else now) > self._now:
            self._now = now
        if isinstance(heard, LineMeaning):
            self._log.take(heard)
        elif isinstance(heard, EventSeen):
            self._skew.compare(heard)
            self._events.append(heard)
            if later := self._skew.ahead - self._ahead:
                self._ahead += later
                waiting = ((seen._replace(time=seen.time + later), pod, bound) for seen, pod, bound in self._pods)
                self._pods = deque(waiting)
        elif isinstance(heard, LeaderSeen):
            self._log.leadership.see(heard.lock, heard.at, heard.identity)
            self._claims.events_since = min(self._claims.events_since, heard.at)
        else:
            self._see(heard if heard.change == PRINTED else heard._replace(time=heard.time + self._ahead))
        if self._now >= self._due or len(self._held) > _MOST_HELD:
            yield from self.expire(self._now)

    def expire(self, now: int) -> Iterator[Rebuilt]:
        """Yield attempts that are complete because it is `now`, and nothing more has come."""
        self._now = max(self._now, now)
        self._weigh(self._now)
        yield from self._release(self._now - HOLD)
        self._due = self._now + SECOND // 10

    def deadline(self) -> int | None:
        """Return when `expire` next has work; None when nothing waits."""
        waits = []
        if self._events:
            waits.append(self._events[0].time + self._skew.ahead + _WEIGH_EVENT)
        if self._pods:
            waits.append(self._pods[0][0].time + _WEIGH_POD)
        if self._held:
            waits.append(self._held[0][0] + HOLD)
        return min(waits, default=None)

    def told_until(self, now: int) -> int:
        """Return until when all attempts that ended are told, by what is heard until `now`."""
        ends = [ended.end - 1 for _, ended in self._held]
        waiting = [event.at - 1 for event in self._events] + [seen.time - 1 for seen, _, _ in self._pods]
        return min([now - HOLD, *ends, *waiting])

    def pods(self) -> Iterator[Incarnation]:
        """Yield the Pods that are known, with what was told of each."""
        return self._book.pods()

    def pending(self, now: int | None = None) -> list[ObservedPod]:
        """Return Pods that wait, or no longer do, if that changed since the last call; None: nothing more will come."""
        return self._log.observed.take(_NEVER if now is None else now)

    @property
    def covered(self) -> int:
        """Return since when the log tells of every attempt."""
        return self._log.covered

    def finish(self) -> Iterator[Rebuilt]:
        """Yield what is left: nothing more will come."""
        self._weigh(_NEVER)
        self._log.attempts.cut("the log ends before the attempt does")
        yield from self._release(_NEVER)
        if self._book.forgotten:
            self.outcome.notes["Pods forgotten: too many"] = self._book.forgotten

    def _see(self, seen: PodSeen) -> None:
        pod, new = self._book.see(seen)
        self._log.observed.see(seen)
        if new and seen.change != "ADDED":
            # It was so before the watch began: whatever made it so is not in it.
            pod.node, pod.said = seen.node, hash((seen.reason, seen.message))
            if seen.change == PRINTED and seen.reason and seen.since and not seen.node:
                self._pods.append((seen._replace(time=seen.since), pod, False))  # an attempt set the condition then
            return
        bound = bool(seen.node) and not pod.node and not new
        words = hash((seen.reason, seen.message))
        told = bool(seen.reason) and words != pod.said
        pod.node = seen.node or pod.node
        if seen.change != "DELETED":
            pod.said = words
        if bound or told:
            self._pods.append((seen, pod, bound))

    def _weigh(self, now: int) -> None:
        until = now - self._skew.ahead - _WEIGH_EVENT
        while self._events and (self._events[0].time <= until or len(self._events) > _MOST_WAITING):
            self._claims.event(self._events.popleft())
        while self._pods and (self._pods[0][0].time + _WEIGH_POD <= now or len(self._pods) > _MOST_WAITING):
            seen, pod, bound = self._pods.popleft()
            if bound:
                self._claims.bound(seen, pod)
            else:
                self._claims.condition(seen, pod)

    def _hold(self, draft: Draft) -> None:
        if draft.result == "Success":
            self._log.observed.place(draft.pod, draft.end)
        ended = self._claims.remember(draft)
        if self._own_only and not draft.origin and (why := self._of_another(draft)):
            ended.draft = None
            self.outcome.notes[why] += 1
        else:
            self._held.append((self._now, ended))

    def confirm_alive(self, time: int) -> None:
        """Note that the scheduler of the log was alive at a time in Unix nanoseconds."""
        self._confirmed = max(self._confirmed, time)

    def report_leader(self, time: int, *, leads: bool) -> None:
        """Note that the scheduler of the log said whether it is the leader, at a time in Unix nanoseconds."""
        self._log.leadership.report(time, leads=leads)
        if leads:
            self.confirm_alive(time)

    def _of_another(self, draft: Draft) -> str:
        """Return why an attempt of which no line tells is taken for another replica's; "" if it is not.

        A leader that was killed does not log that it leads no more. But if each of its attempts would have a line, an
        attempt without one is the next leader's, unless the scheduler now logs less: no Event says that another process
        became leader, and its own Event comes from the same host, or Events were watched since another replica can have
        become leader, or its end is too near to the last line for that. If Events are not watched, it is taken for the
        scheduler's own.
        """
        leadership = self._log.leadership
        hosts = self._claims.own_hosts | leadership.own_hosts
        if leadership.taken_over(draft.end):
            return _OF_LEADER
        seen_late = _SEEN_LATE if draft.sources == {"pods"} else 0
        if leadership.elsewhere(draft.end - seen_late, own=draft.host in hosts):
            return _OF_LEADER
        if leadership.elected and draft.host and any(hosts) and draft.host not in hosts:
            return _OF_LEADER
        if not (leadership.elected and self._log.tells_of_all):
            return ""
        sees_events = self._claims.events_since != FOREVER
        hosted = draft.host in hosts or (not draft.host and (bool(hosts) or not sees_events))
        takes_over = max(self._log.newest, self._confirmed) + _TAKES_OVER
        if hosted or draft.end <= takes_over or self._claims.events_since <= takes_over:
            self._log.forget_verbosity()
            return ""
        return WITHOUT_LINES

    def _release(self, until: int) -> Iterator[Rebuilt]:
        while self._held and (self._held[0][0] <= until or len(self._held) > _MOST_HELD):
            _, ended = self._held.popleft()
            draft, ended.draft = ended.draft, None
            assert draft is not None
            self._log.attempts.let_go(draft)
            pod = self._book.whose(draft)
            ended.uid = pod.uid
            if draft.end > max(self._told_until, pod.told_before):
                rebuilt = self._rebuilt(draft, pod)
                if not self._with_spans and self._log.spans_elsewhere.claim(draft):
                    self.outcome.notes[HAVE_SPANS] += 1
                else:
                    yield rebuilt

    def _rebuilt(self, draft: Draft, pod: Incarnation) -> Rebuilt:
        identity = self._book.identify(draft, pod, self._log.covered)
        if not identity.profile and len(self._log.profiles) == 1:
            identity = identity._replace(profile=next(iter(self._log.profiles)))
            draft.inferred["profile"] = "the only one that the log names"
        first = identity.number == 1 and identity.counted and pod.uid and not pod.gated
        if first and draft.wait is None and draft.evident and draft.start >= pod.since:
            draft.wait = draft.start - pod.since
            draft.inferred["queue wait"] = "since the Pod was created; nothing tells when it became active"
        self.outcome.attempts[identity.profile, draft.result] += 1
        self.outcome.sources[draft.told_by] += 1
        for what in _lacking(draft, identity):
            self.outcome.lacking[what] += 1
        return Rebuilt(draft, identity)


def _lacking(draft: Draft, identity: PodIdentity) -> Iterator[str]:
    if "start" in draft.inferred and draft.block is None:
        yield "its beginning"
    if not draft.result:
        yield "its result"
    if draft.wait is None:
        yield "its wait in the queue"
    if not identity.uid:
        yield "the Pod's uid"
    if not identity.profile:
        yield "its profile"
    if not identity.counted:
        yield "whether there were attempts before"
    if draft.result in ("Unschedulable", "Error") and not draft.message:
        yield "why it failed"
