"""A REST client: settings that can't be used are named, errors are types, the server's wishes are kept."""

import asyncio
import base64
import contextlib
import json
import shutil
import ssl
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from podtrail_kubernetes.errors import RestConfigError, StatusError, Unreachable
from podtrail_kubernetes.rate_limiter import RateLimiter
from podtrail_kubernetes.rest_client import RestClient, user_agent

from tests.certificates import Authority


@asynccontextmanager
async def served(
    handle: Callable[[web.Request], Awaitable[web.StreamResponse]], tls: ssl.SSLContext | None = None
) -> AsyncIterator[str]:
    """The address of a server that answers everything with `handle`."""
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", handle)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls)
    await site.start()
    host, port = runner.addresses[0][:2]
    try:
        async with asyncio.timeout(120):
            yield f"{'https' if tls else 'http'}://{host}:{port}"
    finally:
        await runner.cleanup()


def status(code: int, reason: str, **details: Any) -> web.Response:
    body = {"kind": "Status", "code": code, "reason": reason, "message": f"because {reason}", "details": details}
    return web.json_response(body, status=code)


async def test_a_refusal_has_the_code_reason_and_message_of_the_status() -> None:
    async def handle(_: web.Request) -> web.Response:
        return status(409, "Conflict")

    async with served(handle) as url:
        client = await RestClient.open(master=url, agent="tests")
        with pytest.raises(StatusError, match=r"^because Conflict$") as refused:
            await client.request("POST", "/api/v1/pods", {})
        assert (refused.value.code, refused.value.reason, refused.value.retry_after) == (409, "Conflict", None)
        await client.close()


async def test_a_proxys_answer_is_a_refusal_too() -> None:
    async def handle(_: web.Request) -> web.Response:
        return web.Response(status=502, text="<h1>Bad gateway</h1>")

    async with served(handle) as url:
        client = await RestClient.open(master=url, agent="tests")
        with pytest.raises(StatusError, match=r"^the server answered with code 502: <h1>Bad gateway</h1>$"):
            await client.request("GET", "/api/v1/pods")
        await client.close()


async def test_an_answer_that_says_when_to_come_back_is_waited_for() -> None:
    seen: list[str] = []

    async def handle(request: web.Request) -> web.Response:
        seen.append(await request.text())
        if len(seen) == 1:
            return status(429, "TooManyRequests", retryAfterSeconds=1)
        return web.json_response({"kind": "Pod"})

    async with served(handle) as url:
        client = await RestClient.open(master=url, agent="tests")
        start = asyncio.get_running_loop().time()
        assert await client.request("POST", "/api/v1/pods", {"a": 1}) == {"kind": "Pod"}
        assert asyncio.get_running_loop().time() - start > 0.95
        assert [json.loads(text) for text in seen] == [{"a": 1}, {"a": 1}]
        await client.close()


async def test_a_server_that_is_not_there_is_unreachable() -> None:
    client = await RestClient.open(master="http://127.0.0.1:1", agent="tests")
    with pytest.raises(Unreachable, match=r"^GET /api/v1/pods: "):
        await client.request("GET", "/api/v1/pods")
    await client.close()


async def test_requests_carry_agent_content_type_and_trace_context() -> None:
    seen: list[Any] = []

    async def handle(request: web.Request) -> web.Response:
        seen.append(request.headers)
        return web.json_response({})

    async with served(handle) as url:
        agent = user_agent("podtrail-scheduler", "1.2", "leader-election")
        client = await RestClient.open(master=url, agent=agent)
        trace = {"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}
        await client.request("PATCH", "/x", {}, headers=trace, content_type="application/merge-patch+json")
        await client.close()
    (headers,) = seen
    assert headers["User-Agent"].startswith("podtrail-scheduler/1.2 (")
    assert headers["User-Agent"].endswith(") leader-election")
    assert headers["traceparent"] == trace["traceparent"]
    assert headers["Content-Type"] == "application/merge-patch+json"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        pytest.param(None, "no such file", id="missing"),
        pytest.param("a: [", "not YAML", id="no YAML"),
        pytest.param("a: 1", "current-context", id="empty"),
        pytest.param("- 1", "", id="a list"),
        pytest.param(
            "current-context: a\ncontexts: [{name: b, context: {}}]\nclusters: []\nusers: []",
            "Expected object with name a in",
            id="no such context",
        ),
    ],
)
async def test_a_kubeconfig_that_cannot_be_used_is_named_with_what_is_wrong(
    tmp_path: Path, text: str | None, said: str
) -> None:
    path = tmp_path / "kubeconfig"
    if text is not None:
        path.write_text(text)

    with pytest.raises(RestConfigError) as told:
        await RestClient.open(path, agent="tests")
    assert str(told.value).startswith(f"kubeconfig {path}: ")
    assert said in str(told.value)


async def test_certificates_that_are_none_are_named(tmp_path: Path) -> None:
    path = tmp_path / "kubeconfig"
    rubbish = base64.b64encode(b"no certificate").decode()
    cluster = {"server": "https://127.0.0.1:1", "certificate-authority-data": rubbish}
    context = {"name": "it", "context": {"cluster": "it", "user": "it"}}
    config = {"current-context": "it", "contexts": [context], "clusters": [{"name": "it", "cluster": cluster}]}
    path.write_text(json.dumps(config | {"users": [{"name": "it", "user": {"token": "t"}}]}))

    with pytest.raises(RestConfigError, match=r"^certificates "):
        await RestClient.open(path, agent="tests")


