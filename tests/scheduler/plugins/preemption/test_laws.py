"""What holds of every preemption, whatever runs on the nodes."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from podtrail_scheduler.framework.cycle_state import CycleState
from podtrail_scheduler.framework.node_info import NodeInfo
from podtrail_scheduler.objects import HostPort, LabelSelector, Pod, PodDisruptionBudget
from podtrail_scheduler.plugins.preemption.dry_run import DryRun

from tests.sizes import large

pods = st.builds(
    Pod,
    st.just("p"),
    uid=st.uuids().map(str),
    labels=st.sampled_from(({}, {"app": "web"})),
    requests=st.fixed_dictionaries({"cpu": st.sampled_from((0, 500, 1000, 1500))}),
    host_ports=st.sampled_from(((), (), (HostPort(80),))),
    priority=st.integers(0, 3),
    start_time=st.integers(1, 3),
)
INCOMING = Pod("in", uid="in", requests={"cpu": 2000}, host_ports=(HostPort(80),), priority=2)


def fits(cluster: Any, node: NodeInfo) -> bool:
    return cluster.handle.trial.filter(CycleState(), INCOMING, node) is None


@settings(max_examples=large(40, 1000))
@given(running=st.lists(st.lists(pods, max_size=6), min_size=1, max_size=3), allowed=st.integers(0, 2))
def test_victims_are_of_lower_priority_enough_and_none_too_many(
    new_cluster: Any, running: list[list[Pod]], allowed: int
) -> None:
    cluster = new_cluster()
    cluster.handle.listers.put(PodDisruptionBudget("b", "default", LabelSelector({"app": "web"}), allowed))
    nodes = {f"n{number}": cluster.node(f"n{number}", *each) for number, each in enumerate(running)}
    full = [node for node in cluster.nodes if not fits(cluster, node)]
    outcome = DryRun(cluster.handle, CycleState(), INCOMING).run(full, 0, len(full))
    assert len(outcome.candidates) + len(outcome.refusals) == len(full)
    for candidate in outcome.candidates:
        assert all(victim.priority < INCOMING.priority for victim in candidate.victims)
        without = nodes[candidate.node_name].clone()
        for victim in candidate.victims:
            without.remove(victim)
        assert fits(cluster, without)
        for victim in candidate.victims:
            with_one = without.clone()
            with_one.add(victim)
            assert not fits(cluster, with_one)
    for name in outcome.refusals:
        without = nodes[name].clone()
        for victim in [each for each in without.pods.values() if each.priority < INCOMING.priority]:
            without.remove(victim)
        assert not fits(cluster, without) or len(without.pods) == len(nodes[name].pods)
