from dataclasses import replace

from podtrail.pipeline.ledger import Balance
from podtrail.story import LedgerLine, RunSummary, Stories, WaitingPods, summarize
from podtrail.testing.attempts import MadeAttempt, no_room


def some_run() -> RunSummary:
    stories = Stories()
    for n in range(3):
        stories.observe(no_room(uid=f"u{n}", name=f"web-{n}").batch())
    stories.observe(MadeAttempt(uid="a").batch("not_sampled", ""))
    stories.observe(MadeAttempt(uid="b", result="Error", bind_error="frozen").batch("sampled", "slow"))
    stories.note_gated("g", "default", "gated", ["example.com/quota"])
    return summarize(stories, took=6_800_000_000)


def test_everything_is_counted_the_most_frequent_first() -> None:
    summary = some_run()
    assert list(summary.pods.items()) == [("unschedulable", 3), ("bind refused", 1), ("gated", 1), ("scheduled", 1)]
    assert list(summary.attempts.items()) == [("Unschedulable", 3), ("Success", 1), ("Error", 1)]
    assert (summary.decided, dict(summary.kept)) == (5, {"failed": 3, "slow": 1})


def test_waiting_pods_are_gathered_by_what_they_wait_for_with_an_example() -> None:
    assert list(some_run().waiting) == [
        WaitingPods(
            3,
            "TaintToleration: untolerated taint(s); NodeAffinity: no match; NodeResourcesFit: Insufficient cpu",
            "default",
            "web-0",
            "u0",
        ),
        WaitingPods(1, "Bind: frozen", "default", "web-0", "b"),
        WaitingPods(1, "SchedulingGates: example.com/quota", "default", "gated", "g", gated=True),
    ]


def test_a_pod_whose_attempt_failed_waits_for_what_failed_not_for_what_refused_other_nodes() -> None:
    stories = Stories()
    raised = "plugin Zoned raised KeyError: 'zone'"
    stories.observe(replace(no_room(), result="Error", message=raised).batch())
    assert stories.pods()[0].blocker
    assert [waiting.reason for waiting in summarize(stories, took=1).waiting] == [raised]


def test_a_ledger_balances_or_names_the_difference() -> None:
    balance = Balance("file", 100, 2, 60, 30, 1, in_memory=5, in_queue=3, dropped={"late_span": 3})
    assert LedgerLine.of(balance.exporter, balance).difference == balance.missing == 0
    short = Balance("file", 100, 2, 60, 30, 1, in_memory=0, in_queue=0, dropped={"late_span": 3})
    assert LedgerLine.of(short.exporter, short).difference == short.missing == 8
    assert not summarize(Stories(), took=1, ledgers=[LedgerLine.of("file", short)]).balanced


def test_other_reasons_than_the_five_most_frequent_are_summed_up() -> None:
    stories = Stories()
    for n in range(8):
        stories.note_gated(f"g{n}", "default", f"pod-{n}", [f"example.com/gate-{n}"])
    summary = summarize(stories, took=1)
    assert (len(summary.waiting), summary.more_waiting) == (5, 3)


def test_an_empty_run_is_an_empty_summary() -> None:
    summary = summarize(Stories(), took=1)
    assert (dict(summary.pods), dict(summary.attempts), list(summary.waiting), summary.balanced) == ({}, {}, [], True)
