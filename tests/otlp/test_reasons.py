"""Which plugin gives a reason, in each release: of kube-scheduler's own texts, and of messages that hold several."""

from pathlib import Path

import pytest

from podtrail.otlp import plugin_of, read_message, status_of

DATA = Path(__file__).parents[1] / "data" / "kube-scheduler"
ROWS = [line.split("\t") for line in (DATA / "reasons.tsv").read_text().splitlines()[1:]]
LIMITS = ("AzureDiskLimits", "CinderLimits", "EBSLimits", "GCEPDLimits", "NodeVolumeLimits")


@pytest.mark.parametrize(("plugin", "minors", "reason"), ROWS, ids=[row[2][:60] for row in ROWS])
def test_each_reason_of_the_sources_is_the_plugins_of_its_release(plugin: str, minors: str, reason: str) -> None:
    whole = reason + "od" * reason.endswith("another p")
    for minor in (int(minors[:2]), int(minors[4:]), 0):
        (found,) = read_message(f"0/3 nodes are available: 3 {whole}.", minor).rejections
        assert plugin in found.plugin.split(" or ")
        assert (found.reason, found.nodes) == (whole, 3)


@pytest.mark.parametrize(
    ("minor", "reason", "plugin"),
    [
        (26, 'persistentvolumeclaim "data" not found', "VolumeBinding"),
        (27, 'persistentvolumeclaim "data" not found', "VolumeRestrictions"),
        (
            30,
            "node(s) exceed max volume count",
            " or ".join(LIMITS),
        ),
        (32, "node(s) exceed max volume count", "NodeVolumeLimits"),
        (99, "node(s) exceed max volume count", "NodeVolumeLimits"),
        (29, "node(s) didn't satisfy plugin NodeAffinity", "NodeAffinity"),
        (29, "node(s) didn't satisfy plugin(s) [A B] simultaneously", "A or B"),
        (34, "rejected due to timeout after waiting 10s at plugin coscheduling", "coscheduling"),
        (22, "Insufficient nvidia.com/gpu", "NodeResourcesFit"),
        (22, "node(s) had volume node affinity conflict", "VolumeBinding"),
        (37, "node(s) had untolerated taint {a.b/c: d, e}", "TaintToleration"),
        (37, "node(s) didn't match pod topology spread constraints (missing required label)", "PodTopologySpread"),
        (37, "ebs.csi.aws.com CSI driver is not installed on the node", "NodeVolumeLimits"),
        (37, "the moon is full", ""),
    ],
)
def test_a_text_that_moved_between_plugins_goes_by_the_release(minor: int, reason: str, plugin: str) -> None:
    assert plugin_of(reason, minor) == plugin


def test_a_status_says_whether_preemption_can_help() -> None:
    assert status_of("Insufficient cpu") == "Unschedulable"
    assert status_of("node(s) had untolerated taint(s)") == "UnschedulableAndUnresolvable"


HELPED = "0/4 nodes are available: 1 No preemption victims found for incoming pod, 3 Preemption is not helpful"
MORE = ["no new claims to deallocate", "still not schedulable", "not found", "coscheduling: no"]


@pytest.mark.parametrize(
    "more", ["no new claims to deallocate", "still not schedulable", "not found", "coscheduling: no"]
)
def test_what_other_plugins_append_belongs_to_no_reason(more: str) -> None:
    counted = "0/4 nodes are available: 1 Too many pods, 3 node(s) didn't satisfy plugin(s) [NodeAffinity]. "
    for tail in (f"{more}, preemption: {HELPED}.", f"{more}", f"{more}.", f"preemption: {HELPED}."):
        why = read_message(counted + tail)
        assert [(no.plugin, no.nodes, no.reason) for no in why.rejections] == [
            ("NodeResourcesFit", 1, "Too many pods"),
            ("NodeAffinity", 3, "node(s) didn't satisfy plugin(s) [NodeAffinity]"),
        ]
        assert bool(why.preemption) == ("preemption: " in tail)
    (missing,) = read_message(f'0/4 nodes are available: persistentvolumeclaim "x" not found. {more}').rejections
    assert missing.reason == 'persistentvolumeclaim "x" not found'
