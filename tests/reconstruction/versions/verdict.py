"""Whether what is rebuilt equals what the schedulers counted, or what docs/stock-scheduler.md predicts instead."""

import json
import re
from collections import Counter
from collections.abc import Iterator
from typing import Final

from podtrail.reconstruction.calendar import rfc3339
from tests.reconstruction.versions.matrix import Recording
from tests.reconstruction.versions.rebuilding import SOURCES, attempts_of, live, results

_ALWAYS: Final = 1 << 63
_LONGEST_NOTE: Final = 1024
_UNSCHEDULABLE: Final = re.compile(r"\d+/\d+ nodes are available|no nodes available")
_FAILURES: Final = {"Unschedulable": "Unschedulable", "SchedulerError": "Error"}
"""Results by the reason of the condition `PodScheduled`."""


def differences(recording: Recording) -> list[str]:
    """Return each count that is neither the schedulers' nor as predicted."""
    found = [*_of_files(recording), *_live(recording)]
    return [f"{recording.minor} {recording.run.name}: {each}" for each in found]


def _of_files(recording: Recording) -> Iterator[str]:
    for source in SOURCES:
        found = results(attempts_of(recording, source))
        expected = predicted(recording, source)
        if found != expected:
            yield f"{source}: {dict(found)}, expected {dict(expected)}, counted {dict(recording.counted)}"
    nodes = {a.pod: a.root["scheduler.selected_node"] for a in attempts_of(recording, "both") if a.result == "Success"}
    wrong = {pod: nodes.get(pod) for pod, node in recording.bound.items() if nodes.get(pod) != node}
    if wrong:
        yield f"nodes: {wrong}"


def _live(recording: Recording) -> Iterator[str]:
    """Compare a podtrail beside each scheduler: it reports the attempts of this one only."""
    for name in recording.counted_by:
        found, notes = live(recording, name)
        expected = predicted(recording, "both", name)
        if results(found) != expected:
            yield f"live beside {name}: {dict(results(found))}, expected {dict(expected)}, notes {dict(notes)}"


def predicted(recording: Recording, source: str, scheduler: str = "") -> Counter[str]:
    """Return how many attempts of each result a source shows, of all schedulers or of one.

    From `-v=2` on the log has all. Below it only has errors. Watches have each success, and of the failures those that
    wrote an Event of their own, or changed the Pod's condition.
    """
    if source == "watch":
        return Counter(Success=recording.counted["Success"], **shown_failures(recording))
    counted = Counter(recording.counted_by[scheduler]) if scheduler else recording.counted
    quiet = recording.quiet
    if scheduler not in ("", quiet.scheduler):
        return counted
    logged = counted - quiet.counted + Counter(Error=quiet.counted["Error"])
    if source == "log":
        return logged
    shown = shown_failures(recording, quiet.since, quiet.until)
    return logged + Counter(Success=quiet.counted["Success"], Unschedulable=shown["Unschedulable"])


def shown_failures(recording: Recording, since: int = 0, until: int = _ALWAYS) -> Counter[str]:
    """Count by result the failures that Events and conditions show, of attempts from `since` until `until`."""
    shown = {}
    notes = set()
    for told in map(json.loads, recording.lines(recording.watch("events"))):
        event = told.get("event", {}).get("object", {})
        if event.get("reason") == "FailedScheduling":
            uid, note = event["regarding"]["uid"], event["note"]
            notes.add((uid, note))
            at = rfc3339((event.get("series") or {}).get("lastObservedTime") or event["eventTime"])
            shown[uid, at] = at, "Unschedulable" if _UNSCHEDULABLE.match(note) else "Error"
    for told in map(json.loads, recording.lines(recording.watch("pods"))):
        pod = told.get("event", {}).get("object", {})
        for condition in pod.get("status", {}).get("conditions", []):
            key = pod["metadata"]["uid"], condition.get("message", "")[:_LONGEST_NOTE]
            if condition.get("reason") in _FAILURES and key not in notes:
                shown.setdefault(key, (int(told["arrivalUnixNano"]), _FAILURES[condition["reason"]]))
    return Counter(result for at, result in shown.values() if at is not None and since <= at <= until)
