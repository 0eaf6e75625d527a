"""A real control plane: etcd, kube-apiserver and, for those who compare with it, kube-scheduler, on the loopback.

Tests that use it are marked `control_plane`. They are skipped, saying what they need, where the binaries are missing;
build.sh builds them where Go is present. The one control plane of the session is shared: a test takes a namespace and
node names of its own. `mortal_control_plane` is the same for tests that stop its API server: it runs again afterwards.
A test that needs other flags starts its own with `start_control_plane`. There is no controller-manager (nothing
collects garbage) and no kubelet (no Pod runs; one that has a node stays until it is deleted with grace 0).
"""

import base64
import contextlib
import functools
import http.client
import itertools
import json
import os
import shutil
import signal
import ssl
import subprocess
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.built import BUILT
from tests.free_ports import free_ports
from tests.recorder import report_log

HOST = "127.0.0.1"
DEADLINE = 120
"""Seconds for a process to become ready or to end, on a machine that has other things to do."""
BINARIES = ("etcd", "kube-apiserver", "kube-scheduler")
DEFAULT_ASSETS = BUILT / "envtest-1.37.1"


_numbers = itertools.count(1)


class Refusal(Exception):
    """The API server's answer of 400 and more: `code` and `body`."""

    def __init__(self, code: int, body: Any) -> None:
        super().__init__(f"{code} {json.dumps(body)[:500]}")
        self.code = code
        self.body = body


