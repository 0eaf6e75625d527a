"""Exporters that show credentials: to scripted backends, and to a receiver that asks for them, while they change."""

import asyncio
import os
from pathlib import Path
from typing import Any

import grpc
import grpc.aio
import pytest
from aiohttp import web
from hypothesis import given
from hypothesis import strategies as st

from podtrail.component import Context, Permanent, Retryable
from podtrail.component.registry import find
from podtrail.config import ConfigError, Document
from podtrail.otlp import Batch
from podtrail.pipeline.settings import read_settings
from podtrail.transport.credentials import withheld
from tests.exporters.conftest import make_batch, make_exporter

METHOD = "opentelemetry.proto.collector.trace.v1.TraceService"


def extension(type_name: str = "bearertokenauth", **config: Any) -> Any:
    factory = find("extension", type_name)
    assert factory is not None
    return factory.create(factory.Config.model_validate(config), Context(id=type_name))


class Asking:
    """A backend over gRPC and HTTP that notes what was shown, and repeats it when it refuses."""

    def __init__(self, expects: str) -> None:
        self.expects = expects
        self.shown: list[str] = []

    def check(self, shown: str | None) -> str:
        self.shown.append(shown or "")
        return "" if shown == self.expects else f"scheme or token does not match: {shown}"

    async def rpc(self, _: bytes, context: grpc.aio.ServicerContext[bytes, bytes]) -> bytes:
        metadata = dict(context.invocation_metadata() or ())
        if refusal := self.check(str(metadata.get("authorization"))):
            await context.abort(grpc.StatusCode.UNAUTHENTICATED, refusal)
        return b""

    async def post(self, request: web.Request) -> web.Response:
        refusal = self.check(request.headers.get("authorization"))
        return (
            web.Response(status=401, text=refusal) if refusal else web.Response(content_type="application/x-protobuf")
        )


async def served(backend: Asking, kind: str, use: Any, **config: Any) -> None:
    """Have `use` called with an exporter of a kind to a backend."""
    if kind == "otlp_grpc":
        server = grpc.aio.server()
        method: Any = grpc.unary_unary_rpc_method_handler(backend.rpc)
        server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(METHOD, {"Export": method}),))
        port = server.add_insecure_port("127.0.0.1:0")
        await server.start()
        try:
            await use(make_exporter(kind, endpoint=f"http://127.0.0.1:{port}", **config))
        finally:
            await server.stop(0)
        return
    runner = web.ServerRunner(web.Server(backend.post))  # type: ignore[arg-type]  # it is given no other requests
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        host, port = runner.addresses[0][:2]
        await use(make_exporter(kind, endpoint=f"http://{host}:{port}", **config))
    finally:
        await runner.cleanup()


kinds = pytest.mark.parametrize("kind", ["otlp_grpc", "otlp_http"])


@kinds
def test_every_request_shows_what_the_authenticator_gives(
    kind: str,
) -> None:
    backend = Asking("Bearer s3cret")

    async def use(exporter: Any) -> None:
        async with extension(token="s3cret") as auth:
            exporter.authenticate_by({"bearertokenauth": auth})
            async with exporter:
                for _ in range(2):
                    assert await exporter.send(make_batch()) == 0

    asyncio.run(served(backend, kind, use, headers={"authorization": "from headers"}))
    assert backend.shown == ["Bearer s3cret"] * 2


@kinds
@pytest.mark.parametrize("from_file", [True, False])
def test_a_refusal_is_worth_another_try_only_when_credentials_may_change_and_it_repeats_none(
    kind: str, from_file: bool, tmp_path: Path
) -> None:
    file = tmp_path / "token"
    file.write_text("s3cret")
    backend = Asking("Bearer another")

    async def use(exporter: Any) -> None:
        async with extension(**({"filename": str(file)} if from_file else {"token": "s3cret"})) as auth:
            exporter.authenticate_by({"bearertokenauth": auth})
            async with exporter:
                with pytest.raises(Retryable if from_file else Permanent) as refused:
                    await exporter.send(make_batch())
        assert "scheme or token does not match: [REDACTED]" in str(refused.value)
        assert "s3cret" not in str(refused.value)

    asyncio.run(served(backend, kind, use))


@kinds
def test_without_an_authenticator_a_refusal_is_final(
    kind: str,
) -> None:
    async def use(exporter: Any) -> None:
        async with exporter:
            with pytest.raises(Permanent):
                await exporter.send(make_batch())

    asyncio.run(served(Asking("x"), kind, use))


