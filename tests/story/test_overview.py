"""Questions about more than one Pod: who waits, a node, a plugin, a change of the scheduler's configuration."""

from collections.abc import Mapping
from dataclasses import replace

import pytest

from podtrail.otlp import Group, Value, encode_span, frame, resource_header, scope_header
from podtrail.story import Library, OverviewQuestion, duration, plain, to_json
from podtrail.story.change_question import ChangeAnswer, ask_change, moment_asked
from podtrail.story.incident import tell_incident
from podtrail.story.listing import list_nodes, list_plugins, pods_on_nodes, tell_plugin
from podtrail.story.pending_question import pods_alike
from podtrail.story.summary import summarize
from podtrail.story.time_range import TimeRange
from podtrail.story.top import PipelineNow, hold_top, look_top
from podtrail.testing.attempts import MS, START, MadeAttempt, No, no_room

SECOND = 1_000_000_000
MINUTE = 60 * SECOND
NOW = START + 60 * MINUTE
ALL_THREE = "TaintToleration: untolerated taint(s); NodeAffinity: no match; NodeResourcesFit: Insufficient cpu"
HOSTILE = "x\x1b]8;;http://x\x07\u202e\n[red]"


def library(*attempts: MadeAttempt) -> Library:
    found = Library()
    for attempt in attempts:
        batch = attempt.batch()
        found.decide("traces", batch)
        found.keep(batch.groups, batch.arrived)
    return found


def told(found: Library, now: int = NOW, *, details: bool = False, **query: str) -> list[str]:
    return asked(found, query, now, details=details)


def asked(found: Library, query: Mapping[str, str], now: int = NOW, *, details: bool = False) -> list[str]:
    answer = OverviewQuestion.read(query).answer(found, now, live=True)
    if answer.problem:
        return [answer.problem]
    assert len(answer.lines) <= 20
    return [plain(line) for line in (answer.details if details else answer.lines)]


def waiting(count: int, **changes: object) -> list[MadeAttempt]:
    return [no_room(uid=f"u{at}", name=f"web-{at}", start=START + at * SECOND, **changes) for at in range(count)]


def test_who_waits_is_grouped_by_the_whole_reason_the_most_first() -> None:
    no = [No(plugin="Own", reason="no", nodes=["a"])]
    alone = no_room(uid="alone", name="gpu-0", start=START - 2 * MINUTE, refusals=no)
    found = library(alone, *waiting(3), MadeAttempt(uid="fine", name="fine"))
    assert told(found, pending="") == [
        "4 Pods wait for 2 reasons, the oldest for 1h 2m.",
        f"  3  unschedulable  1h     {ALL_THREE}",
        "       podtrail why pod default/web-0",
        "  1  unschedulable  1h 2m  Own: no",
        "       podtrail why pod default/gpu-0",
    ]
    assert told(found, details=True, pending="")[1] == "  default/web-0, default/web-1, default/web-2"


def test_refusals_told_by_spans_and_by_a_message_are_the_same_reason() -> None:
    said = "0/3 nodes are available: 1 node(s) had untolerated taint(s), 2 Insufficient cpu, 2 Insufficient memory."
    refusals = [
        No(plugin="NodeResourcesFit", reason="Insufficient cpu, Insufficient memory", nodes=["a", "b"]),
        No(plugin="TaintToleration", reason="node(s) had untolerated taint(s)", nodes=["c"]),
    ]
    found = library(no_room(message=said, refusals=refusals))
    found.decide("traces", no_room(uid="two", message=said, refusals=[]).batch("not_sampled", ""))
    assert told(found, pending="")[0].startswith("2 Pods wait for the same reason")


def test_gated_and_refused_pods_are_among_them_without_what_is_their_own() -> None:
    denied = 'running Bind plugin "DefaultBinder": pods "{0}" is forbidden: policy denied request'
    refused = [
        MadeAttempt(uid=name, name=name, result="Error", bind_error=denied.format(name)) for name in ("one", "two")
    ]
    found = library(*refused)
    found.stories.note_gated("g", "default", "held-0", ["example.com/quota"], START)
    lines = told(found, pending="")
    assert lines[1].startswith("  2  bind refused")
    assert any("SchedulingGates: example.com/quota" in line for line in lines)


def test_nobody_waits() -> None:
    assert told(library(MadeAttempt()), pending="") == ["No Pod waits for a node."]


