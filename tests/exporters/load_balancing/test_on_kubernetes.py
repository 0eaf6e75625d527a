"""The endpoints of a Service on a real API server: as they come, are ready or not, and go."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest
from podtrail_exporters.load_balancing.config import K8sResolver
from podtrail_exporters.load_balancing.k8s_resolver import EndpointSliceWatch

from podtrail.component import StartError
from tests.exporters.load_balancing.balanced import balancing, batch_of, until
from tests.exporters.load_balancing.test_resolving import Heard

SLICES = "/apis/discovery.k8s.io/v1/namespaces/{}/endpointslices"


def endpoint(address: str, *, ready: bool | None = None, hostname: str = "") -> Mapping[str, Any]:
    conditions = {} if ready is None else {"conditions": {"ready": ready}}
    return {"addresses": [address], **conditions, **({"hostname": hostname} if hostname else {})}


def write(api: Any, namespace: str, name: str, *endpoints: Any, service: str = "gateway", kind: str = "IPv4") -> Any:
    metadata = {"name": name, "labels": {"kubernetes.io/service-name": service}}
    ports = [{"name": "otlp", "port": 4317}]
    body = {"metadata": metadata, "addressType": kind, "endpoints": list(endpoints), "ports": ports}
    return api.create(SLICES.format(namespace), body)


@asynccontextmanager
async def watched(kubeconfig: Any, service: str, **settings: Any) -> AsyncIterator[Heard]:
    config = K8sResolver.model_validate({"service": service, "kubeconfig": str(kubeconfig), **settings})
    resolver, heard = EndpointSliceWatch(config), Heard()
    await resolver.start(heard)
    try:
        yield heard
    finally:
        await resolver.stop()


async def next_of(heard: Heard) -> Sequence[str] | str:
    async with asyncio.timeout(60):
        return await heard.told.get()


@pytest.mark.control_plane
async def test_the_ready_endpoints_of_all_slices_are_the_backends(control_plane: Any, namespace: str) -> None:
    api, path = control_plane.api, SLICES.format(namespace)
    write(
        api, namespace, "a", endpoint("10.0.0.2"), endpoint("10.0.0.1", ready=True), endpoint("10.0.0.3", ready=False)
    )
    write(api, namespace, "other", endpoint("10.9.9.9"), service="another")
    async with watched(control_plane.kubeconfig, f"gateway.{namespace}", ports=[4317, 5317]) as heard:
        both = [f"10.0.0.{number}:{port}" for number in (1, 2) for port in (4317, 5317)]
        assert await next_of(heard) == both
        write(api, namespace, "six", endpoint("fd00::1"), kind="IPv6")
        assert await next_of(heard) == [*both, "[fd00::1]:4317", "[fd00::1]:5317"]
        api.patch(f"{path}/a", {"endpoints": [endpoint("10.0.0.1", ready=False), endpoint("10.0.0.3", ready=True)]})
        three = ["10.0.0.3:4317", "10.0.0.3:5317"]
        assert await next_of(heard) == [*three, "[fd00::1]:4317", "[fd00::1]:5317"]
        api.delete(f"{path}/six")
        assert await next_of(heard) == three
        api.delete(f"{path}/a")
        assert await next_of(heard) == []


@pytest.mark.control_plane
async def test_without_ports_the_ring_has_the_bare_addresses_as_the_collectors(
    control_plane: Any, namespace: str
) -> None:
    write(control_plane.api, namespace, "a", endpoint("10.0.0.1"))
    async with watched(control_plane.kubeconfig, f"gateway.{namespace}.svc.cluster.local") as heard:
        assert await next_of(heard) == ["10.0.0.1"]


@pytest.mark.control_plane
async def test_hostnames_are_those_of_a_stateful_sets_pods(control_plane: Any, namespace: str) -> None:
    named = endpoint("10.0.0.1", hostname="gateway-0")
    write(control_plane.api, namespace, "a", named, endpoint("10.0.0.2"))
    async with watched(control_plane.kubeconfig, f"gateway.{namespace}", return_hostnames=True, ports=[4317]) as heard:
        assert await next_of(heard) == [f"gateway-0.gateway.{namespace}:4317"]


@pytest.mark.control_plane
async def test_who_may_not_read_endpoints_is_told_what_to_grant(
    control_plane: Any, namespace: str, caplog: pytest.LogCaptureFixture
) -> None:
    stranger = control_plane.user("a-stranger")
    k8s = {"service": f"gateway.{namespace}", "kubeconfig": str(stranger)}
    here = balancing(resolver={"k8s": k8s})
    async with here:
        here.offer(batch_of(1))
        await until(lambda: "no backend" in caplog.text)
    said = (
        f"k8s: the endpoints of Service gateway in namespace {namespace} may not be read: "
        'endpointslices.discovery.k8s.io is forbidden: User "a-stranger" cannot list resource "endpointslices"'
    )
    grant = f"grant get, list and watch on endpointslices (apiGroup discovery.k8s.io) in {namespace}"
    told = next(record.message for record in caplog.records if "can't find its backends" in record.message)
    assert said in told
    assert grant in told
    assert f"no backend: {said}" in caplog.text


@pytest.mark.control_plane
async def test_a_service_without_ready_endpoints_is_named(
    control_plane: Any, namespace: str, caplog: pytest.LogCaptureFixture
) -> None:
    k8s = {"service": f"gateway.{namespace}", "kubeconfig": str(control_plane.kubeconfig)}
    here = balancing(resolver={"k8s": k8s})
    async with here:
        here.offer(batch_of(1))
        await until(lambda: "no backend" in caplog.text)
    assert f"no backend: Service gateway in namespace {namespace} has no ready endpoint" in caplog.text


async def test_a_kubeconfig_that_is_not_there_is_an_error_at_the_start(tmp_path: Any) -> None:
    missing = tmp_path / "nobody"
    here = balancing(resolver={"k8s": {"service": "gateway.observability", "kubeconfig": str(missing)}})
    with pytest.raises(StartError, match=f"resolver::k8s: kubeconfig {missing}: no such file"):
        await here.exporter.__aenter__()