@kinds
async def test_a_token_is_rotated_under_load_without_a_lost_span(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """First the receiver's, so that the exporter is refused for a while and tries again, as its queue has it."""
    monkeypatch.setattr("podtrail.transport.followed_file._LOOK_AGAIN", 0)
    asked, shown = tmp_path / "asked", tmp_path / "shown"
    for file in (asked, shown):
        file.write_text("token 0")
    protocol = {"otlp_grpc": "grpc", "otlp_http": "http"}[kind]
    receiver_factory = find("receiver", "otlp")
    assert receiver_factory is not None
    settings = {"endpoint": "127.0.0.1:0", "auth": {"authenticator": "bearertokenauth"}}
    config = receiver_factory.Config.model_validate({"protocols": {protocol: settings}})
    taken: list[Batch] = []
    sent, refused = 0, 0
    was_refused, is_over = asyncio.Event(), list[bool]()

    async def consume(batch: Batch) -> None:
        taken.append(batch)

    def rotate(file: Path, number: int) -> None:
        new = file.with_suffix(".new")
        new.write_text(f"token {number}")
        os.replace(new, file)

    async def deliver(exporter: Any) -> None:
        nonlocal sent, refused
        while not is_over:
            while True:
                try:
                    await exporter.send(make_batch(4))
                except Retryable:
                    refused += 1
                    was_refused.set()
                    await asyncio.sleep(0)
                else:
                    break
            sent += 4

    async with extension(filename=str(asked)) as server, extension(filename=str(shown)) as client:
        receiver = receiver_factory.create(config, Context(id="otlp"))
        receiver.authenticate_by({"bearertokenauth": server})
        async with receiver:
            running = asyncio.create_task(receiver.run(consume))
            exporter = make_exporter(kind, endpoint=f"http://{receiver.endpoints[protocol]}")
            exporter.authenticate_by({"bearertokenauth": client})
            async with exporter:
                loads = [asyncio.create_task(deliver(exporter)) for _ in range(8)]
                for number in range(1, 6):
                    rotate(asked, number)
                    was_refused.clear()
                    await was_refused.wait()
                    rotate(shown, number)
                is_over.append(True)
                await asyncio.gather(*loads)
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)
    assert refused >= 5
    assert sum(batch.span_count for batch in taken) == sent


def test_credentials_in_plain_text_to_another_machine_are_warned_of() -> None:
    for type_name in ("otlp_grpc", "otlp_http"):
        factory = find("exporter", type_name)
        assert factory is not None

        def warned(endpoint: str, of: Any = factory) -> list[Any]:
            settings = of.Config.model_validate({"endpoint": endpoint, "auth": {"authenticator": "bearertokenauth"}})
            warnings: list[Any] = settings.warnings()
            return warnings

        assert warned("https://gateway.example:4317") == []
        assert warned("http://localhost:4317") == []
        ((path, text),) = warned("http://gateway.example:4317")
        assert path == ("auth",)
        assert text == "credentials travel to gateway.example in plain text: whoever can listen in has them"


def configured(auth: str, extensions: str, started: str) -> list[str]:
    text = f"""\
extensions: {{{extensions}}}
receivers:
  otlp: {{protocols: {{grpc: {{auth: {{authenticator: {auth}}}}}}}}}
exporters:
  debug:
service:
  extensions: [{started}]
  pipelines:
    traces: {{receivers: [otlp], exporters: [debug]}}
"""
    try:
        read_settings(Document.from_text(text, "c.yaml"))
    except ConfigError as error:
        return str(error).splitlines()
    return []


BEARER = "bearertokenauth: {token: x}"
CLIENT = "basicauth: {client_auth: {username: x}}"


@pytest.mark.parametrize(
    ("auth", "extensions", "started", "said", "hint"),
    [
        (
            "bearertoken",
            BEARER,
            "bearertokenauth",
            'failed to resolve authenticator "bearertoken": authenticator not found',
            "did you mean bearertokenauth? authenticators configured: bearertokenauth",
        ),
        (
            "basicauth",
            CLIENT,
            "basicauth",
            "requested authenticator is not a server authenticator",
            "configure a second one for the server side, as basicauth/server, and name that",
        ),
        (
            "health_check",
            "health_check: {}",
            "health_check",
            "requested authenticator is not a server authenticator",
            "name a basicauth or a bearertokenauth",
        ),
        (
            "bearertokenauth",
            BEARER,
            "",
            'references extension "bearertokenauth" which is not started',
            "list it in service::extensions",
        ),
    ],
)
def test_a_wrong_reference_is_told_with_its_place(
    auth: str, extensions: str, started: str, said: str, hint: str
) -> None:
    lines = [line for line in configured(auth, extensions, started) if not line.startswith("warning")]
    path = "receivers::otlp::protocols::grpc::auth::authenticator"
    assert lines[0].startswith("c.yaml:3:")
    assert lines[0].endswith(f"{path}: {said}")
    assert lines[-1].strip() == hint


def test_a_right_reference_is_right() -> None:
    assert configured("bearertokenauth", BEARER, "bearertokenauth") == []


@given(st.permutations([("authorization", "Bearer s3cret"), ("x-key", "s3"), ("x-name", "")]))
def test_what_was_shown_is_withheld_with_its_scheme_and_without(shown: list[tuple[str, str]]) -> None:
    """Whichever was shown first: of values that are part of one another, the whole is withheld."""
    assert withheld(b"got Bearer s3cret, that is s3cret", dict(shown)) == b"got [REDACTED], that is [REDACTED]"
    assert withheld(b"nothing of it", {}) == b"nothing of it"
