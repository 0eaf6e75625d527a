"""What a FailedScheduling text tells."""

from typing import Any

import pytest

from podtrail.reconstruction.failed_scheduling import read_failure

FULL = (
    "0/34 nodes are available: 1 node(s) had untolerated taint(s), 2 Insufficient cpu, 31 node(s) didn't match Pod's "
    "node affinity/selector. preemption: found a potential placement for pod on node tight0, preempting 2 victims"
)


def test_nodes_reasons_plugins_and_preemption_are_read() -> None:
    failure = read_failure(FULL)
    assert failure.unschedulable
    assert (failure.nodes, failure.nominated, failure.victims) == (34, "tight0", 2)
    assert [(one.plugin, one.nodes) for one in failure.refusals] == [
        ("TaintToleration", 1),
        ("NodeResourcesFit", 2),
        ("NodeAffinity", 31),
    ]


@pytest.mark.parametrize(
    ("message", "plugin"),
    [
        ("0/35 nodes are available: 35 cannot allocate all claims.", "DynamicResources"),
        ('0/35 nodes are available: persistentvolumeclaim "x" not found. not found', "VolumeBinding"),
        ("0/2 nodes are available: 2 node(s) had taint {a: b}, that the pod didn't tolerate.", "TaintToleration"),
        ("minCount (14) cannot be satisfied: 9 scheduled, 4 remaining", "GangScheduling"),
    ],
)
def test_a_reason_names_its_plugin(message: str, plugin: str) -> None:
    failure = read_failure(message)
    assert failure.unschedulable
    assert [one.plugin for one in failure.refusals] == [plugin]


def test_a_plugin_that_alone_has_refused_is_the_author_of_words_that_nobody_knows() -> None:
    (refusal,) = read_failure("0/2 nodes are available: 2 wrong colour.", frozenset({"Colours"})).refusals
    assert (refusal.plugin, refusal.nodes) == ("Colours", 2)


def test_a_plugin_that_failed_is_named_with_its_extension_point() -> None:
    failure = read_failure('running PreBind plugin "VolumeBinding": binding volumes: context deadline exceeded')
    assert (failure.unschedulable, failure.point, failure.plugin) == (False, "preBind", "VolumeBinding")


def test_every_reason_of_the_recorded_runs_has_a_plugin(runs: Any) -> None:
    for run in ("v2-text", "v10-text", "v5-json"):
        for one in runs.of(run, "log").attempts:
            failure = read_failure(one.draft.message)
            assert all(refusal.plugin for refusal in failure.refusals), one.draft.message
            counts = [refusal.nodes for refusal in failure.refusals if refusal.nodes is not None]
            assert not counts or failure.nodes == sum(counts)
