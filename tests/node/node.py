"""A real cluster of one node: beside the control plane a controller-manager, a kubelet, containerd and runc.

Pods run in containers, probes reach them, Deployments make them, ServiceAccounts have tokens, Services can be reached
by address and name (services.py), and each component that can trace does. Images are those that `load` brings.
All ports are a real cluster's where they are known by number (kubelet 10250, DNS 53), as the network is its own.
"""

import json
import os
import subprocess
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import grpc

from tests.envtest.control_plane import DEADLINE, HOST, Api, ControlPlane, Refusal
from tests.node.cgroups import make_cgroups, own_cgroup, remove_cgroups
from tests.node.containerd import BRIDGE, NODE_ADDRESS, containerd_config, pod_network
from tests.node.enclosure import Enclosure
from tests.node.program_image import write_image
from tests.node.services import KUBERNETES, NAME_SERVER, ServiceNetwork

CONTROL_PLANE = ("etcd", "kube-apiserver", "kube-scheduler")
LOGGED = (*CONTROL_PLANE, "kube-controller-manager", "kubelet", "containerd")
"""The processes that run all the time."""
BINARIES = (*LOGGED, "kubectl", "containerd-shim-runc-v2", "ctr", "runc", "bridge", "host-local", "actor")
ACTOR = "podtrail.test/actor:1"
"""The image of actor/main.go, in which a test says by arguments what a container does."""
MISSING_IMAGE = f"{HOST}:1/missing:1"
"""Nobody listens there, so that pulling it fails at once."""
_PAUSE = "podtrail.test/pause:1"
_BOOTSTRAP = ("/namespaces/default/serviceaccounts/default", "/namespaces/default/configmaps/kube-root-ca.crt")


