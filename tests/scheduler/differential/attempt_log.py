"""What kube-scheduler's log says of an attempt."""

from collections import Counter
from collections.abc import Iterator

from .answers import Answer
from .log import Line

_PREEMPTED = "Preemptor Pod preempted victim Pod"
_TERMINATING = "Victim Pod is already being deleted, skipping the API call for it"


class Attempt:
    """What the log says of a Pod's first attempt, line by line."""

    def __init__(self, key: str) -> None:
        """`key` is the Pod's, `namespace/name`."""
        self._key = key
        self._name = name_of(key)
        self._scores: dict[str, dict[str, int]] = {}
        self._totals: dict[str, int] = {}
        self._victims: set[str] = set()
        self._going = 0
        self._to_change: Counter[str] = Counter()
        self._changed: Counter[str] = Counter()
        self._chosen = ""
        self._preempting: Answer | None = None

    def answer(self, lines: Iterator[Line]) -> Answer:
        """Reads until the answer is whole."""
        for message, fields in lines:
            self._see_preemption(message, fields)
            if self._preempting is None and fields.get("pod") == self._key:
                answer = self._see(message, fields)
                if answer is not None and " preempting " in answer.message:
                    on = answer.message.rpartition(" on node ")[2].partition(",")[0]
                    self._preempting = answer._replace(nominated=on)
                elif answer is not None:
                    return answer
            if self._preempting is not None and self._has_made_room(self._preempting.message):
                return self._preempting._replace(victims=tuple(sorted(self._victims)))
        raise AssertionError("the log has no end")

    def _has_made_room(self, message: str) -> bool:
        expected = int(message.rpartition(" preempting ")[2].split()[0])
        return len(self._victims) + self._going == expected and self._to_change <= self._changed

    def _see_preemption(self, message: str, fields: dict[str, str]) -> None:
        if message == "Update event for scheduled pod":
            self._changed[fields["pod"]] += 1
        if fields.get("preemptor") == self._key and message == _TERMINATING:
            self._going += 1
        if fields.get("preemptor") == self._key and message == _PREEMPTED:
            self._victims.add(name_of(fields["victim"]))
            self._to_change[fields["victim"]] = 2  # first its condition, then its deletion, which takes its time

    def _see(self, message: str, fields: dict[str, str]) -> Answer | None:
        match message:
            case "Plugin scored node for pod":
                self._scores.setdefault(fields["plugin"], {})[fields["node"]] = int(fields["score"])
            case "Calculated node's final score for pod":
                self._totals[fields["node"]] = int(fields["score"])
            case "Updating pod condition and nominated node name" if "conditionType" not in fields:
                self._chosen = fields["nominatedNodeName"]
            case "Successfully bound pod to node":
                evaluated, fitting = int(fields["evaluatedNodes"]), int(fields["feasibleNodes"])
                return self._found("bound", fields["node"])._replace(evaluated=evaluated, fitting=fitting)
            case "Unable to schedule pod; no fit; waiting":
                return Answer(self._name, "unschedulable", message=fields["err"])
            case "Unable to schedule pod; no nodes are registered to the cluster; waiting":
                return Answer(self._name, "unschedulable", message="no nodes available to schedule pods")
            case "Error scheduling pod; retrying":
                if self._chosen:
                    return self._found("chosen", self._chosen)
                return Answer(self._name, "error", message=fields["err"])
            case "Status after running PreEnqueue plugin":
                return Answer(self._name, "gated", message=fields["status"])
        return None

    def _found(self, outcome: str, node: str) -> Answer:
        scores = {plugin: dict(sorted(by_node.items())) for plugin, by_node in self._scores.items()}
        return Answer(self._name, outcome, node, scores=scores, totals=dict(sorted(self._totals.items())))


def name_of(key: str) -> str:
    """The name in `namespace/name`."""
    return key.rpartition("/")[2]
