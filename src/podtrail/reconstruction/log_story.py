"""From what a log tells to attempts: one begins, goes on and ends; several Pods' lines stand mixed."""

import re
from collections import Counter
from collections.abc import Callable
from typing import Final

from podtrail.reconstruction.attempt_draft import POINTS, Draft
from podtrail.reconstruction.calendar import length
from podtrail.reconstruction.failed_scheduling import read_failure
from podtrail.reconstruction.leadership import Leadership
from podtrail.reconstruction.node_scores import NodeScores
from podtrail.reconstruction.observed_pods import ObservedPods
from podtrail.reconstruction.open_attempts import OpenAttempts
from podtrail.reconstruction.pods import FOREVER, PodRegistry
from podtrail.reconstruction.scheduler_log import LineMeaning
from podtrail.reconstruction.scheduling_queue import ObservedQueue
from podtrail.reconstruction.spans_elsewhere import SpansElsewhere
from podtrail.reconstruction.vocabulary import Kind

_LONGEST_NAME = 256
_ENDS_FROM = 2
"""The verbosity from which on each attempt has a line."""
_ALL = 1_000_000
"""The sampling rate per million at which each attempt has spans."""
_PLUGINS = re.compile(r'([A-Za-z][\w.-]{0,127})"?:')
_NODE_SCORE = re.compile(r"\{(?:Name:)?([^ {}]{1,253}) (?:Score:)?(-?\d{1,9})\}")
"""In the list of a plugin's scores that 1.20 to 1.22 log."""
_VERSION = re.compile(r"v1\.(\d{1,3})\.")
_REFUSERS: Final = ("unschedulable plugins", "unschedulablePlugins")
_VICTIMS: Final = ("victim", "waitingPod", "podInPreBind")
_RESULTS: Final = {"Unschedulable": "Unschedulable", "SchedulerError": "Error"}


