"""What is joined of two recordings of a real node, against what watches and audit log say."""

from pathlib import Path

import pytest

from benchmarks.story_joins import figures


@pytest.mark.parametrize("recording", ["podtrail", "stock"])
def test_all_that_concerns_a_pod_is_joined_and_nothing_wrongly(recording: str, tmp_path: Path) -> None:
    found = figures(recording, tmp_path)
    assert found.wrong == 0
    assert found.joined == found.spans > 3500, found.missing
    assert len(found.by_pod) == 10
    assert all(joined == all_ > 100 for all_, joined in found.by_pod.values())
    # Events of Jobs, ReplicaSets and the node, and tokens that are for no Pod.
    assert set(found.unjoined) == {"unknown_pod,type=event", "unknown_pod,type=request"}
