"""Certificates of clients: who signed them, to whom they are made out, and authorities that change meanwhile."""

import asyncio
import os
import ssl
from pathlib import Path
from typing import Any

import aiohttp
import grpc
import grpc.aio
import pytest
from pydantic import ValidationError

from podtrail.config.types import SECOND, TlsServerSettings
from podtrail.transport.caller import certificate_names
from podtrail.transport.socket_table import connected
from podtrail.transport.tls_server import ServerCertificates
from tests.certificates import Authority, Identity

METHOD = "/opentelemetry.proto.collector.trace.v1.TraceService/Export"
DEADLINE = 120.0
HEADERS = {"content-type": "application/x-protobuf"}


class Place:
    """An authority with a server's certificate, and what `tls:` says of them."""

    def __init__(self, folder: Path) -> None:
        self.authority = Authority(folder)
        self.trusted = folder / "clients.pem"
        self.trust(self.authority)
        server = self.authority.server()
        self.tls = {
            "cert_file": str(server.cert_file),
            "key_file": str(server.key_file),
            "client_ca_file": str(self.trusted),
        }

    def trust(self, *authorities: Authority) -> None:
        """Have clients of these authorities let in, and of no others."""
        new = self.trusted.with_suffix(".new")
        new.write_bytes(b"".join(one.certificate for one in authorities))
        os.replace(new, self.trusted)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


async def outcome(protocol: str, endpoint: str, client: Identity, place: Place, body: bytes) -> str:
    """Send over a connection of its own; return the status, or what became of the connection."""
    authority = place.authority.certificate
    if protocol == "grpc":
        options = [("grpc.use_local_subchannel_pool", 1)]
        async with grpc.aio.secure_channel(endpoint, client.grpc(authority), options) as channel:
            method: Any = channel.unary_unary(METHOD)
            try:
                await method(body, timeout=DEADLINE)
            except grpc.aio.AioRpcError as error:
                return error.code().name
            return "taken"
    async with aiohttp.ClientSession() as session:
        return await posted(session, endpoint, client.ssl(authority), body)


async def posted(session: aiohttp.ClientSession, endpoint: str, context: ssl.SSLContext, body: bytes) -> str:
    url = f"https://{endpoint}/v1/traces"
    try:
        async with session.post(url, data=body, headers=HEADERS, ssl=context) as answer:
            return "taken" if answer.status == 200 else str(answer.status)
    except aiohttp.ClientError:
        return "UNAVAILABLE"


both = pytest.mark.parametrize("protocol", ["grpc", "http"])


@both
async def test_only_certificates_of_the_authority_that_are_still_valid_are_taken(
    serving: Any, request_of: Any, place: Place, tmp_path: Path, protocol: str
) -> None:
    body = request_of(1).SerializeToString()
    known = place.authority.issue("known", "agent.example")
    expired = place.authority.issue("expired", "agent.example", days=-1)
    foreign = Authority(tmp_path, "another").issue("foreign", "agent.example")

    async with serving(**{protocol: {"tls": place.tls}}) as served:
        for client, expected in ((known, "taken"), (expired, "UNAVAILABLE"), (foreign, "UNAVAILABLE")):
            assert await outcome(protocol, served[protocol], client, place, body) == expected
        assert len(served.spans) == 1


@both
@pytest.mark.parametrize(
    ("allowed", "taken"),
    [
        (["a.agents.example"], {"dns"}),
        (["*.agents.example"], {"dns"}),
        (["A.Agents.Example"], {"dns"}),
        (["agents.example"], set()),
        (["spiffe://cluster/ns/kube-system/sa/*"], {"uri"}),
        (["system:node:*"], {"common"}),
        (["10.1.2.3"], {"address"}),
        (["*.agents.example", "10.1.2.*", "other"], {"dns", "address"}),
        (["dns", "uri", "address"], set()),
    ],
)
async def test_a_certificate_must_be_made_out_to_a_name_that_is_allowed(
    serving: Any, request_of: Any, place: Place, protocol: str, allowed: list[str], taken: set[str]
) -> None:
    body = request_of(1).SerializeToString()
    issue = place.authority.issue
    clients = {
        "dns": issue("dns", "a.agents.example"),
        "uri": issue("uri", uris=("spiffe://cluster/ns/kube-system/sa/podtrail-agent",)),
        "common": issue("system:node:node-1.example"),
        "address": issue("address", addresses=("10.1.2.3",)),
    }

    async with serving(**{protocol: {"tls": place.tls | {"client_allowed_names": allowed}}}) as served:
        answers = {name: await outcome(protocol, served[protocol], it, place, body) for name, it in clients.items()}
        refused = "PERMISSION_DENIED" if protocol == "grpc" else "403"
        assert answers == {name: "taken" if name in taken else refused for name in clients}
        counted = served.metric("podtrail_receiver_failed_requests_total", transport=protocol, reason="forbidden")
        assert counted == len(clients) - len(taken)


@both
async def test_whose_authority_is_taken_out_of_the_file_gets_in_no_more_and_others_go_on(
    serving: Any, request_of: Any, place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, protocol: str
) -> None:
    monkeypatch.setattr("podtrail.transport.tls_server._LOOK_AGAIN", 0)
    body = request_of(1).SerializeToString()
    old, new = Authority(tmp_path, "old"), Authority(tmp_path, "new")
    revoked, rotated = old.issue("revoked", "agent.example"), new.issue("rotated", "agent.example")
    place.trust(old, new)

    async with serving(**{protocol: {"tls": place.tls | {"client_ca_file_reload": True}}}) as served:
        for client in (revoked, rotated):
            assert await outcome(protocol, served[protocol], client, place, body) == "taken"
        place.trust(new)
        assert await outcome(protocol, served[protocol], revoked, place, body) == "UNAVAILABLE"
        assert await outcome(protocol, served[protocol], rotated, place, body) == "taken"
        place.trusted.write_text("no certificate")
        assert await outcome(protocol, served[protocol], rotated, place, body) == "taken"
        assert await outcome(protocol, served[protocol], revoked, place, body) == "UNAVAILABLE"


