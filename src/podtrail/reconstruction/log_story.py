"""From what a log tells to attempts: one begins, goes on and ends; several Pods' lines stand mixed."""

import re
from collections import Counter, OrderedDict
from collections.abc import Callable
from typing import Final

from podtrail.reconstruction.draft import POINTS, Draft
from podtrail.reconstruction.failed_scheduling import read_failure
from podtrail.reconstruction.pods import PodBook
from podtrail.reconstruction.scheduler_log import Told
from podtrail.reconstruction.vocabulary import Kind

MOST_OPEN = 8_192
_MOST_QUEUED = 65_536
_MOST_ORIGINS = 64
_MOST_DETAILS = 262_144
"""Names of nodes that all open attempts hold together."""
_LONGEST_NAME = 256
_PLUGINS = re.compile(r'([A-Za-z][\w.-]{0,127})"?:')
_MILLISECOND = 1_000_000
_LENGTH = re.compile(r"(?:(\d{1,4})m)?(\d{1,6}(?:\.\d{1,9})?)(ms|s|µs|us)")
_FACTORS: Final = {"ms": _MILLISECOND, "s": 10**9, "us": 1_000, "µs": 1_000}
_RESULTS: Final = {"Unschedulable": "Unschedulable", "SchedulerError": "Error"}

_NO_BEGINNING = "the first line that tells of the attempt; nothing tells its beginning"


