"""The `otlp` receiver's configuration, its ports, and TLS."""

import asyncio
import shutil
import socket
import ssl
from pathlib import Path
from typing import Any

import aiohttp
import grpc
import grpc.aio
import pytest
from podtrail_receivers.otlp import FACTORY
from pydantic import ValidationError

from podtrail.component import Context, StartError

TLS = Path(__file__).parents[1] / "data" / "tls"
METHOD = "/opentelemetry.proto.collector.trace.v1.TraceService/Export"
PROTOBUF = {"Content-Type": "application/x-protobuf"}
CERTIFICATE = {"cert_file": str(TLS / "server.pem"), "key_file": str(TLS / "server.key")}
DEADLINE = 120.0


def config(protocols: Any) -> Any:
    return FACTORY.Config.model_validate({"protocols": protocols})


async def start(protocols: Any) -> None:
    async with FACTORY.create(config(protocols), Context(id="otlp")):
        pass


def test_only_the_protocols_that_are_named_are_served() -> None:
    assert config({"grpc": None}).protocols.grpc.endpoint == "localhost:4317"
    assert config({"grpc": None}).protocols.http is None
    assert config({"http": {}}).protocols.http.endpoint == "localhost:4318"
    assert config({"http": {}}).protocols.grpc is None


@pytest.mark.parametrize("protocols", [{}, None, {"thrift": {}}, {"grpc": {"endpoint": "localhost"}}])
def test_an_impossible_configuration_is_refused(protocols: Any) -> None:
    with pytest.raises(ValidationError):
        config(protocols)


def test_what_grpc_cannot_honour_is_refused_with_the_reason() -> None:
    with pytest.raises(ValidationError, match=r"min_version can't be 1\.3: gRPC's library accepts 1\.2 and 1\.3"):
        config({"grpc": {"tls": CERTIFICATE | {"min_version": "1.3"}}})


@pytest.mark.parametrize("protocol", ["grpc", "http"])
def test_a_port_in_use_is_named_with_its_key(protocol: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        endpoint = f"127.0.0.1:{other.getsockname()[1]}"
        with pytest.raises(StartError) as caught:
            asyncio.run(start({protocol: {"endpoint": endpoint}}))
    assert str(caught.value) == (f"protocols::{protocol}: can't listen on {endpoint}: Address already in use")


@pytest.mark.parametrize("protocol", ["grpc", "http"])
def test_a_host_that_is_not_ours_is_named(protocol: str) -> None:
    for host in ("no-such-host.invalid", "192.0.2.1"):
        with pytest.raises(StartError, match=f"can't listen on {host}:4999: "):
            asyncio.run(start({protocol: {"endpoint": f"{host}:4999", "allow_unauthenticated": True}}))


@pytest.mark.parametrize("protocol", ["grpc", "http"])
def test_a_certificate_that_cannot_be_read_is_named(protocol: str, tmp_path: Path) -> None:
    missing = tmp_path / "missing.pem"
    settings = {"endpoint": "127.0.0.1:0", "tls": CERTIFICATE | {"cert_file": str(missing)}}
    with pytest.raises(StartError, match=f"protocols::{protocol}: tls::cert_file: can't read {missing}: No such file"):
        asyncio.run(start({protocol: settings}))


@pytest.mark.parametrize("protocol", ["grpc", "http"])
def test_a_key_that_does_not_fit_is_a_start_error(protocol: str) -> None:
    settings = {"endpoint": "127.0.0.1:0", "tls": CERTIFICATE | {"key_file": str(TLS / "client.key")}}
    with pytest.raises(StartError, match="certificate and key"):
        asyncio.run(start({protocol: settings}))


def test_the_first_port_is_let_go_when_the_second_is_in_use() -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        endpoint = f"127.0.0.1:{free.getsockname()[1]}"
    with socket.create_server(("127.0.0.1", 0)) as other:
        taken = f"127.0.0.1:{other.getsockname()[1]}"
        with pytest.raises(StartError):
            asyncio.run(start({"grpc": {"endpoint": endpoint}, "http": {"endpoint": taken}}))
    asyncio.run(start({"grpc": {"endpoint": endpoint}}))
    asyncio.run(start({"http": {"endpoint": endpoint}}))


async def test_localhost_serves_both_address_families(serving: Any, request_of: Any) -> None:
    async with serving(http={"endpoint": "localhost:0"}) as served:
        port = served["http"].rpartition(":")[2]
        for host in ("127.0.0.1", "localhost"):
            assert await post(f"http://{host}:{port}", request_of(1).SerializeToString()) == 200
        assert len(served.spans) == 2


async def post(url: str, body: bytes, context: ssl.SSLContext | bool = True) -> int:
    async with (
        aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=DEADLINE)) as session,
        session.post(f"{url}/v1/traces", data=body, headers=PROTOBUF, ssl=context) as answer,
    ):
        return answer.status


def client_context() -> ssl.SSLContext:
    return ssl.create_default_context(cafile=str(TLS / "ca.pem"))


async def call(endpoint: str, body: bytes) -> None:
    credentials = grpc.ssl_channel_credentials((TLS / "ca.pem").read_bytes())
    async with grpc.aio.secure_channel(endpoint, credentials) as channel:
        export: Any = channel.unary_unary(METHOD)
        await export(body, timeout=DEADLINE)


@pytest.mark.parametrize("as_text", [False, True])
async def test_serves_tls(serving: Any, request_of: Any, as_text: bool) -> None:
    tls = CERTIFICATE
    if as_text:
        tls = {"cert_pem": (TLS / "server.pem").read_text(), "key_pem": (TLS / "server.key").read_text()}
    body = request_of(1).SerializeToString()
    async with serving(grpc={"tls": tls}, http={"tls": tls}) as served:
        await call(served["grpc"], body)
        assert await post(f"https://{served['http']}", body, client_context()) == 200
        assert len(served.spans) == 2


def presented(endpoint: str) -> bytes:
    host, _, port = endpoint.rpartition(":")
    context = client_context()
    context.set_alpn_protocols(["h2", "http/1.1"])
    with (
        socket.create_connection((host, int(port)), timeout=DEADLINE) as plain,
        context.wrap_socket(plain, server_hostname=host) as secure,
    ):
        certificate = secure.getpeercert(binary_form=True)
        assert certificate is not None
        return certificate


@pytest.mark.parametrize("protocol", ["grpc", "http"])
async def test_a_renewed_certificate_is_presented_without_a_restart(
    serving: Any, protocol: str, tmp_path: Path
) -> None:
    for suffix in ("pem", "key"):
        shutil.copy(TLS / f"server.{suffix}", tmp_path / f"own.{suffix}")
    tls = {
        "cert_file": str(tmp_path / "own.pem"),
        "key_file": str(tmp_path / "own.key"),
        "reload_interval": "10ms",
    }
    async with serving(**{protocol: {"tls": tls}}) as served:
        first = await asyncio.to_thread(presented, served[protocol])
        for suffix in ("pem", "key"):
            shutil.copy(TLS / f"server-next.{suffix}", tmp_path / f"own.{suffix}")
        async with asyncio.timeout(DEADLINE):
            while await asyncio.to_thread(presented, served[protocol]) == first:
                pass