async def test_over_http_a_connection_that_stands_is_cut_off_as_well(
    serving: Any, request_of: Any, place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("podtrail.transport.tls_server._LOOK_AGAIN", 0)
    body = request_of(1).SerializeToString()
    old, new = Authority(tmp_path, "old"), Authority(tmp_path, "new")
    revoked, rotated = old.issue("revoked", "agent.example"), new.issue("rotated", "agent.example")
    place.trust(old, new)

    async with serving(http={"tls": place.tls | {"client_ca_file_reload": True}}) as served:
        one = {name: aiohttp.TCPConnector(limit=1) for name in ("revoked", "rotated")}
        contexts = {
            it: client.ssl(place.authority.certificate) for it, client in (("revoked", revoked), ("rotated", rotated))
        }
        sessions = {it: aiohttp.ClientSession(connector=connector) for it, connector in one.items()}
        try:
            for name, session in sessions.items():
                assert await posted(session, served["http"], contexts[name], body) == "taken"
            place.trust(new)
            answers = {
                name: [await posted(session, served["http"], contexts[name], body) for _ in range(2)]
                for name, session in sessions.items()
            }
        finally:
            for session in sessions.values():
                await session.close()
        assert answers == {"revoked": ["503", "UNAVAILABLE"], "rotated": ["503", "taken"]}


def test_over_grpc_a_connection_lasts_no_longer_than_trust_may(place: Place) -> None:
    from podtrail.transport.grpc_server import _options
    from podtrail.transport.settings import GrpcServerSettings

    def age(**settings: Any) -> int | None:
        made = GrpcServerSettings.model_validate({"endpoint": "127.0.0.1:0", **settings})
        return dict(_options(made)).get("grpc.max_connection_age_ms")

    assert age(tls=place.tls) is None
    assert age(tls=place.tls | {"client_ca_file_reload": True}) == 300_000
    assert age(tls=place.tls | {"reload_interval": "1h"}) == 300_000
    assert age(tls=place.tls | {"reload_interval": "30s"}) == 30_000
    kept = {"server_parameters": {"max_connection_age": "1h"}}
    assert age(tls=place.tls | {"reload_interval": "30s"}, keepalive=kept) == 3_600_000


def test_what_cannot_be_used_is_told_once_and_leaves_what_serves(
    place: Place, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    clock = [0]
    settings = TlsServerSettings.model_validate(place.tls | {"reload_interval": "10s"})
    certificates = ServerCertificates(settings, lambda: clock[0])
    before = certificates.pems
    Path(place.tls["key_file"]).write_text("half a k")
    for seconds in (9, 10, 20, 30):
        clock[0] = seconds * SECOND
        assert not certificates.look()
    assert certificates.pems == before
    (said,) = caplog.messages
    assert said.endswith("; what was read before still serves")


@pytest.mark.parametrize("key", ["client_ca_file_reload", "client_allowed_names"])
def test_what_is_asked_of_clients_certificates_needs_an_authority(place: Place, key: str) -> None:
    tls = {name: value for name, value in place.tls.items() if name != "client_ca_file"}
    value: Any = True if key == "client_ca_file_reload" else ["agent"]
    with pytest.raises(ValidationError, match=f"{key} needs client_ca_file"):
        TlsServerSettings.model_validate(tls | {key: value})


@pytest.mark.parametrize("name", ["*", "", "**"])
def test_a_name_that_everybody_has_is_refused(place: Place, name: str) -> None:
    with pytest.raises(ValidationError, match="a name that allows everybody"):
        TlsServerSettings.model_validate(place.tls | {"client_allowed_names": [name]})


def test_the_common_name_counts_only_without_alternative_names() -> None:
    subject = ((("commonName", "agent"),),)
    assert certificate_names({"subject": subject}) == ("agent",)
    assert certificate_names({"subject": subject, "subjectAltName": (("DNS", "other"),)}) == ("other",)
    assert certificate_names({}) == ()


async def test_over_grpc_connections_that_end_for_new_authorities_lose_nothing_under_load(
    serving: Any, request_of: Any, place: Place
) -> None:
    client = place.authority.issue("agent", "agent.example")
    body = request_of(5).SerializeToString()
    age = {"server_parameters": {"max_connection_age": "200ms"}}
    ports: set[int] = set()

    settings = {"tls": place.tls | {"client_ca_file_reload": True}, "keepalive": age}
    async with (
        serving(grpc=settings) as served,
        grpc.aio.secure_channel(served["grpc"], client.grpc(place.authority.certificate)) as channel,
    ):
        method: Any = channel.unary_unary(METHOD)
        listening = int(served["grpc"].rpartition(":")[2])
        sent = 0
        async with asyncio.timeout(6 * DEADLINE):
            while len(ports) < 4:
                await asyncio.gather(*(method(body, wait_for_ready=True) for _ in range(20)))
                sent += 20 * 5
                alive = connected(listening)
                if alive is None:
                    pytest.skip("this system does not tell who is connected")
                ports.update(port for _, port in alive)
        assert len(served.spans) == sent
