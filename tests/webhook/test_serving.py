"""The webhook as its callers meet it: over HTTPS, with requests that are right, wrong, huge, slow, many."""

import asyncio
import contextlib
import json
import logging
import os
import re
import signal
import socket
import ssl
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from podtrail_webhook.command import command
from podtrail_webhook.mutation import AnnotationPolicy
from podtrail_webhook.running import Webhook
from podtrail_webhook.server import MAX_CONNECTIONS, MAX_IN_FLIGHT, WebhookServer
from podtrail_webhook.telemetry import WebhookTelemetry

from podtrail.component import Metrics
from tests.recorder import report_log
from tests.webhook.conftest import HOST, PATIENCE, TRACEPARENT, Certified, Client, RunningWebhook, pod, review

RunWebhook = Callable[..., RunningWebhook]
Connect = Callable[[RunningWebhook, Certified], Client]
MIB = 1 << 20


def without(*names: str) -> dict[str, Any]:
    body = review(pod())
    for name in names:
        body["request"].pop(name)
    return body


WRONG = {
    "no JSON": (b'{"apiVersion": ', "the body is not JSON: Expecting value: line 1 column 16"),
    "no text": (b"\xff\xfe\x00", "the body is not JSON: "),
    "nothing": (b"", "the body is not JSON: "),
    "deep": (b"[" * 100_000, "the body is not JSON: "),
    "a list": ([], "the body is [], not an object"),
    "another kind": ({"kind": "Pod"}, "kind is 'Pod', not AdmissionReview"),
    "v1beta1": (
        review(pod()) | {"apiVersion": "admission.k8s.io/v1beta1"},
        "apiVersion is 'admission.k8s.io/v1beta1', not admission.k8s.io/v1: set admissionReviewVersions to [v1]",
    ),
    "no version": ({"kind": "AdmissionReview"}, "apiVersion is missing, not admission.k8s.io/v1"),
    "no request": (review(pod()) | {"request": None}, "request is missing, not an object"),
    "no uid": (without("uid"), "request.uid is missing, not 1 to 256 characters"),
    "a number as uid": (review(pod(), uid=7), "request.uid is 7, not 1 to 256 characters"),
    "a long uid": (review(pod(), uid="x" * 257), "request.uid is 'xxx"),
    "no kind": (without("kind"), "request.kind is missing, not an object"),
    "a kind of another type": (review(pod(), kind={"kind": 1}), "request.kind.kind is 1, not a string"),
    "groups of another type": (review(pod(), userInfo={"groups": "a"}), "request.userInfo.groups is 'a', not a list"),
    "an object of another type": (review(pod(), object=[1]), "request.object is [1], not an object"),
    "annotations of another type": (
        review(pod() | {"metadata": {"annotations": []}}),
        "request.object/metadata/annotations is no object",
    ),
}


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A webhook for all tests of bad input, which is to serve on after each, and its certificate."""
    certified = Certified(tmp_path_factory.mktemp("shared") / "certificate")
    webhook = RunningWebhook(certified.arguments)
    with report_log("the shared webhook's log", lambda: "".join(webhook.log)):
        yield webhook, certified
    assert webhook.stop() == 0
    assert "Traceback" not in "".join(webhook.log)


@pytest.fixture
def shared_client(shared: tuple[RunningWebhook, Certified], connect: Connect) -> Client:
    return connect(*shared)


def refused(webhook: RunningWebhook, reason: str) -> float:
    return webhook.metrics("podtrail_webhook_refused_requests_total").get(f'reason="{reason}"', 0)


def test_a_review_is_answered_with_its_uid_allowed_and_patched(shared: Any, shared_client: Client) -> None:
    def counted() -> tuple[float, float]:
        answered = shared[0].metrics("trace_context_annotations_injected_total")
        labels = 'component="podtrail-webhook",controller="admission",resource_kind="Pod",result="success"'
        return answered.get(labels, 0), shared[0].metrics("podtrail_webhook_request_duration_seconds_count").get("", 0)

    before = counted()
    status, answer = shared_client.send(review(pod()), traceparent=TRACEPARENT)
    assert status == 200
    assert answer["response"]["uid"] == review(pod())["request"]["uid"]
    assert answer["response"]["allowed"] is True
    assert answer["response"]["patchType"] == "JSONPatch"
    assert counted() == (before[0] + 1, before[1] + 1)


def test_a_kind_that_nobody_knows_is_no_label_of_its_own(shared: Any, shared_client: Client) -> None:
    for number in range(3):
        status, _ = shared_client.send(review({"kind": f"Forged{number}", "metadata": {}}))
        assert status == 200
    labels = " ".join(shared[0].metrics("trace_context_annotations_injected_total"))
    assert 'resource_kind="other",result="not_concerned"' in labels
    assert "Forged" not in labels


@pytest.mark.parametrize("case", WRONG)
def test_what_is_no_review_gets_a_clear_error_and_is_counted(case: str, shared: Any, shared_client: Client) -> None:
    body, message = WRONG[case]
    reason = "version" if "ersion" in message else "malformed"
    before = refused(shared[0], reason)
    status, answer = shared_client.send(body)
    assert status == 400
    assert (answer["kind"], answer["status"], answer["code"]) == ("Status", "Failure", 400)
    assert answer["message"].startswith(message)
    assert len(answer["message"]) < 300
    assert refused(shared[0], reason) == before + 1
    assert shared_client.send(review(pod()))[0] == 200


@pytest.mark.parametrize(
    ("changed", "status", "message"),
    [
        ({"path": "/"}, 404, "nothing here; AdmissionReviews go to /mutate"),
        ({"method": "GET"}, 405, "GET is not served; send AdmissionReviews with POST"),
        ({"Content_Type": "text/plain"}, 415, "content type text/plain, not application/json"),
        ({"Content_Encoding": "gzip"}, 415, "content encoding gzip is not read; send plain JSON"),
    ],
)
def test_what_the_head_says_is_wrong_gets_its_status(
    changed: dict[str, str], status: int, message: str, shared_client: Client
) -> None:
    answered, body = shared_client.send(review(pod()), **changed)
    assert (answered, body["message"]) == (status, message)
    assert shared_client.send(review(pod()))[0] == 200


def test_a_body_that_is_too_large_is_refused_before_it_is_read(shared: Any, shared_client: Client) -> None:
    status, answer = shared_client.send(b"x" * (8 * MIB + 1))
    assert (status, answer["message"]) == (413, f"the body is larger than {8 * MIB} bytes")
    assert shared[0].metrics("podtrail_webhook_bytes_in_flight") == {"": 0}


def tls(webhook: RunningWebhook, certified: Certified) -> ssl.SSLSocket:
    context = ssl.create_default_context(cafile=certified.authority)
    plain = socket.create_connection((HOST, webhook.port), PATIENCE)
    return context.wrap_socket(plain, server_hostname="localhost")


def test_a_body_without_a_length_is_bounded_all_the_same(shared: Any) -> None:
    with tls(*shared) as connection:
        connection.sendall(b"POST /mutate HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n")
        connection.sendall(b"Transfer-Encoding: chunked\r\n\r\n")
        piece = b"100000\r\n" + b"x" * MIB + b"\r\n"
        for _ in range(9):
            connection.sendall(piece)
        assert connection.recv(100).startswith(b"HTTP/1.1 413")


def test_the_largest_object_that_an_api_server_takes_is_served(shared_client: Client) -> None:
    large = pod(annotations={"large": "x" * (3 * MIB)})
    assert shared_client.send(review(large), traceparent=TRACEPARENT)[0] == 200


def test_what_is_no_http_is_refused(shared: Any) -> None:
    before = refused(shared[0], "malformed")
    with tls(*shared) as connection:
        connection.sendall(b"\x16\x03\x01 hello\r\n\r\n")
        assert connection.recv(100).startswith(b"HTTP/1.0 400")
    assert refused(shared[0], "malformed") == before + 1


def test_who_sends_nothing_and_who_stops_in_the_middle_are_given_up(shared: Any) -> None:
    with tls(*shared) as silent, tls(*shared) as stalled:
        stalled.sendall(b"POST /mutate HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n")
        stalled.sendall(b"Content-Length: 100\r\n\r\n{")
        assert stalled.recv(100).startswith(b"HTTP/1.1 408")
        assert silent.recv(100) == b""


def test_who_hangs_up_in_the_middle_costs_nobody_else(shared: Any, shared_client: Client) -> None:
    for _ in range(20):
        with tls(*shared) as connection:
            connection.sendall(b"POST /mutate HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n")
            connection.sendall(b"Content-Length: 100\r\n\r\n{")
    assert shared_client.send(review(pod()))[0] == 200
    assert shared[0].metrics("podtrail_webhook_bytes_in_flight") == {"": 0}


def test_many_at_once_are_all_answered(shared: Any) -> None:
    answers: list[int] = []

    def ask() -> None:
        one = Client(shared[0].port, shared[1].authority)
        for _ in range(20):
            answers.append(one.send(review(pod()), traceparent=TRACEPARENT)[0])  # noqa: PERF401
        one.connection.close()

    threads = [threading.Thread(target=ask) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == [200] * 320


@contextlib.asynccontextmanager
async def served(certified: Certified) -> AsyncIterator[tuple[WebhookTelemetry, Callable[[], Any]]]:
    """A server in this process: what it counts, and what connects to it."""
    telemetry = WebhookTelemetry(Metrics())
    server_context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server_context.load_cert_chain(certified.cert_file, certified.key_file)
    context = ssl.create_default_context(cafile=certified.authority)
    server = WebhookServer(Webhook(AnnotationPolicy(), telemetry).answer, telemetry)
    async with server.listening(f"{HOST}:0", server_context, PATIENCE) as port:
        yield telemetry, lambda: asyncio.open_connection(HOST, port, ssl=context, server_hostname="localhost")


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE):
        while not holds():  # noqa: ASYNC110 - of a server's own counts no event is told
            await asyncio.sleep(0.001)


async def test_beyond_so_many_bytes_at_once_requests_are_refused_and_served_again_afterwards(
    certified: Certified,
) -> None:
    body = json.dumps(review(pod())).encode()

    def head(length: int) -> bytes:
        start = "POST /mutate HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
        return f"{start}Content-Length: {length}\r\n\r\n".encode()

    async with served(certified) as (telemetry, connect):
        telemetry.bytes_in_flight = elsewhere = MAX_IN_FLIGHT - len(body)
        _, stalled = await connect()
        stalled.write(head(2) + b"x")
        await until(lambda: telemetry.bytes_in_flight > elsewhere)
        answers, asking = await connect()
        asking.write(head(len(body)) + body)
        assert (await answers.readline()).startswith(b"HTTP/1.1 503")
        assert b"too much is being read at once; come again" in await answers.readuntil(b"}")
        for connection in (asking, stalled):
            connection.close()
        await until(lambda: telemetry.bytes_in_flight == elsewhere)
        answers, asking = await connect()
        asking.write(head(len(body)) + body)
        assert (await answers.readline()).startswith(b"HTTP/1.1 200")
        asking.close()


async def test_beyond_so_many_connections_new_ones_are_closed(certified: Certified) -> None:
    async with served(certified) as (telemetry, connect):
        telemetry.connections = MAX_CONNECTIONS - 1
        _, last = await connect()
        await until(lambda: telemetry.connections == MAX_CONNECTIONS)
        one_more, beyond = await connect()
        with contextlib.suppress(ConnectionError):
            assert await one_more.read() == b""
        beyond.close()
        await until(lambda: telemetry.connections == MAX_CONNECTIONS)
        last.close()
        await until(lambda: telemetry.connections == MAX_CONNECTIONS - 1)


def test_a_request_under_way_is_answered_when_it_is_told_to_end(run_webhook: RunWebhook, certified: Certified) -> None:
    webhook = run_webhook(*certified.arguments)
    assert webhook.port
    assert webhook.get(webhook.health_port, "/")[0] == 200
    with tls(webhook, certified) as connection:
        body = json.dumps(review(pod())).encode()
        connection.sendall(b"POST /mutate HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n")
        connection.sendall(f"Content-Length: {len(body)}\r\n\r\n".encode() + body[:10])
        while not webhook.metrics("podtrail_webhook_requests_in_flight")[""]:
            pass
        webhook.process.send_signal(signal.SIGTERM)
        webhook.said("SIGTERM: stopping")
        connection.sendall(body[10:])
        assert connection.recv(100).startswith(b"HTTP/1.1 200")
    assert webhook.process.wait(PATIENCE) == 0


def served_by(port: int, authority: Path) -> str:
    """The name in the certificate that a new connection is shown."""
    context = ssl.create_default_context(cafile=authority)
    with (
        socket.create_connection((HOST, port), PATIENCE) as plain,
        context.wrap_socket(plain, server_hostname="localhost") as connection,
    ):
        certificate = connection.getpeercert()
    assert certificate is not None
    return str(dict(part[0] for part in certificate["subject"])["commonName"])  # type: ignore[misc]


WRITES_NOTHING = """
import os, sys

