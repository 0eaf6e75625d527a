"""What docker/kubernetes/agent/host/ has to add to a node's components leads to the node's agent."""

from pathlib import Path
from typing import Any

import yaml

from tests.docker.manifests import KUBERNETES

HOST = KUBERNETES / "agent" / "host"
EVERYTHING = 1_000_000


def documents(path: Path) -> dict[str, Any]:
    return {each["kind"]: each for each in yaml.safe_load_all(path.read_text("utf-8"))}


def agent() -> str:
    """Where the agent listens."""
    manifests = yaml.safe_load_all((KUBERNETES / "agent" / "agent.yaml").read_text("utf-8"))
    (configuration,) = (each["data"]["config.yaml"] for each in manifests if each["kind"] == "ConfigMap")
    return str(yaml.safe_load(configuration)["receivers"]["otlp"]["protocols"]["grpc"]["endpoint"])


def test_api_server_kubelet_and_containerd_send_everything_to_the_agent() -> None:
    port = agent().partition("127.0.0.1:")[2]
    (api_server,) = documents(HOST / "apiserver-tracing.yaml").values()
    kubelet = documents(HOST / "kubelet-tracing.yaml")["KubeletConfiguration"]["tracing"]
    for told in (api_server, kubelet):
        assert (told["endpoint"], told["samplingRatePerMillion"]) == (f"localhost:{port}", EVERYTHING)
    containerd = (HOST / "containerd-tracing.conf").read_text("utf-8")
    assert f"OTEL_EXPORTER_OTLP_ENDPOINT=http://localhost:{port}\n" in containerd


def test_kubeadm_is_told_the_same_and_mounts_what_the_api_server_reads() -> None:
    told = documents(HOST / "kubeadm.yaml")
    assert told["KubeletConfiguration"] == documents(HOST / "kubelet-tracing.yaml")["KubeletConfiguration"]
    api_server = told["ClusterConfiguration"]["apiServer"]
    (argument,), (volume,) = api_server["extraArgs"], api_server["extraVolumes"]
    assert argument["name"] == "tracing-config-file"
    assert str(Path(argument["value"]).parent) == volume["mountPath"] == volume["hostPath"]
