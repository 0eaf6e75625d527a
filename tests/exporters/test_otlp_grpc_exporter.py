"""OTLP over gRPC: what is sent, and what each answer means (OTLP specification, OTLP/gRPC)."""

import asyncio
from typing import Any

import grpc
import pytest
from google.protobuf.any_pb2 import Any as AnyMessage
from google.protobuf.duration_pb2 import Duration
from google.rpc.error_details_pb2 import RetryInfo
from google.rpc.status_pb2 import Status
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse

from podtrail.component import Permanent, Retryable, StartError
from podtrail.otlp import Batch, write_request
from tests.exporters.conftest import Say, grpc_backend, make_batch, make_exporter

RETRYABLE = ["CANCELLED", "DEADLINE_EXCEEDED", "ABORTED", "OUT_OF_RANGE", "UNAVAILABLE", "DATA_LOSS"]
FINAL = [
    code.name for code in grpc.StatusCode if code.name not in RETRYABLE and code is not grpc.StatusCode.OK
]  # RESOURCE_EXHAUSTED is one of them without RetryInfo


def retry_info(seconds: int, nanos: int = 0) -> RetryInfo:
    return RetryInfo(retry_delay=Duration(seconds=seconds, nanos=nanos))


def status_with(info: RetryInfo) -> tuple[str, bytes]:
    packed = AnyMessage()
    packed.Pack(info)
    return "grpc-status-details-bin", Status(code=8, details=[packed]).SerializeToString()


def partial(rejected: int, message: str) -> bytes:
    response = ExportTraceServiceResponse()
    response.partial_success.rejected_spans = rejected
    response.partial_success.error_message = message
    return response.SerializeToString()


@pytest.mark.parametrize("compression", ["gzip", "none"])
async def test_sends_the_bytes_it_was_given(compression: str) -> None:
    async with (
        grpc_backend() as backend,
        make_exporter(
            "otlp",
            endpoint=f"http://localhost:{backend.port}",
            compression=compression,
            headers={"X-Tenant": "blue"},
        ) as exporter,
    ):
        batch = make_batch(3, groups=4)
        assert await exporter.send(batch) == 0
        assert backend.requests == [write_request(batch.groups)]
        assert backend.metadata[0]["x-tenant"] == "blue"
        assert backend.metadata[0]["user-agent"].startswith("podtrail/")


@pytest.mark.parametrize("code", RETRYABLE)
async def test_tries_again_what_the_specification_calls_retryable(code: str) -> None:
    answer = Say(grpc.StatusCode[code], "later")
    async with (
        grpc_backend(answer) as backend,
        make_exporter("otlp_grpc", endpoint=f"http://localhost:{backend.port}") as exporter,
    ):
        with pytest.raises(Retryable, match=f"{code}: later") as failure:
            await exporter.send(make_batch())
        assert failure.value.after is None


@pytest.mark.parametrize("code", FINAL)
async def test_never_repeats_what_is_not_retryable(code: str) -> None:
    async with (
        grpc_backend(Say(grpc.StatusCode[code], "no")) as backend,
        make_exporter("otlp_grpc", endpoint=f"http://localhost:{backend.port}") as exporter,
    ):
        with pytest.raises(Permanent, match=f"{code}: no"):
            await exporter.send(make_batch())


@pytest.mark.parametrize(
    "trailer",
    [
        status_with(retry_info(7, 500_000_000)),
        ("google.rpc.retryinfo-bin", retry_info(7, 500_000_000).SerializeToString()),
    ],
    ids=["in the status details", "in a trailer of its own"],
)
@pytest.mark.parametrize("code", ["RESOURCE_EXHAUSTED", "UNAVAILABLE"])
async def test_waits_as_long_as_retry_info_says(code: str, trailer: tuple[str, bytes]) -> None:
    answer = Say(grpc.StatusCode[code], "busy", [trailer])
    async with (
        grpc_backend(answer) as backend,
        make_exporter("otlp_grpc", endpoint=f"http://localhost:{backend.port}") as exporter,
    ):
        with pytest.raises(Retryable) as failure:
            await exporter.send(make_batch())
        assert failure.value.after == 7.5


async def test_a_details_trailer_of_garbage_changes_nothing() -> None:
    answer = Say(grpc.StatusCode.RESOURCE_EXHAUSTED, "full", [("grpc-status-details-bin", b"\xff\xff")])
    async with (
        grpc_backend(answer) as backend,
        make_exporter("otlp_grpc", endpoint=f"http://localhost:{backend.port}") as exporter,
    ):
        with pytest.raises(Permanent, match="full"):
            await exporter.send(make_batch())


async def test_partial_success_is_counted_told_and_not_repeated(caplog: pytest.LogCaptureFixture) -> None:
    async with (
        grpc_backend(partial(2, "too old"), partial(0, "deprecated"), partial(0, "")) as backend,
        make_exporter("otlp_grpc", endpoint=f"http://localhost:{backend.port}") as exporter,
    ):
        assert [await exporter.send(make_batch(5)) for _ in range(3)] == [2, 0, 0]
        assert backend.spans() == [5, 5, 5]
    assert [record.message for record in caplog.records if record.name == "podtrail.test"] == [
        "the backend rejected 2 spans: too old",
        "the backend took everything and warns: deprecated",
    ]