def test_a_node_says_who_refused_it_and_what_was_bound() -> None:
    found = library(*waiting(2), MadeAttempt(uid="b", name="bound", node="tight0", start=START + MINUTE))
    lines = told(found, now=START + 2 * MINUTE, node="Tight0")
    assert lines == [
        "Node tight0: 1 Pod bound, the last 59 s ago.",
        "Who refused it, by how many Pods that wait now, by Pods and by attempts:",
        "  WAIT  PODS  TRIES  PLUGIN            LAST        REASON",
        "     2     2      2  NodeResourcesFit  1m 59s ago  Insufficient cpu",
        "  e.g. podtrail why pod default/web-0",
        "A source names about ten nodes of a refusal; one of all nodes counts for each of them.",
    ]
    assert told(found, node="tight0", details=True)[-1] == "Bound to it lately: default/bound"


def test_refusals_that_do_not_name_all_their_nodes_are_counted() -> None:
    found = library(*waiting(2), MadeAttempt(uid="b", name="bound", node="node-25"))
    refused = next(line for line in told(found, node="node-25") if "by which is not in this source" in line)
    assert refused.split()[:3] == ["2", "2", "2"]
    failed = [
        no_room(uid=uid, name=f"web-{uid}", result="Error", message="0/34 nodes are available: 31 no") for uid in "ab"
    ]
    found = library(*failed, MadeAttempt(uid="b", name="bound", node="node-25"))
    lines = told(found, node="node-25")
    assert "How often it was refused: unknown." in lines
    assert "2 attempts whose refusals don't name all their nodes: it may be among these." in lines


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ({"node": "tight"}, "nothing is known of node tight; there is tight1, tight0"),
        ({"plugin": "nodeaffinityy"}, "nothing is known of plugin nodeaffinityy; there is NodeAffinity"),
        ({"plugin": "zzz"}, "nothing is known of plugin zzz"),
        (
            {"change": ""},
            "the attempts that are held don't tell the scheduler's configuration: no change of it can be seen",
        ),
        ({"change": "00:00"}, "nothing is held on both sides of 00:00:00 UTC"),
    ],
)
def test_what_is_not_known_says_what_is(query: dict[str, str], words: str) -> None:
    (problem,) = asked(library(*waiting(1)), query)
    assert problem.startswith(words)


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ({"node": "a", "plugin": "b"}, "Ask for one of"),
        ({"pending": "", "pod": "a"}, "nothing beside"),
        ({"node": "x" * 513}, "at most 512"),
        ({"change": "25:00"}, "change is a time in UTC"),
        ({"change": "9999-12-31T23:59:59+14:00x"}, "change is a time in UTC"),
    ],
)
def test_what_can_not_be_asked_says_why(query: dict[str, str], words: str) -> None:
    assert OverviewQuestion.asked(query)
    with pytest.raises(ValueError, match=words):
        OverviewQuestion.read(query)


def call(start: int, took: int, plugin: str = "CostScorer", point: str = "score", **more: Value) -> Group:
    attributes: dict[str, Value] = {"scheduler.plugin.name": plugin, "scheduler.plugin.extension_point": point, **more}
    trace = start.to_bytes(16, "big")
    span = encode_span(
        trace_id=trace,
        span_id=trace[-8:],
        name=f"plugin: {plugin}",
        start=start,
        end=start + took,
        attributes=attributes,
    )
    return Group(resource_header({"service.name": "kube-scheduler"}), scope_header("t"), trace, frame([span]), 1)


def calls(*took: int, plugin: str = "CostScorer") -> Library:
    found = Library()
    for at, each in enumerate(took):
        found.keep([call(START + at * MINUTE, each, plugin)], START)
    return found


def test_a_plugin_that_became_slow_says_since_when() -> None:
    found = calls(*[18_000] * 20, *[1_200 * MS] * 10)
    at = "14:33:20"  # START is 14:13:20, a call a minute
    assert told(found, plugin="costscorer")[:4] == [
        f"Plugin CostScorer: slow at score since {at} UTC (40m ago): 1.2 s, before {duration(18_000)}.",
        "Its calls in the attempts whose spans were kept:",
        "  CALLS  MEDIAN  LONGEST  POINT  SLOW",
        f"     30   {duration(18_000)}    1.2 s  score  since {at} UTC, {duration(18_000)} before",
    ]


