from collections.abc import Sequence

import pytest
from podtrail_scheduler.framework.cycle_state import CycleState
from podtrail_scheduler.framework.extension_points import NormalizeScorePlugin, PreFilterPlugin, PreScorePlugin
from podtrail_scheduler.framework.node_info import NodeInfo
from podtrail_scheduler.framework.status import SKIP, Status
from podtrail_scheduler.objects import Pod

from tests.scheduler.plugins.cluster import Cluster as WithObjects


class Cluster(WithObjects):
    """Nodes with Pods, and what is looked up besides; one node at a time and all at once give the same answers."""

    def prefilter(self, plugin: PreFilterPlugin, pod: Pod) -> CycleState | None:
        """The state that Filter reads, None when it is skipped."""
        state = CycleState()
        status = plugin.pre_filter(state, pod, self.nodes)
        if status == SKIP:
            return None
        assert status is None
        return state

    def filtered(self, plugin: PreFilterPlugin, pod: Pod) -> dict[str, Status | None] | None:
        """The answer for each node, None when Filter is skipped."""
        state = self.prefilter(plugin, pod)
        if state is None:
            return None
        answers = {node.name: plugin.filter(state, pod, node) for node in self.nodes}  # type: ignore[attr-defined]
        assert list(answers.values()) == list(plugin.filter_nodes(state, pod, self.nodes))  # type: ignore[attr-defined]
        return answers

    def scored(
        self, plugin: NormalizeScorePlugin, pod: Pod, feasible: Sequence[NodeInfo] | None = None
    ) -> dict[str, int] | None:
        """The normalized score of each node, None when Score is skipped."""
        assert isinstance(plugin, PreScorePlugin)
        nodes = self.nodes if feasible is None else feasible
        state = CycleState()
        status = plugin.pre_score(state, pod, nodes)
        if status == SKIP:
            return None
        assert status is None
        scores = [plugin.score(state, pod, node) for node in nodes]
        assert scores == list(plugin.score_nodes(state, pod, nodes))  # type: ignore[attr-defined]
        normalized = plugin.normalize(state, pod, nodes, scores)
        return {node.name: score for node, score in zip(nodes, normalized, strict=True)}


@pytest.fixture
def cluster() -> Cluster:
    """No nodes yet."""
    return Cluster()


@pytest.fixture(scope="session")
def new_cluster() -> type[Cluster]:
    """For tests that need several."""
    return Cluster