class LogStory:
    """Follows the attempts of any number of schedulers."""

    def __init__(self, pods: PodRegistry, ended: Callable[[Draft], None], notes: Counter[str]) -> None:
        """`ended` is called with each attempt whose end is known."""
        self._pods = pods
        self._notes = notes
        self._queue = ObservedQueue()
        self.observed = ObservedPods()
        self.attempts = OpenAttempts(ended, notes)
        self.profiles: set[str] = set()
        self.leadership = Leadership()
        self.spans_elsewhere = SpansElsewhere()
        self.first = 0
        self.newest = 0
        self.begins = 0
        """Lines of beginnings, which are logged from -v=3 on."""
        self.ends = 0
        """Lines of ends that are logged from -v=2 on: without any, the log may be a quieter one."""
        self._minor = 0
        self._verbosity = 0
        self._next_verbosity = 0
        """Of the process that is about to start: it writes its flags before it says so."""

    @property
    def tells_of_all(self) -> bool:
        """Whether each attempt of its schedulers has a line, as is known from such lines or from what `-v` is."""
        return bool(self.ends) or max(self._verbosity, self._next_verbosity) >= _ENDS_FROM

    @property
    def covered(self) -> int:
        """Return since when the log tells of every attempt; one that has no ends does not."""
        return max(self.first, self.leadership.since) if self.ends else FOREVER

    def forget_verbosity(self) -> None:
        """Note that the scheduler logs less than before: `-v` can be changed while it runs."""
        self._notes["the scheduler logs less than before"] += 1
        self.begins = self.ends = 0
        self._verbosity = self._next_verbosity = 0

    def take(self, told: LineMeaning) -> None:
        """Take in what a line tells."""
        if told.time > self.newest:
            self.newest = told.time
            self.first = self.first or told.time
        _HANDLERS[told.kind](self, told)

    def _popped(self, told: LineMeaning) -> None:
        # The Pod may be skipped: only what follows makes it an attempt.
        self.attempts.give_way(told)
        self.attempts.drop(told)
        self.attempts.of(told)

    def _begun(self, told: LineMeaning) -> None:
        self.attempts.give_way(told)
        draft = self.attempts.of(told)
        draft.begun = told.time
        self.observed.release(told.pod, told.time)
        self.begins += 1
        draft.group = _name(told, "podGroup")
        self._queue.wait(draft, told.time)

    def _skipped(self, told: LineMeaning) -> None:
        self.attempts.drop(told)

    def _binding(self, told: LineMeaning) -> None:
        draft = self.attempts.of(told)
        draft.binding_at = told.time
        draft.node = _name(told, "node")

    def _ends_with(self, told: LineMeaning) -> Draft:
        self.ends += told.kind is not Kind.FAILED  # errors are logged at any verbosity
        draft = self.attempts.of(told)
        draft.end, draft.minor = told.time, self._minor
        draft.group = draft.group or _name(told, "podGroup")
        if self.begins and draft.begun is None and not draft.group:  # of a group, not every Pod is tried
            self._notes["ends of attempts whose beginning is not in the log: lines may be missing"] += 1
        return draft

    def _bound(self, told: LineMeaning) -> None:
        draft = self._ends_with(told)
        draft.result = "Success"
        draft.node = _name(told, "node") or draft.node
        draft.evaluated = _count(told.values.get("evaluatedNodes"))
        draft.feasible = _count(told.values.get("feasibleNodes"))
        self.attempts.end(draft)

    def _no_fit(self, told: LineMeaning) -> None:
        draft = self._ends_with(told)
        draft.result = "Unschedulable"
        draft.message = told.values.get("err", "")
        if told.kind is Kind.NO_NODES:
            draft.message = draft.message or "no nodes available to schedule pods"
        self.attempts.end(draft)

    def _failed(self, told: LineMeaning) -> None:
        draft = self._ends_with(told)
        draft.message = told.values.get("err", "")
        # Pods of a group that were not tried end here too, and count as unschedulable.
        unschedulable = bool(draft.group) and read_failure(draft.message).unschedulable
        draft.result = "Unschedulable" if unschedulable else "Error"
        self.attempts.end(draft)

    def _plugin_failed(self, told: LineMeaning) -> None:
        draft = self.attempts.of(told)
        draft.failed_plugin = _name(told, "plugin")
        draft.node = _name(told, "node") or draft.node

    def _traced(self, told: LineMeaning) -> None:
        assert told.block is not None
        draft = self.attempts.known(told)
        if draft is not None and draft.block is not None:
            self.attempts.give_way(told)
        draft = self.attempts.of(told)
        draft.block = told.block
        draft.first = min(draft.first, told.block.start)

    def _chosen(self, told: LineMeaning) -> None:
        draft = self._within(told)
        draft.chosen_at = told.time
        draft.node = _name(told, "chosenNode") or draft.node

    def _within(self, told: LineMeaning) -> Draft:
        draft = self.attempts.of(told)
        if profile := _name(told, "profile"):
            draft.profile = profile
            self._profile(told)
        self._logger(draft, told)
        return draft

    def _logger(self, draft: Draft, told: LineMeaning) -> None:
        """Contextual logging names the extension point and the plugin."""
        before = ""
        for part in told.values.get("logger", "").split("."):
            if point := POINTS.get(before):
                draft.mark(point, part[:256], told.time)
                return
            before = part

    def _node_refused(self, told: LineMeaning) -> None:
        draft = self._within(told)
        marks = draft.mark("filter", "TaintToleration", told.time)
        node = _name(told, "node")
        if marks and self.attempts.room(draft):
            marks.refused.append(node)

    def _scored(self, told: LineMeaning) -> None:
        draft = self.attempts.of(told)
        plugin = _name(told, "plugin")
        marks = draft.mark("score", plugin, told.time)
        scores = _NODE_SCORE.findall(told.values.get("scores", "")) or [(_name(told, "node"), told.values.get("score"))]
        for node, text in scores:
            score = _count(text)
            if marks and score is not None and self.attempts.room(draft):
                draft.scores = draft.scores or NodeScores()
                draft.scores.plugins.setdefault(plugin, {})[node] = score

    def _extended(self, told: LineMeaning) -> None:
        draft = self.attempts.of(told)
        draft.scores = draft.scores or NodeScores()
        draft.scores.extended = True

    def _totalled(self, told: LineMeaning) -> None:
        draft = self.attempts.of(told)
        score = _count(told.values.get("score"))
        draft.totalled = told.time
        if score is not None and self.attempts.room(draft):
            draft.scores = draft.scores or NodeScores()
            draft.scores.totals[_name(told, "node")] = score

    def _post_filtered(self, told: LineMeaning) -> None:
        self.attempts.of(told).post_filtered = told.time

    def _nominated(self, told: LineMeaning) -> None:
        self._within(told).nominated = _name(told, "node")

    def _preempting(self, told: LineMeaning) -> None:
        draft = self.attempts.last(told.pod)
        if draft is not None:
            draft.nominated = _name(told, "node") or draft.nominated
            draft.victim_count = _count(told.values.get("numVictims"))

    def _victim(self, told: LineMeaning) -> None:
        draft = self.attempts.last(told.pod) or self.attempts.known(told)
        victim = next((told.values[key] for key in _VICTIMS if key in told.values), "")
        if draft is not None and victim:
            draft.add_victims([victim])

    def _permit_wait(self, told: LineMeaning) -> None:
        draft = self.attempts.of(told)
        draft.waiting_at = draft.waiting_at or told.time

    def _throttled(self, told: LineMeaning) -> None:
        if not told.values.get("URL", "").endswith(f"/pods/{told.pod.partition('/')[2]}/binding"):
            return
        draft = self.attempts.of(told)
        delay = length(told.values.get("delay", ""))
        draft.throttled = delay
        draft.first = max(0, min(draft.first, told.time - delay))

    def _added(self, told: LineMeaning) -> None:
        # At its start a scheduler is told of all Pods that are there.
        self._pods.arrived(told.pod, told.time, born=bool(self.ends or self.begins))
        self._queue.move(told.pod, told.time)
        self.observed.arrive(told.pod, told.time)

    def _removed(self, told: LineMeaning) -> None:
        self._ended(told)
        self.observed.leave(told.pod, told.time)

    def _ended(self, told: LineMeaning) -> None:
        # The scheduler does not watch Pods that have finished: this one may still exist.
        self._pods.left(told.pod)
        self._queue.leave(told.pod)

    def _placed(self, told: LineMeaning) -> None:
        self.observed.place(told.pod, told.time)

    def _lost(self, told: LineMeaning) -> None:
        self._ended(told)
        self.observed.lose(told.pod, told.time)

    def _moved(self, told: LineMeaning) -> None:
        queue = told.values.get("queue", "")
        self._queue.move(told.pod, told.time, queue)
        if told.values.get("event") == "ScheduleAttemptFailure":
            self._asked(told)

    def _asked(self, told: LineMeaning) -> None:
        draft = self.attempts.last(told.pod)
        named = next((told.values[key] for key in _REFUSERS if key in told.values), "")
        if draft is not None and (plugins := frozenset(_PLUGINS.findall(named))):
            draft.asked = plugins

    def _condition(self, told: LineMeaning) -> None:
        draft = self.attempts.last(told.pod)
        if draft is None or draft.result in ("", "Success") or told.values.get("conditionType") != "PodScheduled":
            return
        draft.result = _RESULTS.get(told.values.get("conditionReason", ""), draft.result)
        draft.nominated = _name(told, "nominatedNodeName") or draft.nominated

    def _held(self, told: LineMeaning) -> None:
        plugin = _name(told, "plugin")
        why = told.values.get("status") or told.values.get("err", "")
        self.observed.hold(told.pod, told.time, f"{plugin}: {why}" if plugin else "")

    def _panicked(self, told: LineMeaning) -> None:
        self._notes[told.kind] += 1

    def _identity(self, told: LineMeaning) -> None:
        self._pods.name_uid(told.pod, told.values["uid"], told.time)

    def _profile(self, told: LineMeaning) -> None:
        if len(self.profiles) < 1000 and (profile := _name(told, "profile")):
            self.profiles.add(profile)

    def _verbose(self, told: LineMeaning) -> None:
        self._next_verbosity = _count(told.values.get("level")) or 0

    def _started(self, told: LineMeaning) -> None:
        self._notes["starts of the scheduler"] += 1
        version = _VERSION.match(told.values.get("version", ""))
        self._minor = int(version[1]) if version else 0
        # The new process may log less than the one before: what was known of that one's lines does not hold for it.
        if not self.ends:
            self.first = told.time
        self._verbosity, self._next_verbosity = self._next_verbosity, 0
        self.begins = self.ends = 0
        self.leadership.begin_anew(told.origin, told.time)
        self.spans_elsewhere.begin_anew(told.origin, told.time)
        self.attempts.cut("the scheduler started anew", told.origin)

    def _spans_on(self, told: LineMeaning) -> None:
        rate = _count(told.values.get("samplingRatePerMillion")) or 0
        self.spans_elsewhere.turn_on(told.origin, told.time, of_all=rate >= _ALL)

    def _spans_off(self, told: LineMeaning) -> None:
        self.spans_elsewhere.turn_off(told.origin, told.time)

    def _has_spans(self, told: LineMeaning) -> None:
        self.spans_elsewhere.note(told.pod, told.time, _name(told, "result"))

    def _leads(self, told: LineMeaning) -> None:
        if not self.leadership.is_scheduler_lease(_name(told, "lock")):
            return
        self._notes[told.kind] += 1
        self.leadership.change(told.origin, told.time, leads=told.kind is Kind.LEADING)
        if told.kind is Kind.LED:
            self.attempts.cut("the scheduler was no longer leader", told.origin)


