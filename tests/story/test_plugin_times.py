from hypothesis import given
from hypothesis import strategies as st

from podtrail.otlp import Batch
from podtrail.story import Stories
from podtrail.story.plugin_times import MINUTE, PluginCall, PluginMinute, PluginTimes, Slowdown
from podtrail.testing.attempts import START, no_room

MS = 1_000_000
BEGIN = START // MINUTE * MINUTE


def test_calls_are_told_by_extension_point_the_costly_first() -> None:
    times = PluginTimes()
    calls = [PluginCall("filter", "Fit", BEGIN, took) for took in (1 * MS, 2 * MS, 9 * MS)]
    times.note(b"t" * 16, [*calls, PluginCall("score", "Fit", BEGIN + MINUTE, 40 * MS)])
    score, filtering = times.points("Fit")
    assert (score.point, filtering.point) == ("score", "filter")
    assert (filtering.calls, filtering.total, filtering.median, filtering.slowest) == (3, 12 * MS, 2 * MS, 9 * MS)
    assert filtering.minutes == (PluginMinute(BEGIN, 3, 12 * MS, 9 * MS),)
    assert [(call.took, call.point) for call in times.slowest("Fit")[:2]] == [(40 * MS, "score"), (9 * MS, "filter")]
    assert (times.points("unknown"), times.slowest("unknown")) == ((), ())


def slowdown(*took: int) -> Slowdown | None:
    times = PluginTimes()
    times.note(b"", [PluginCall("filter", "Fit", BEGIN + at * MINUTE, length) for at, length in enumerate(took)])
    return times.points("Fit")[0].slowdown


def test_a_plugin_is_slow_since_the_call_that_tells_before_from_after() -> None:
    assert slowdown(*[2 * MS] * 20, *[90 * MS] * 6) == Slowdown(BEGIN + 20 * MINUTE, 2 * MS, 90 * MS)


def test_what_is_slow_once_or_was_asked_too_seldom_is_no_slowdown() -> None:
    assert slowdown(*[MS] * 9, 90 * MS, *[MS] * 9) is None
    assert slowdown(*[MS] * 9, *[90 * MS] * 2) is None
    assert slowdown(*[2 * MS] * 9, *[5 * MS] * 9) is None


@given(st.lists(st.tuples(st.integers(0, 500), st.integers(0, 10**9)), max_size=400))
def test_what_is_held_of_a_plugin_is_bounded_and_sums_go_on(calls: list[tuple[int, int]]) -> None:
    times = PluginTimes()
    times.note(b"", [PluginCall("filter", "Fit", BEGIN + at * MINUTE, took) for at, took in calls])
    for told in times.points("Fit"):
        assert (told.calls, told.total) == (len(calls), sum(took for _, took in calls))
        assert len(told.minutes) <= 120
        assert told.minutes == tuple(sorted(told.minutes))
    assert len(times.slowest("Fit")) == min(10, len(calls))


def test_plugins_are_bounded() -> None:
    times = PluginTimes()
    times.note(b"", [PluginCall("filter", f"{number}{'x' * 300}", BEGIN, 1) for number in range(300)])
    assert len(times.plugins()) == 200
    assert all(len(plugin) <= 256 for plugin in times.plugins())


def test_a_call_that_is_told_of_twice_counts_once() -> None:
    stories = Stories()
    groups = no_room().groups()
    for _ in range(2):
        stories.observe(Batch(groups, START))
    assert {plugin: points[0].calls for plugin, points in stories.plugin_times.plugins().items()} == {
        "TaintToleration": 1,
        "NodeAffinity": 1,
        "NodeResourcesFit": 1,
    }
