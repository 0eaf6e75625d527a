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
        ('0/35 nodes are available: persistentvolumeclaim "x" not found. not found', "VolumeRestrictions"),
        ("0/2 nodes are available: 2 node(s) had taint {a: b}, that the pod didn't tolerate.", "TaintToleration"),
        ("minCount (14) cannot be satisfied: 9 scheduled, 4 remaining", "GangScheduling"),
    ],
)
def test_a_reason_names_its_plugin(message: str, plugin: str) -> None:
    failure = read_failure(message)
    assert failure.unschedulable
    assert [one.plugin for one in failure.refusals] == [plugin]


@pytest.mark.parametrize(
    ("reasons", "asked", "plugins"),
    [
        ("2 wrong colour.", {"Colours"}, ["Colours"]),
        ("1 wrong colour, 1 Insufficient cpu.", {"Colours", "NodeResourcesFit"}, ["Colours", "NodeResourcesFit"]),
        ("2 node(s) had no available disk.", {"MyDisks"}, ["MyDisks"]),
        ("1 wrong colour, 1 Insufficient cpu.", {"A", "B"}, ["", "NodeResourcesFit"]),
        ("2 node(s) exceed max volume count.", {"EBSLimits"}, ["EBSLimits"]),
    ],
)
def test_a_plugin_that_the_log_names_takes_precedence(reasons: str, asked: set[str], plugins: list[str]) -> None:
    failure = read_failure(f"0/2 nodes are available: {reasons}", frozenset(asked))
    assert [refusal.plugin for refusal in failure.refusals] == plugins


@pytest.mark.parametrize(
    ("message", "point", "plugin"),
    [
        ('running PreBind plugin "VolumeBinding": binding volumes: deadline', "preBind", "VolumeBinding"),
        ('binding rejected: running Bind plugin "DefaultBinder": pods "a" not found', "bind", "DefaultBinder"),
        ('running Score plugins: plugin "ImageLocality" failed with: boom', "score", "ImageLocality"),
        ('running Normalize on Score plugins: plugin "A" failed with: boom', "score", "A"),
        ('running "NodeAffinity" filter plugin: boom', "filter", "NodeAffinity"),
        ('running "NodePorts" filter plugin for pod "a": boom', "filter", "NodePorts"),
        ('running RemovePod on PreFilter plugin "InterPodAffinity": boom', "preFilter", "InterPodAffinity"),
    ],
)
def test_a_plugin_that_failed_is_named_with_its_extension_point(message: str, point: str, plugin: str) -> None:
    failure = read_failure(message)
    assert (failure.unschedulable, failure.point, failure.plugin) == (False, point, plugin)


def test_every_reason_of_the_recorded_runs_has_a_plugin(runs: Any) -> None:
    for run in ("v2-text", "v10-text", "v5-json"):
        for one in runs.of(run, "log").attempts:
            failure = read_failure(one.draft.message)
            assert all(refusal.plugin for refusal in failure.refusals), one.draft.message
            counts = [refusal.nodes for refusal in failure.refusals if refusal.nodes is not None]
            assert not counts or failure.nodes == sum(counts)
