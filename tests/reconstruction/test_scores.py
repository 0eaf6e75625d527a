"""Why a node won, from the lines of a real kube-scheduler at `-v=10`: as text, and as JSON with an extender."""

from collections.abc import Iterable, Mapping
from typing import Any

import pytest

from podtrail.otlp import SpanView, split
from podtrail.reconstruction import trace

SHARE = "scheduler.score.plugin."
TEXT, JSON = "scores/v10-text.log", "scores/v10-json.log"


def spans_of(runs: Any, lines: Iterable[bytes], pod: str) -> dict[str, Mapping[str, Any]]:
    [attempt] = runs.rebuild([lines]).of(f"default/{pod}")
    return {span.name: span.attributes for span in map(SpanView, split(trace(attempt).spans))}


def scores_of(runs: Any, lines: Iterable[bytes], pod: str) -> Mapping[str, Any]:
    return spans_of(runs, lines, pod).get("score", {})


def test_the_best_nodes_stand_with_their_totals_the_chosen_one_first(runs: Any) -> None:
    told = scores_of(runs, runs.lines(TEXT), "web-0")
    assert told["scheduler.score.nodes"] == ["node-2", "node-4", "gpu-0", "node-5", "node-1"]
    assert told["scheduler.score.totals"] == [483, 482, 469, 468, 467]
    assert (told["scheduler.score.selected"], told["scheduler.score.margin"]) == (483, 1)
    assert (told["scheduler.score.ties"], told["scheduler.nodes.evaluated"]) == (1, 7)


@pytest.mark.parametrize(("log", "pod"), [(TEXT, "web-0"), (TEXT, "tie"), (JSON, "web-0"), (JSON, "web-1")])
def test_what_plugins_and_extenders_gave_adds_up_to_the_totals(runs: Any, log: str, pod: str) -> None:
    told = scores_of(runs, runs.lines(log), pod)
    rows = [row for name, row in told.items() if name.startswith(SHARE) or name == "scheduler.score.extenders"]
    assert [sum(column) for column in zip(*rows, strict=True)] == told["scheduler.score.totals"]


def test_a_draw_among_equals_is_told_as_one(runs: Any) -> None:
    told = scores_of(runs, runs.lines(TEXT), "tie")
    assert (told["scheduler.score.ties"], told["scheduler.score.margin"]) == (5, 0)
    assert told["scheduler.score.nodes"][0] == "node-0"


def test_with_one_node_that_fits_nothing_is_scored(runs: Any) -> None:
    assert "score" not in spans_of(runs, runs.lines(TEXT), "only")


def test_what_an_extender_gave_is_reckoned_with_its_weight(runs: Any) -> None:
    told = scores_of(runs, runs.lines(JSON), "web-0")
    assert told["scheduler.score.nodes"][0] == "node-3"
    assert told["scheduler.score.extenders"] == [7 * 2 * 10, 0, 0, 0, 0]


def test_a_plugin_whose_line_about_one_of_the_best_nodes_is_missing_is_only_counted(runs: Any) -> None:
    def without(lines: Iterable[bytes]) -> Iterable[bytes]:
        return [line for line in lines if not (b'"ImageLocality"' in line and b"node-4" in line)]

    told = scores_of(runs, without(runs.lines(TEXT)), "web-0")
    assert f"{SHARE}ImageLocality" not in told
    assert told["scheduler.score.plugins_cut"] == 1
    with_extender = scores_of(runs, without(runs.lines(JSON)), "web-0")
    assert "scheduler.score.extenders" not in with_extender


@pytest.mark.parametrize("log", [TEXT, JSON])
def test_a_log_that_is_cut_off_anywhere_is_never_fatal(runs: Any, log: str) -> None:
    lines = runs.lines(log)
    first = next(at for at, line in enumerate(lines) if b"scored node" in line)
    end = next(at for at, line in enumerate(lines) if b"Successfully bound" in line)
    for at in range(first, end, 3):
        cut = [*lines[:at], lines[at][: len(lines[at]) // 2], *lines[end:]]
        told = scores_of(runs, cut, "web-0")
        totals = told.get("scheduler.score.totals", [])
        assert len(totals) == len(told.get("scheduler.score.nodes", []))
        for name, row in told.items():
            assert not name.startswith(SHARE) or len(row) == len(totals)


def test_scores_that_no_scheduler_gives_are_passed_over_and_names_are_cut(runs: Any) -> None:
    def line(message: str, **values: object) -> bytes:
        told = " ".join(f'{key}="{value}"' for key, value in values.items() if key != "score")
        return f'I1123 02:02:22.000000 1 s.go:1] "{message}" pod="d/p" {told} score={values.get("score")}'.encode()

    lines = [
        b'I1123 02:02:21.000000 1 s.go:1] "Attempting to schedule pod" pod="d/p"',
        *(line("Plugin scored node for pod", plugin="P", node="n", score=score) for score in ("-1", "1e9", "9" * 40)),
        *(line("Plugin scored node for pod", plugin=f"P{n}", node="x" * 9_000, score=n) for n in range(300)),
        line("Calculated node's final score for pod", node="x" * 9_000, score=9),
        line("Calculated node's final score for pod", node="n", score="NaN"),
        b'I1123 02:02:23.000000 1 s.go:1] "Successfully bound pod to node" pod="d/p" node="n"',
    ]
    [attempt] = runs.rebuild([lines]).of("d/p")
    spans = trace(attempt).spans
    [score] = [span for span in map(SpanView, split(spans)) if span.name == "score"]
    assert score.attributes["scheduler.score.nodes"] == ["x" * 256]
    assert "scheduler.score.selected" not in score.attributes
    assert len([name for name in score.attributes if name.startswith(SHARE)]) == 16
    assert len(spans) < 60_000
