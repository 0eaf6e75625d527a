"""Webhooks as processes, certificates for them, and what asks them."""

import base64
import contextlib
import http.client
import itertools
import json
import re
import signal
import ssl
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.envtest.control_plane import Authority, ControlPlane
from tests.free_ports import free_ports
from tests.recorder import report_log

HOST = "127.0.0.1"
PATIENCE = 60
"""Seconds for what a busy machine does at once otherwise."""
_numbers = itertools.count(1)

Answer = tuple[int, Any]
TRACEPARENT = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"


class RunningWebhook:
    """`podtrail webhook`, its port taken from its log."""

    def __init__(self, arguments: list[str], program: Sequence[str] = ("-m", "podtrail")) -> None:
        (self.metrics_port,) = free_ports(1)
        command = [sys.executable, *program, "webhook", f"--endpoint={HOST}:0", f"--health-endpoint={HOST}:0"]
        self.process = subprocess.Popen(
            [*command, f"--metrics-endpoint={HOST}:{self.metrics_port}", *arguments],
            stderr=subprocess.PIPE,
            text=True,
        )
        self.log: list[str] = []
        self._grew = threading.Condition()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    @property
    def port(self) -> int:
        """Where it answers; waits until it does."""
        return int(self.said(r"answering AdmissionReviews on https://.*:(\d+)/mutate")[1])

    @property
    def health_port(self) -> int:
        """Where it answers probes."""
        return int(self.said(r"answering probes on http://.*:(\d+)/")[1])

    @property
    def url(self) -> str:
        """Where AdmissionReviews go."""
        return f"https://{HOST}:{self.port}/mutate"

    def said(self, pattern: str, times: int = 1) -> re.Match[str]:
        """Waits for a line of the log that has the pattern, or for so many."""

        def found() -> list[re.Match[str]]:
            return [match for line in self.log if (match := re.search(pattern, line))]

        with self._grew:
            self._grew.wait_for(lambda: len(found()) >= times or self.process.poll() is not None, PATIENCE)
        assert len(found()) >= times, f"{pattern!r} not in the log:\n{''.join(self.log)}"
        return found()[times - 1]

    def get(self, port: int, path: str) -> tuple[int, str]:
        """Asks over plain HTTP."""
        connection = http.client.HTTPConnection(HOST, port, timeout=PATIENCE)
        connection.request("GET", path)
        answer = connection.getresponse()
        text = answer.read().decode()
        connection.close()
        return answer.status, text

    def metrics(self, name: str) -> dict[str, float]:
        """The values of a metric by its labels as they are exposed."""
        found = re.findall(rf"^{name}(?:\{{(.*)\}})? (\S+)$", self.get(self.metrics_port, "/metrics")[1], re.MULTILINE)
        return {labels: float(value) for labels, value in found}

    def results(self) -> dict[str, float]:
        """How many requests came to which end."""
        injected = self.metrics("trace_context_annotations_injected_total")
        return {labels.rpartition('result="')[2].rstrip('"'): value for labels, value in injected.items()}

    def stop(self, number: int = signal.SIGTERM) -> int:
        """Ends it and returns its exit code."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGCONT)
            self.process.send_signal(number)
        code = self.process.wait(PATIENCE)
        self._reader.join(PATIENCE)
        if self.process.stderr is not None:
            self.process.stderr.close()
        return code

    def _read(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            with self._grew:
                self.log.append(line)
                self._grew.notify_all()
        with self._grew:
            self._grew.notify_all()


class Certified:
    """An authority, and a certificate by it in files, which can be written anew."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._authority = Authority(folder / "authority")
        self.cert_file, self.key_file = folder / "tls.crt", folder / "tls.key"
        self.renew()

    @property
    def authority(self) -> Path:
        """The authority's certificate."""
        return self._authority.certificate

    @property
    def ca_bundle(self) -> str:
        """As a webhook configuration has it."""
        return base64.b64encode(self.authority.read_bytes()).decode()

    @property
    def arguments(self) -> list[str]:
        """What tells the webhook of it."""
        return [f"--tls-cert-file={self.cert_file}", f"--tls-private-key-file={self.key_file}"]

    def renew(self, name: str = "webhook") -> None:
        """Writes another certificate."""
        names = f"subjectAltName=IP:{HOST},DNS:localhost"
        certificate, key = self._authority.issue(
            f"serving-{next(_numbers)}", f"/CN={name}", "extendedKeyUsage=serverAuth", names
        )
        self.write(certificate.read_bytes(), key.read_bytes())

    def write(self, certificate: bytes, key: bytes) -> None:
        """Writes these."""
        self.key_file.write_bytes(key)
        self.cert_file.write_bytes(certificate)


