"""What goes on now, of attempts and of podtrail's own metrics."""

from podtrail.otlp import Batch
from podtrail.story import ExporterNow, Library, PipelineNow, TopView, hold_top, look_top, to_json
from podtrail.story.plugin_times import PluginCall
from podtrail.testing.attempts import MS, START, MadeAttempt, no_room

SECOND = 1_000_000_000


def view(*batches: Batch, now: int = START + SECOND, pipeline: PipelineNow | None = None) -> TopView:
    library = Library()
    for batch in batches:
        library.decide("traces", batch)
        library.keep(batch.groups, batch.arrived)
    return look_top(hold_top(library, pipeline or PipelineNow(), now, live=True))


def test_attempts_of_the_last_minute_are_what_goes_on() -> None:
    old = MadeAttempt(uid="old", name="old", start=START - 120 * SECOND)
    told = view(old.batch(), no_room().batch(), MadeAttempt(uid="b", name="b").batch())
    assert told.attempts_per_second == 2 / 60
    assert told.attempts_per_second_lately == 0.2
    assert told.results == {"Unschedulable": 1, "Success": 1}
    assert sum(told.results_since_the_start.values()) == 3
    assert (told.pods, told.pending) == ({"unschedulable": 1, "scheduled": 2}, 1)
    assert [one.reason for one in told.waiting] == [
        "TaintToleration: untolerated taint(s); NodeAffinity: no match; NodeResourcesFit: Insufficient cpu"
    ]


def test_refusals_are_by_plugin_and_reason_and_binds_are_told_without_the_pods_name() -> None:
    denied = 'running Bind plugin "DefaultBinder": pods "{0}" is forbidden: policy denied request'
    refused = [
        MadeAttempt(uid=name, name=name, result="Error", bind_error=denied.format(name)).batch() for name in ("a", "b")
    ]
    told = view(no_room().batch(), no_room(number=2, start=START + MS).batch(), *refused)
    assert [tuple(one) for one in told.refusals] == [
        ("DefaultBinder", "policy denied request", 2, 2),
        ("NodeAffinity", "no match", 2, 1),
        ("NodeResourcesFit", "Insufficient cpu", 2, 1),
        ("TaintToleration", "untolerated taint(s)", 2, 1),
    ]


def test_every_plugin_that_was_called_is_told_also_one_that_another_outlasted() -> None:
    library = Library()
    for number in (1, 2, 3):
        batch = no_room(number=number, start=START + number * 40 * SECOND).batch()
        library.decide("traces", batch)
        library.keep(batch.groups, batch.arrived)
    told = look_top(hold_top(library, PipelineNow(), START + 130 * SECOND, live=True))
    assert {one.plugin: one.attempts for one in told.plugins} == dict.fromkeys(
        ("TaintToleration", "NodeAffinity", "NodeResourcesFit"), 2
    )
    for one in told.plugins:
        (point,) = library.stories.plugin_times.points(one.plugin)
        assert (one.point, one.longest, one.median) == (point.point, point.slowest, point.median)


def test_a_call_belongs_to_the_minute_in_which_it_ended() -> None:
    library = Library()
    times = library.stories.plugin_times
    times.note(b"", [PluginCall("permit", "Gang", START, 300 * SECOND), PluginCall("permit", "Quick", START, MS)])
    told = look_top(hold_top(library, PipelineNow(), START + 310 * SECOND, live=True))
    assert [(one.plugin, one.longest) for one in told.plugins] == [("Gang", 300 * SECOND)]


def test_policies_keep_what_adds_up_to_what_was_kept() -> None:
    kept = no_room().batch()
    kept.verdicts[0].votes = {"failed": "sampled", "slow": "not_sampled"}
    linked = MadeAttempt(uid="b", name="b").batch("sampled", "linked_traces")
    linked.verdicts[0].votes = {"failed": "not_sampled", "slow": "not_sampled"}
    dropped = MadeAttempt(uid="c", name="c").batch("not_sampled", "")
    told = view(kept, linked, dropped)
    assert [(one.policy, one.kept) for one in told.policies] == [("failed", 1), ("slow", 0), ("", 1)]
    assert (told.decided, told.kept) == (3, 2)
    assert told.decided_after == 9 * MS


def test_nothing_goes_on_where_nothing_came() -> None:
    told = view(pipeline=PipelineNow((ExporterNow("file", 5, 0, 4, 0, 0, 0, 0, 0, 1, None, None),)))
    assert (told.attempts_per_second, told.pending, told.decided_after) == (0, 0, None)
    assert isinstance(to_json(told), dict)


def test_in_a_silence_the_last_minute_that_had_attempts_is_told() -> None:
    told = view(no_room().batch(), MadeAttempt(uid="b", name="b").batch(), now=START + 300 * SECOND)
    assert (told.attempts_per_second, told.attempts_per_second_lately) == (0, 0)
    assert told.window_end_unix_nano < START + SECOND
    assert told.results == {"Unschedulable": 1, "Success": 1}
    assert told.refusals
    assert told.plugins
