"""Whether what is rebuilt equals what the schedulers counted, or what docs/stock-scheduler.md predicts instead."""

import json
from collections import Counter
from collections.abc import Iterator
from typing import Final

from tests.reconstruction.versions.matrix import LOUD, Recording
from tests.reconstruction.versions.rebuilding import SOURCES, attempts_of, live, results

_EXACT: Final = ("Success", "Error")


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
    for name, counted in recording.counted_by.items():
        found, notes = live(recording, name)
        expected = predicted(recording, "both") if len(recording.counted_by) == 1 else Counter(counted)
        if results(found) != expected:
            yield f"live beside {name}: {dict(results(found))}, expected {dict(expected)}, notes {dict(notes)}"


def predicted(recording: Recording, source: str) -> Counter[str]:
    """Return how many attempts of each result a source shows.

    From `-v=2` on the log has all. Below it only has errors. Watches have each success, and of the failures those that
    changed the Pod's condition or wrote an Event of their own.
    """
    counted, run = recording.counted, recording.run
    if source != "watch" and run.verbosity >= LOUD and run.story != "changed":
        return counted
    if source == "log" and run.story != "changed":
        return Counter(Error=counted["Error"])
    return counted


def shown_failures(recording: Recording) -> int:
    """Count the failures that the watches show."""
    shown = set()
    for line in recording.lines(recording.watch("pods")):
        pod = json.loads(line).get("event", {}).get("object", {})
        for condition in pod.get("status", {}).get("conditions", []):
            if condition["type"] == "PodScheduled" and condition["status"] == "False":
                shown.add((pod["metadata"]["uid"], condition.get("message", "")))
    return len(shown)