class LogStory:
    """Follows the attempts of any number of schedulers. Bounded: when too many are open, the oldest goes."""

    def __init__(self, book: PodBook, ended: Callable[[Draft], None], notes: Counter[str]) -> None:
        """`ended` is called with each attempt whose end is known."""
        self._book = book
        self._ended = ended
        self._notes = notes
        self._open: OrderedDict[tuple[str, str], Draft] = OrderedDict()
        self._origins: OrderedDict[str, None] = OrderedDict()
        self._queued: OrderedDict[str, tuple[int, str]] = OrderedDict()
        self._last: dict[str, Draft] = {}
        self._details = 0
        self.profiles: set[str] = set()
        self.first = 0
        self.newest = 0
        self.ends = 0
        """Lines of ends that are logged from -v=2 on: without any, the log is a quieter one."""

    def take(self, told: Told) -> None:
        """Take in what a line tells."""
        if told.time > self.newest:
            self.newest = told.time
            self.first = self.first or told.time
        _HANDLERS[told.kind](self, told)

    def let_go(self, draft: Draft) -> None:
        """Forget an attempt that has been told."""
        if self._last.get(draft.pod) is draft:
            del self._last[draft.pod]

    def opened(self, pod: str) -> Draft | None:
        """Return an attempt for a Pod whose end is not known yet."""
        return next((draft for origin in self._origins if (draft := self._open.get((origin, pod)))), None)

    def close(self, draft: Draft) -> None:
        """End an attempt of which something else than the log told the end."""
        self._open.pop((draft.origin, draft.pod), None)
        self._finish(draft)

    def cut(self, why: str, origin: str = "") -> None:
        """End all that is open, of one scheduler or of all: nothing will tell its end."""
        for key in [key for key in self._open if not origin or key[0] == origin]:
            self._abandon(self._open.pop(key), why)

    def _abandon(self, draft: Draft, why: str) -> None:
        if not draft.evident:
            self._notes["traces of attempts whose end nothing tells"] += 1
            self._details -= draft.details
            return
        last = max((marks.last for marks in draft.plugins.values()), default=draft.first)
        block_end = draft.block.start + draft.block.took if draft.block else 0
        draft.end = max(draft.first, last, block_end, draft.binding_at or 0, draft.chosen_at or 0)
        draft.inferred["end"] = why
        self._finish(draft)

    def _finish(self, draft: Draft) -> None:
        self._details -= draft.details
        draft.summarize()
        if draft.begun is None:
            draft.inferred["start"] = (
                "as the trace in the log says, to the millisecond" if draft.block else _NO_BEGINNING
            )
        self._last[draft.pod] = draft
        self._ended(draft)

    def _draft(self, told: Told) -> Draft:
        key = (told.origin, told.pod)
        draft = self._open.get(key)
        if draft is None:
            draft = self._open[key] = Draft(told.pod, told.origin, told.time)
            draft.sources.add("log")
            if told.origin not in self._origins:
                self._origins[told.origin] = None
                if len(self._origins) > _MOST_ORIGINS:
                    self._origins.popitem(last=False)
            if len(self._open) > MOST_OPEN:
                _, oldest = self._open.popitem(last=False)
                self._notes["open attempts let go: too many"] += 1
                self._abandon(oldest, "let go: too many attempts were open")
        return draft

    def _popped(self, told: Told) -> None:
        # The Pod may be skipped: only what follows makes it an attempt.
        self._replace(told)
        self._drop(told)
        self._draft(told)

    def _replace(self, told: Told) -> None:
        """End an open attempt that another of the same Pod follows."""
        before = self._open.get((told.origin, told.pod))
        if before is not None and (before.evident or before.binding_at is not None):
            del self._open[told.origin, told.pod]
            self._abandon(before, "another attempt for the Pod follows, nothing tells this one's end")

    def _begun(self, told: Told) -> None:
        self._replace(told)
        draft = self._draft(told)
        draft.begun = told.time
        draft.group = _name(told, "podGroup")
        queued = self._queued.get(told.pod)
        if queued is None or queued[0] > told.time:
            return
        time, queue = queued
        if queue == "Active":
            draft.wait = told.time - time
        elif queue == "added":
            draft.wait = told.time - time
            draft.inferred["queue wait"] = "since the Pod came to the scheduler: no line tells when it became active"
        elif queue == "Backoff":
            draft.wait = 0
            draft.inferred["queue wait"] = "taken from the back-off queue, without a wait in the active one"

    def _skipped(self, told: Told) -> None:
        self._drop(told)

    def _drop(self, told: Told) -> None:
        dropped = self._open.pop((told.origin, told.pod), None)
        if dropped is not None:
            self._details -= dropped.details

    def _binding(self, told: Told) -> None:
        draft = self._draft(told)
        draft.binding_at = told.time
        draft.node = _name(told, "node")

    def _ends_with(self, told: Told) -> Draft:
        self.ends += told.kind is not Kind.FAILED  # errors are logged at any verbosity
        draft = self._draft(told)
        del self._open[told.origin, told.pod]
        draft.end = told.time
        draft.group = draft.group or _name(told, "podGroup")
        return draft

    def _bound(self, told: Told) -> None:
        draft = self._ends_with(told)
        draft.result = "Success"
        draft.node = _name(told, "node") or draft.node
        draft.evaluated = _count(told.values.get("evaluatedNodes"))
        draft.feasible = _count(told.values.get("feasibleNodes"))
        self._finish(draft)

    def _no_fit(self, told: Told) -> None:
        draft = self._ends_with(told)
        draft.result = "Unschedulable"
        draft.message = told.values.get("err", "")
        if told.kind is Kind.NO_NODES:
            draft.message = draft.message or "no nodes available to schedule pods"
        self._finish(draft)

    def _failed(self, told: Told) -> None:
        draft = self._ends_with(told)
        draft.message = told.values.get("err", "")
        # Pods of a group that were not tried end here too, and count as unschedulable.
        unschedulable = bool(draft.group) and read_failure(draft.message).unschedulable
        draft.result = "Unschedulable" if unschedulable else "Error"
        self._finish(draft)

    def _plugin_failed(self, told: Told) -> None:
        draft = self._draft(told)
        draft.failed_plugin = _name(told, "plugin")
        draft.node = _name(told, "node") or draft.node

    def _traced(self, told: Told) -> None:
        assert told.block is not None
        draft = self._open.get((told.origin, told.pod))
        if draft is not None and draft.block is not None:
            self._replace(told)
        draft = self._draft(told)
        draft.block = told.block
        draft.first = min(draft.first, told.block.start)

    def _chosen(self, told: Told) -> None:
        draft = self._within(told)
        draft.chosen_at = told.time
        draft.node = _name(told, "chosenNode") or draft.node

    def _within(self, told: Told) -> Draft:
        draft = self._draft(told)
        if profile := _name(told, "profile"):
            draft.profile = profile
            self._profile(told)
        self._logger(draft, told)
        return draft

    def _logger(self, draft: Draft, told: Told) -> None:
        """Contextual logging names the extension point and the plugin."""
        before = ""
        for part in told.values.get("logger", "").split("."):
            if point := POINTS.get(before):
                draft.mark(point, part[:256], told.time)
                return
            before = part

    def _node_refused(self, told: Told) -> None:
        draft = self._within(told)
        marks = draft.mark("filter", "TaintToleration", told.time)
        node = _name(told, "node")
        if marks and self._room(draft):
            marks.refused.append(node)

    def _scored(self, told: Told) -> None:
        draft = self._draft(told)
        marks = draft.mark("score", _name(told, "plugin"), told.time)
        score = _count(told.values.get("score"))
        if marks and score is not None and self._room(draft):
            marks.scores[_name(told, "node")] = score

    def _totalled(self, told: Told) -> None:
        draft = self._draft(told)
        score = _count(told.values.get("score"))
        draft.totalled = told.time
        if score is not None and self._room(draft):
            draft.totals[_name(told, "node")] = score

    def _room(self, draft: Draft) -> bool:
        """Say whether a node's name may be held; if so it counts."""
        if self._details >= _MOST_DETAILS:
            self._notes["scores and refusals of single nodes not held: too many"] += 1
            return False
        self._details += 1
        draft.details += 1
        return True

    def _post_filtered(self, told: Told) -> None:
        self._draft(told).post_filtered = told.time

    def _nominated(self, told: Told) -> None:
        self._within(told).nominated = _name(told, "node")

    def _preempting(self, told: Told) -> None:
        draft = self._last.get(told.pod)
        if draft is not None:
            draft.nominated = _name(told, "node") or draft.nominated
            draft.victim_count = _count(told.values.get("numVictims"))

    def _victim(self, told: Told) -> None:
        draft = self._last.get(told.pod)
        if draft is not None and (victim := told.values.get("victim")):
            draft.add_victims([victim])

    def _permit_wait(self, told: Told) -> None:
        draft = self._draft(told)
        draft.waiting_at = draft.waiting_at or told.time

    def _throttled(self, told: Told) -> None:
        if not told.values.get("URL", "").endswith(f"/pods/{told.pod.partition('/')[2]}/binding"):
            return
        draft = self._draft(told)
        delay = _length(told.values.get("delay", ""))
        draft.throttled = delay
        draft.first = max(0, min(draft.first, told.time - delay))

    def _added(self, told: Told) -> None:
        self._book.arrived(told.pod, told.time)
        self._queue(told.pod, told.time, "added")

    def _removed(self, told: Told) -> None:
        self._book.left(told.pod)
        self._queued.pop(told.pod, None)

    def _moved(self, told: Told) -> None:
        queue = told.values.get("queue", "")
        self._queue(told.pod, told.time, queue)
        draft = self._last.get(told.pod)
        if draft is not None and told.values.get("event") == "ScheduleAttemptFailure":
            asked = _PLUGINS.findall(told.values.get("unschedulable plugins", ""))
            draft.asked = frozenset(asked) or draft.asked

    def _queue(self, pod: str, time: int, queue: str) -> None:
        self._queued[pod] = (time, queue)
        self._queued.move_to_end(pod)
        if len(self._queued) > _MOST_QUEUED:
            self._queued.popitem(last=False)

    def _condition(self, told: Told) -> None:
        draft = self._last.get(told.pod)
        if draft is None or draft.result in ("", "Success") or told.values.get("conditionType") != "PodScheduled":
            return
        draft.result = _RESULTS.get(told.values.get("conditionReason", ""), draft.result)
        draft.nominated = _name(told, "nominatedNodeName") or draft.nominated

    def _identity(self, told: Told) -> None:
        self._book.name_uid(told.pod, told.values["uid"], told.time)

    def _profile(self, told: Told) -> None:
        if len(self.profiles) < 1000 and (profile := _name(told, "profile")):
            self.profiles.add(profile)

    def _started(self, told: Told) -> None:
        self._notes["starts of the scheduler"] += 1
        self.cut("the scheduler started anew", told.origin)

    def _leads(self, told: Told) -> None:
        self._notes[told.kind] += 1
        if told.kind is Kind.LED:
            self.cut("the scheduler was no longer leader", told.origin)


