"""What Events and Pods say happened, laid beside the attempts that are known: most say it of one of these.

None is invented: a saying makes an attempt of its own only where none can be meant, and none can hide behind the log.
"""

import re
from collections import OrderedDict
from collections.abc import Callable, Iterator

from podtrail.reconstruction.attempt_draft import AttemptEnd, Draft, Words
from podtrail.reconstruction.failed_scheduling import read_failure
from podtrail.reconstruction.log_story import LogStory
from podtrail.reconstruction.pods import FOREVER, Incarnation, PodRegistry
from podtrail.reconstruction.watch import PRINTED, EventSeen, PodSeen

MILLISECOND = 1_000_000
SECOND = 1_000 * MILLISECOND
_MOST_REMEMBERED = 131_072
_MOST_ENDS = 64
_MOST_HOSTS = 64
_SAME = 100 * MILLISECOND
"""An Event has the scheduler's own time; lines and Events of one attempt are microseconds apart."""
_LAG = 50 * MILLISECOND
_NEAR = 10 * SECOND
_SERIES = 3 * SECOND
_LONG_AGO = 60 * SECOND

_ASSIGNED = re.compile(r"Successfully assigned \S+ to (?P<node>\S{1,253})")
_PREEMPTED = re.compile(r"Preempted by (?:a )?pod (?P<uid>[0-9a-fA-F-]{1,64}) on node ")
_NO_WORDS = Words.of("")
_RESULTS = {"Unschedulable": "Unschedulable", "SchedulerError": "Error"}