_HANDLERS: Final[dict[Kind, Callable[[LogStory, LineMeaning], object]]] = {
    Kind.BEGUN: LogStory._begun,
    Kind.POPPED: LogStory._popped,
    Kind.SKIPPED: LogStory._skipped,
    Kind.BINDING: LogStory._binding,
    Kind.BOUND: LogStory._bound,
    Kind.NO_FIT: LogStory._no_fit,
    Kind.NO_NODES: LogStory._no_fit,
    Kind.FAILED: LogStory._failed,
    Kind.PLUGIN_FAILED: LogStory._plugin_failed,
    Kind.PLUGIN_REJECTED: LogStory._plugin_failed,
    Kind.ALGORITHM_FAILED: LogStory._within,
    Kind.TRACE: LogStory._traced,
    Kind.CHOSEN: LogStory._chosen,
    Kind.WITHIN: LogStory._within,
    Kind.NODE_REFUSED: LogStory._node_refused,
    Kind.SCORED: LogStory._scored,
    Kind.EXTENDER_SCORED: LogStory._extended,
    Kind.TOTALLED: LogStory._totalled,
    Kind.POST_FILTERED: LogStory._post_filtered,
    Kind.NOMINATED: LogStory._nominated,
    Kind.PREEMPTING: LogStory._preempting,
    Kind.VICTIM: LogStory._victim,
    Kind.PERMIT_WAIT: LogStory._permit_wait,
    Kind.THROTTLED: LogStory._throttled,
    Kind.ADDED: LogStory._added,
    Kind.REMOVED: LogStory._removed,
    Kind.ENDED: LogStory._ended,
    Kind.PLACED: LogStory._placed,
    Kind.LOST: LogStory._lost,
    Kind.QUEUED: LogStory._moved,
    Kind.ASKED: LogStory._asked,
    Kind.HELD: LogStory._held,
    Kind.PANICKED: LogStory._panicked,
    Kind.CONDITION: LogStory._condition,
    Kind.IDENTITY: LogStory._identity,
    Kind.PROFILE: LogStory._profile,
    Kind.VERBOSITY: LogStory._verbose,
    Kind.STARTED: LogStory._started,
    Kind.LEADING: LogStory._leads,
    Kind.LED: LogStory._leads,
    Kind.WAITING: LogStory._leads,
    Kind.SPANS_ON: LogStory._spans_on,
    Kind.SPANS_OFF: LogStory._spans_off,
    Kind.HAS_SPANS: LogStory._has_spans,
}


def _name(told: LineMeaning, key: str) -> str:
    return told.values.get(key, "")[:_LONGEST_NAME]


def _count(text: str | None) -> int | None:
    return int(text) if text and text.isascii() and text.isdecimal() and len(text) < 10 else None
