"""The reference in docs/scheduler.md is what the code says."""

import pytest

from tools.docs.scheduler import reference, replaced


@pytest.mark.parametrize(
    "line",
    [
        "| `--leader-elect-renew-deadline` | The leader gives up after this. [10s] |",
        "| `SchedulerTracing` | Alpha | false |  | Traces of scheduling attempts (KEP-5927). |",
        "| `minCandidateNodesAbsolute` | integer | `100` | Number of nodes. |",
        "| `enableHTTPS` | boolean | `false` | Speaks TLS. |",
        "| `retryPeriod` | duration | `2s` | Between attempts. |",
        "| `TaintToleration` | 3 |",
    ],
)
def test_flags_gates_and_fields_have_their_place(line: str) -> None:
    assert line in reference().splitlines()


def test_a_document_without_marks_is_left_alone() -> None:
    with pytest.raises(ValueError, match="the document needs"):
        replaced("# Nothing")
