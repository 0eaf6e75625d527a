"""Whatever is wrong with the webhook, a real API server creates the Pod, without the annotation."""

import json
import signal
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest
from podtrail_webhook.certificates import VALIDITY, make_certificate, utc_now

from tests.envtest.control_plane import ControlPlane
from tests.webhook.asking import KEY, annotation, await_webhook, create, until
from tests.webhook.conftest import HOST, TRACEPARENT, Certified, RunningWebhook, pod

pytestmark = pytest.mark.control_plane
Configure = Callable[..., str]
RunWebhook = Callable[..., RunningWebhook]


def created(plane: ControlPlane, namespace: str, name: str = "web-0") -> str | None:
    """Creates a Pod, with a context, and returns what it was annotated with."""
    return annotation(create(plane.api, namespace, pod(name), traceparent=TRACEPARENT))


def test_while_it_is_killed_or_hangs_pods_are_created_and_afterwards_annotated_again(
    control_plane: ControlPlane, run_webhook: RunWebhook, certified: Certified, configure: Configure
) -> None:
    webhook = run_webhook(*certified.arguments)
    namespace = configure(control_plane, webhook.url, certified.ca_bundle)
    await_webhook(control_plane.api, namespace)
    webhook.process.send_signal(signal.SIGSTOP)
    assert created(control_plane, namespace, "hanging") is None
    webhook.process.send_signal(signal.SIGCONT)
    assert created(control_plane, namespace, "going-on") == TRACEPARENT
    webhook.stop(signal.SIGKILL)
    assert created(control_plane, namespace, "killed") is None
    again = run_webhook(*certified.arguments, f"--endpoint={HOST}:{webhook.port}")
    assert again.port == webhook.port
    await_webhook(control_plane.api, namespace)


def test_with_an_expired_certificate_pods_are_created_and_with_a_renewed_one_annotated(
    control_plane: ControlPlane, run_webhook: RunWebhook, certified: Certified, configure: Configure
) -> None:
    expired = make_certificate(["localhost"], utc_now() - VALIDITY - timedelta(days=1))
    certified.write(expired.certificate, expired.key)
    webhook = run_webhook(*certified.arguments, "--tls-reload-interval=10ms")
    namespace = configure(control_plane, f"https://localhost:{webhook.port}/mutate", certified.ca_bundle)
    refusals = apiserver_log(control_plane)
    until(lambda: refused(control_plane, namespace, refusals))
    certified.renew()
    webhook.said("took up the certificate in ")
    await_webhook(control_plane.api, namespace)


def apiserver_log(plane: ControlPlane) -> Callable[[], str]:
    """What the API server logs from now on."""
    path = plane.folder / "kube-apiserver.log"
    size = path.stat().st_size
    return lambda: path.read_bytes()[size:].decode(errors="replace")


def refused(plane: ControlPlane, namespace: str, log: Callable[[], str]) -> bool:
    """Creates a Pod; whether the API server called the webhook for it, and could make nothing of it."""
    assert created(plane, namespace) is None
    plane.api.delete(f"/api/v1/namespaces/{namespace}/pods/web-0")
    return "failed calling webhook" in log() or "Failed calling webhook, failing open" in log()


def answer(body: bytes, status: str = "200 OK", kind: str = "application/json") -> bytes:
    return f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body


def reviewed(**response: Any) -> bytes:
    body = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response}
    return answer(json.dumps(body).encode())


RUBBISH = {
    "nothing": b"",
    "no HTTP": b"SSH-2.0-OpenSSH_9.6\r\n",
    "an error": answer(b"", "500 Internal Server Error"),
    "text": answer(b"hello", kind="text/plain"),
    "half an answer": b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n{",
    "another uid": reviewed(uid="1", allowed=True),
    "another kind": answer(b'{"apiVersion": "v1", "kind": "Pod"}'),
}


class RubbishServer:
    """Answers every request over TLS with the same bytes, or with none at all."""

    def __init__(self, certified: Certified, answer: bytes, *, slow: bool = False) -> None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certified.cert_file, certified.key_file)
        self._context = context
        self._answer = answer
        self._slow = slow
        self._ended = threading.Event()
        self._listener = socket.create_server((HOST, 0))
        self.port = self._listener.getsockname()[1]
        self.asked = threading.Event()
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while not self._ended.is_set():
            try:
                plain, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._converse, args=(plain,), daemon=True).start()

    def _converse(self, plain: socket.socket) -> None:
        try:
            with plain, self._context.wrap_socket(plain, server_side=True) as connection:
                connection.recv(1 << 16)
                self.asked.set()
                if self._slow:
                    self._ended.wait()
                connection.sendall(self._answer)
        except OSError:
            return

    def close(self) -> None:
        self._ended.set()
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()


@pytest.fixture
def serve_rubbish(certified: Certified) -> Iterator[Callable[..., RubbishServer]]:
    started: list[RubbishServer] = []

    def start(*arguments: Any, **options: Any) -> RubbishServer:
        started.append(RubbishServer(certified, *arguments, **options))
        return started[-1]

    yield start
    for server in started:
        server.close()


@pytest.mark.parametrize("case", [*RUBBISH, "slow"])
def test_a_webhook_that_answers_rubbish_or_late_costs_no_pod(
    case: str,
    control_plane: ControlPlane,
    certified: Certified,
    configure: Configure,
    serve_rubbish: Callable[..., RubbishServer],
) -> None:
    server = serve_rubbish(RUBBISH.get(case, b""), slow=case == "slow")
    namespace = configure(control_plane, f"https://{HOST}:{server.port}/mutate", certified.ca_bundle)

    def asked() -> bool:
        made = create(control_plane.api, namespace, pod(), traceparent=TRACEPARENT)
        assert KEY not in made["metadata"].get("annotations", {})
        control_plane.api.delete(f"/api/v1/namespaces/{namespace}/pods/web-0")
        return server.asked.is_set()

    until(asked)


def test_an_authority_that_does_not_fit_costs_no_pod(
    control_plane: ControlPlane, run_webhook: RunWebhook, certified: Certified, configure: Configure
) -> None:
    webhook = run_webhook(*certified.arguments)
    namespace = configure(control_plane, webhook.url, None)
    log = apiserver_log(control_plane)
    until(lambda: refused(control_plane, namespace, log))
