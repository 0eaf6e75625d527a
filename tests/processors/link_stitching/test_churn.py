"""Pods without end, many under the names of others before: memory is bounded, no link is wrong, all is counted."""

from typing import Literal

import pytest

from benchmarks.story_churn import Churn
from tests.sizes import large

PODS = large(900, 3_000)


@pytest.mark.parametrize("mode", ["link", "lifecycle"])
def test_of_pods_without_end_nothing_grows_nothing_is_joined_wrongly_and_all_is_counted(
    mode: Literal["link", "lifecycle"],
) -> None:
    churn = Churn(mode)
    for third in range(3):
        churn.run(range(third * PODS // 3 + 1, (third + 1) * PODS // 3 + 1))
    churn.end(PODS)
    assert churn.wrong == 0
    assert churn.links > PODS
    _, second, third = churn.estimates
    assert third < 1.1 * second < 1 << 23
    for kind in ("binding", "scheduling"):
        assert churn.count("links", type=kind) + churn.count("unjoined", type=kind) == PODS
    assert churn.count("remembered", what="pod") + churn.count("forgotten", what="pod") == PODS
    assert churn.count("remembered", what="pod") <= 200