@pytest.mark.parametrize(
    ("took", "slow"),
    [
        ([18_000] * 30, ""),
        ([18_000] * 20 + [60_000] * 10, ""),  # three times as long, but nobody notices
        ([18_000] * 12 + [90 * MS] + [18_000] * 12, "1 call, first 14:25:20, last 14:25:20 UTC"),
    ],
)
def test_a_plugin_that_is_always_so_or_slow_now_and_then_has_no_such_moment(took: list[int], slow: str) -> None:
    first, _, _, row, *_ = told(calls(*took), plugin="CostScorer")
    assert "no moment since which it is slower" in first
    assert row.partition("score")[2].strip() == slow


@pytest.mark.parametrize(
    ("took", "share", "first", "last", "usual"),
    [
        ([4_000 * MS] * 11, "all 11 calls", "14:13:20", "14:23:20", "4 s"),
        ([18_000, *[1_200 * MS] * 3], "3 of 4 calls", "14:14:20", "14:16:20", "1.2 s"),
        ([1_000 * MS], "1 of 1 call", "14:13:20", "14:13:20", "1 s"),
    ],
)
def test_a_plugin_that_is_slow_by_any_measure_says_so_and_when(
    took: list[int], share: str, first: str, last: str, usual: str
) -> None:
    found = calls(*took)
    lead, _, _, row, *_ = told(found, plugin="CostScorer")
    when = f"first {first}, last {last} UTC"
    assert lead == f"Plugin CostScorer: slow (≥ 1 s) at score in {share} held, {when}; median {usual}."
    assert row.partition("score")[2].strip() == f"≥ 1 s: {share}, {when}"
    assert f"≥ 1 s: {share}, {when}" in "".join(told(found, plugin=""))


def test_too_few_calls_are_not_judged() -> None:
    first, _, _, row, *_ = told(calls(*[900 * MS] * 9), plugin="CostScorer")
    assert first == "Plugin CostScorer: 900 ms at score, 9 calls: too few to say since when it is slow."
    assert row.endswith("too few to say")
    assert told(calls(900 * MS), plugin="CostScorer")[0].startswith(
        "Plugin CostScorer: 900 ms at score, 1 call: too few"
    )


def test_a_plugin_is_told_of_all_kept_spans_and_of_no_others_as_its_page_is() -> None:
    found = calls(*[18_000] * 1_100)
    found.decide("traces", no_room(uid="lost", start=START + 99 * MINUTE).batch("not_sampled", ""))
    answer = OverviewQuestion.read({"plugin": "CostScorer"}).answer(found, NOW, live=True).as_json()
    page = tell_plugin(found.stories, "CostScorer")
    assert page is not None
    assert [point["calls"] for point in answer["plugin"]["points"]] == [1_100]
    assert answer["plugin"]["points"] == to_json(page.row.points)


def test_without_a_name_all_plugins_are_listed_the_slowest_call_first() -> None:
    found = library(*waiting(2))
    for at in range(12):
        found.keep([call(START + at * MINUTE, 1_200 * MS)], START)
    lines = told(found, plugin="")
    assert lines[0] == "4 plugins, the slowest call first."
    assert lines[1].split() == ["CALLS", "MEDIAN", "SLOWEST", "IN", "ALL", "WAIT", "NO", "PLUGIN", "POINT", "SLOW"]
    assert lines[2].split()[:11] == ["12", "1.2", "s", "1.2", "s", "14.4", "s", "0", "0", "CostScorer", "score"]
    (affinity,) = [line.split() for line in lines if "NodeAffinity" in line]
    assert affinity[affinity.index("NodeAffinity") - 2 :] == [
        "2",
        "2",
        "NodeAffinity",
        "filter",
        "too",
        "few",
        "to",
        "say",
    ]
    listed = OverviewQuestion.read({"plugin": ""}).answer(found, NOW, live=True).as_json()["plugins"]
    assert listed == to_json(list_plugins(found.stories))
    assert told(library(), plugin="") == ["No plugin is named by the attempts that are held."]