async def test_what_a_backend_says_is_neither_believed_against_reason_nor_told_at_any_length(
    caplog: pytest.LogCaptureFixture,
) -> None:
    long = "y" * 5_000
    async with (
        grpc_backend(partial(-7, ""), partial(1, long), Say(grpc.StatusCode.INTERNAL, long)) as backend,
        make_exporter("otlp_grpc", endpoint=f"http://localhost:{backend.port}") as exporter,
    ):
        assert [await exporter.send(make_batch(5)) for _ in range(2)] == [0, 1]
        with pytest.raises(Permanent) as failure:
            await exporter.send(make_batch())
        assert len(str(failure.value)) < 400
    told = [record.message for record in caplog.records if record.name == "podtrail.test"]
    assert told[0] == "the backend says it rejected -7 spans: taken for none"
    assert len(told[1]) < 400


async def test_an_answer_that_cannot_be_read_is_a_success_with_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    async with (
        grpc_backend(b"\xff\xff\xff") as backend,
        make_exporter("otlp_grpc", endpoint=f"http://localhost:{backend.port}") as exporter,
    ):
        assert await exporter.send(make_batch()) == 0
    assert "its answer can't be read" in caplog.text


async def test_a_backend_that_is_down_is_retryable_until_it_is_up() -> None:
    async with grpc_backend() as former:
        port = former.port
    async with make_exporter("otlp_grpc", endpoint=f"localhost:{port}", tls={"insecure": True}) as exporter:
        with pytest.raises(Retryable, match="UNAVAILABLE"):
            await exporter.send(make_batch())
        async with grpc_backend(address=f"localhost:{port}") as backend, asyncio.timeout(120):
            while not backend.requests:
                try:
                    await exporter.send(make_batch())
                except Retryable:
                    await asyncio.sleep(0)
            assert backend.spans() == [2]


async def test_a_backend_that_does_not_answer_is_given_up_in_time() -> None:
    async with (
        grpc_backend(None) as backend,
        make_exporter("otlp_grpc", endpoint=f"http://localhost:{backend.port}", timeout="50ms") as exporter,
    ):
        with pytest.raises(Retryable, match="DEADLINE_EXCEEDED"):
            await exporter.send(make_batch())


async def test_a_batch_of_nothing_but_verdicts_is_not_sent() -> None:
    async with (
        grpc_backend() as backend,
        make_exporter("otlp_grpc", endpoint=f"http://localhost:{backend.port}") as exporter,
    ):
        assert await exporter.send(Batch([], 0)) == 0
        assert backend.requests == []


async def test_speaks_over_a_socket_in_the_file_system(tmp_path: Any) -> None:
    address = f"unix:{tmp_path}/collector.sock"
    async with (
        grpc_backend(address=address) as backend,
        make_exporter("otlp_grpc", endpoint=f"unix://{tmp_path}/collector.sock") as exporter,
    ):
        await exporter.send(make_batch())
        assert backend.spans() == [2]


async def test_tls_with_certificates_on_both_sides(certificates: Any) -> None:
    ca, certificate, key = (path.read_bytes() for path in (certificates.ca, certificates.certificate, certificates.key))
    credentials = grpc.ssl_server_credentials([(key, certificate)], ca, require_client_auth=True)

    async with grpc_backend(credentials=credentials) as backend:
        own = {"cert_file": str(certificates.certificate), "key_pem": key.decode()}
        tls = {"ca_file": str(certificates.ca), **own}
        async with make_exporter("otlp_grpc", endpoint=f"localhost:{backend.port}", tls=tls) as exporter:
            await exporter.send(make_batch())
        assert backend.spans() == [2]
        tls = {"ca_file": str(certificates.ca)}
        async with make_exporter("otlp_grpc", endpoint=f"https://localhost:{backend.port}", tls=tls) as exporter:
            with pytest.raises(Retryable, match="UNAVAILABLE"):
                await exporter.send(make_batch())


@pytest.mark.parametrize(
    ("tls", "expected"),
    [
        ({"ca_file": "/nowhere/ca.pem"}, "ca_file: can't read /nowhere/ca.pem: No such file or directory"),
        ({"ca_pem": "hello"}, "authorities: not in PEM format"),
    ],
)
def test_a_certificate_that_cannot_be_used_is_an_error_at_the_start(tls: Any, expected: str) -> None:
    async def main() -> None:
        async with make_exporter("otlp_grpc", endpoint="localhost:4317", tls=tls):
            raise AssertionError("started")

    with pytest.raises(StartError, match=expected):
        asyncio.run(main())


async def test_trusts_the_systems_authorities_when_none_are_given(
    certificates: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(certificates.ca))
    pair = certificates.key.read_bytes(), certificates.certificate.read_bytes()

    async with (
        grpc_backend(credentials=grpc.ssl_server_credentials([pair])) as backend,
        make_exporter("otlp_grpc", endpoint=f"localhost:{backend.port}") as exporter,
    ):
        await exporter.send(make_batch())
        assert backend.spans() == [2]


async def test_waits_for_a_backend_that_starts_later_when_told_to() -> None:
    async with grpc_backend() as former:
        port = former.port
    settings = {"wait_for_ready": True, "timeout": "20s", "keepalive": {"permit_without_stream": True}}
    async with make_exporter("otlp_grpc", endpoint=f"http://localhost:{port}", **settings) as exporter:
        sending = asyncio.create_task(exporter.send(make_batch()))
        await asyncio.sleep(0)
        async with grpc_backend(address=f"localhost:{port}") as backend:
            assert await sending == 0
            assert backend.spans() == [2]