class Node(ControlPlane):
    """A control plane and one node, in an enclosure's network, in which the caller is to be, too.

    Args:
        tracing: Where API server, kubelet and containerd send their spans to, host:port of OTLP over gRPC. The node
            serves it itself and discards them, until a test calls `release_tracing`: clients that find no server wait
            up to two minutes between their tries.
    """

    NAMES = (*ControlPlane.NAMES, f"IP:{NODE_ADDRESS}", f"IP:{KUBERNETES}", "DNS:kubernetes.default.svc")
    ADMISSION = ("--authorization-mode=Node,RBAC", "--enable-admission-plugins=NodeRestriction")

    def __init__(
        self,
        assets: Path,
        folder: Path,
        enclosure: Enclosure,
        *,
        tracing: str,
    ) -> None:
        super().__init__(assets, folder)
        self.name = "node-1"
        self.enclosure = enclosure
        self._tracing = tracing
        self._discarding: grpc.Server | None = None
        self._cgroup = own_cgroup()
        self._services: ServiceNetwork | None = None
        self.manifests = folder / "manifests"
        """Where the kubelet looks for static Pods."""

    def start(self) -> None:
        """Returns when the node is ready and a Pod may be created."""
        self._make_network()
        self._discarding = grpc.server(ThreadPoolExecutor(1), handlers=[_Discard()])
        self._discarding.add_insecure_port(self._tracing)
        self._discarding.start()
        self._flags += self._more_of_the_apiserver()
        super().start()
        self._services = ServiceNetwork(self.api)
        self._start_controller_manager()
        self._start_containerd()
        for image, arguments in ((ACTOR, ()), (_PAUSE, ("wait",))):
            archive = self.folder / "image.tar"
            self.load(write_image(archive, image, self.assets / "actor", arguments=arguments))
        self.start_kubelet()
        self._await("kubelet", self.ready)

    def release_tracing(self) -> None:
        """Have somebody else serve the address of `tracing` from now on."""
        if self._discarding is not None:
            self._discarding.stop(None).wait(DEADLINE)
            self._discarding = None

    def stop(self) -> None:
        """Ends everything that runs on it, if it has not ended; the enclosure takes what is left of containers."""
        self.release_tracing()
        if self._services is not None:
            self._services.close()
            self._services = None
        super().stop()
        self.enclosure.close()
        remove_cgroups(self._cgroup)

    def ready(self) -> bool:
        """Whether the node takes Pods, and those of the namespace default are admitted."""
        node = self.api.get(f"/api/v1/nodes/{self.name}")
        for path in _BOOTSTRAP:
            self.api.get(f"/api/v1{path}")
        conditions = {each["type"]: each["status"] for each in node["status"].get("conditions", ())}
        return conditions.get("Ready") == "True" and "taints" not in node["spec"]

    def wait_for(self, path: str, wanted: Callable[[Any], Any] = bool, deadline: float = DEADLINE) -> Any:
        """Returns the object at the path when it is there and as wanted; raises AssertionError after seconds."""
        end = time.monotonic() + deadline
        found = None
        while time.monotonic() < end:
            try:
                found = self.api.get(path)
                if wanted(found):
                    return found
            except Refusal as refusal:
                if refusal.code != 404:
                    raise
            time.sleep(0.1)
        raise AssertionError(f"{path} never was as wanted, but {json.dumps(found)}")

    def kubectl(self, *arguments: str, stdin: str | None = None) -> str:
        """Runs kubectl as the administrator. Raises CalledProcessError, whose stderr pytest shows."""
        command = [str(self.assets / "kubectl"), f"--kubeconfig={self.kubeconfig}", *arguments]
        done = subprocess.run(command, input=stdin, capture_output=True, text=True, timeout=DEADLINE)
        if done.returncode != 0:
            raise subprocess.CalledProcessError(done.returncode, command, done.stdout, done.stderr)
        return done.stdout

    def load(self, archive: Path) -> None:
        """Brings an image, an OCI archive, to the node, under the name that it has there. Raises OSError."""
        self._ctr("images", "import", archive)

    def _start_controller_manager(self) -> None:
        """Starts kube-controller-manager."""
        kubeconfig = self.user("system:kube-controller-manager")
        pki = self._authority.folder
        self._start(
            *(
                "kube-controller-manager",
                f"--kubeconfig={kubeconfig}",
                f"--bind-address={HOST}",
                "--leader-elect=false",
            ),
            *(f"--authentication-kubeconfig={kubeconfig}", f"--authorization-kubeconfig={kubeconfig}"),
            *(f"--tls-cert-file={self._serving[0]}", f"--tls-private-key-file={self._serving[1]}"),
            *(f"--client-ca-file={pki / 'ca.crt'}", f"--root-ca-file={pki / 'ca.crt'}"),
            *(f"--service-account-private-key-file={pki / 'sa.key'}", "--use-service-account-credentials=true"),
            *(f"--cluster-signing-cert-file={pki / 'ca.crt'}", f"--cluster-signing-key-file={pki / 'ca.key'}"),
            "--node-monitor-period=1s",  # a new node waits as long for its taint to go
        )

    def _start_containerd(self) -> None:
        """Starts containerd."""
        folder = self.folder / "containerd"
        (folder / "cni").mkdir(parents=True, exist_ok=True)
        (folder / "cni" / "10-pods.conflist").write_text(json.dumps(pod_network(folder)))
        config = folder / "config.toml"
        config.write_text(containerd_config(folder, self.assets, _PAUSE))
        environment = {"PATH": f"{self.assets}:{os.environ['PATH']}"}  # where it looks for its shim
        environment |= {
            "OTEL_EXPORTER_OTLP_ENDPOINT": f"http://{self._tracing}",
            "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc",
        }
        self._start_enclosed("containerd", f"--config={config}", environment=environment)
        self._await("containerd", lambda: self._ctr("version"))

    def start_kubelet(self) -> None:
        """Starts the kubelet, also again after `stop_one`: Pods run on meanwhile."""
        folder = self.folder / "kubelet"
        folder.mkdir(exist_ok=True)
        self.manifests.mkdir(exist_ok=True)
        make_cgroups(self._cgroup)
        names = f"subjectAltName=IP:{NODE_ADDRESS},DNS:{self.name}"
        serving = self._authority.issue("kubelet", f"/CN={self.name}", "extendedKeyUsage=serverAuth", names)
        config = folder / "config.json"
        config.write_text(json.dumps(self._kubelet_configuration(folder, serving)))
        self._start_enclosed(
            *("kubelet", f"--config={config}", f"--kubeconfig={self.user(f'system:node:{self.name}', 'system:nodes')}"),
            *(f"--root-dir={folder / 'root'}", f"--node-ip={NODE_ADDRESS}", f"--hostname-override={self.name}"),
        )
        asked = Api(10250, self._authority, self._files("admin"), host=NODE_ADDRESS)
        self._await("kubelet", lambda: asked.get("/healthz") == "ok")

    def _kubelet_configuration(self, folder: Path, serving: tuple[Path, Path]) -> Mapping[str, Any]:
        (folder / "resolv.conf").write_text("")
        return {
            "apiVersion": "kubelet.config.k8s.io/v1beta1",
            "kind": "KubeletConfiguration",
            "address": NODE_ADDRESS,
            "tlsCertFile": str(serving[0]),
            "tlsPrivateKeyFile": str(serving[1]),
            "authentication": {
                "anonymous": {"enabled": False},
                "webhook": {"enabled": True},
                "x509": {"clientCAFile": str(self._authority.certificate)},
            },
            "authorization": {"mode": "Webhook"},
            "containerRuntimeEndpoint": "unix:///run/containerd/containerd.sock",
            "cgroupDriver": "cgroupfs",
            "cgroupRoot": f"/{self._cgroup}",
            "failCgroupV1": False,  # which kubelets of 1.35 and later otherwise refuse
            "failSwapOn": False,
            "makeIPTablesUtilChains": False,
            "clusterDNS": [NAME_SERVER],
            "clusterDomain": "cluster.local",
            "resolvConf": str(folder / "resolv.conf"),
            "podLogsDir": "/var/log/pods",
            "staticPodPath": str(self.manifests),
            # A disk that others fill evicts no Pod of a test.
            "evictionHard": {
                "memory.available": "50Mi",
                **dict.fromkeys(("nodefs.available", "nodefs.inodesFree"), "0%"),
                **dict.fromkeys(("imagefs.available", "imagefs.inodesFree"), "0%"),
            },
            "imageGCHighThresholdPercent": 100,
            "tracing": {"endpoint": self._tracing, "samplingRatePerMillion": 1_000_000},
        }

    def _more_of_the_apiserver(self) -> list[str]:
        key = self._authority.issue(
            "apiserver-kubelet-client", "/O=system:masters/CN=kube-apiserver", "extendedKeyUsage=clientAuth"
        )
        flags = [
            *("--bind-address=0.0.0.0", f"--advertise-address={NODE_ADDRESS}", "--endpoint-reconciler-type=lease"),
            *(f"--kubelet-client-certificate={key[0]}", f"--kubelet-client-key={key[1]}"),
            f"--kubelet-certificate-authority={self._authority.certificate}",
            "--kubelet-preferred-address-types=InternalIP",
        ]
        path = self.folder / "apiserver-tracing.json"
        about = {"apiVersion": "apiserver.config.k8s.io/v1", "kind": "TracingConfiguration"}
        path.write_text(json.dumps({**about, "endpoint": self._tracing, "samplingRatePerMillion": 1_000_000}))
        return [*flags, f"--tracing-config-file={path}"]

    def _make_network(self) -> None:
        # The kubelet wants its address before the first Pod makes CNI's plugin look for the bridge.
        _ip("link", "add", BRIDGE, "type", "bridge")
        _ip("address", "add", f"{NODE_ADDRESS}/24", "dev", BRIDGE)
        _ip("link", "set", BRIDGE, "up")
        _ip("route", "add", "default", "dev", BRIDGE)  # what Go's resolver and the API server take for "there is one"

    def _ctr(self, *arguments: str | Path) -> str:
        return self.enclosure.run(self.assets / "ctr", "--namespace=k8s.io", *arguments)

    def _start_enclosed(self, name: str, *flags: str, environment: Mapping[str, str] | None = None) -> None:
        command = [str(self.assets / name), *flags]
        # The SDK's queue is too small for a start of many Pods, and nobody flushes a kubelet's at its end.
        batches = {"OTEL_BSP_MAX_QUEUE_SIZE": "20000", "OTEL_BSP_SCHEDULE_DELAY": "500"}
        log = self.folder / f"{name}.log"
        self._running[name] = self.enclosure.start(command, log, {**batches, **(environment or {})})


class _Discard(grpc.GenericRpcHandler):
    """Answers every call with an empty message, which is what a receiver of OTLP says of spans that it took."""

    def service(self, handler_call_details: grpc.HandlerCallDetails) -> "grpc.RpcMethodHandler[bytes, bytes]":
        return grpc.unary_unary_rpc_method_handler(lambda *_: b"")


def _ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True, timeout=DEADLINE)
