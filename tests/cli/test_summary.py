import io
import json
from collections.abc import Sequence

from podtrail.cli.summary import as_json, print_summary
from podtrail.otlp import Link, Value
from podtrail.story import LedgerLine, RunSummary, Stories, summarize
from podtrail.testing.attempts import MadeAttempt, no_room

PAGE = "http://localhost:15927/"


FULL = LedgerLine("file", 9_840, 0, 7_001, 2_815, 0, {}, 24, 0)


WRITTEN = ("out/kept.jsonl", "out/decisions.jsonl")
ALL_THREE = "TaintToleration: untolerated taint(s); NodeAffinity: no match; NodeResourcesFit: Insufficient cpu"


def run(
    *, page: str = "", ledger: LedgerLine = FULL, name: str = "web-0", written: Sequence[str] = WRITTEN
) -> RunSummary:
    stories = Stories()
    link = Link(
        b"t" * 16,
        b"s" * 8,
        {"podtrail.link.type": "creation", "podtrail.link.resolved": False, "podtrail.link.target": "dropped"},
    )
    stories.observe(no_room(name=name, links=[link]).batch())
    stories.observe(MadeAttempt(uid="b").batch("not_sampled", ""))
    return summarize(stories, took=6_800_000_000, ledgers=[ledger], written=written, page=page)


def printed(summary: RunSummary, *, colour: bool | None = None, serving: bool = False) -> str:
    out = io.StringIO()
    print_summary(summary, out, serving=serving, colour=colour)
    return out.getvalue()


def test_the_summary_reads_as_rows() -> None:
    assert printed(run()).splitlines() == [
        "podtrail: done in 6.8 s",
        "Pods            2  1 unschedulable, 1 scheduled",
        "Attempts        2  1 Unschedulable, 1 Success",
        "Traces          2  1 kept (50 %): failed 1",
        "Spans       9,840  = 7,001 delivered + 2,815 sampled out + 24 in memory",
        "Links           1  1 creation; 1 to traces that were not kept",
        f"Waiting         1  {ALL_THREE}   e.g. podtrail why pod default/web-0 --from {' '.join(WRITTEN)}",
        "Written    out/kept.jsonl, out/decisions.jsonl",
    ]


def test_the_page_is_named_while_it_is_served() -> None:
    lines = printed(run(page=PAGE), serving=True).splitlines()
    assert lines[-1] == "Page       http://localhost:15927/   serving, Ctrl-C stops"
    assert "http" not in printed(run(page=PAGE), serving=False)


def test_while_the_page_is_served_it_is_asked_and_named_where_it_is_not_the_usual_one() -> None:
    assert "e.g. podtrail why pod default/web-0\n" in printed(run(page=PAGE), serving=True)
    assert "e.g. podtrail why pod default/web-0 --endpoint http://localhost:1/\n" in printed(
        run(page="http://localhost:1/"), serving=True
    )


def test_nobody_is_named_to_ask_where_neither_page_nor_file_knows_the_pod() -> None:
    assert "why pod" not in printed(run(written=[]))
    gated = Stories()
    gated.note_gated("g", "default", "held-0", ["example.com/scan"], 1)
    summary = summarize(gated, took=1, ledgers=[FULL], written=["out/kept.jsonl"], page=PAGE)
    assert "why pod" not in printed(summary)
    assert "why pod default/held-0" in printed(summary, serving=True)


def test_a_ledger_that_does_not_balance_is_red_and_names_the_difference() -> None:
    ledger = LedgerLine("file", 100, 0, 10, 0, 0, {"late_span": 3}, 24, 0)
    text = printed(run(ledger=ledger), colour=True)
    (line,) = [line for line in text.splitlines() if "Spans" in line]
    assert "3 dropped (late_span 3)" in line
    assert "DOES NOT BALANCE: 63 missing" in line
    assert "\x1b[31m" in line


def test_several_exporters_have_a_labelled_row_each() -> None:
    ledgers = [LedgerLine("otlp_grpc", 0, 0, 0, 0, 0, {}, 0, 0), LedgerLine("file", 0, 1, 1, 0, 0, {}, 0, 0)]
    text = printed(summarize(Stories(), took=1, ledgers=ledgers))
    rows = [line for line in text.splitlines() if line.startswith("Spans")]
    assert rows == [
        "Spans           0  = 0 delivered to otlp_grpc + 0 sampled out",
        "Spans           0  + 1 created = 1 delivered to file + 0 sampled out",
    ]


def test_links_to_traces_never_seen_are_told_from_those_to_traces_not_kept() -> None:
    stories = Stories()
    for target in ("unknown", "unknown", "dropped"):
        told: dict[str, Value] = {
            "podtrail.link.type": "creation",
            "podtrail.link.resolved": False,
            "podtrail.link.target": target,
        }
        stories.observe(no_room(name=target, links=[Link(b"t" * 16, b"s" * 8, told)]).batch())
    text = printed(summarize(stories, took=1))
    assert "3 creation; 1 to traces that were not kept, 2 to traces never seen\n" in text


def test_hostile_names_have_no_power_over_the_terminal() -> None:
    text = printed(run(name="a\x1b]8;;http://x\x07[/][bold]\u202eb\nc"))
    assert "a\\x1b]8;;http://x\\x07[/][bold]\\u202eb\\nc" in text
    assert "\x1b" not in text


def test_a_run_without_attempts_says_so() -> None:
    text = printed(summarize(Stories(), took=1))
    assert "none seen: no span was the root of a scheduling attempt (SchedulePod)" in text


def test_json_says_the_same() -> None:
    told = json.loads(as_json(run(page=PAGE)))
    assert told["pods"] == {"unschedulable": 1, "scheduled": 1}
    assert told["kept"] == {"failed": 1}
    assert told["ledgers"][0]["inMemory"] == 24
    assert (told["ledgers"][0]["difference"], told["balanced"], told["page"]) == (0, True, PAGE)
