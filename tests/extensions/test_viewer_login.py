"""The viewer where other machines reach it: its page asks who is there."""

import grpc.aio
import pytest
from aiohttp import ClientSession, encode_basic_auth
from podtrail_extensions.basicauth import FACTORY as BASIC
from podtrail_extensions.viewer import Config
from podtrail_extensions.viewer.extension import Viewer

from podtrail.component import Context

METHOD = "/opentelemetry.proto.collector.trace.v1.TraceService/Export"


async def test_where_others_reach_it_a_user_is_asked_and_on_loopback_nobody() -> None:
    users = BASIC.Config.model_validate({"htpasswd": {"inline": "operator:pw"}})
    settings = {
        "endpoint": "0.0.0.0:0",
        "otlp_endpoint": "localhost:0",
        "allowed_hosts": ["podtrail.example"],
        "auth": {"authenticator": "basicauth"},
    }

    config = Config.model_validate(settings)
    assert config.warnings() == [(("auth",), "credentials travel in plain text: whoever can listen in has them")]
    async with BASIC.create(users, Context(id="basicauth")) as users_extension:
        viewer = Viewer(config, Context(id="viewer"))
        viewer.authenticate_by({"basicauth": users_extension})
        async with viewer, ClientSession() as browser:
            page = viewer.page.replace("0.0.0.0", "127.0.0.1")
            for path in ("", "api/v1/pods", "api/v1/live", "static/page.js", "nowhere"):
                async with browser.get(page + path) as answer:
                    assert answer.status == 401
                    assert answer.headers["WWW-Authenticate"] == 'Basic realm="podtrail", charset="UTF-8"'
                    assert await answer.text() == "no basic auth provided\n"
            async with browser.get(page, headers={"Authorization": encode_basic_auth("operator", "wrong")}) as answer:
                assert answer.status == 401
            async with browser.get(page, headers={"Authorization": encode_basic_auth("operator", "pw")}) as answer:
                assert answer.status == 200
            async with grpc.aio.insecure_channel(viewer.otlp_endpoint) as channel:
                export: grpc.aio.UnaryUnaryMultiCallable[bytes, bytes] = channel.unary_unary(METHOD)
                await export(b"")  # on the loopback nobody is asked


async def test_spans_come_in_with_credentials_where_others_reach_it() -> None:
    users = BASIC.Config.model_validate({"htpasswd": {"inline": "agent:pw"}})
    settings = {"endpoint": "localhost:0", "otlp_endpoint": "0.0.0.0:0", "auth": {"authenticator": "basicauth"}}

    async with BASIC.create(users, Context(id="basicauth")) as users_extension:
        viewer = Viewer(Config.model_validate(settings), Context(id="viewer"))
        viewer.authenticate_by({"basicauth": users_extension})
        async with (
            viewer,
            grpc.aio.insecure_channel(viewer.otlp_endpoint.replace("0.0.0.0", "127.0.0.1")) as channel,
        ):
            export: grpc.aio.UnaryUnaryMultiCallable[bytes, bytes] = channel.unary_unary(METHOD)
            with pytest.raises(grpc.aio.AioRpcError, match="no basic auth provided"):
                await export(b"")
            await export(b"", metadata=(("authorization", encode_basic_auth("agent", "pw")),))
