"""The files that containerd reads: its own configuration, and CNI's of the network of Pods."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

BRIDGE = "pods"
NODE_ADDRESS = "10.244.0.1"
"""The bridge's, and so the node's, as Pods see it."""


def pod_network(folder: Path) -> Mapping[str, Any]:
    """All Pods on one bridge, by which they reach the node and nothing beyond."""
    addresses = {"subnet": "10.244.0.0/24", "rangeStart": "10.244.0.2", "gateway": NODE_ADDRESS}
    bridge = {
        "type": "bridge",
        "bridge": BRIDGE,
        "isDefaultGateway": True,
        "ipam": {"type": "host-local", "dataDir": str(folder / "addresses"), "ranges": [[addresses]]},
    }
    return {"cniVersion": "1.0.0", "name": "pods", "plugins": [bridge]}


def containerd_config(folder: Path, assets: Path, pause: str) -> str:
    """With runc and the plugins from the folder of binaries, and everything that it keeps in its own."""
    plugin, runc = 'plugins."io.containerd.cri.v1', "containerd.runtimes.runc"
    # restrict_oom_score_adj: without CAP_SYS_RESOURCE nobody may lower a score, and runc would end for trying.
    return f"""
version = 3
root = "{folder / "root"}"
state = "/run/containerd"
disabled_plugins = ["io.containerd.nri.v1.nri"]

[grpc]
address = "/run/containerd/containerd.sock"

[{plugin}.images".pinned_images]
sandbox = "{pause}"

[{plugin}.runtime"]
disable_apparmor = true
restrict_oom_score_adj = true

[{plugin}.runtime".cni]
bin_dirs = ["{assets}"]
conf_dir = "{folder / "cni"}"
use_internal_loopback = true

[{plugin}.runtime".{runc}]
runtime_type = "io.containerd.runc.v2"

[{plugin}.runtime".{runc}.options]
BinaryName = "{assets / "runc"}"
"""