class Claims:
    """Remembers, bounded, how each Pod's latest attempts ended."""

    def __init__(self, pods: PodRegistry, log: LogStory, ended: Callable[[Draft], None]) -> None:
        """`ended` is called with each attempt that nothing but an Event or a Pod tells of."""
        self._pods = pods
        self._log = log
        self._ended = ended
        self._ends: OrderedDict[str, list[AttemptEnd]] = OrderedDict()
        self._count = 0
        self.profiles = {"default-scheduler"}
        self.own_hosts: set[str] = set()
        """Where the schedulers run whose logs are read, by Events of attempts with lines; "" if these do not say."""
        self.events_since = FOREVER
        """When the oldest Event was written that was read; Events from then on are watched."""

    def remember(self, draft: Draft) -> AttemptEnd:
        """Note that an attempt has ended."""
        ends = self._ends.get(draft.pod)
        if ends is None:
            ends = self._ends[draft.pod] = []
        else:
            self._ends.move_to_end(draft.pod)
        told = AttemptEnd(draft.end, draft.result, Words.of(draft.message) if draft.message else _NO_WORDS, draft=draft)
        ends.append(told)
        self._count += 1
        if len(ends) > _MOST_ENDS:
            del ends[0]
            self._count -= 1
        if self._count > _MOST_REMEMBERED:
            _, gone = self._ends.popitem(last=False)
            self._count -= len(gone)
        return told

    def event(self, seen: EventSeen) -> None:
        """Weigh an Event."""
        self.events_since = min(self.events_since, seen.at)
        self._pods.name_uid(seen.pod, seen.uid, seen.at)
        match seen.reason:
            case "Scheduled":
                self._profile(seen)
                self._scheduled(seen)
            case "FailedScheduling" if not seen.note.startswith("skip schedule deleting pod"):
                self._profile(seen)
                self._failed(seen)
            case "Preempted":
                self._preempted(seen)

    def _profile(self, seen: EventSeen) -> None:
        if len(self.profiles) < 1000 and seen.profile:
            self.profiles.add(seen.profile)

    def _scheduled(self, seen: EventSeen) -> None:
        node = _ASSIGNED.fullmatch(seen.note)
        near = [told for told in self._meant(seen) if told.result == "Success" and abs(told.end - seen.at) <= _NEAR]
        if near:
            self._enrich(min(near, key=lambda told: abs(told.end - seen.at)), seen)
            return
        self._fill(seen, "Success", node["node"] if node else "")

    def _failed(self, seen: EventSeen) -> None:
        failed = [told for told in self._meant(seen) if told.result not in ("", "Success")]
        near = [
            told
            for told in failed
            if -_SAME <= told.end - seen.at <= _SAME + seen.resolution
            and (seen.resolution == SECOND or told.event_at in (0, seen.at))
        ]
        if near:
            self._enrich(min(near, key=lambda told: abs(told.end - seen.at)), seen)
            return
        ends = self._ends.get(seen.pod)
        if ends and len(ends) == _MOST_ENDS and seen.at < ends[0].end:
            return  # told again of an attempt that is no longer remembered
        unschedulable = read_failure(seen.note).unschedulable
        self._fill(seen, "Unschedulable" if unschedulable else "Error", "")

    def _fill(self, seen: EventSeen, result: str, node: str) -> None:
        """Give an attempt the end that an Event tells: one whose end is not known, else one of its own."""
        unended = next((told for told in self._meant(seen) if not told.result and told.draft), None)
        draft = self._log.attempts.for_pod(seen.pod)
        if draft is not None and self._is_of_another(draft, seen.uid):
            draft = None
        if draft is not None and draft.evident and draft.start <= seen.at:
            draft.inferred["end"] = draft.inferred["result"] = "from an Event; the log does not tell it"
        elif unended and unended.draft and unended.draft.start <= seen.at and seen.at - unended.end < _NEAR:
            draft = unended.draft
            draft.inferred["end"] = draft.inferred["result"] = "from an Event; the log does not tell it"
            unended.end, unended.result, unended.words = seen.at, result, Words.of(seen.note)
        else:
            unended = None
            draft = Draft(seen.pod, "", seen.at)
            draft.inferred["start"] = "the Event, which is written at the end; nothing tells the beginning"
        opened = draft.end == 0
        draft.end, draft.result = seen.at, result
        draft.node = node or draft.node
        draft.message = "" if result == "Success" else seen.note
        draft.uid, draft.profile = seen.uid, seen.profile
        draft.host = seen.host
        draft.resolution = max(draft.resolution, seen.resolution)
        draft.sources.add("events")
        if seen.repeated and result != "Success":
            draft.inferred["message"] = "of an earlier attempt: a series of Events keeps its first note"
        if result == "Error":
            draft.inferred["result"] = "from the Event's words: they are not those of a Pod that fits nowhere"
        if draft.origin and opened:
            self._log.attempts.end(draft)
        elif not draft.origin:
            self._ended(draft)
            self._mark(draft, seen)

    def _mark(self, draft: Draft, seen: EventSeen) -> None:
        self._ends[draft.pod][-1].repeated = seen.repeated
        self._note_time(self._ends[draft.pod][-1], seen)

    def _note_time(self, told: AttemptEnd, seen: EventSeen) -> None:
        if seen.resolution < SECOND:
            told.event_at = seen.at

    def _preempted(self, seen: EventSeen) -> None:
        found = _PREEMPTED.match(seen.note)
        preemptor = self._pods.pod_of(found["uid"]) if found else ""
        for told in self._told(preemptor) if preemptor else ():
            if (
                told.result == "Unschedulable"
                and told.draft
                and -_SAME - seen.resolution <= seen.at - told.end <= _NEAR
            ):
                told.draft.add_victims([seen.pod])
                told.draft.sources.add("events")
                return

    def _enrich(self, told: AttemptEnd, seen: EventSeen) -> None:
        self._note_time(told, seen)
        if told.draft is not None:
            if told.draft.origin and len(self.own_hosts) < _MOST_HOSTS:
                self.own_hosts.add(seen.host)
            told.draft.uid = told.draft.uid or seen.uid
            told.draft.profile = told.draft.profile or seen.profile
            told.draft.message = told.draft.message or ("" if told.result == "Success" else seen.note)
            told.draft.sources.add("events")

    def _told(self, pod: str) -> Iterator[AttemptEnd]:
        """Yield the known attempts for a Pod, the latest first."""
        return reversed(self._ends.get(pod, ()))

    def _meant(self, seen: EventSeen | PodSeen) -> Iterator[AttemptEnd]:
        """Yield the known attempts that an Event or a Pod may be about, by its uid: Events outlive their Pods."""
        for told in self._told(seen.pod):
            another = told.uid not in ("", seen.uid) if seen.uid else False
            if not another and not (told.draft and self._is_of_another(told.draft, seen.uid)):
                yield told

    def _is_of_another(self, draft: Draft, uid: str) -> bool:
        """Return whether an attempt was for another Pod of the same name."""
        known = draft.uid or self._pods.uid_at(draft.pod, draft.start)
        return bool(known and uid) and known != uid

    def condition(self, seen: PodSeen, pod: Incarnation) -> None:
        """Weigh a condition that says why a Pod is not scheduled: it is written after an attempt, if it changed."""
        if seen.reason not in _RESULTS:
            return
        told = self._attempt_of(seen, pod)
        if told is None and not self._in_log(seen.time):
            draft = Draft(seen.pod, "", seen.time, end=seen.time, message=seen.message, uid=seen.uid)
            draft.result = _RESULTS[seen.reason]
            draft.resolution = SECOND
            draft.sources.add("pods")
            shown = "the condition's last transition" if seen.change == PRINTED else "the condition's arrival"
            draft.inferred["end"] = f"{shown}, which is written behind the attempt"
            draft.inferred["start"] = f"{shown}; nothing tells the beginning"
            draft.nominated = seen.nominated
            self._ended(draft)
            pod.settled = seen.time
        elif told is not None:
            pod.settled = max(pod.settled, told.end)
            if told.draft is not None:
                told.draft.sources.add("pods")
                told.draft.nominated = told.draft.nominated or seen.nominated
                if told.repeated or "result" in told.draft.inferred or told.draft.group:
                    told.draft.result = told.result = _RESULTS[seen.reason]
                if told.repeated:
                    told.draft.message, told.words = seen.message, Words.of(seen.message)
                    told.draft.inferred["message"] = "from the Pod's condition; the Event keeps an earlier note"
                    told.repeated = False

    def _attempt_of(self, seen: PodSeen, pod: Incarnation) -> AttemptEnd | None:
        ends = [
            told
            for told in reversed([*self._meant(seen)])
            if told.result not in ("", "Success") and pod.settled <= told.end <= seen.time + _LAG
        ]
        words = Words.of(seen.message)
        for told in ends:
            if told.words.like(words) and told.end >= pod.since - SECOND:
                return told
        return next((told for told in reversed(ends) if told.repeated and seen.time - told.end <= _SERIES), None)

    def bound(self, seen: PodSeen, pod: Incarnation) -> None:
        """Weigh that a Pod has got a node: its own attempt put it there, unless somebody bound it by hand."""
        for told in self._meant(seen):
            if told.result == "Success" and told.end >= pod.since - _LONG_AGO:
                if told.draft is not None:
                    told.draft.sources.add("pods")
                return
        draft = self._log.attempts.for_pod(seen.pod)
        if draft is not None and self._is_of_another(draft, seen.uid):
            draft = None
        if draft is not None and draft.evident and draft.start <= seen.time and draft.node in ("", seen.node):
            draft.inferred["result"] = draft.inferred["end"] = "the Pod has got a node; the log does not tell it"
            draft.end, draft.result, draft.node, draft.uid = seen.time, "Success", seen.node, seen.uid
            draft.sources.add("pods")
            self._log.attempts.end(draft)
        elif not self._in_log(seen.time) and seen.profile in self.profiles | self._log.profiles:
            draft = Draft(seen.pod, "", seen.time, end=seen.time, result="Success", node=seen.node, uid=seen.uid)
            draft.sources.add("pods")
            draft.inferred["result"] = "the Pod has got a node, and asks for a scheduler that is known"
            draft.inferred["start"] = draft.inferred["end"] = "the arrival of the Pod with its node"
            draft.resolution = SECOND
            self._ended(draft)

    def _in_log(self, time: int) -> bool:
        """Whether the log would tell of an attempt at this time: it has their ends, and covers the time."""
        return bool(self._log.ends) and self._log.first <= time <= self._log.newest + SECOND