def test_without_a_name_all_nodes_are_listed_as_the_page_does_those_refused_most_first() -> None:
    found = library(*waiting(2), MadeAttempt(uid="fine", name="fine"))
    lines = told(found, node="")
    assert lines[0] == "13 nodes, those refused most first."
    assert lines[1].split() == ["PODS", "BOUND", "NO", "NODE", "MOSTLY"]
    assert lines[2].split()[:4] == ["0", "0", "2", "cp-0"]
    (bound,) = [line.split() for line in lines if "node-07" in line]
    assert bound == ["1", "1", "2", "node-07", "NodeAffinity:", "no", "match"]
    listed = OverviewQuestion.read({"node": ""}).answer(found, NOW, live=True).as_json()["nodes"]
    on_page = list_nodes(found.stories, pods_on_nodes(found.stories.pods())).rows
    assert sorted(listed, key=lambda row: row["node"]) == to_json(on_page)
    assert told(library(), node="") == ["No node is named by the attempts that are held."]


def test_a_refusal_is_counted_alike_in_the_list_an_incident_and_the_answer() -> None:
    two = [No(plugin="Fit", reason="cpu", nodes=["a"]), No(plugin="Fit", reason="memory", nodes=["b"])]
    denied = MadeAttempt(
        uid="frozen", name="frozen", start=START + SECOND, result="Error", bind_error="denied: not today", refusals=two
    )
    found = library(no_room(refusals=two), denied)
    listed = {row.plugin: row.attempts for row in list_plugins(found.stories)}
    incident = tell_incident(found.stories.pods(), TimeRange(START - MINUTE, START + MINUTE))
    assert {row.plugin: row.refused for row in incident.plugins if row.refused} == listed == {"Fit": 1, "Bind": 1}
    assert any("in 1 attempt, by how many" in line for line in told(found, plugin="Fit"))


def test_the_summary_top_and_the_question_name_and_count_reasons_alike() -> None:
    affinity = [No(plugin="NodeResourcesFit", reason="Insufficient cpu", nodes=["a"])]
    found = library(*waiting(3), no_room(uid="alone", name="gpu-0", refusals=affinity))
    groups = [(group.pods, group.reason) for group in pods_alike(found.stories.pods())]
    assert groups == [(3, ALL_THREE), (1, "NodeResourcesFit: Insufficient cpu")]
    assert [(one.pods, one.reason) for one in summarize(found.stories, took=1).waiting] == groups
    held = hold_top(found, PipelineNow(), NOW, live=True)
    assert [(one.pods, one.reason) for one in look_top(held).waiting] == groups


def test_a_plugin_says_what_it_refused_by_point() -> None:
    head, row, command = told(library(*waiting(2)), plugin="NodeAffinity")[-3:]
    assert head.split() == ["WAIT", "PODS", "TRIES", "POINT", "LAST", "REASON"]
    assert row.split() == ["2", "2", "2", "filter", "59m", "59s", "ago", "no", "match"]
    assert command == "  e.g. podtrail why pod default/web-0"