async def test_without_the_kubernetes_client_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "kubernetes.aio.client", None)

    with pytest.raises(RestConfigError, match=r"install podtrail with its extra \[kubernetes\]$"):
        await RestClient.open(master="http://127.0.0.1:1", agent="tests")


async def test_outside_of_a_pod_without_a_kubeconfig_both_ways_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)

    with pytest.raises(RestConfigError, match=r"Give --kubeconfig, or run in a Pod\.$"):
        await RestClient.open(agent="tests")


@pytest.mark.parametrize(("passed_over", "proxied"), [("", True), ("127.0.0.1", False)])
async def test_the_environments_proxy_is_used_unless_it_is_to_be_passed_over(
    monkeypatch: pytest.MonkeyPatch, passed_over: str, proxied: bool
) -> None:
    seen: list[str] = []

    async def handle(request: web.Request) -> web.Response:
        seen.append(str(request.url))
        return web.json_response({"items": []})

    async with served(handle) as url:
        for name in ("HTTP_PROXY", "NO_PROXY"):
            monkeypatch.delenv(name, raising=False)
        monkeypatch.setenv("http_proxy", url)
        monkeypatch.setenv("no_proxy", passed_over)
        client = await RestClient.open(master="http://127.0.0.1:1", agent="tests")
        if proxied:
            await client.request("GET", "/api/v1/pods")
        else:
            with pytest.raises(Unreachable):
                await client.request("GET", "/api/v1/pods")
        await client.close()
    assert seen == (["http://127.0.0.1:1/api/v1/pods"] if proxied else [])


async def test_one_users_throttle_does_not_hold_back_another() -> None:
    async def handle(_: web.Request) -> web.Response:
        return web.json_response({})

    async with served(handle) as url:
        client = await RestClient.open(master=url, agent="tests", limiter=RateLimiter(0.001, 1))
        await client.request("GET", "/binding")
        throttled = asyncio.create_task(client.request("GET", "/binding"))
        await client.request("GET", "/status", limiter=RateLimiter(1.0, 1))
        assert not throttled.done()
        throttled.cancel()
        await asyncio.wait([throttled])
        await client.close()


@pytest.mark.control_plane
async def test_a_certificate_and_a_token_are_accepted_by_the_api_server(
    control_plane: Any, namespace: str, tmp_path: Path
) -> None:
    accounts = f"/api/v1/namespaces/{namespace}/serviceaccounts"
    control_plane.api.create(accounts, {"metadata": {"name": "me"}})

    def token() -> str:
        answer = control_plane.api.create(f"{accounts}/me/token", {"spec": {"expirationSeconds": 600}})
        return str(answer["status"]["token"])

    file = tmp_path / "token"
    file.write_text(token())
    with_token = control_plane.write_kubeconfig(tmp_path / "kubeconfig", {"tokenFile": str(file)})

    async def who(client: RestClient) -> str:
        review = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
        answer = await client.request("POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", review)
        return str(answer["status"]["userInfo"]["username"])

    admin = await RestClient.open(control_plane.kubeconfig, agent="tests")
    assert await who(admin) == "admin"
    await admin.close()
    me = await RestClient.open(with_token, agent="tests")
    assert await who(me) == f"system:serviceaccount:{namespace}:me"
    await me.close()


async def test_a_client_certificate_that_has_expired_is_replaced_on_open_connections(tmp_path: Path) -> None:
    """An API server asks the certificate of each request, and a connection keeps the one it was opened with."""
    authority = Authority(tmp_path)
    server = authority.server()
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cadata=authority.certificate.decode())
    tls.load_cert_chain(server.cert_file, server.key_file)
    tls.verify_mode = ssl.CERT_OPTIONAL
    valid = "old"

    async def handle(request: web.Request) -> web.Response:
        assert request.transport is not None
        ((_, name),) = request.transport.get_extra_info("peercert")["subject"][0]
        return web.json_response({}) if name == valid else status(401, "Unauthorized")

    def renew(name: str) -> None:
        issued = authority.issue(name)
        shutil.copy(issued.cert_file, tmp_path / "client.crt")
        shutil.copy(issued.key_file, tmp_path / "client.key")

    renew("old")
    (tmp_path / "ca.crt").write_bytes(authority.certificate)
    async with served(handle, tls) as address:
        named = {"name": "it", "user": {"client-certificate": "client.crt", "client-key": "client.key"}}
        cluster = {"name": "it", "cluster": {"server": address, "certificate-authority": "ca.crt"}}
        context = {"name": "it", "context": {"cluster": "it", "user": "it"}}
        told = {"clusters": [cluster], "users": [named], "contexts": [context], "current-context": "it"}
        (tmp_path / "kubeconfig").write_text(json.dumps(told))
        client = await RestClient.open(tmp_path / "kubeconfig", agent="tests")
        await asyncio.gather(*(client.request("GET", "/version") for _ in range(3)))
        renew("new")
        valid = "new"
        for _ in range(1000):  # files are not read twice in a second
            with contextlib.suppress(StatusError):
                await client.request("GET", "/version")
                break
            await asyncio.sleep(0.01)
        assert await asyncio.gather(*(client.request("GET", "/version") for _ in range(3))) == [{}] * 3
        await client.close()
