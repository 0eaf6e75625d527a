"""Why an attempt took its node, and by how much that won: in one line, as a table, as JSON."""

from typing import Any

import pytest

from podtrail.otlp import Value
from podtrail.story import Library, plain, to_json
from podtrail.testing.attempts import START, MadeAttempt, no_room

HOSTILE = "x\x1b]8;;http://x\x07\u202e\n[red]"
SCORES: dict[str, Value] = {
    "scheduler.nodes.evaluated": 7,
    "scheduler.score.nodes": ["node-07", "node-3", "node-9"],
    "scheduler.score.totals": [287, 273, 100],
    "scheduler.score.selected": 287,
    "scheduler.score.margin": 14,
    "scheduler.score.ties": 1,
    "scheduler.score.plugin.TaintToleration": [100, 100, 100],
    "scheduler.score.plugin.NodeResourcesFit": [91, 81, 0],
    "scheduler.score.plugin.ImageLocality": [96, 92, 0],
}


def told(*attempts: MadeAttempt, attempt: int | None = None) -> tuple[list[str], list[str]]:
    library = library_of(*attempts)
    (pod,) = library.find("web-0", "default")
    answer = library.why_pod(pod, START, live=True, attempt=attempt)
    assert answer is not None
    assert len(answer.lines) <= 12
    return list(map(plain, answer.lines)), list(map(plain, answer.details))


def library_of(*attempts: MadeAttempt) -> Library:
    library = Library()
    for attempt in attempts:
        library.keep(attempt.groups(), attempt.start)
    return library


def test_the_winner_is_told_with_its_lead_and_who_gave_it() -> None:
    lines, _ = told(MadeAttempt(scores=SCORES))
    assert lines[1] == "node-07 won with 287 points, 14 more than node-3: NodeResourcesFit +10, ImageLocality +4."


def test_one_attempt_asked_for_tells_it_as_well() -> None:
    lines, _ = told(MadeAttempt(scores=SCORES), attempt=1)
    assert lines[1].startswith("node-07 won with 287 points")


def test_the_details_have_a_table_of_nodes_by_plugin() -> None:
    _, details = told(MadeAttempt(scores=SCORES | {"scheduler.score.plugins_cut": 2}))
    at = details.index("Scores in attempt 1, the best 3 of 7 nodes scored:")
    assert details[at + 1 : at + 7] == [
        "                    node-07  node-3  node-9",
        "  TaintToleration       100     100     100",
        "  ImageLocality          96      92       0",
        "  NodeResourcesFit       91      81       0",
        "  total                 287     273     100",
        "  2 more plugins scored",
    ]


def test_what_spoke_for_the_second_is_told_as_well() -> None:
    against: dict[str, Value] = {"scheduler.score.plugin.P": [10, 30, 0], "scheduler.score.extenders": [0, 1, 0]}
    lines, _ = told(MadeAttempt(scores=SCORES | against))
    assert lines[1].endswith("NodeResourcesFit +10, ImageLocality +4, extenders -1, P -20.")


def test_of_many_plugins_the_line_names_four() -> None:
    many: dict[str, Value] = {f"scheduler.score.plugin.P{n}": [n + 20, 0, 0] for n in range(9)}
    lines, _ = told(MadeAttempt(scores=SCORES | many))
    assert lines[1].endswith(": P8 +28, P7 +27, P6 +26, P5 +25, 7 more (-v).")


def test_a_tie_is_told_to_be_drawn() -> None:
    tie: dict[str, Value] = {"scheduler.score.totals": [287, 287, 287], "scheduler.score.ties": 12}
    lines, _ = told(MadeAttempt(scores=SCORES | tie))
    assert lines[1] == "node-07 was drawn from 12 nodes with 287 points each."


def test_a_node_that_was_chosen_with_less_is_not_said_to_have_won() -> None:
    lines, _ = told(MadeAttempt(scores=SCORES | {"scheduler.score.totals": [270, 273, 100]}))
    assert lines[1].startswith("node-07 was chosen with 270 points, 3 less than node-3: ImageLocality +4")


def test_nodes_that_were_not_looked_at_are_counted() -> None:
    lines, _ = told(MadeAttempt(scores=SCORES, nodes=5_000, evaluated=200))
    assert lines[1].endswith(" 200 of 5,000 nodes were looked at.")


def test_the_only_node_that_fits_was_not_scored() -> None:
    only = no_room(result="Success", message="", nodes=35)
    assert told(only)[0][1] == "node-07 was the only one of 35 nodes looked at that fits: nothing was scored."


def test_a_nominated_node_was_tried_alone() -> None:
    nominating = no_room(nominated="node-07")
    then = MadeAttempt(number=2, start=START + 10**9, evaluated=1)
    assert told(nominating, then)[0][1] == (
        "node-07 was nominated by attempt 1, which made room there; it was tried first, and fits. Nothing was scored."
    )


def test_without_scores_in_the_source_only_the_details_say_so() -> None:
    lines, details = told(MadeAttempt())
    assert not any("points" in line for line in lines)
    assert "Scores of nodes: not in this source (of a stock kube-scheduler they are in its log at -v=10)." in details


@pytest.mark.parametrize(
    "wrong",
    [
        {"scheduler.score.nodes": ["node-07"]},
        {"scheduler.score.nodes": []},
        {"scheduler.score.nodes": "node-07"},
        {"scheduler.score.nodes": ["node-07", 7, "x"]},
        {"scheduler.score.totals": [1, "2", 3]},
        {"scheduler.score.totals": [1, 2.5, True]},
    ],
)
def test_scores_that_do_not_fit_together_are_not_told(wrong: dict[str, Value]) -> None:
    lines, _ = told(MadeAttempt(scores=SCORES | wrong))
    assert not any("points" in line for line in lines)


def test_a_share_that_does_not_fit_is_only_counted_and_names_from_elsewhere_are_harmless() -> None:
    hostile: dict[str, Value] = {
        "scheduler.score.nodes": ["node-07", HOSTILE, "y" * 9_000],
        "scheduler.score.plugin.Short": [1],
        f"scheduler.score.plugin.{HOSTILE}": [50, 0, 0],
    }
    lines, details = told(MadeAttempt(scores=SCORES | hostile))
    assert r"more than x\x1b]8;;http://x\x07\u202e\n[red]: x\x1b]8;;" in lines[1]
    assert all(text.isprintable() and len(text) < 400 for text in (*lines, *details))
    assert "  1 more plugin scored" in details


def test_what_is_held_of_scores_is_bounded() -> None:
    endless: dict[str, Value] = {
        "scheduler.score.nodes": [f"{n}" + "x" * 5_000 for n in range(500)],
        "scheduler.score.totals": list(range(500)),
    }
    endless |= {f"scheduler.score.plugin.{n}": list(range(500)) for n in range(500)}
    library = library_of(MadeAttempt(scores=endless))
    table = library.find("web-0", "default")[0].attempts[0].scores
    assert table is not None
    assert (len(table.nodes), len(table.totals), len(table.shares), table.untold) == (10, 10, 32, 468)
    assert table.size < 40_000
    assert library.stories.size > table.size


def test_the_api_has_the_table() -> None:
    (pod,) = library_of(MadeAttempt(scores=SCORES)).find("web-0", "default")
    story: Any = to_json(pod)
    scores = story["attempts"][0]["scores"]
    assert (scores["nodes"][0], scores["totals"][0], scores["ties"]) == ("node-07", 287, 1)
    assert {"plugin": "NodeResourcesFit", "points": [91, 81, 0]} in scores["shares"]
