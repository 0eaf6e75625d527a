"""What Pods can be searched for by, and what of a Pod is looked at."""

from collections.abc import Iterator
from typing import Final

from podtrail.config.problem import did_you_mean
from podtrail.story.pending_question import alike_key, whole_reason
from podtrail.story.pod import PodStory
from podtrail.story.pod_state import POD_STATES
from podtrail.story.search import (
    Key,
    Language,
    Search,
    SearchError,
    Test,
    compared,
    glob,
    length_of_time,
    named,
    read_search,
)
from podtrail.story.waiting import waits_for
from podtrail.story.words import clip, visible

TO_LOOK_AT: Final = "to look at"
SLOW_STATE: Final = "slow"
ANY_STATE: Final = "all"
STATES_ASKED: Final = (TO_LOOK_AT, ANY_STATE, SLOW_STATE, *POD_STATES)
"""What Pods can be asked for by their state."""


def read_pod_search(text: str, now: int) -> Search[PodStory]:
    """Return the search for Pods that a text asks for, at `now` in Unix nanoseconds.

    Raises:
        SearchError: It is none.
    """
    return read_search(text, POD_LANGUAGE, now)


def in_state(pod: PodStory, state: str, now: int) -> bool:
    """Return whether a Pod is in a state of `STATES_ASKED` at `now`."""
    match state:
        case "all":
            return True
        case "to look at":
            return not POD_STATES[pod.state].settled or pod.slow or pod.unready(now)
        case "slow":
            return pod.slow
        case _:
            return pod.state == state


def reasons_of(pod: PodStory) -> Iterator[str]:
    """Yield what is said of why a Pod is where it is."""
    yield pod.headline
    if POD_STATES[pod.state].waits:
        yield waits_for(pod)
        yield whole_reason(pod)
    if pod.explained:
        yield from (no.reason for no in pod.explained.why.rejections)
    if pod.last:
        yield pod.last.message
        yield pod.last.bind_error


def _word(word: str) -> Test[PodStory]:
    def test(pod: PodStory) -> bool:
        cluster = f" {pod.cluster}" if pod.several_clusters else ""
        return word in f"{pod.namespace}/{pod.name} {pod.uid}{cluster}".lower()

    return test


def _plugin(value: str, _now: int) -> Test[PodStory]:
    fits = glob(value)
    return lambda pod: any(map(fits, pod.plugins))


def _reason(value: str, _now: int) -> Test[PodStory]:
    part = value.lower()
    return lambda pod: any(part in reason.lower() for reason in reasons_of(pod))


def _alike(value: str, _now: int) -> Test[PodStory]:
    beginning = value.lower()
    return lambda pod: POD_STATES[pod.state].waits and alike_key(pod).startswith(beginning)


def _profile(value: str, _now: int) -> Test[PodStory]:
    fits = glob(value)
    return lambda pod: any(attempt.profile and fits(attempt.profile) for attempt in pod.attempts)


def _uid(value: str, _now: int) -> Test[PodStory]:
    beginning = value.lower()
    return lambda pod: pod.uid.lower().startswith(beginning)


def _state(value: str, now: int) -> Test[PodStory]:
    states = [one.strip().lower().replace("-", " ").replace("_", " ") for one in value.split(",") if one.strip()]
    for state in states:
        if state not in STATES_ASKED:
            known = [f'"{one}"' if " " in one else one for one in STATES_ASKED]
            hint = did_you_mean(state, known, "states")
            raise SearchError(f"There is no state {visible(clip(state, 60))}. {hint[0].upper()}{hint[1:]}.")
    return lambda pod: any(in_state(pod, state, now) for state in states)


def _attempts(value: str, _now: int) -> Test[PodStory]:
    fits = compared("attempts", value)
    return lambda pod: fits(pod.tries)


def _slower(value: str, _now: int) -> Test[PodStory]:
    least = length_of_time("slower", value)
    return lambda pod: any((attempt.duration or 0) >= least for attempt in pod.attempts)


def _heard(pod: PodStory) -> Iterator[tuple[int, int]]:
    """Yield when something was heard of a Pod, from and to: its attempts, what its node tells, its gates."""
    for attempt in reversed(pod.attempts):
        yield attempt.start_unix_nano, max(attempt.start_unix_nano, attempt.end_unix_nano)
    if pod.on_node:
        yield from ((step.start_unix_nano, step.start_unix_nano) for step in pod.on_node.steps)
    if pod.since_unix_nano is not None and not pod.attempts:
        yield pod.since_unix_nano, pod.since_unix_nano


_KEYS: Final[dict[str, Key[PodStory]]] = {
    "ns": Key("namespace: ns:default, ns:kube-*", named(lambda pod: pod.namespace)),
    "name": Key("the Pod's name: name:web-*", named(lambda pod: pod.name)),
    "node": Key("the node it is on, bound to or nominated for: node:node-1", named(lambda pod: pod.node)),
    "plugin": Key("one that refused it or took its time: plugin:NodeAffinity", _plugin),
    "reason": Key('part of why it waits: reason:"Insufficient cpu"', _reason),
    "alike": Key("waits for the very same, as a link of the front page has it: alike:1f3c0a52", _alike),
    "profile": Key("the scheduler's profile: profile:default-scheduler", _profile),
    "state": Key('its state: state:gated,error, state:"bind refused", state:slow', _state),
    "attempts": Key("how often it was tried: attempts:>10", _attempts),
    "slower": Key("an attempt took at least so long: slower:1s", _slower),
    "cluster": Key("of several clusters: cluster:east", named(lambda pod: pod.cluster)),
    "uid": Key("how its uid begins: uid:1f3c0a52", _uid),
}
POD_LANGUAGE: Final = Language(_KEYS, _word, _heard)
"""What Pods are searched by."""
