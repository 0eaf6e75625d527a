"""The smallest story: what of a failing scenario can be left out, so that it still fails."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from tests.reliability.simulation.scenario import Event, Reload, Scenario, Send

Fails = Callable[[Scenario], bool]


def smallest(scenario: Scenario, fails: Fails) -> Scenario:
    """Return a scenario that fails still, and of which nothing more can be left out one by one."""
    before = None
    while before != scenario:
        before = scenario
        scenario = _fewer_events(scenario, fails)
        scenario = _fewer_pieces(scenario, fails)
        scenario = _simpler_setup(scenario, fails)
    return scenario


def _fewer_events(scenario: Scenario, fails: Fails) -> Scenario:
    """Leave out halves, quarters, and so on down to single events."""
    events: Sequence[Event] = scenario.events
    size = max(1, len(events) // 2)
    while True:
        at = 0
        while at < len(events):
            fewer = (*events[:at], *events[at + size :])
            if fails(replace(scenario, events=fewer)):
                events = fewer
            else:
                at += size
        if size == 1:
            return replace(scenario, events=tuple(events))
        size //= 2


def _fewer_pieces(scenario: Scenario, fails: Fails) -> Scenario:
    for at, event in enumerate(scenario.events):
        if not isinstance(event, Send):
            continue
        kept = event.pieces
        for piece in event.pieces:
            fewer = tuple(other for other in kept if other != piece)
            tried = _with(scenario, at, replace(event, pieces=fewer))
            if fewer and fails(tried):
                scenario, kept = tried, fewer
    return scenario


def _with(scenario: Scenario, at: int, event: Event) -> Scenario:
    return replace(scenario, events=(*scenario.events[:at], event, *scenario.events[at + 1 :]))


_SIMPLER: Mapping[str, Any] = {
    "chain": "passing",
    "variant": 0,
    "consumers": 1,
    "queue_size": 1000,
    "gives_up": False,
    "fsync": True,
    "stored_queues": False,
}


def _simpler_setup(scenario: Scenario, fails: Fails) -> Scenario:
    """Have all configurations of the story, those of reloads too, be simpler in one way after the other."""
    for key, value in _SIMPLER.items():
        change: dict[str, Any] = {key: value, "variant": 0} if key == "chain" else {key: value}
        events = [
            replace(event, setup=replace(event.setup, **change)) if isinstance(event, Reload) else event
            for event in scenario.events
        ]
        tried = replace(scenario, setup=replace(scenario.setup, **change), events=tuple(events))
        if tried != scenario and fails(tried):
            scenario = tried
    return scenario