def changing(count: int = 12) -> Library:
    """A configuration that a plugin says no with, half way through."""
    attempts = []
    for at in range(count):
        generation: dict[str, Value] = {"scheduler.config.generation": "aaaaaaaa" if at < count // 2 else "bbbbbbbb"}
        start = START + at * MINUTE
        if at < count // 2:
            attempts.append(MadeAttempt(uid=f"u{at}", name=f"web-{at}", start=start, attributes=generation))
        else:
            attempts.append(no_room(uid=f"u{at}", name=f"web-{at}", start=start, attributes=generation))
    return library(*attempts)


def test_a_change_of_configuration_is_compared_before_and_after() -> None:
    lines = told(changing(), now=START + 12 * MINUTE, change="")
    assert lines == [
        "The scheduler's configuration changed at 14:19:20 UTC (6m ago): aaaaaa → bbbbbb.",
        "Better or worse can't be said: 6 Pods before and 6 after are too few, 10 on either side are needed.",
        "                                before (14:13:20 to 14:19:20, 6m)   after (14:19:20 to 14:24:20, 5m)",
        "  Pods                          6                                   6",
        "  attempts                      6                                   6",
        "  attempts a minute             1.0                                 1.2",
        "  without success               0 of 6 Pods (0 %), 0 attempts       6 of 6 Pods (100 %), 6 attempts",
        "  took, median                  9 ms                                -",
        "  took, 90 % at most            9 ms                                -",
        "  refused by NodeAffinity       0 of 6 Pods (0 %), 0 attempts       6 of 6 Pods (100 %), 6 attempts",
        "  refused by NodeResourcesFit   0 of 6 Pods (0 %), 0 attempts       6 of 6 Pods (100 %), 6 attempts",
        "  refused by TaintToleration    0 of 6 Pods (0 %), 0 attempts       6 of 6 Pods (100 %), 6 attempts",
    ]


def test_what_is_behind_the_latest_attempt_is_not_looked_at_however_late_one_asks() -> None:
    assert told(changing(), now=START + 12 * MINUTE, change="")[1:] == told(changing(), change="")[1:]


def stormy() -> Library:
    """One Pod that is tried each second for eight minutes, beside others that find a node every two seconds."""
    retries = [no_room(uid="huge", name="huge-0", number=at + 1, start=START + at * SECOND) for at in range(480)]
    fine = [MadeAttempt(uid=f"u{at}", name=f"web-{at}", start=START + at * SECOND) for at in range(0, 480, 2)]
    return library(*sorted([*retries, *fine], key=lambda one: one.start))


def test_attempts_that_their_pod_no_longer_holds_are_counted_on_both_sides() -> None:
    lines = told(stormy(), change="14:17:20")
    assert lines[4].split() == ["attempts", "360", "360"]
    assert [one.count("1 of 121 Pods (1 %), 240 attempts") for one in (lines[6], *lines[-3:])] == [2] * 4


def test_a_refused_bind_counts_for_the_plugin_that_made_it() -> None:
    error = 'running Bind plugin "DefaultBinder": pods "web-0" is forbidden: not today'
    made = [MadeAttempt(uid=f"u{at}", start=START + at * MINUTE, result="Error", bind_error=error) for at in (0, 6)]
    assert told(library(*made), change="14:17:20")[-1].startswith("  refused by DefaultBinder   1 of 1 Pods")


def test_shares_are_not_told_of_a_side_that_is_not_counted_whole() -> None:
    found = Library(max_mib=2)
    for at in range(1200):
        batch = no_room(uid=f"u{at % 3}", number=at // 3 + 1, start=START + at * SECOND // 4).batch()
        found.keep(batch.groups, batch.arrived)
    lines = told(found, change="14:17:20")
    assert lines[1] == "Better or worse can't be said: not every attempt is counted."
    before = lines[4].split()[1:4]
    assert before[:2] == ["at", "least"]
    assert int(before[2]) < 960
    assert lines[6].split()[2:4] == ["at", "least"]
    assert lines[-1].endswith("is still counted: there were more.")


def test_a_time_means_the_change_near_it_or_just_that_moment() -> None:
    found = changing()
    assert told(found, change="14:20")[0].startswith("The scheduler's configuration changed at 14:19:20 UTC")
    assert told(found, change="14:20")[1] == (
        "Asked: 14:20:00; the change nearest to it was first seen at 14:19:20, "
        "the last attempt with the old one ended 14:18:20."
    )
    assert not [line for asked in ("", "14:19:20") for line in told(found, change=asked) if "Asked" in line]
    far = told(changing(60), now=START + 60 * MINUTE, change="14:20")[0]
    assert far == "Before and after 14:20:00 UTC (53m 20s ago). No change of the configuration is told near it."
    no_generation = library(*waiting(30))
    assert told(no_generation, now=START + MINUTE, change="14:13:30")[0] == (
        "Before and after 14:13:30 UTC (50 s ago). "
        "The attempts don't tell their configuration: no change of it can be seen."
    )


def test_a_time_of_day_is_the_last_one_before_now() -> None:
    now = moment_asked("2026-11-23T14:05:00Z", 0)
    assert now
    assert moment_asked("14:02", now) == now - 3 * MINUTE
    assert moment_asked("14:06", now) == now - 24 * 60 * MINUTE + MINUTE
    assert moment_asked("2026-11-23T15:05:00+01:00", 0) == now


def test_hostile_names_have_no_power_over_the_terminal() -> None:
    refusals = [No(plugin=HOSTILE, reason=HOSTILE, nodes=[HOSTILE])]
    found = library(no_room(namespace=HOSTILE, name=HOSTILE, refusals=refusals, attributes={"scheduler.profile": "x"}))
    for query in ({"pending": ""}, {"node": HOSTILE}, {"plugin": HOSTILE}):
        for details in (False, True):
            lines = asked(found, query, details=details)
            assert all(line.isprintable() for line in lines)
            assert "nothing is known" not in lines[0]


def test_the_answer_is_json_beside_its_lines() -> None:
    question = OverviewQuestion.read({"pending": "true"})
    answer = question.answer(library(*waiting(2)), NOW, live=False).as_json()
    assert answer["pending"][0]["pods"] == 2
    assert answer["pending"][0]["command"] == "podtrail why pod default/web-0"
    assert "the end of what is held" in answer["lines"][0][-1]["text"]
    assert to_json(answer["lines"]) == answer["lines"]


def test_attempts_that_their_pod_no_longer_holds_count_in_the_list_an_incident_a_change_and_the_answer() -> None:
    found = library(*(no_room(number=at + 1, start=START + at * SECOND) for at in range(120)))
    stories = found.stories
    pods, past = stories.pods(), stories.past.told()
    assert sum(len(pod.attempts) for pod in pods) < 120
    assert {row.plugin: row.attempts for row in list_plugins(stories)}["NodeAffinity"] == 120
    page = tell_plugin(stories, "NodeAffinity")
    assert page is not None
    assert page.row.attempts == 120
    assert any("in 120 attempts, by how many" in line for line in told(found, plugin="NodeAffinity"))
    incident = tell_incident(pods, TimeRange(START - MINUTE, START + 10 * MINUTE), past)
    assert {row.plugin: row.refused for row in incident.plugins}["NodeAffinity"] == 120
    change = ask_change(pods, START + MINUTE, past)
    assert isinstance(change, ChangeAnswer)
    assert sum(side.refused_by["NodeAffinity"] for side in (change.before, change.after)) == 120
    past_ring = stories.past
    past_ring.shrink(0)
    assert past_ring.refused.total() == 0
    assert any("not all are known" in line for line in told(found, plugin="NodeAffinity"))


def test_spans_that_come_after_their_pod_let_go_of_their_attempt_tell_who_said_no_all_the_same() -> None:
    found = Library()
    batches = [no_room(number=at + 1, start=START + at * SECOND).batch() for at in range(120)]
    for batch in batches:
        found.decide("traces", replace(batch, groups=()))
    told_by_messages = told(found, plugin="NodeResourcesFit")
    for batch in batches:
        found.keep(batch.groups, batch.arrived)
    assert found.stories.pods()[0].forgotten == 20
    lines = told(found, plugin="NodeResourcesFit")
    (row,) = [line.split() for line in lines if line.endswith("Insufficient cpu")]
    assert (row[:3], row[3]) == (["1", "1", "120"], "filter")
    assert told_by_messages != lines
    assert {row.plugin: row.attempts for row in list_plugins(found.stories)} == dict.fromkeys(
        ("TaintToleration", "NodeAffinity", "NodeResourcesFit"), 120
    )
    size = found.stories.past.size
    for batch in batches:
        found.keep(batch.groups, batch.arrived)
    assert found.stories.past.size == size


def test_an_incident_says_how_much_of_the_time_before_is_known() -> None:
    found = library(*(no_room(number=at + 1, start=START + at * 10 * SECOND) for at in range(6)))
    span = TimeRange(START + 20 * SECOND, START + 60 * SECOND)
    sentence = tell_incident(found.stories.pods(), span).sentence
    assert sentence.endswith("In the 40 s before (20 s of it known): 2 Unschedulable.")
    whole = TimeRange(START + 20 * SECOND, START + 40 * SECOND)
    assert tell_incident(found.stories.pods(), whole).sentence.endswith("In the 20 s before: 2 Unschedulable.")
    for early in (START, START - MINUTE):
        span = TimeRange(early, START + 60 * SECOND)
        assert tell_incident(found.stories.pods(), span).sentence.endswith("before: none known.")


def test_an_incident_says_none_where_the_time_before_is_known() -> None:
    found = library(no_room(), no_room(number=2, start=START + 60 * SECOND))
    quiet = TimeRange(START + 50 * SECOND, START + 70 * SECOND)
    assert tell_incident(found.stories.pods(), quiet).sentence.endswith("In the 20 s before: none.")
    longer = TimeRange(START + 59 * SECOND, START + 159 * SECOND)
    sentence = tell_incident(found.stories.pods(), longer).sentence
    assert sentence.endswith("In the 1m 40s before (59 s of it known): 1 Unschedulable.")