def refuse(event, arguments):
    if event == "open" and arguments[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT) and isinstance(arguments[0], str):
        raise OSError(30, "Read-only file system", arguments[0])

sys.addaudithook(refuse)
from podtrail.__main__ import main
main()
"""


def test_without_writing_a_file_a_renewed_certificate_is_taken_up_and_a_broken_one_is_not(
    run_webhook: RunWebhook, certified: Certified, connect: Connect
) -> None:
    webhook = run_webhook(*certified.arguments, "--tls-reload-interval=10ms", program=("-c", WRITES_NOTHING))
    kept = connect(webhook, certified)
    assert kept.send(review(pod()))[0] == 200
    former = certified.key_file.read_bytes()
    certified.renew("renewed")
    webhook.said("took up the certificate in ")
    assert served_by(webhook.port, certified.authority) == "renewed"
    certified.key_file.write_bytes(former)  # of another certificate, as in the midst of a renewal
    webhook.said("the certificate is kept as it was: tls: certificate and key are not usable: ")
    assert served_by(webhook.port, certified.authority) == "renewed"
    certified.cert_file.unlink()
    webhook.said("the certificate is kept as it was: --tls-cert-file: can't read ")
    assert served_by(webhook.port, certified.authority) == "renewed"
    certified.renew("again")
    webhook.said("took up the certificate in ", times=2)
    assert served_by(webhook.port, certified.authority) == "again"
    assert kept.send(review(pod()))[0] == 200  # over the connection of before


@pytest.fixture
def fails() -> Iterator[Callable[..., tuple[int, str]]]:
    """Exit code and last line of a command that can't start; what it sets for its process is set back."""
    loggers = [logging.getLogger(name) for name in ("", "podtrail")]
    before = [(logger.handlers[:], logger.level, logger.propagate) for logger in loggers]

    def run(*arguments: str) -> tuple[int, str]:
        anywhere = [f"--{what}endpoint={HOST}:0" for what in ("", "health-", "metrics-")]
        outside = {key: None for key in os.environ if key.startswith("KUBERNETES_")}
        done = CliRunner().invoke(command, [*anywhere, *arguments], env=outside)
        assert isinstance(done.exception, SystemExit), done.exception
        return done.exit_code, re.sub(r"\s+", " ", done.stderr.strip().splitlines()[-1])

    yield run
    for logger, (handlers, level, propagates) in zip(loggers, before, strict=True):
        logger.handlers[:] = handlers
        logger.setLevel(level)
        logger.propagate = propagates


