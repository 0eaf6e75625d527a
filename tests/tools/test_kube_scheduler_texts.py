"""Reasons and log calls in the forms in which kube-scheduler's sources of 1.20 to 1.37 have them."""

from pathlib import Path

import pytest

from tools.kube_scheduler_texts import Reason, log_calls, plugin_reasons

FILES = {
    "framework/plugins/names/names.go": 'const (\n\tNodePorts = "NodePorts"\n\tVolumeBinding = "VolumeBinding"\n)',
    "framework/plugins/nodeports/node_ports.go": """
const (
\t// Name is the name of the plugin.
\tName = names.NodePorts
\tErrReason = "node(s) didn't have free ports"
\tErrReasonLabel = ErrReason + " (missing label)"
)
func f() {
\treturn framework.NewStatus(framework.Unschedulable, ErrReason)
\treturn fwk.NewStatus(fwk.UnschedulableAndUnresolvable, ErrReasonLabel)
\treturn fwk.NewStatus(fwk.Pending, fmt.Sprintf("claim %q (of %v) is, well, allocated", a(b), c))
\treturn statusUnschedulable(logger, "in use", "pod", klog.KObj(pod))
}""",
    "framework/plugins/nodeports/node_ports_test.go": 'framework.NewStatus(framework.Unschedulable, "a test")',
    "framework/plugins/volumebinding/binder.go": 'const (\n\tErrReasonSpace ConflictReason = "no space left"\n)',
    "framework/plugins/volumebinding/volume_binding.go": """
const Name = names.VolumeBinding
func f() {
\tstatus.AppendReason("has unbound claims")
\terrMsg := fmt.Sprintf("%s is not there", d)
\treturn fwk.NewStatus(fwk.Unschedulable, errMsg)
}
""",
    "framework/plugins/old/old.go": """
// CinderName is the name of the plugin.
const CinderName = "CinderLimits"
func f() { framework.NewStatus(framework.Unschedulable, "exceed max volume count") }
""",
    "scheduler.go": """
func f() {
\tklog.V(2).InfoS("bound \\"it\\"", "pod", klog.KObj(pod))
\tklog.FromContext(ctx).V(4).Info("from context", "pod", pod)
\tutilruntime.HandleErrorWithContext(ctx, err, "handled")
\tlogger.V(klog.Level(5)).Info(
\t\t"on the next line")
\tklog.Errorf("old %v", err)
\tlogger.Info(message)
}""",
}


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        path = tmp_path / "pkg/scheduler" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path


def test_reasons_are_found_with_their_plugins_and_statuses(tree: Path) -> None:
    assert plugin_reasons(tree) == {
        Reason("NodePorts", "node(s) didn't have free ports", "Unschedulable"),
        Reason("NodePorts", "node(s) didn't have free ports (missing label)", "UnschedulableAndUnresolvable"),
        Reason("NodePorts", 'claim "*" (of *) is, well, allocated', "Pending"),
        Reason("NodePorts", "in use", "Unschedulable"),
        Reason("VolumeBinding", "no space left", "UnschedulableAndUnresolvable"),
        Reason("VolumeBinding", "has unbound claims", "Unschedulable"),
        Reason("VolumeBinding", "* is not there", "Unschedulable"),
        Reason("CinderLimits", "exceed max volume count", "Unschedulable"),
    }


def test_log_calls_are_found_with_their_verbosity(tree: Path) -> None:
    assert [call[:2] for call in log_calls(tree)] == [
        ('bound "it"', "2"),
        ("from context", "4"),
        ("handled", ""),
        ("on the next line", "5"),
        ("old %v", ""),
    ]
