"""A slow attempt's time is attributed to what used it, wherever that is."""

import pytest

from podtrail.otlp import ROOT_NAME, Value, encode_span, frame, split
from podtrail.story import Library, read_pod_search
from podtrail.story.phases import POINTS
from podtrail.testing.attempts import MS, START, MadeAttempt

SECOND = 1_000 * MS
ORDER = ("preFilter", "filter", "postFilter", "preScore", "score", "reserve", "permit")
BINDING = ("waitOnPermit", "preBind", "bind", "postBind")
WAIT = "waitOnPermit"


def attempt_with(slow: str, *, plugin: bool = True, between: int = 0, queue: int = 0) -> Library:
    """Return what is known of an attempt in which each phase takes 1 ms but one, which takes 2 s."""
    made = MadeAttempt(start=START, duration=2 * SECOND + 30 * MS + between, queue_wait_ms=queue)
    spans: list[bytes] = []
    at = START

    def span(name: str, start: int, end: int, number: int, attributes: dict[str, Value]) -> None:
        raw = encode_span(
            trace_id=made.trace_id,
            span_id=number.to_bytes(8, "big"),
            name=name,
            start=start,
            end=end,
            attributes=attributes,
        )
        spans.append(raw)

    for number, points in enumerate((ORDER, BINDING)):
        begun = at
        for point in points:
            took = 2 * SECOND if point == slow else MS
            span(point, at, at + took, 100 + len(spans), {"scheduler.phase": point})
            for name, part in (("Slow" if point == slow and plugin else f"Quick{point}", took), ("Other", 1)):
                if point != WAIT:
                    named: dict[str, Value] = {"scheduler.plugin.extension_point": point, "scheduler.plugin.name": name}
                    share = part if plugin or point != slow else took // 3
                    span(f"plugin: {name}", at, at + share, 100 + len(spans), named)
            at += took
        extra = 2 * SECOND if slow == f"cycle {number}" else 0
        span(("schedulingCycle", "bindingCycle")[number], begun, at + extra, 10 + number, {})
        at += extra + (between if not number else 0)
    (group,) = made.groups()
    root = next(raw for raw in split(group.spans) if ROOT_NAME.encode() in raw)
    library = Library()
    library.keep([group._replace(spans=frame([root, *spans]), span_count=len(spans) + 1)], START)
    return library


def headline(library: Library) -> str:
    return library.stories.pods()[0].headline


@pytest.mark.parametrize("point", sorted(POINTS))
def test_time_is_attributed_to_the_plugin_or_the_wait_that_used_it(point: str) -> None:
    library = attempt_with(point)
    assert headline(library) == ("waitOnPermit took 99 %" if point == WAIT else f"{point}: Slow took 99 %")
    (pod,) = library.stories.pods()
    assert pod.plugins == (frozenset() if point == WAIT else frozenset({"Slow"}))
    found = read_pod_search("plugin:Quickbind", START)
    assert pod.slow
    assert not found.finds(pod)


@pytest.mark.parametrize("point", sorted(POINTS - {WAIT}))
def test_a_phase_in_which_no_plugin_took_half_is_named_alone(point: str) -> None:
    assert headline(attempt_with(point, plugin=False)) == f"{point} took 99 %"


@pytest.mark.parametrize(
    ("slow", "between", "said"),
    [
        ("cycle 0", 0, "scheduling cycle outside its phases took 99 %"),
        ("cycle 1", 0, "binding cycle outside its phases took 99 %"),
        ("", 2 * SECOND, "between scheduling and binding took 50 %"),
    ],
)
def test_time_outside_of_all_phases_is_not_a_plugins(slow: str, between: int, said: str) -> None:
    assert headline(attempt_with(slow, between=between)).startswith(said.rpartition(" took")[0])


def test_time_in_the_queue_makes_no_attempt_slow() -> None:
    made = MadeAttempt(start=START, duration=5 * MS, queue_wait_ms=60_000)
    library = Library()
    library.keep(made.groups(), START)
    assert not library.stories.pods()[0].slow


def test_a_plugins_time_summed_over_nodes_is_not_longer_than_its_phase() -> None:
    """Filter plugins are asked for many nodes at once: their sum exceeds the time that passed."""
    library = attempt_with(WAIT)
    made = MadeAttempt(start=START, duration=2 * SECOND)
    named: dict[str, Value] = {
        "scheduler.plugin.extension_point": "filter",
        "scheduler.plugin.name": "Parallel",
        "scheduler.duration_ns": 8 * SECOND,
    }
    raw = encode_span(
        trace_id=made.trace_id, span_id=b"p" * 8, name="plugin: Parallel", start=START, end=START + MS, attributes=named
    )
    (group,) = made.groups()
    library.keep([group._replace(spans=frame([raw]), span_count=1)], START)
    assert headline(library) == "waitOnPermit took 99 %"


def test_a_plugin_of_a_rebuilt_attempt_is_not_charged_with_its_phase() -> None:
    made = MadeAttempt(start=START, duration=2 * SECOND)
    named: dict[str, Value] = {
        "scheduler.plugin.extension_point": "filter",
        "scheduler.plugin.name": "NodeResourcesFit",
        "podtrail.inferred": ["start, end: as its phase: nothing tells the plugin's own time"],
    }
    raw = encode_span(
        trace_id=made.trace_id, span_id=b"p" * 8, name="plugin: x", start=START, end=START + SECOND, attributes=named
    )
    library = Library()
    (group,) = made.groups()
    library.keep([group, group._replace(spans=frame([raw]), span_count=1)], START)
    (pod,) = library.stories.pods()
    assert "NodeResourcesFit" not in pod.plugins
    assert library.stories.plugin_times.plugins() == {}
