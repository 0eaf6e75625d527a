"""Backends at the ready endpoints of a Service, by its EndpointSlices (discovery.k8s.io/v1, KEP-752)."""

import asyncio
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any, Final

from podtrail import __version__
from podtrail.component import StartError
from podtrail.config.types import SECOND
from podtrail_exporters.load_balancing.config import K8sResolver
from podtrail_exporters.load_balancing.resolver import Sink

if TYPE_CHECKING:
    from podtrail_kubernetes.errors import RequestFailed
    from podtrail_kubernetes.reflector import Change, Reflector
    from podtrail_kubernetes.rest_client import RestClient

_SERVICE_LABEL: Final = "kubernetes.io/service-name"
_ACCOUNT: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount")
_FORBIDDEN: Final = 403

Json = Mapping[str, Any]


class EndpointSliceWatch:
    """Watches the EndpointSlices of a Service."""

    def __init__(self, settings: K8sResolver) -> None:
        self._settings = settings
        self._name, self._namespace = settings.name_and_namespace
        self._namespace = self._namespace or _own_namespace()
        self.nobody = f"Service {self._name} in namespace {self._namespace} has no ready endpoint"
        self._slices: dict[str, Json] = {}
        self._heard = asyncio.Event()
        self._client: RestClient | None = None
        self._task: asyncio.Task[None] | None = None

    async def start(self, sink: Sink) -> None:
        """Begin to watch, and wait until the endpoints are known or can't be known now.

        Raises:
            StartError: it can't be known how the API server is reached.
        """
        from podtrail_kubernetes.errors import RestConfigError
        from podtrail_kubernetes.reflector import ListWatch, Reflector
        from podtrail_kubernetes.rest_client import RestClient, user_agent

        try:
            self._client = await RestClient.open(_kubeconfig(self._settings), agent=user_agent("podtrail", __version__))
        except RestConfigError as error:
            raise StartError(f"resolver::k8s: {error}") from error

        def failed(failure: "RequestFailed") -> None:
            sink.failed(self._in_words(failure))
            self._heard.set()

        watched = ListWatch(
            f"/apis/discovery.k8s.io/v1/namespaces/{self._namespace}/endpointslices",
            label_selector=f"{_SERVICE_LABEL}={self._name}",
        )
        reflector = Reflector(self._client, watched, Random(), failed=failed)  # noqa: S311 - jitter
        self._task = asyncio.create_task(self._watch(reflector, sink), name=f"endpoints of {self._settings.service}")
        with suppress(TimeoutError):
            async with asyncio.timeout(self._settings.timeout / SECOND):
                await self._heard.wait()

    async def stop(self) -> None:
        """Watch no more."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        if self._client is not None:
            await self._client.close()

    async def _watch(self, reflector: "Reflector", sink: Sink) -> None:
        from podtrail_kubernetes.reflector import Deleted, Listed

        async def take(change: "Change") -> None:
            if isinstance(change, Listed):
                self._slices = {_uid(each): each for each in change.objects}
            elif isinstance(change, Deleted):
                self._slices.pop(_uid(change.object), None)
            else:
                self._slices[_uid(change.object)] = change.object
            sink.resolved(sorted(set(self._backends())))
            self._heard.set()

        await reflector.run(take)

    def _backends(self) -> Iterator[str]:
        for each in self._slices.values():
            for endpoint in each.get("endpoints") or ():
                # Absent means ready; whoever is about to go, or not there yet, gets nothing new.
                if (endpoint.get("conditions") or {}).get("ready") is not False:
                    yield from self._named(endpoint)

    def _named(self, endpoint: Json) -> Iterator[str]:
        """Yield an endpoint as the Collector's ring names it."""
        if self._settings.return_hostnames:
            hostname = endpoint.get("hostname")
            hosts: Sequence[str] = [f"{hostname}.{self._name}.{self._namespace}"] if hostname else ()
        else:
            hosts = endpoint.get("addresses") or ()
        for host in hosts:
            if not self._settings.ports:
                yield host
            for port in self._settings.ports:
                yield f"[{host}]:{port}" if ":" in host else f"{host}:{port}"

    def _in_words(self, failure: "RequestFailed") -> str:
        from podtrail_kubernetes.errors import StatusError

        service = f"k8s: the endpoints of Service {self._name} in namespace {self._namespace}"
        if isinstance(failure, StatusError) and failure.code == _FORBIDDEN:
            return (
                f"{service} may not be read: {failure}; grant get, list and watch on endpointslices "
                f"(apiGroup discovery.k8s.io) in {self._namespace}"
            )
        return f"{service} can't be read: {failure}"


def _uid(each: Json) -> str:
    return str(each["metadata"]["uid"])


def _kubeconfig(settings: K8sResolver) -> Path | None:
    """Return the kubeconfig's path; None for the Pod's ServiceAccount."""
    if named := settings.kubeconfig or os.environ.get("KUBECONFIG", ""):
        return Path(named).expanduser()
    return None if (_ACCOUNT / "token").exists() else Path("~/.kube/config").expanduser()


def _own_namespace() -> str:
    try:
        return (_ACCOUNT / "namespace").read_text(encoding="utf-8").strip() or "default"
    except OSError:
        return "default"