_HANDLERS: Final[dict[Kind, Callable[[LogStory, Told], object]]] = {
    Kind.BEGUN: LogStory._begun,
    Kind.POPPED: LogStory._popped,
    Kind.SKIPPED: LogStory._skipped,
    Kind.BINDING: LogStory._binding,
    Kind.BOUND: LogStory._bound,
    Kind.NO_FIT: LogStory._no_fit,
    Kind.NO_NODES: LogStory._no_fit,
    Kind.FAILED: LogStory._failed,
    Kind.PLUGIN_FAILED: LogStory._plugin_failed,
    Kind.ALGORITHM_FAILED: LogStory._within,
    Kind.TRACE: LogStory._traced,
    Kind.CHOSEN: LogStory._chosen,
    Kind.WITHIN: LogStory._within,
    Kind.NODE_REFUSED: LogStory._node_refused,
    Kind.SCORED: LogStory._scored,
    Kind.TOTALLED: LogStory._totalled,
    Kind.POST_FILTERED: LogStory._post_filtered,
    Kind.NOMINATED: LogStory._nominated,
    Kind.PREEMPTING: LogStory._preempting,
    Kind.VICTIM: LogStory._victim,
    Kind.PERMIT_WAIT: LogStory._permit_wait,
    Kind.THROTTLED: LogStory._throttled,
    Kind.ADDED: LogStory._added,
    Kind.REMOVED: LogStory._removed,
    Kind.QUEUED: LogStory._moved,
    Kind.CONDITION: LogStory._condition,
    Kind.IDENTITY: LogStory._identity,
    Kind.PROFILE: LogStory._profile,
    Kind.STARTED: LogStory._started,
    Kind.LEADING: LogStory._leads,
    Kind.LED: LogStory._leads,
}


def _name(told: Told, key: str) -> str:
    return told.values.get(key, "")[:_LONGEST_NAME]


def _count(text: str | None) -> int | None:
    return int(text) if text and text.isascii() and text.isdecimal() and len(text) < 10 else None


def _length(text: str) -> int:
    found = _LENGTH.fullmatch(text)
    if found is None:
        return 0
    return int(found[1] or 0) * 60 * 10**9 + int(float(found[2]) * _FACTORS[found[3]])