class Client:
    """Sends requests to a webhook as API servers do, over one connection."""

    def __init__(self, port: int, authority: Path) -> None:
        context = ssl.create_default_context(cafile=authority)
        self.connection = http.client.HTTPSConnection(HOST, port, context=context, timeout=PATIENCE)

    def send(
        self, body: Any, method: str = "POST", path: str = "/mutate?timeout=2s", **headers: str
    ) -> tuple[int, Any]:
        """Status and JSON of the answer."""
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        given = {"Content-Type": "application/json"} | {name.replace("_", "-"): text for name, text in headers.items()}
        self.connection.request(method, path, data, given)
        answer = self.connection.getresponse()
        return answer.status, json.loads(answer.read())


def review(obj: dict[str, Any], group: str = "", **fields: Any) -> dict[str, Any]:
    """An AdmissionReview of the object's creation."""
    request = {
        "uid": "705ab4f5-6393-11e8-b7cc-42010a800002",
        "kind": {"group": group, "version": "v1", "kind": obj["kind"]},
        "operation": "CREATE",
        "userInfo": {"username": "alice", "groups": ["developers", "system:authenticated"]},
        "object": obj,
    }
    return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {**request, **fields}}


def pod(name: str = "web-0", annotations: dict[str, str] | None = None) -> dict[str, Any]:
    """A Pod."""
    metadata: dict[str, Any] = {"name": name}
    if annotations is not None:
        metadata["annotations"] = annotations
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": {"containers": [{"name": "c", "image": "registry.example/i:1"}]},
    }


@pytest.fixture
def run_webhook() -> Iterator[Callable[..., RunningWebhook]]:
    """Runs webhooks with arguments of the command; they end with the test."""
    started: list[RunningWebhook] = []

    def run(*arguments: str, **options: Any) -> RunningWebhook:
        started.append(RunningWebhook(list(arguments), **options))
        return started[-1]

    with report_log("webhooks' logs", lambda: "".join(line for webhook in started for line in webhook.log)):
        yield run
    for webhook in started:
        webhook.stop(signal.SIGKILL)


@pytest.fixture
def connect() -> Iterator[Callable[[RunningWebhook, Certified], Client]]:
    """Connects to webhooks; the connections end with the test."""
    with contextlib.ExitStack() as stack:

        def to(webhook: RunningWebhook, certified: Certified) -> Client:
            client = Client(webhook.port, certified.authority)
            stack.callback(client.connection.close)
            return client

        yield to


@pytest.fixture
def certified(tmp_path: Path) -> Certified:
    """A certificate of this test's."""
    return Certified(tmp_path / "certificate")


@pytest.fixture(scope="session")
def traced(
    start_control_plane: Callable[..., ControlPlane], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ControlPlane]:
    """A control plane whose API server traces every request, for nobody who listens."""
    path = tmp_path_factory.mktemp("tracing") / "tracing.json"
    configuration = {
        "apiVersion": "apiserver.config.k8s.io/v1",
        "kind": "TracingConfiguration",
        "endpoint": "127.0.0.1:1",
        "samplingRatePerMillion": 1_000_000,
    }
    path.write_text(json.dumps(configuration))
    plane = start_control_plane(apiserver=[f"--tracing-config-file={path}"])
    assert isinstance(plane, ControlPlane)
    yield plane
    plane.stop_one("kube-apiserver", kill=True)  # told to end it would wait for somebody to take its spans


@pytest.fixture(params=["traced", "untraced"])
def plane(request: pytest.FixtureRequest) -> ControlPlane:
    """A control plane that traces, and one that does not."""
    found = request.getfixturevalue("traced" if request.param == "traced" else "control_plane")
    assert isinstance(found, ControlPlane)
    return found


@pytest.fixture
def configure() -> Iterator[Callable[..., str]]:
    """Has an API server ask a webhook about a namespace of its own, as the shipped configuration has it."""
    from tests.webhook.asking import CONFIGURATIONS, configuration

    made: list[tuple[ControlPlane, str]] = []

    def apply(plane: ControlPlane, url: str, ca_bundle: str | None, **labels: str) -> str:
        name = f"webhook-{next(_numbers)}"
        namespace = plane.api.namespace(name)
        plane.api.patch(f"/api/v1/namespaces/{namespace}", {"metadata": {"labels": labels}})
        shipped = configuration()
        shipped["metadata"]["name"] = name
        (webhook,) = shipped["webhooks"]
        webhook["clientConfig"] = {"url": url} | ({"caBundle": ca_bundle} if ca_bundle else {})
        webhook["namespaceSelector"]["matchExpressions"].append(
            {"key": "kubernetes.io/metadata.name", "operator": "In", "values": [namespace]}
        )
        plane.api.create(CONFIGURATIONS, shipped)
        made.append((plane, name))
        return namespace

    yield apply
    for plane, name in made:
        plane.api.delete(f"{CONFIGURATIONS}/{name}")
