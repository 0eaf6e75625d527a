"""`podtrail why` about more than one Pod as a person meets it: of files, and of a running page."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from podtrail.cli import main

SCHEDULER = Path(__file__).parents[1] / "data" / "recordings" / "scheduler.otlp.gz"


def why(*arguments: object) -> Result:
    return CliRunner().invoke(main, ["why", *map(str, arguments)])


@pytest.mark.parametrize(
    ("asked", "first", "named"),
    [
        (["pending"], "3 Pods wait for 3 reasons, the oldest for 9m 18s.", "podtrail why pod default/frozen-0"),
        (
            ["node", "node-3"],
            "Node node-3: 1 Pod bound, the last 9m 44s ago.",
            "e.g. podtrail why pod default/critical-13",
        ),
        (["plugin", "costscorer"], "Plugin CostScorer: slow (≥ 1 s) at score in all 2 calls", "It refused no node"),
        (["change", "17:50"], "Before and after 17:50:00 UTC (2m 36s ago).", "attempts a minute"),
    ],
)
def test_a_recording_answers_and_says_as_of_when(asked: list[str], first: str, named: str) -> None:
    done = why(*asked, "--from", SCHEDULER)
    assert done.exit_code == 0, done.output
    lines = done.stdout.splitlines()
    assert lines[0].startswith(first)
    assert lines[0].endswith("(as of 17:52:36 UTC, the end of what is held)")
    assert any(line.strip().startswith(named) for line in lines), done.stdout
    assert "\x1b" not in done.stdout
    told = json.loads(why(*asked, "--from", SCHEDULER, "-o", "json").stdout)
    assert "".join(piece["text"] for piece in told["lines"][0]) == lines[0]
    assert asked[0] in told


def test_a_word_that_is_no_command_is_taken_for_the_name_of_a_pod_or_a_trace() -> None:
    done = why("huge-0", "-n", "default")
    assert done.exit_code == 2
    assert "no command 'huge-0'; a Pod: podtrail why pod huge-0 -n default" in done.stderr
    assert "a Trace: podtrail why trace " + "0a" * 16 in why("0a" * 16).stderr
    assert why("--nonsense").exit_code == 2


def test_without_a_name_plugins_and_nodes_are_listed() -> None:
    done = why("plugin", "--from", SCHEDULER)
    assert done.exit_code == 0, done.output
    assert done.stdout.startswith("9 plugins, the slowest call first.")
    assert len(json.loads(why("plugin", "--from", SCHEDULER, "-o", "json").stdout)["plugins"]) == 9
    done = why("node", "--from", SCHEDULER)
    assert done.exit_code == 0, done.output
    assert done.stdout.partition(" nodes, those refused most first.")[0].isdecimal()


def test_what_is_not_known_is_exit_code_1_and_what_can_not_be_asked_2() -> None:
    done = why("node", "node", "--from", SCHEDULER)
    assert (done.exit_code, done.stdout) == (1, "")
    assert "nothing is known of node node; there is node-" in done.stderr
    assert why("change", "noon").exit_code == 2