class Authority:
    """A certificate authority of openssl's, in a folder."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self.folder = folder
        (folder / "openssl.cnf").write_text("[req]\ndistinguished_name = dn\n[dn]\n")
        self.certificate = folder / "ca.crt"
        self._openssl(
            *("req", "-x509", "-keyout", "ca.key", "-out", "ca.crt", "-subj", "/CN=podtrail-tests"),
            *("-addext", "basicConstraints=critical,CA:TRUE", "-addext", "keyUsage=critical,keyCertSign"),
            *("-addext", "subjectKeyIdentifier=hash"),
        )

    def issue(self, name: str, subject: str, *extensions: str) -> tuple[Path, Path]:
        """Returns the files of a certificate and its key."""
        wanted = ("basicConstraints=critical,CA:FALSE", "authorityKeyIdentifier=keyid", *extensions)
        self._openssl(
            *("req", "-x509", "-CA", "ca.crt", "-CAkey", "ca.key", "-subj", subject),
            *("-keyout", f"{name}.key", "-out", f"{name}.crt"),
            *itertools.chain.from_iterable(("-addext", extension) for extension in wanted),
        )
        return self.folder / f"{name}.crt", self.folder / f"{name}.key"

    def _openssl(self, *arguments: str) -> None:
        common = ("-config", "openssl.cnf", "-days", "7", "-nodes", "-newkey", "ec")
        curve = ("-pkeyopt", "ec_paramgen_curve:prime256v1")
        subprocess.run(
            ["openssl", *arguments, *common, *curve], cwd=self.folder, check=True, capture_output=True, timeout=DEADLINE
        )


class Api:
    """Requests as a cluster administrator, one after the other, as JSON; it may keep connections until it is closed."""

    def __init__(
        self, port: int, authority: Authority, certificate: tuple[Path, Path], host: str = HOST, *, keeps: bool = False
    ) -> None:
        self.host, self.port, self.certificate = host, port, certificate
        self.tls = ssl.create_default_context(cafile=authority.certificate)
        self.tls.load_cert_chain(*certificate)
        self.warnings: list[str] = []
        """What the last answer warned of."""
        self._keeps = keeps
        self._idle: list[http.client.HTTPSConnection] = []

    def request(
        self, method: str, path: str, body: Any = None, content_type: str = "application/json", **headers: str
    ) -> Any:
        """Returns the JSON of the answer, or its text. Raises Refusal, OSError."""
        data = None if body is None else json.dumps(body)
        status, text = self._exchange(method, path, data, {"Content-Type": content_type, **headers})
        try:
            read = json.loads(text)
        except ValueError:
            read = text
        if status >= 400:
            raise Refusal(status, read)
        return read

    def close(self) -> None:
        """Close the connections that are kept open between requests."""
        while self._idle:
            self._idle.pop().close()

    def _exchange(self, method: str, path: str, body: str | None, headers: Mapping[str, str]) -> tuple[int, str]:
        """Return status and text of the answer; an idle connection that the server has closed is replaced."""
        while True:
            try:
                connection, is_kept = self._idle.pop(), True
            except IndexError:
                connection, is_kept = self._connection(), False
            try:
                connection.request(method, path, body, dict(headers))
                answer = connection.getresponse()
                self.warnings = answer.headers.get_all("Warning", [])
                text = answer.read().decode()
            except BaseException as error:
                connection.close()
                if is_kept and isinstance(error, (ConnectionError, ssl.SSLError)):
                    continue
                raise
            if self._keeps and not answer.will_close:
                self._idle.append(connection)
            else:
                connection.close()
            return answer.status, text

    def _connection(self) -> http.client.HTTPSConnection:
        return http.client.HTTPSConnection(self.host, self.port, context=self.tls, timeout=DEADLINE)

    def get(self, path: str) -> Any:
        return self.request("GET", path)

    def create(self, path: str, body: Mapping[str, Any]) -> Any:
        return self.request("POST", path, body)

    def delete(self, path: str, grace: int = 0) -> Any:
        return self.request("DELETE", path, {"gracePeriodSeconds": grace})

    def patch(self, path: str, body: Mapping[str, Any], kind: str = "merge") -> Any:
        """`kind` is merge, strategic-merge or json."""
        return self.request("PATCH", path, body, f"application/{kind}-patch+json")

    def namespace(self, name: str) -> str:
        """Creates a namespace."""
        self.create("/api/v1/namespaces", {"metadata": {"name": name}})
        return name

    def node(self, name: str, capacity: Mapping[str, str] | None = None, **fields: Any) -> Any:
        """Creates a Node that is ready; `fields` are labels, annotations, taints and unschedulable."""
        spec = {key: fields[key] for key in ("taints", "unschedulable") if key in fields}
        labels = {"kubernetes.io/hostname": name, "kubernetes.io/os": "linux"} | fields.get("labels", {})
        metadata = {"name": name, "labels": labels, "annotations": fields.get("annotations", {})}
        self.create("/api/v1/nodes", {"metadata": metadata, "spec": spec})
        size = {"cpu": "8", "memory": "32Gi", "pods": "110"} | dict(capacity or {})
        ready = {"type": "Ready", "status": "True", "reason": "KubeletReady"}
        status = {"capacity": size, "allocatable": size, "conditions": [ready], "images": fields.get("images", [])}
        self.patch(f"/api/v1/nodes/{name}/status", {"status": status})
        # Admission taints new nodes as not ready; node controllers would take that away.
        return self.patch(f"/api/v1/nodes/{name}", {"spec": {"taints": spec.get("taints")}})


class ControlPlane:
    """etcd and kube-apiserver in a folder; `stop` ends all that it started."""

    NAMES: tuple[str, ...] = (f"IP:{HOST}", "DNS:localhost")
    """What the certificate of API server and scheduler is for."""
    ADMISSION: tuple[str, ...] = ("--authorization-mode=RBAC", "--disable-admission-plugins=ServiceAccount")
    """Who may do what; without a controller-manager there are no ServiceAccounts that Pods could have."""

    def __init__(
        self, assets: Path, folder: Path, *, apiserver: Sequence[str] = (), gates: Mapping[str, bool] | None = None
    ) -> None:
        self.assets = assets
        self.folder = folder
        self._flags = list(apiserver)
        self._gates = (
            [f"--feature-gates={','.join(f'{k}={str(v).lower()}' for k, v in gates.items())}"] if gates else []
        )
        self._running: dict[str, subprocess.Popen[bytes]] = {}
        self._etcd, self._peer, self.port, self.scheduler_port = free_ports(4)
        self.scheduler_ports = {"kube-scheduler": self.scheduler_port}
        """Where each kube-scheduler that was started serves, by its name."""
        self._authority = Authority(folder / "pki")
        names = f"subjectAltName={','.join(self.NAMES)}"
        self._serving = self._authority.issue("serving", "/CN=kube-apiserver", "extendedKeyUsage=serverAuth", names)
        key = ["openssl", "genrsa", "-out", "sa.key", "2048"]
        subprocess.run(key, cwd=self._authority.folder, check=True, capture_output=True, timeout=DEADLINE)
        self.kubeconfig = self.user("admin", "system:masters")
        self._apis: list[Api] = []
        self.api = self._api(self.port, "admin")

    def start(self) -> None:
        """Returns when the API server is ready."""
        url, peer = f"http://{HOST}:{self._etcd}", f"http://{HOST}:{self._peer}"
        self._start(
            *("etcd", f"--data-dir={self.folder / 'etcd'}", "--unsafe-no-fsync", "--log-level=warn"),
            *(f"--listen-client-urls={url}", f"--advertise-client-urls={url}", f"--listen-peer-urls={peer}"),
            *(f"--initial-advertise-peer-urls={peer}", f"--initial-cluster=default={peer}"),
        )
        self.start_apiserver()

    def start_apiserver(self) -> None:
        """Starts the API server, also again on the same port after `stop_one("kube-apiserver")`."""
        self.launch_apiserver()
        self.await_apiserver()

    def await_apiserver(self) -> None:
        """Returns when the API server is ready."""
        self._await("kube-apiserver", lambda: self.api.get("/readyz") == "ok")
        self._await("kube-apiserver", lambda: self.api.get("/api/v1/namespaces/default"))

    def launch_apiserver(self) -> None:
        """Starts the API server without waiting for it. It ends with the thread that calls this."""
        key, pki = self._authority.folder / "sa.key", self._authority.folder
        self._start(
            *("kube-apiserver", f"--etcd-servers=http://{HOST}:{self._etcd}", f"--secure-port={self.port}"),
            *(f"--bind-address={HOST}", f"--advertise-address={HOST}", f"--cert-dir={pki}"),
            *(f"--tls-cert-file={self._serving[0]}", f"--tls-private-key-file={self._serving[1]}"),
            *(f"--client-ca-file={self._authority.certificate}", *self.ADMISSION),
            *(f"--service-account-key-file={key}", f"--service-account-signing-key-file={key}"),
            *("--service-account-issuer=https://kubernetes.default.svc", "--service-cluster-ip-range=10.0.0.0/24"),
            *("--endpoint-reconciler-type=none", "--profiling=false", "--anonymous-auth=false"),
            *("--allow-privileged=true", *self._gates, *self._flags),
        )

    def start_scheduler(
        self,
        config: Mapping[str, Any] | None = None,
        flags: Sequence[str] = (),
        *,
        replica: str = "",
        binary: str = "kube-scheduler",
    ) -> Path:
        """Starts the real kube-scheduler, with fields of KubeSchedulerConfiguration; returns its log's path.

        With `replica` another one, `kube-scheduler-REPLICA`; `binary` is the path of one of another release.
        """
        name = f"kube-scheduler-{replica}" if replica else "kube-scheduler"
        port = self.scheduler_ports.setdefault(name, free_ports(1)[0])
        kubeconfig = str(self.user("system:kube-scheduler"))
        whole = {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "leaderElection": {"leaderElect": False},
            **(config or {}),
        }
        whole["clientConnection"] = {"kubeconfig": kubeconfig} | dict(whole.get("clientConnection", {}))
        path = self.folder / f"{name}-config.json"
        path.write_text(json.dumps(whole))
        log = self._start(
            *(name, f"--config={path}", f"--bind-address={HOST}", f"--secure-port={port}"),
            *(f"--tls-cert-file={self._serving[0]}", f"--tls-private-key-file={self._serving[1]}"),
            *(f"--client-ca-file={self._authority.certificate}", f"--authentication-kubeconfig={kubeconfig}"),
            *(f"--authorization-kubeconfig={kubeconfig}", *self._gates, *flags),
            binary=binary,
        )
        asked = self._api(port, "admin")
        self._await(name, lambda: asked.get("/readyz") == "ok")
        return log

    def scheduler_get(self, path: str, *, scheduler: str = "kube-scheduler") -> Any:
        """Asks the kube-scheduler, or one of several, for /metrics for example."""
        return self._api(self.scheduler_ports[scheduler], "admin").get(path)

    def scheduler_put(self, path: str, body: Any, *, scheduler: str = "kube-scheduler") -> Any:
        """Sends the kube-scheduler, or one of several, what is put at /debug/flags/v for example."""
        return self._api(self.scheduler_ports[scheduler], "admin").request("PUT", path, body)

    def user(self, name: str, *groups: str) -> Path:
        """Issues a client certificate and returns a kubeconfig with it."""
        path = self.folder / f"{name.replace(':', '-')}.kubeconfig"
        if not path.exists():
            subject = "".join(f"/O={group}" for group in groups) + f"/CN={name}"
            pair = self._authority.issue(name.replace(":", "-"), subject, "extendedKeyUsage=clientAuth")
            user = dict(zip(("client-certificate-data", "client-key-data"), map(_encoded, pair), strict=True))
            self.write_kubeconfig(path, user)
        return path

    def api_as(self, name: str, *groups: str) -> Api:
        """Requests as another user, who may do nothing until roles are bound."""
        self.user(name, *groups)
        return self._api(self.port, name.replace(":", "-"))

    def write_kubeconfig(self, path: Path, user: Mapping[str, Any]) -> Path:
        """Writes a kubeconfig for this API server with that entry under `users`."""
        cluster = {
            "server": f"https://{HOST}:{self.port}",
            "certificate-authority-data": _encoded(self._authority.certificate),
        }
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "it",
            "clusters": [{"name": "it", "cluster": cluster}],
            "users": [{"name": "it", "user": dict(user)}],
            "contexts": [{"name": "it", "context": {"cluster": "it", "user": "it"}}],
        }
        path.write_text(json.dumps(config))
        return path

    def stop_one(self, name: str, *, kill: bool = False) -> None:
        """Ends one process by the signal of a shutdown, or of a crash."""
        process = self._running.pop(name)
        process.kill() if kill else process.terminate()
        try:
            process.wait(DEADLINE)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(DEADLINE)

    def pid(self, name: str) -> int:
        """The process of that name."""
        return self._running[name].pid

    def signal(self, name: str, number: int) -> None:
        """Sends a process a signal: SIGSTOP and SIGCONT make it hang and go on."""
        self._running[name].send_signal(number)

    def recover(self) -> None:
        """Has an API server that was stopped, or hangs, run again."""
        process = self._running.get("kube-apiserver")
        if process is not None and process.poll() is None:
            process.send_signal(signal.SIGCONT)
        else:
            self.start_apiserver()

    def log_of(self, name: str) -> str:
        """What a process has logged so far."""
        log = self.folder / f"{name}.log"
        return log.read_text(errors="replace") if log.exists() else ""

    def stop(self) -> None:
        """Ends everything, in reverse order."""
        for api in self._apis:
            api.close()
        for name in reversed(list(self._running)):
            self.stop_one(name, kill=name == "etcd")

    def _api(self, port: int, user: str) -> Api:
        """Return requests of a user to a port, the same for the same."""
        pair = self._files(user)
        for api in self._apis:
            if (api.port, api.certificate) == (port, pair):
                return api
        self._apis.append(Api(port, self._authority, pair, keeps=True))
        return self._apis[-1]

    def _files(self, name: str) -> tuple[Path, Path]:
        return self._authority.folder / f"{name}.crt", self._authority.folder / f"{name}.key"

    def _start(self, name: str, *flags: str, binary: str = "") -> Path:
        log = self.folder / f"{name}.log"
        leash = ["setpriv", "--pdeathsig", "TERM"] if shutil.which("setpriv") else []  # when the tests are killed
        command = [*leash, str(self.assets / (binary or name)), *flags]
        environment = {**os.environ, "OTEL_BSP_SCHEDULE_DELAY": "100"}  # ms; spans would leave every five seconds
        with log.open("ab") as out:
            self._running[name] = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=out, stderr=out, env=environment
            )
        return log

    def _await(self, name: str, ready: Callable[[], Any]) -> None:
        deadline, last = time.monotonic() + DEADLINE, "not ready"
        while time.monotonic() < deadline:
            if (code := self._running[name].poll()) is not None:
                last = f"ended with {code}"
                break
            try:
                if ready():
                    return
            except (OSError, http.client.HTTPException, Refusal) as error:
                last = str(error)
            time.sleep(0.05)
        raise AssertionError(f"{name}: {last}\n{self.log_of(name)[-3000:]}")


def _encoded(path: Path) -> str:
    return base64.b64encode(path.read_bytes()).decode()


@pytest.fixture(scope="session")
def kubernetes_binaries() -> Path:
    """The folder of the binaries; skips the test where they, or openssl, are missing."""
    folder = Path(os.environ.get("KUBEBUILDER_ASSETS") or DEFAULT_ASSETS)
    missing = [name for name in BINARIES if not (folder / name).is_file()]
    if missing:
        pytest.skip(
            f"needs {', '.join(missing)} of Kubernetes v1.37 in {folder} or where KUBEBUILDER_ASSETS says; "
            "tests/envtest/build.sh builds them with Go"
        )
    if shutil.which("openssl") is None:
        pytest.skip("needs openssl, to make the control plane's certificates")
    return folder


@pytest.fixture(scope="session")
def kubectl(kubernetes_binaries: Path) -> Path:
    """The real kubectl; skips the test where it is missing."""
    path = kubernetes_binaries / "kubectl"
    if not path.is_file():
        pytest.skip(f"needs {path}; tests/envtest/build.sh builds it with Go")
    return path


@pytest.fixture(scope="session")
def start_control_plane(
    kubernetes_binaries: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[..., ControlPlane]]:
    """Starts control planes; what the caller does not stop is stopped at the end of the session."""
    started = []

    def start(**options: Any) -> ControlPlane:
        plane = ControlPlane(kubernetes_binaries, tmp_path_factory.mktemp("control-plane"), **options)
        started.append(plane)
        plane.start()
        return plane

    try:
        yield start
    finally:
        for plane in started:
            plane.stop()


@pytest.fixture(scope="session")
def control_plane(start_control_plane: Callable[..., ControlPlane]) -> ControlPlane:
    """The control plane that all tests of the session share: etcd and kube-apiserver, no scheduler."""
    return start_control_plane()


@pytest.fixture
def mortal_control_plane(control_plane: ControlPlane) -> Iterator[ControlPlane]:
    """The control plane of the session, for a test that stops its API server or has it hang."""
    yield control_plane
    control_plane.recover()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Show the ends of the logs of the control planes that a test uses beside its failure."""
    if item.get_closest_marker("control_plane") is None:
        return (yield)

    def read(name: str) -> str:
        planes = [each for each in getattr(item, "funcargs", {}).values() if isinstance(each, ControlPlane)]
        return "\n".join(plane.log_of(name) for plane in planes)

    with contextlib.ExitStack() as stack:
        for name in BINARIES:
            stack.enter_context(report_log(f"{name}.log", functools.partial(read, name)))
        return (yield)


@pytest.fixture
def namespace(control_plane: ControlPlane) -> str:
    """A namespace for this test alone."""
    return control_plane.api.namespace(f"test-{next(_numbers)}")
