"""The same story in the words of each age: unstructured, structured, contextual, as text and as JSON."""

from pathlib import Path
from typing import Any

import pytest

from podtrail.reconstruction.failed_scheduling import read_failure

LOGS = sorted((Path(__file__).parents[1] / "data" / "kube-scheduler" / "ages").iterdir())
REFUSED = 'running Bind plugin "DefaultBinder": pods "web-0" is forbidden'


def lines_of(log: Path) -> list[bytes]:
    return log.read_bytes().splitlines()


@pytest.mark.parametrize("log", LOGS, ids=lambda log: log.stem)
def test_each_age_tells_the_same_attempts(runs: Any, log: Path) -> None:
    result = runs.rebuild([lines_of(log)])
    drafts = [one.draft for one in result.attempts]
    assert [draft.result for draft in drafts] == ["Unschedulable", "Error", "Success"]
    assert [(draft.end - draft.start) // 100_000 for draft in drafts] == [8, 8, 8]
    assert drafts[1].message == REFUSED
    assert (drafts[2].node, drafts[2].evaluated, drafts[2].feasible) == ("n1", 3, 2)
    assert not result.log.unknown
    refusals = {refusal.plugin: refusal.nodes for refusal in read_failure(drafts[0].message).refusals}
    assert refusals == {"TaintToleration": 1, "NodeResourcesFit": 2}


def test_json_that_a_shipper_has_spaced_is_read_as_well(runs: Any) -> None:
    log = next(log for log in LOGS if log.stem == "1.26-json")
    spaced = [line.replace(b'":', b'": ').replace(b',"', b', "') for line in lines_of(log)]
    assert runs.rebuild([spaced]).outcome.attempts.total() == 3


def test_a_node_without_quotes_is_read_as_well(runs: Any) -> None:
    line = (
        b"I1121 11:12:07.000100       1 scheduler.go:569] pod default/web-0 is bound successfully on node n-1.example, "
        b"500 nodes evaluated, 400 nodes were found feasible"
    )
    (one,) = runs.rebuild([[line]]).attempts
    assert (one.draft.node, one.draft.evaluated, one.draft.feasible) == ("n-1.example", 500, 400)