Fails = Callable[..., tuple[int, str]]


def test_without_a_certificate_it_does_not_start(fails: Fails, certified: Certified, tmp_path: Path) -> None:
    assert fails() == (2, "Error: --tls-cert-file and --tls-private-key-file are needed, or --self-signed")
    assert fails(certified.arguments[0])[0] == 2
    assert fails("--self-signed", *certified.arguments)[0] == 2
    missing = [f"--tls-cert-file={tmp_path}/none.crt", certified.arguments[1]]
    assert fails(*missing) == (1, f"Error: --tls-cert-file: can't read {tmp_path}/none.crt: No such file or directory")
    code, message = fails("--self-signed")
    assert code == 1
    assert message.startswith("Error: no kubeconfig given, and no Pod's ServiceAccount to use")


def test_options_that_make_no_sense_are_told(fails: Fails, certified: Certified) -> None:
    code, message = fails(*certified.arguments, "--endpoint=9443")
    assert code == 2
    assert message.startswith("Error: Invalid value for '--endpoint': '9443' lacks a port: write host:port")
    assert fails(*certified.arguments, "--tls-reload-interval=0s")[0] == 2
    assert fails(*certified.arguments, "--tls-reload-interval=often")[0] == 2


def test_a_port_that_is_taken_is_told(fails: Fails, certified: Certified) -> None:
    with socket.create_server((HOST, 0)) as taken:
        endpoint = f"{HOST}:{taken.getsockname()[1]}"
        code, message = fails(*certified.arguments, f"--endpoint={endpoint}")
        told = f"Error: can't listen on {endpoint}: Address already in use; choose another address: "
        assert (code, message) == (1, f"{told}--endpoint")
        code, message = fails(*certified.arguments, f"--endpoint={HOST}:0", f"--health-endpoint={endpoint}")
        assert (code, message) == (1, f"{told}--health-endpoint")
        code, message = fails(*certified.arguments, f"--endpoint={HOST}:0", f"--metrics-endpoint={endpoint}")
        assert (code, message) == (1, f"{told}--metrics-endpoint")
